"""The codes propose near vectors under every mask, and never one that the mask excludes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from trivet.stores.sqlite import quantized_codes, vector_block, vector_index
from trivet.stores.sqlite.quantized_codes import Mask, build
from trivet.stores.sqlite.scope import Scope
from trivet.stores.sqlite.vector_block import Filed, Halved, Held, Recorded

from .test_vector_index import DIM, check_exact, clustered, filled, opened


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand vectors go the way of a million: codes, then bytes, vectors in a file, written as they are read."""
    monkeypatch.setattr(quantized_codes, "PORTION", 300)
    monkeypatch.setattr(quantized_codes, "AT_LEAST", 400)
    monkeypatch.setattr(quantized_codes, "FEW", 20)
    monkeypatch.setattr(quantized_codes, "SLICE", 64)
    monkeypatch.setattr(vector_index, "SNAPSHOT_FROM", 100)
    monkeypatch.setattr(vector_index, "PORTION", 128)
    monkeypatch.setattr(vector_index, "BULK", 256)
    monkeypatch.setattr(vector_index, "IN_MEMORY", 1)
    monkeypatch.setattr(vector_block, "SLICE", 64)


@pytest.mark.parametrize("share", [1.0, 0.5, 0.2, 0.05, 0.02])
def test_of_a_large_block_the_nearest_are_found_whatever_the_mask_leaves(
    large: None, tmp_path: Path, share: float
) -> None:
    records = filled(1_500)
    index = opened(tmp_path / "m", records)
    assert index._base.codes is not None and index._base.codes.bytes is not None
    assert isinstance(index._base.rows, Recorded) and not index.wants_loading
    chosen = np.random.default_rng(3).random(1_501) < share
    scope = None if share == 1.0 else Scope(chosen)
    shares = []
    for query in clustered(10, seed=5):
        expected = [did for _, _, did in records.cosines(query) if scope is None or did in scope][:20]
        found = index.best(query, 20, scope)
        assert scope is None or all(did in scope for _, _, did in found)
        assert len(found) == len(expected)
        shares.append(len({did for _, _, did in found} & set(expected)) / len(expected))
    assert np.mean(shares) >= 0.95


def test_very_many_that_are_new_go_to_disk_as_they_are_read(large: None, tmp_path: Path) -> None:
    records = filled(1_000)
    index = opened(tmp_path / "m", records, compact=False)
    assert len(index._base) >= 896, "all but what came behind the last whole portion"
    assert index.size == 1_000
    for pid in (1, 500, 1_000):
        records.remove(pid)
    index.catch_up(records.version)
    assert index.size == 997
    again = opened(tmp_path / "m", records)
    assert again.size == 997
    for query in clustered(5, seed=9):
        assert {did for _, _, did in index.best(query, 10, None)} == {did for _, _, did in again.best(query, 10, None)}


def test_where_there_is_no_room_they_are_held_in_memory(
    large: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(vector_index.VectorIndex, "_snapshot", full)
    records = filled(1_000)
    index = opened(tmp_path / "m", records, compact=False)
    assert (len(index._base), len(index._tail)) == (0, 1_000)
    check_exact(index, records, clustered(1, seed=5)[0], 10)


def test_portions_make_the_codes_that_all_at_once_make(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = clustered(700)
    whole = build(Held(rows).take, 700, DIM, with_bytes=True)
    monkeypatch.setattr(quantized_codes, "PORTION", 128)
    parts = build(Held(rows).take, 700, DIM, with_bytes=True)
    assert whole is not None and parts is not None
    for query in clustered(5, seed=2):
        assert (whole.likeliest(query, 200, None)[0] == parts.likeliest(query, 200, None)[0]).all()


@pytest.mark.parametrize("dim", [1, 2, 3, 5, 7, 9, 16, 35])
def test_any_number_of_dimensions_can_be_coded(dim: int, tmp_path: Path) -> None:
    rows = np.random.default_rng(dim).standard_normal((300, dim), dtype=np.float32)
    made_of = build(Held(rows).take, 300, dim, with_bytes=True)
    assert made_of is not None
    quantized_codes.save(made_of, tmp_path)
    found = quantized_codes.load(tmp_path)
    assert found is not None and len(found) == 300
    query = rows[7]
    exact = np.argsort(-(rows @ query))[:10]
    proposed, more = found.likeliest(query, 280, None)
    assert more and len(proposed) == 46 and (np.diff(proposed) > 0).all()
    assert len(set(proposed) & set(exact)) >= 9


def test_a_narrow_mask_is_compared_as_a_whole() -> None:
    """So that a filter that leaves little is answered exactly."""
    rows = clustered(700)
    found = build(Held(rows).take, 700, DIM, with_bytes=False)
    assert found is not None
    alive = np.zeros(700, dtype=np.bool_)
    alive[::50] = True
    proposed, more = found.likeliest(rows[3], 5, Mask(alive))
    assert not more and (proposed == np.flatnonzero(alive)).all()


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 500])
def test_scores_are_the_products_however_the_rows_are_held(count: int) -> None:
    stored = clustered(600).astype(np.float16)
    rows = stored.astype(np.float32)
    chosen = np.sort(np.random.default_rng(count).choice(600, count, replace=False)).astype(np.int64)
    query = clustered(1, seed=8)[0]
    pids = np.arange(1, 601)
    recorded = Recorded(pids, DIM, lambda wanted: {pid: stored[pid - 1].tobytes() for pid in wanted})
    for each in (Held(rows), Halved(stored), recorded):
        assert each.scores(chosen, query) == pytest.approx(rows[chosen] @ query, abs=1e-5)
        assert each.scores(None, query) == pytest.approx(rows @ query, abs=1e-5)


def test_a_mask_keeps_every_row_that_it_was_made_of() -> None:
    alive = np.random.default_rng(1).random(1_003) < 0.3
    mask = Mask(alive)
    assert mask.count == np.count_nonzero(alive)
    assert (mask.rows() == np.flatnonzero(alive)).all()
    assert (mask.of(np.arange(1_003)) == alive).all()


def test_a_file_is_read_row_by_row_and_in_runs(tmp_path: Path) -> None:
    rows = clustered(40).astype(np.float16)
    rows.tofile(tmp_path / "v")
    filed = Filed(tmp_path / "v", 40, DIM)
    for wanted in ([3], [0, 1, 2, 7, 8, 39], [], list(range(40)), [9, 5, 6, 2]):
        assert (filed.take(np.array(wanted, dtype=np.int64)) == rows[wanted]).all()
    assert (filed.take(None) == rows).all()
    with pytest.raises(OSError, match="shorter"):
        Filed(tmp_path / "v", 50, DIM).take(np.array([45]))


def test_a_vector_that_is_no_longer_in_the_records_is_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_block, "READ_AT_ONCE", 2)
    rows = clustered(5).astype(np.float16)
    asked: list[list[int]] = []

    def read(pids: Sequence[int]) -> dict[int, bytes]:
        asked.append(list(pids))
        return {pid: rows[pid - 11].tobytes() for pid in pids if pid != 12}

    found = Recorded(np.arange(11, 16), DIM, read).take(np.array([0, 1, 4]))
    assert asked == [[11, 12], [15]]
    assert (found == np.stack([rows[0], 0 * rows[1], rows[4]])).all()
