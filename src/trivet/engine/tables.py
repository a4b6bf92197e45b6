"""Tables of pandas, polars and pyarrow as documents, one for each row.

A column with the name of a field of a document is that field, every other column is metadata. An empty cell (None, NaN,
NaT, NA) is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from trivet.filters import plain_value

#: How the rows of a table are read, by the package and the name of its class. None of the packages is imported.
_ROWS: dict[str, Callable[[Any], Iterable[Mapping[Any, Any]]]] = {
    "pandas.DataFrame": lambda table: (
        dict(zip(table.columns, row, strict=True)) for row in table.itertuples(index=False, name=None)
    ),
    "polars.DataFrame": lambda table: table.iter_rows(named=True),
    "polars.LazyFrame": lambda table: table.collect().iter_rows(named=True),
    "pyarrow.Table": lambda table: table.to_pylist(),
    "pyarrow.RecordBatch": lambda table: table.to_pylist(),
}


def documents(given: Any, known: Sequence[str]) -> Any:
    """Return the rows of a table as documents whose fields are ``known``; anything else as it is."""
    for kind in type(given).__mro__:
        read = _ROWS.get(f"{kind.__module__.partition('.')[0]}.{kind.__name__}")
        if read is not None:
            return [_document(row, known) for row in read(given)]
    return given


def _document(row: Mapping[Any, Any], known: Sequence[str]) -> dict[str, Any]:
    cells = {str(name): value for name, value in row.items() if not _is_empty(value)}
    if "text" in row:  # an empty cell: its title may be all that the row says
        cells.setdefault("text", "")
    document = {name: value for name, value in cells.items() if name in known}
    rest = {name: value for name, value in cells.items() if name not in known}
    given = document.get("meta") or {}
    return {**document, "meta": {**rest, **given} if isinstance(given, Mapping) else given}


def _is_empty(value: Any) -> bool:
    value = plain_value(value)
    return value is None or (isinstance(value, float) and value != value)
