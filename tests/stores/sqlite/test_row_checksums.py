"""A row that is not what was written is found."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import trivet
from trivet.errors import StoreError
from trivet.stores.sqlite import row_checksums

META = {"n": 7, "tags": ["wet", "dry", "wet"], "deep": {"x": 1.5, "yes": True, "none": None}, "empty": []}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with trivet.open(tmp_path / "memory.db", embedder="hashing:8") as engine:
        engine.add("The side door sticks when it rains. " * 200, id="door", title="doors", meta=META, importance=0.25)
        engine.add("Otters sleep in the harbour.", id="otter", meta={"big": 2**62, "one": 1, "tiny": 1e-300})
        engine.add("deleted again", id="gone")
        engine.delete("gone")
        engine.link("door", "otter", weight=0.5)
        engine.feedback("why", "door")
        engine.touch(["door"])
        engine.update_settings(k=7)
        engine.patch("otter", title="otters")
        engine.collection("second", embedder="none").add("another", id="a")
        assert engine.verify().ok, engine.verify()
    return tmp_path / "memory.db"


def problems(store: Path) -> list[str]:
    with trivet.open(store) as engine:
        return list(engine.verify().problems)


def overwritten(store: Path, old: bytes, new: bytes, last: bool = False) -> None:
    """As a disk would: behind SQLite's back."""
    data = store.read_bytes()
    at = data.rindex(old) if last else data.index(old)
    store.write_bytes(data[:at] + new + data[at + len(old) :])


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (b"Otters sleep", b"Otters sleeq", "document 'otter': its title or text"),
        (b"otters", b"otterr", "document 'otter': its title or text"),
        (b"door sticks when it rains. The", b"door stickr when it rains. The", "document 'door': its title or text"),
        (b"harbour", b"harb\xffur", "document 'otter': its title or text"),
        (b'"yes": true', b'"yes": frue', "document 'door': its metadata cannot be read"),
        (b'"n": 7', b'"n": 3', "document 'door': its metadata is not"),
    ],
)
def test_a_flipped_bit_in_a_text_or_its_metadata_is_told_with_the_document(
    store: Path, old: bytes, new: bytes, told: str
) -> None:
    overwritten(store, old, new)
    assert any(told in problem for problem in problems(store)), problems(store)


@pytest.mark.parametrize("change", ["stop = stop + 2", "start = start - 28"])
def test_a_passage_that_ends_behind_its_text_or_counts_from_its_end_is_told(store: Path, change: str) -> None:
    """Cut there, the text is the same, and so is its hash: `make test-robust` met the first by a flipped bit."""
    with closing(sqlite3.connect(store)) as connection:
        connection.execute(
            f"UPDATE passages SET {change} WHERE did = (SELECT did FROM documents WHERE text GLOB 'Otters*')"
        )
        connection.commit()
    assert any("document 'otter': its passages do not lie in its text" in problem for problem in problems(store))


def test_every_bit_of_a_vector_counts(store: Path) -> None:
    with closing(sqlite3.connect(store)) as connection:
        (data,) = connection.execute("SELECT data FROM vectors ORDER BY vid DESC LIMIT 1").fetchone()
    overwritten(store, data, data[:2] + bytes([data[2] ^ 1]) + data[3:])  # the lowest bit of a number
    assert any("vectors: number" in problem and "is not what was written" in problem for problem in problems(store))


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE documents SET importance = 0.26 WHERE id = 'door'",
        "UPDATE documents SET accessed = accessed + 1",
        "UPDATE links SET weight = 0.51",
        "UPDATE feedback SET good = 0",
        "UPDATE collections SET settings = replace(settings, '7', '8')",
        "UPDATE settings_history SET who = 'x'",
        "UPDATE access SET count = 9",
    ],
)
def test_a_number_that_stands_in_one_place_has_a_copy_in_an_index(store: Path, change: str) -> None:
    """Changed without its index, as a flipped bit would: SQLite's own check compares the two."""
    kept = schema(store, "DELETE FROM sqlite_master WHERE name LIKE '%_sealed'")
    with closing(sqlite3.connect(store)) as connection:
        assert connection.execute(change).rowcount
        connection.commit()
    for row in kept:
        schema(store, "INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", *row)
    assert any(told.startswith("file: ") and "_sealed" in told for told in problems(store)), problems(store)


