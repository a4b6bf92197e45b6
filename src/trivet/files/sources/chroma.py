"""Chroma: the documents and metadata of a folder of its persistent client; the texts are embedded anew."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any

from trivet.errors import InputError
from trivet.files.jsonl import Broken

FILE = "chroma.sqlite3"
_ROWS = """
SELECT e.id AS number, e.embedding_id, e.created_at, c.name AS collection, m.* FROM embeddings e
JOIN segments s ON s.id = e.segment_id JOIN collections c ON c.id = s.collection
LEFT JOIN embedding_metadata m ON m.id = e.id ORDER BY e.id, m.key
"""
_TEXT = "chroma:document"


def read(path: Path) -> Iterator[dict[str, Any] | Broken]:
    file = path / FILE if path.is_dir() else path
    if not file.is_file():
        raise InputError(f"import: {str(path)!r} has no {FILE}; name the folder of Chroma's persistent client")
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as database:
            database.row_factory = sqlite3.Row
            rows = map(dict, database.execute(_ROWS))
            for _, group in groupby(rows, key=lambda row: row["number"]):
                yield _document(list(group))
    except sqlite3.Error as error:
        raise InputError(f"import: {str(file)!r} is not a database of Chroma 0.4 or newer ({error})") from None


def _document(rows: list[dict[str, Any]]) -> dict[str, Any] | Broken:
    first = rows[0]
    id = f"{first['collection']}/{first['embedding_id']}"
    meta = {row["key"]: _value(row) for row in rows if row["key"]}
    text = meta.pop(_TEXT, None)
    if not text:
        return Broken(id, "no document, only a vector")
    own = {name: value for name, value in meta.items() if not name.startswith("chroma:") and value is not None}
    created = {"created": f"{first['created_at']}Z".replace(" ", "T")} if first["created_at"] else {}
    return {"id": id, "text": text, "meta": {**own, "source": "chroma"}, **created}


def _value(row: dict[str, Any]) -> Any:
    if row.get("bool_value") is not None:  # older databases have no such column
        return bool(row["bool_value"])
    values = (row[name] for name in ("string_value", "int_value", "float_value"))
    return next((value for value in values if value is not None), None)
