"""Tables of LanceDB, written by LanceDB."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

lancedb = pytest.importorskip("lancedb", reason="needs the extra lancedb: `make test-integrations`")

import trivet
from trivet.errors import InputError
from trivet.files.jsonl import Broken
from trivet.files.paths import import_source
from trivet.files.sources import SOURCES

MADE = datetime(2026, 6, 1, 10, tzinfo=UTC)


def read(path: Path) -> list[Any]:
    return list(SOURCES["lancedb"](path))


def table(folder: Path, name: str, *rows: dict[str, Any]) -> Path:
    lancedb.connect(folder).create_table(name, list(rows), mode="overwrite")
    return folder


def test_a_row_is_a_document_with_its_columns_as_metadata(tmp_path: Path) -> None:
    row = {"id": "door", "title": "Door", "text": "It sticks.", "vector": [0.5, 1.0], "metadata": {"page": 1}}
    table(tmp_path, "notes", {**row, "created_at": MADE, "kept": True, "raw": b"x", "none": None, "other": [1.0, 2.0]})
    (one,) = read(tmp_path)
    assert one == {
        "id": "notes/door",
        "text": "It sticks.",
        "title": "Door",
        "created": "2026-06-01T10:00:00+00:00",
        "meta": {"kept": True, "page": 1, "other": [1.0, 2.0], "source": "lancedb"},
        "vector": [0.5, 1.0],
    }
    assert read(tmp_path / "notes.lance") == [one]


def test_rows_without_an_id_are_named_by_their_text(tmp_path: Path) -> None:
    first, second = {"content": "It sticks.", "n": 1}, {"content": "It is planed.", "n": 2}
    (_, two) = read(table(tmp_path, "notes", first, second))
    assert read(table(tmp_path, "notes", second)) == [two]  # the first one was removed


def test_metadata_as_json_text_and_as_another_text(tmp_path: Path) -> None:
    rows = ({"id": 1, "text": "a", "metadata": '{"page": 1}'}, {"id": 2, "text": "b", "metadata": "{page"})
    one, two = read(table(tmp_path, "notes", *rows))
    assert (one["id"], one["meta"]) == ("notes/1", {"page": 1, "source": "lancedb"})
    assert two["meta"] == {"metadata": "{page", "source": "lancedb"}


def test_what_has_no_text_is_named_and_the_rest_goes_in(tmp_path: Path) -> None:
    table(tmp_path, "bare", {"id": 1, "vector": [1.0, 2.0]})
    table(tmp_path, "notes", {"id": "a", "text": "a"}, {"id": "b", "text": None}, {"id": "c", "text": " "})
    bare, one, two, three = read(tmp_path)
    assert bare == Broken("bare", "no column text, content or document (it has id, vector)")
    assert (one["id"], two, three) == (
        "notes/a",
        Broken("notes/b", "no text in the column text"),
        Broken("notes/c", "no text in the column text"),
    )


def test_a_folder_without_tables_and_a_broken_table_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no table of LanceDB"):
        read(tmp_path)
    assert not list(tmp_path.iterdir())
    table(tmp_path, "empty", {"id": "a", "text": "a"})
    for file in (tmp_path / "empty.lance/_versions").glob("*.manifest"):
        file.write_bytes(b"junk")
    with pytest.raises(InputError, match="is not a table that lancedb can read"):
        read(tmp_path)


def test_more_rows_than_are_read_at_once(tmp_path: Path) -> None:
    table(tmp_path, "many", *({"id": str(number), "text": f"note {number}"} for number in range(2_500)))
    assert {item["id"] for item in read(tmp_path)} == {f"many/{number}" for number in range(2_500)}


@pytest.mark.parametrize(("embedder", "vectors"), [("vectors:2", 1), ("hashing", 0)])
def test_vectors_are_kept_where_the_collection_takes_them(tmp_path: Path, embedder: str, vectors: int) -> None:
    table(tmp_path / "db", "notes", {"id": "door", "text": "It sticks.", "vector": [0.5, 1.0]})
    with trivet.open(tmp_path / "m.db", embedder=embedder, background=False) as engine:
        for added in (1, 0):
            importer = import_source(engine, "lancedb", [str(tmp_path / "db")], lambda done, total: None)
            assert (importer.tally.added, importer.tally.broken) == (added, [])
            importer.close()
        found = engine.search("anything", vector=[0.5, 1.0]) if vectors else engine.search("sticks")
        assert [hit.id for hit in found] == ["notes/door"]
