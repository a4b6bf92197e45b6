"""LanceDB: the rows of the tables in a folder. Needs the extra ``lancedb``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from trivet.errors import InputError
from trivet.files.formats import missing
from trivet.files.jsonl import Broken
from trivet.files.parquet import plain
from trivet.files.sources import exports

SUFFIX = ".lance"
_TEXTS = ("text", "content", "document")
_TIMES = ("created_at", "created", "timestamp")
_ROWS = 1_000  # read at once: 4 MB of vectors of 1,024 numbers


def read(path: Path) -> Iterator[dict[str, Any] | Broken]:
    try:
        import lancedb
    except ImportError as error:
        raise missing("lancedb") from error

    folders = [path] if path.suffix == SUFFIX else sorted(path.glob(f"*{SUFFIX}"))
    if not folders:
        raise InputError(f"import: {str(path)!r} has no table of LanceDB; name the folder that its *{SUFFIX} are in")
    for folder in folders:
        try:
            table = lancedb.connect(folder.parent).open_table(folder.stem)
            yield from _rows(table, folder.stem)
        except (ValueError, RuntimeError, OSError) as error:
            said = " ".join(str(error).split())[:120]
            raise InputError(f"import: {str(folder)!r} is not a table that lancedb can read ({said})") from None


def _rows(table: Any, name: str) -> Iterator[exports.Item]:
    from pyarrow import types

    text = next((column for column in _TEXTS if column in table.schema.names), None)
    if text is None:
        columns = ", ".join(table.schema.names)
        yield Broken(name, f"no column {', '.join(_TEXTS[:-1])} or {_TEXTS[-1]} (it has {columns})")
        return
    vectors = [field.name for field in table.schema if types.is_fixed_size_list(field.type)]
    left_out = [field.name for field in table.schema if types.is_binary(field.type) or field.name in vectors[1:]]
    wanted = [column for column in table.schema.names if column not in left_out]
    for batch in table.search().select(wanted).to_batches(_ROWS):
        for row in batch.to_pylist():
            yield _document({column: plain(row[column]) for column in wanted}, name, text, vectors)


def _document(row: dict[str, Any], table: str, text_column: str, vectors: Sequence[str]) -> exports.Item:
    text = row.pop(text_column)
    # a row without an id is named by its text, which stays when rows before it are removed
    key = row.pop("id", None)
    key = key if key not in (None, "") else hashlib.sha256(str(text).encode()).hexdigest()[:16]
    id = f"{table}/{key}"
    if not isinstance(text, str) or not text.strip():
        return Broken(id, f"no text in the column {text_column}")
    created = next((row.pop(name) for name in _TIMES if row.get(name) is not None), None)
    vector = row.pop(vectors[0], None) if vectors else None
    title, given = row.pop("title", None), _metadata(row.pop("metadata", None))
    meta = {**row, **given, "source": "lancedb"}
    known = {name: value for name, value in meta.items() if value is not None}
    document = {"id": id, "text": text, "title": str(title or ""), "created": created, "meta": known}
    return document if vector is None else {**document, "vector": vector}


def _metadata(value: Any) -> dict[str, Any]:
    """Return the metadata of a row, which some programs write as JSON text."""
    if isinstance(value, str):
        try:
            found = json.loads(value)
        except (ValueError, RecursionError):
            found = value
        return found if isinstance(found, dict) else {"metadata": value}
    return exports.mapping(value)
