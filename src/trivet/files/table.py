"""Tables: one document for each row, with its cells as text and as metadata.

A column ``id`` names the document, a column ``title`` or ``name`` is its title, a column ``text`` is its whole text.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from typing import Any

from trivet.files import encoding
from trivet.files.formats import Part, UnreadableError

MAX_ROWS = 500_000
META_CELL = 200  # characters: a longer cell is a text, not a value to filter by
_DELIMITERS = ",;\t|"
_SAMPLE = 20_000  # characters that tell the delimiter
_FIELD = 10_000_000  # characters of one cell: the size of a file that is read as text


def read_tsv(content: bytes) -> list[Part]:
    return read(content, "\t")


def read(content: bytes, delimiter: str = "") -> list[Part]:
    decoded = encoding.decode(content)
    delimiter = delimiter or _delimiter(decoded.text[:_SAMPLE])
    csv.field_size_limit(_FIELD)  # of the process; the default of 131,072 refuses a column of texts
    lines = csv.reader(io.StringIO(decoded.text, newline=""), delimiter=delimiter, strict=True)
    try:
        names = _named(next(lines))
        records = [_record(names, line) for line in lines if any(map(str.strip, line))]
    except (csv.Error, StopIteration) as error:
        raise UnreadableError(f"broken table: line {lines.line_num}: {error}") from error
    return parts(records, decoded.notes)


def parts(records: Iterable[Mapping[str, Any]], notes: tuple[str, ...] = ()) -> list[Part]:
    """Return the documents of rows; the first one carries the notes."""
    found: list[Part] = []
    for number, record in enumerate(records, 1):
        if number > MAX_ROWS:
            raise UnreadableError(f"more than {MAX_ROWS:,} rows; split it, or import it as JSON lines")
        found.append(_part(record, number, () if found else notes))
    return found


def _part(record: Mapping[str, Any], number: int, notes: tuple[str, ...]) -> Part:
    cells = {name: value for name, value in record.items() if value is not None and value != ""}
    by_name = {name.lower(): value for name, value in reversed(cells.items())}
    title = str(by_name.get("title") or by_name.get("name") or "")
    text = by_name.get("text")
    if not isinstance(text, str):
        text = "\n".join(f"{name}: {_written(value)}" for name, value in cells.items())
    meta = {name: value for name, value in cells.items() if len(_written(value)) <= META_CELL}
    key = str(by_name.get("id", number))
    return Part(text, title, key, "row", meta={**meta, "row": number}, notes=notes)


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _delimiter(sample: str) -> str:
    try:
        return csv.Sniffer().sniff(sample.splitlines()[0], _DELIMITERS).delimiter
    except (csv.Error, IndexError):  # one column
        return ","


def _named(names: list[str]) -> list[str]:
    """Return the names of the columns; one without a name is named by its number, a repeated one too."""
    found: list[str] = []
    for number, name in enumerate(map(str.strip, names), 1):
        found.append(name if name and name not in found else f"{name or 'column'} {number}")
    return found


def _record(names: list[str], line: list[str]) -> dict[str, Any]:
    more = [f"column {number}" for number in range(len(names) + 1, len(line) + 1)]
    return {name: _value(cell.strip()) for name, cell in zip([*names, *more], line, strict=False)}


def _value(cell: str) -> Any:
    """Return a number where the cell is written as one, so that a filter can compare it; 007 stays a text."""
    for kind in (int, float):
        try:
            value = kind(cell)
        except (ValueError, OverflowError):
            continue
        if str(value) == cell and abs(value) < 2**63:
            return value
    return cell
