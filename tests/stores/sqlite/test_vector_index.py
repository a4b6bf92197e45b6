"""The nearest vectors are found with their exact cosine, in the snapshot and in the tail."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from trivet.errors import StoreError
from trivet.stores.sqlite import quantized_codes, vector_index
from trivet.stores.sqlite.half_precision import ROUNDING
from trivet.stores.sqlite.scope import Scope
from trivet.stores.sqlite.vector_block import Halved, Recorded
from trivet.stores.sqlite.vector_index import VectorIndex

from .passage_list import VectorList

DIM = 48
Floats = npt.NDArray[np.float32]


def unit(rows: npt.NDArray[np.float64]) -> Floats:
    return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)


def clustered(count: int, seed: int = 0) -> Floats:
    """Vectors around the same forty centres whatever the seed: texts and questions about the same things."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(77).normal(size=(40, DIM))
    return unit(centres[rng.integers(0, 40, count)] + 0.6 * rng.normal(size=(count, DIM)))


def filled(count: int, seed: int = 0) -> VectorList:
    records = VectorList()
    for did, vector in enumerate(clustered(count, seed), start=1):
        records.add(did, vector)
    return records


def opened(folder: Path, records: VectorList, compact: bool = True) -> VectorIndex:
    index = VectorIndex(folder, records, DIM)
    index.catch_up(records.version)
    if compact:
        index.compact()
    return index


