"""Vectors are stored with 16 bits a number; stores with 32 are read as if they had been, and rewritten by compact."""

from __future__ import annotations

import json
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import trivet
from trivet.stores.indexes import snapshots
from trivet.stores.sqlite import vector_index
from trivet.stores.sqlite import vectors as vectors_module
from trivet.stores.sqlite.half_precision import ROUNDING, floats, halves, rounded, widened
from trivet.stores.sqlite.vector_index import VectorIndex

from .passage_list import VectorList

DIM, COUNT = 48, 30
BEFORE = 8  # the last schema with 32 bits a number


def unit(count: int, dim: int = DIM, seed: int = 1) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((count, dim))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype("<f4")


def test_every_finite_number_is_widened_exactly() -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    finite = every[np.isfinite(every)]
    assert (widened(finite).view(np.uint32) == finite.astype(np.float32).view(np.uint32)).all()


def test_a_vector_is_rounded_once() -> None:
    data = unit(1).tobytes()
    stored = rounded(data)
    assert len(stored) == 2 * DIM
    assert rounded(floats(stored, DIM)) == stored
    assert floats(data, DIM) == floats(stored, DIM), "32 bits are read as 16"
    assert halves(data, DIM) == halves(stored, DIM) == stored


@pytest.mark.parametrize("dim", [1, 2, 384, 3072])
def test_no_cosine_changes_by_more_than_the_rounding(dim: int) -> None:
    rows = np.concatenate([unit(50, dim), np.full((1, dim), dim**-0.5, dtype="<f4")])
    stored = np.frombuffer(rounded(rows.tobytes()), dtype="<f2").reshape(rows.shape).astype(np.float64)
    assert np.abs((stored - rows) @ rows.T.astype(np.float64)).max() <= ROUNDING + 1e-6


def lengths(path: Path) -> list[int]:
    with closing(sqlite3.connect(path)) as connection:
        return [size for (size,) in connection.execute("SELECT DISTINCT length(data) FROM vectors")]


def cosines(engine: trivet.Engine) -> list[tuple[str, float]]:
    hits = engine.search("", COUNT, vector=unit(1, seed=2)[0], weights={"dense": 1}, rerankers=[])
    return [(hit.id, part.raw) for hit in hits for part in hit.contributions if part.leg == "dense"]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A store as the trivet before left it: 32 bits a number, with checksums of those."""
    path = tmp_path / "memory.db"
    rows = unit(COUNT)
    with trivet.open(path, embedder=f"vectors:{DIM}") as engine:
        engine.add({"id": f"d{at}", "text": f"number {at}", "vector": row} for at, row in enumerate(rows))
    with closing(sqlite3.connect(path)) as connection, connection:
        for vid, row in enumerate(rows, start=1):
            connection.execute("UPDATE vectors SET data = ? WHERE vid = ?", (row.tobytes(), vid))
            connection.execute("UPDATE seals SET sum = ? WHERE vid = ?", (zlib.crc32(row.tobytes()), vid))
        connection.execute(f"PRAGMA user_version={BEFORE}")
    assert lengths(path) == [4 * DIM]
    return path


def test_an_old_store_answers_as_a_new_one(old: Path, tmp_path: Path) -> None:
    with trivet.open(tmp_path / "new.db", embedder=f"vectors:{DIM}") as engine:
        engine.add({"id": f"d{at}", "text": f"number {at}", "vector": row} for at, row in enumerate(unit(COUNT)))
        expected = cosines(engine)
        engine.export(tmp_path / "new.jsonl", vectors=True)
    with trivet.open(old) as engine:
        assert cosines(engine) == expected
        assert engine.verify().ok
        engine.export(tmp_path / "old.jsonl", vectors=True)
        again = {"id": "d3", "text": "number 3", "vector": unit(COUNT)[3]}
        assert engine.add(again).unchanged == 1
    vectors = [
        [line.partition('"vector"')[2] for line in (tmp_path / name).read_text().splitlines()]
        for name in ("old.jsonl", "new.jsonl")
    ]
    assert vectors[0] == vectors[1]


def test_compact_rewrites_an_old_store_and_changes_no_answer(old: Path) -> None:
    with trivet.open(old) as engine:
        before = cosines(engine)
        engine.compact()
        assert cosines(engine) == before
        assert engine.verify().ok
    assert lengths(old) == [2 * DIM]


def test_a_rewriting_that_was_interrupted_goes_on_later(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors_module, "HALVED", 7)
    with trivet.open(old) as engine:
        before = cosines(engine)
        with monkeypatch.context() as patch:
            batches = iter([rounded] * 10)
            patch.setattr(vectors_module, "rounded", lambda data: next(batches)(data))
            with pytest.raises((StopIteration, RuntimeError)):
                engine.compact()
        assert sorted(lengths(old)) == [2 * DIM, 4 * DIM]
        assert cosines(engine) == before
        assert engine.verify().ok
        engine.compact()
        assert engine.verify().ok
    assert lengths(old) == [2 * DIM]


@pytest.mark.parametrize("format", [7, 8])
def test_a_snapshot_with_vectors_is_made_anew_without(
    format: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Older ones had a copy of the vectors, with 32 bits a number (7) or 16 (8)."""
    monkeypatch.setattr(vector_index, "SNAPSHOT_FROM", 100)
    records = VectorList()
    for did, row in enumerate(unit(300), start=1):
        records.add(did, row)
    index = VectorIndex(tmp_path / "m", records, DIM)
    index.catch_up(records.version)
    index.compact()
    (folder,) = snapshots.newest_first(tmp_path / "m")
    (folder / "vectors.f16").write_bytes(bytes(300))
    state = json.loads((folder / "state.json").read_text()) | {"format": format}
    (folder / "state.json").write_text(json.dumps(state))
    index = VectorIndex(tmp_path / "m", records, DIM)
    assert not index.deleted, "nothing was damaged"
    query = unit(1, seed=2)[0]
    expected = [(did, pytest.approx(cosine, abs=1e-6)) for cosine, _, did in records.cosines(query)[:10]]
    for _ in range(2):
        index.catch_up(records.version)
        assert [(did, cosine) for cosine, _, did in index.best(query, 10, None)] == expected
        index.rewrite()
        (folder,) = snapshots.newest_first(tmp_path / "m")
        assert json.loads((folder / "state.json").read_text())["format"] == 9
        assert not list(folder.glob("vectors*"))


def test_a_damaged_vector_gets_no_new_checksum(old: Path) -> None:
    with closing(sqlite3.connect(old)) as connection, connection:
        connection.execute("UPDATE vectors SET data = ? WHERE vid = 5", (unit(1, seed=9).tobytes(),))
    with trivet.open(old) as engine:
        engine.compact()
        assert any("number 5 " in problem for problem in engine.verify().problems)
    assert sorted(lengths(old)) == [2 * DIM, 4 * DIM]


def test_a_backup_of_an_old_store_is_restored(old: Path, tmp_path: Path) -> None:
    with trivet.open(old) as engine:
        before = cosines(engine)
        engine.backup(tmp_path / "backup.db")
    with closing(sqlite3.connect(tmp_path / "backup.db")) as connection, connection:
        connection.execute(f"PRAGMA user_version={BEFORE}")
    trivet.restore(tmp_path / "backup.db", old)
    with trivet.open(old) as engine:
        assert cosines(engine) == before
        assert engine.verify().ok