def schema(store: Path, statement: str, *values: object) -> list[tuple[object, ...]]:
    """Change what SQLite believes to be in the file; returns the rows of the indexes that were in it before."""
    with closing(sqlite3.connect(store)) as connection:
        before = connection.execute(
            "SELECT * FROM sqlite_master WHERE name LIKE '%_sealed' AND type = 'index'"
        ).fetchall()
        connection.execute("PRAGMA writable_schema=ON")
        connection.execute(statement, values)
        connection.commit()
    return before


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("UPDATE passages SET stop = stop - 1 WHERE ordinal = 0", "its passages are not those of its text"),
        ("DELETE FROM passages WHERE ordinal = 0 AND cid = 1", "its passages are not all there"),
        ("DELETE FROM documents WHERE id = 'otter'", "belong to no document"),
        ("DELETE FROM fields WHERE key = 'n'", "document 'door': its metadata is not what was written"),
        ("INSERT INTO fields VALUES (1, 'n', 7, 999)", "fields: values of 1 documents that are not here"),
        ("UPDATE counters SET value = 1 WHERE name = 'passage'", "counters: passage stands at 1, but number"),
        ("INSERT INTO removed SELECT 99, cid, pid FROM passages LIMIT 1", "passages that are said to be gone are here"),
        ("DELETE FROM models", "of a model or a passage that is not here"),
        ("UPDATE seals SET sum = sum + 1", "is not what was written"),
        ("INSERT INTO seals VALUES (999, 1)", "checksums: 1 belong to vectors that do not exist"),
    ],
)
def test_rows_that_do_not_fit_each_other_are_told(store: Path, change: str, told: str) -> None:
    with closing(sqlite3.connect(store)) as connection:
        connection.execute(change)
        connection.commit()
        connection.execute("BEGIN")
        found = row_checksums.problems(connection)
    assert any(told in problem for problem in found), found


def test_vectors_of_an_older_trivet_have_no_seal_and_are_sound(store: Path) -> None:
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("DELETE FROM seals")
        connection.commit()
    assert problems(store) == []


def test_a_seal_goes_with_its_vector(store: Path) -> None:
    with trivet.open(store) as engine:
        engine.delete("door")
        engine.reembed("hashing:16")
    with closing(sqlite3.connect(store)) as connection:
        counts = connection.execute("SELECT (SELECT count(*) FROM vectors), (SELECT count(*) FROM seals)").fetchone()
    assert counts == (1, 1)
    assert problems(store) == []


def test_hundreds_of_damaged_documents_are_counted_not_listed(tmp_path: Path) -> None:
    with trivet.open(tmp_path / "memory.db", embedder="none") as engine:
        engine.add([{"id": f"d{number}", "text": f"note {number}"} for number in range(50)])
    with closing(sqlite3.connect(tmp_path / "memory.db")) as connection:
        connection.execute("UPDATE documents SET text = text || '!'")
        connection.commit()
    found = problems(tmp_path / "memory.db")
    assert len(found) == row_checksums.NAMED + 1
    assert found[-1].endswith("and 30 more of this kind")


def test_what_is_written_meanwhile_is_no_damage(store: Path) -> None:
    """One moment is read, however long it takes."""
    with trivet.open(store) as engine, engine._store.database.moment() as connection:  # type: ignore[attr-defined]
        engine.add("written while the check reads", id="new", meta={"n": 1})
        engine.delete("otter")
        assert row_checksums.problems(connection) == []


def test_a_list_of_collections_with_no_name_in_it_is_told(store: Path) -> None:
    """A sector of zeroes makes a NULL of any column, whatever the schema says of it."""
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("PRAGMA writable_schema=ON")
        connection.execute("UPDATE sqlite_master SET sql = replace(sql, 'name TEXT NOT NULL', 'name TEXT')")
        connection.commit()
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("UPDATE collections SET name = NULL WHERE name = 'second'")
        connection.commit()
    with pytest.raises(StoreError, match=r"list of its collections is damaged; run `trivet doctor`"):
        trivet.open(store, create=False)