@pytest.fixture
def small_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of vectors go the way of tens of thousands: a snapshot with codes, scanned and refined."""
    monkeypatch.setattr(vector_index, "SNAPSHOT_FROM", 100)
    monkeypatch.setattr(quantized_codes, "FEW", 20)


def check_exact(index: VectorIndex, records: VectorList, query: Floats, depth: int, scope: Scope | None = None) -> None:
    expected = [hit for hit in records.cosines(query) if scope is None or hit[2] in scope][:depth]
    found = index.best(query, depth, scope)
    assert [(pid, did) for _, pid, did in found] == [(pid, did) for _, pid, did in expected]
    assert [score for score, _, _ in found] == pytest.approx([score for score, _, _ in expected], abs=1e-6)


def recall(index: VectorIndex, records: VectorList, queries: Floats, depth: int, scope: Scope | None = None) -> float:
    """The share of the exact best that is found; every score found must be the exact cosine."""
    hits = wanted = 0
    for query in queries:
        exact = [hit for hit in records.cosines(query) if scope is None or hit[2] in scope]
        score_of = {did: score for score, _, did in exact}
        found = index.best(query, depth, scope)
        assert len(found) == min(depth, len(exact))
        assert len({did for _, _, did in found}) == len(found)
        assert [score for score, _, _ in found] == sorted((score for score, _, _ in found), reverse=True)
        assert {did: score for score, _, did in found} == pytest.approx(
            {did: score_of[did] for _, _, did in found}, abs=1e-6
        )
        hits += len({did for _, _, did in found} & {did for _, _, did in exact[:depth]})
        wanted += min(depth, len(exact))
    return hits / wanted


# --- a small collection: exact ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 10, 400])
def test_a_small_collection_is_compared_exactly(tmp_path: Path, depth: int) -> None:
    records = filled(300)
    index = opened(tmp_path / "m", records)
    assert index._base.codes is None
    for query in clustered(5, seed=9):
        check_exact(index, records, query, depth)


def test_the_best_passage_stands_for_its_document(tmp_path: Path) -> None:
    records, rng = VectorList(), np.random.default_rng(1)
    for vector in unit(rng.normal(size=(120, DIM))):
        records.add(int(rng.integers(1, 15)), vector)
    index = opened(tmp_path / "m", records)
    for query in clustered(5, seed=9):
        check_exact(index, records, query, 10)


def test_a_document_of_very_many_passages_does_not_crowd_out_the_others(tmp_path: Path) -> None:
    records, query = VectorList(), clustered(1)[0]
    for _ in range(300):
        records.add(1, query)
    for did, vector in enumerate(clustered(20, seed=3), start=2):
        records.add(did, vector)
    check_exact(opened(tmp_path / "m", records), records, query, 10)


def test_an_empty_collection_finds_nothing(tmp_path: Path) -> None:
    index = opened(tmp_path / "m", VectorList())
    assert index.best(clustered(1)[0], 10, None) == []
    assert index.size == 0
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("allowed", [[], [3], [1, 5, 9], list(range(1, 301))])
def test_the_scope_is_applied_before_the_cut(tmp_path: Path, allowed: list[int]) -> None:
    records = filled(300)
    index = opened(tmp_path / "m", records)
    for query in clustered(3, seed=9):
        check_exact(index, records, query, 5, Scope.of(allowed, 300))


def test_a_vector_of_nothing_is_never_near(tmp_path: Path) -> None:
    records = VectorList()
    records.add(1, np.zeros(DIM, dtype=np.float32))
    records.add(2, -clustered(1)[0])
    index = opened(tmp_path / "m", records)
    found = index.best(clustered(1)[0], 10, None)
    assert [did for _, _, did in found] == [2], "zero is above -1 and would stand first"
    assert found[0][0] == pytest.approx(-1.0, abs=ROUNDING)


# --- a large collection: snapshot and codes ---------------------------------------------------------------------------


@pytest.mark.usefixtures("small_snapshots")
class TestSnapshot:
    def test_scanned_and_refined_it_finds_the_nearest(self, tmp_path: Path) -> None:
        records = filled(3_000)
        index = opened(tmp_path / "m", records)
        assert index._base.codes is not None
        assert len(index._tail) == 0
        assert recall(index, records, clustered(30, seed=5), 10) >= 0.95

    def test_with_a_scope_as_well(self, tmp_path: Path) -> None:
        records = filled(3_000)
        index = opened(tmp_path / "m", records)
        for allowed in (5, 20, 21, 300, 2_000):
            scope = Scope.of(list(range(1, 3_001, 3_000 // allowed))[:allowed], 3_000)
            assert recall(index, records, clustered(15, seed=5), 10, scope) >= 0.95

    def test_the_tail_beside_it_counts_alike(self, tmp_path: Path) -> None:
        records = filled(1_500)
        index = opened(tmp_path / "m", records)
        for did, vector in enumerate(clustered(90, seed=7), start=1_501):
            records.add(did, vector)
        index.catch_up(records.version)
        assert len(index._tail) == 90
        assert recall(index, records, clustered(90, seed=7)[:20], 10) >= 0.95
        for did in (1_501, 1_550):
            assert index.best(records.rows[did][2], 1, None)[0][2] == did

    def test_removed_rows_are_out_at_once_and_for_good(self, tmp_path: Path) -> None:
        records = filled(1_000)
        index = opened(tmp_path / "m", records)
        queries = clustered(10, seed=5)
        for query in queries:
            records.remove(records.cosines(query)[0][1])
        index.catch_up(records.version)
        assert index.size == 990
        gone = {pid for _, pid in records.removals.rows}
        for query in queries:
            assert not {pid for _, pid, _ in index.best(query, 10, None)} & gone
        assert recall(index, records, queries, 10) >= 0.95
        reopened = opened(tmp_path / "m", records)
        assert reopened.size == 990
        assert recall(reopened, records, queries, 10) >= 0.95

    def test_a_moved_passage_answers_with_its_new_vector(self, tmp_path: Path) -> None:
        records = filled(500)
        index = opened(tmp_path / "m", records)
        old = records.rows[7][2]
        records.remove(7)
        records.add(7, -old)
        index.catch_up(records.version)
        assert index.best(-old, 1, None)[0][2] == 7
        assert index.best(old, 1, None)[0][2] != 7

    def test_many_passages_of_few_documents(self, tmp_path: Path) -> None:
        records, query = VectorList(), clustered(1)[0]
        rng = np.random.default_rng(2)
        for vector in unit(query + 0.05 * rng.normal(size=(600, DIM))):  # one long document, all of it near
            records.add(1, vector)
        for did, vector in enumerate(clustered(400, seed=3), start=2):
            records.add(did, vector)
        index = opened(tmp_path / "m", records)
        assert recall(index, records, query[None, :], 10) >= 0.9

    def test_a_second_process_reads_the_snapshot_and_only_what_came_after(self, tmp_path: Path) -> None:
        records = filled(400)
        opened(tmp_path / "m", records)
        asked: list[int] = []

        class Told(VectorList):
            def vectors_after(self, mid: int, vid: int, limit: int = -1) -> tuple[int, list[int], list[int], bytes]:
                asked.append(vid)
                return super().vectors_after(mid, vid, limit)

        again = Told()
        again.rows, again.version, again._last = records.rows, records.version, records._last
        again.checkpoints = records.checkpoints
        index = opened(tmp_path / "m", again)
        assert asked[0] == 400
        assert index.size == 400

    def test_a_snapshot_of_another_size_of_vector_is_not_used(self, tmp_path: Path) -> None:
        opened(tmp_path / "m", filled(400))
        records = VectorList()
        records.add(1, np.eye(8, dtype=np.float32)[0])
        index = VectorIndex(tmp_path / "m", records, 8)
        index.catch_up(records.version)
        assert index.best(np.eye(8, dtype=np.float32)[0], 5, None) == [(1.0, 1, 1)]

    def test_a_second_search_wants_the_vectors_in_memory(self, tmp_path: Path) -> None:
        records = filled(1_000)
        index = opened(tmp_path / "m", records)
        queries = clustered(6, seed=5)
        assert not index.wants_loading
        before = [index.best(query, 10, None) for query in queries]
        assert index.wants_loading
        records.remove(before[0][0][1])
        index.load()
        assert isinstance(index._base.rows, Halved) and not index.wants_loading
        index.catch_up(records.version)
        assert recall(index, records, queries, 10) >= 0.95
        assert [hit[2] for hit in index.best(queries[0], 9, None)] == [hit[2] for hit in before[0][1:]]

    def test_loading_while_another_snapshot_is_opened_changes_nothing(self, tmp_path: Path) -> None:
        records = filled(400)
        index = opened(tmp_path / "m", records)

        class Growing(VectorList):
            def vectors_after(self, mid: int, vid: int, limit: int = -1) -> tuple[int, list[int], list[int], bytes]:
                index._open()
                return records.vectors_after(mid, vid, limit)

        index._source = Growing()
        index._source.checkpoints = records.checkpoints
        index.load()
        assert isinstance(index._base.rows, Recorded)

    def test_a_snapshot_has_no_vectors(self, tmp_path: Path) -> None:
        opened(tmp_path / "m", filled(1_000))
        (folder,) = (tmp_path / "m").glob("snapshot-*")
        assert {path.name for path in folder.iterdir()} == {"pids.npy", "dids.npy", "quick.faiss", "state.json"}

    def test_growing_makes_a_new_snapshot_and_deletes_the_old(self, tmp_path: Path) -> None:
        records = filled(400)
        index = opened(tmp_path / "m", records)
        first = {path.name for path in (tmp_path / "m").glob("snapshot-*")}
        for did, vector in enumerate(clustered(300, seed=8), start=401):
            records.add(did, vector)
        index.catch_up(records.version)
        index.compact()
        second = {path.name for path in (tmp_path / "m").glob("*-*")}
        assert len(second) == 1
        assert second != first
        assert len(index._base) == 700
        assert recall(index, records, clustered(10, seed=5), 10) >= 0.95

    def test_a_process_with_the_old_snapshot_open_goes_on_answering(self, tmp_path: Path) -> None:
        records = filled(400)
        mine, other = opened(tmp_path / "m", records), opened(tmp_path / "m", records)
        for did, vector in enumerate(clustered(300, seed=8), start=401):
            records.add(did, vector)
        other.catch_up(records.version)
        other.compact()
        assert recall(mine, filled(400), clustered(10, seed=5), 10) >= 0.95
        mine.catch_up(records.version)
        assert recall(mine, records, clustered(10, seed=5), 10) >= 0.95

    def test_a_lagging_process_does_not_take_newer_vectors_away(self, tmp_path: Path) -> None:
        """It compacts what it knows while another has compacted more; neither may lose sight of anything."""
        records = filled(400)
        lagging = VectorIndex(tmp_path / "m", records, DIM)
        lagging.catch_up(records.version)
        for did, vector in enumerate(clustered(300, seed=8), start=401):
            records.add(did, vector)
        ahead = opened(tmp_path / "m", records)
        lagging.compact()
        lagging.catch_up(records.version)
        assert lagging.size == ahead.size == opened(tmp_path / "m", records).size == 700

    def test_a_snapshot_written_while_another_process_opens_is_not_taken_for_a_foreign_one(
        self, tmp_path: Path
    ) -> None:
        """The records is asked whether it knows a snapshot after that was read, so it knows a later one."""

        class Busy(VectorList):
            armed = False

            def knows(self, name: str, checkpoint: dict[str, Any]) -> bool:
                if self.armed:
                    self.armed = False
                    for did, vector in enumerate(clustered(300, seed=8), start=401):
                        self.add(did, vector)
                    opened(tmp_path / "m", self)
                return super().knows(name, checkpoint)

        records = Busy()
        for did, vector in enumerate(clustered(400), start=1):
            records.add(did, vector)
        opened(tmp_path / "m", records)
        opened(tmp_path / "m", records)
        records.armed = True
        index = VectorIndex(tmp_path / "m", records, DIM)
        assert [path.name for path in (tmp_path / "m").glob("snapshot-*")] == [f"snapshot-{700:016d}-{0:016d}"]
        index.catch_up(records.version)
        assert index.size == 700

    def test_a_vector_in_the_records_that_is_too_long_ends_in_no_endless_loop(self, tmp_path: Path) -> None:
        records = filled(300)
        records.add(301, 7 * clustered(1)[0])
        index = opened(tmp_path / "m", records)
        assert len(index.best(clustered(1)[0], 10, None)) == 10

    def test_a_records_that_cannot_be_read_is_no_damage_of_the_snapshot(self, tmp_path: Path) -> None:
        class Failing(VectorList):
            def knows(self, name: str, checkpoint: dict[str, Any]) -> bool:
                raise StoreError("store: closed")

        opened(tmp_path / "m", filled(400))
        with contextlib.suppress(StoreError):
            VectorIndex(tmp_path / "m", Failing(), DIM)
        assert list((tmp_path / "m").glob("snapshot-*"))

    def test_a_snapshot_of_another_timeline_is_deleted_and_told(self, tmp_path: Path) -> None:
        records = filled(400)
        opened(tmp_path / "m", records)
        records.checkpoints.forget()  # as a restored backup does
        index = VectorIndex(tmp_path / "m", records, DIM)
        assert not list((tmp_path / "m").glob("snapshot-*"))
        assert index.deleted == ["m: it was made on another timeline of the store and was deleted"]
        index.catch_up(records.version)
        assert recall(index, records, clustered(10, seed=5), 10) == 1.0

    def test_everything_was_removed(self, tmp_path: Path) -> None:
        records = filled(300)
        index = VectorIndex(tmp_path / "m", records, DIM)
        index.catch_up(records.version)
        for pid in range(1, 301):
            records.remove(pid)
        index.catch_up(records.version)
        index.compact()
        assert index.best(clustered(1)[0], 10, None) == []
        records.add(1, clustered(1)[0])
        index.catch_up(records.version)
        assert [did for _, _, did in index.best(clustered(1)[0], 10, None)] == [1]

    def test_discard_reads_the_records_again(self, tmp_path: Path) -> None:
        records = filled(400)
        index = opened(tmp_path / "m", records)
        index.discard()
        assert not (tmp_path / "m").exists()
        index.catch_up(records.version)
        assert index.size == 400

    def test_no_room_for_the_snapshot_is_no_failure(self, tmp_path: Path) -> None:
        (tmp_path / "m").write_text("a file where the folder should be")
        records = filled(400)
        index = opened(tmp_path / "m", records)
        check_exact(index, records, clustered(1, seed=4)[0], 10)


def test_zero_vectors_never_reach_a_snapshot(tmp_path: Path, small_snapshots: None) -> None:
    records = filled(200)
    for did in range(201, 211):
        records.add(did, np.zeros(DIM, dtype=np.float32))
    index = opened(tmp_path / "m", records)
    assert len(index._base) == 200
    found = index.best(clustered(1, seed=5)[0], 300, None)
    assert np.isfinite([score for score, _, _ in found]).all()
    assert all(did <= 200 for _, _, did in found)
    reopened = opened(tmp_path / "m", records)
    assert reopened.size == 200
