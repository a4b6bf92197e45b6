"""Points that were written before the record store was set back are never found."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import trivet
from servers import Postgres
from servers import postgres as postgres
from trivet.engine import Engine
from trivet.engine.redistribute import redistribute
from trivet.errors import StoreReplacedError

pytest.importorskip("qdrant_client")

from trivet.stores.qdrant.address import Address
from trivet.stores.qdrant.collection import QdrantCollection
from trivet.stores.qdrant.points import MARKER, Mark, Points

MEANING: dict[str, Any] = {"weights": {"lexical": 0.0, "dense": 1.0, "graph": 0.0, "trigram": 0.0}, "rerankers": []}
BASE = [{"id": f"b{number}", "text": f"base note {number}"} for number in range(20)]
LOST = [{"id": f"lost{number}", "text": f"quokka secret{number}"} for number in range(40)]
NEW = [{"id": f"new{number}", "text": f"wombat fresh{number}"} for number in range(50)]


def points_of(engine: Engine) -> tuple[Points, str]:
    collection: Any = engine._collection
    assert isinstance(collection, QdrantCollection)
    model = collection.state().model
    assert model is not None
    return collection.sync.points, collection.sync.name_of(model.mid)


def restore(backup: Path, records: Path) -> None:
    """As docs/evidence/robustness.md says: put the copy in place, delete -wal and -shm."""
    for suffix in ("-wal", "-shm"):
        records.with_name(records.name + suffix).unlink(missing_ok=True)
    shutil.copy(backup, records)


@pytest.fixture
def lost(tmp_path: Path) -> Iterator[str]:
    """The address of a store whose record store was restored to what it was before ``LOST``."""
    url = f"qdrant+local:{tmp_path / 'm'}"
    with trivet.open(url, embedder="hashing:64") as memory:
        memory.add(BASE)
        memory.wait()
        assert memory.search("base note 1", **MEANING).hits
    with trivet.open(str(tmp_path / "m" / "words.db"), embedder="hashing:64") as records:
        records.backup(tmp_path / "monday.db")
    with trivet.open(url, embedder="hashing:64") as memory:
        memory.add(LOST)
        memory.patch("b0", meta={"place": "lost"})
        memory.wait()
        assert memory.search("quokka secret1", **MEANING)[0].id == "lost1"
    restore(tmp_path / "monday.db", tmp_path / "m" / "words.db")
    yield url


def check(memory: Engine, new: int) -> None:
    """Every new document is found by its vector, and nothing that was lost is."""
    best = [memory.search(f"wombat fresh{number}", k=3, **MEANING)[0].id for number in range(new)]
    assert best == [f"new{number}" for number in range(new)]
    found = [hit for hit in memory.search("quokka secret1", k=100, **MEANING) if hit.contributions[0].raw > 0.6]
    assert found == []
    assert memory.verify().problems == ()


@pytest.mark.parametrize("searched_first", [True, False])
@pytest.mark.parametrize("batch", [50, 7, 1])
def test_a_restored_record_store_finds_what_is_new_and_nothing_that_was_lost(
    lost: str, batch: int, searched_first: bool
) -> None:
    with trivet.open(lost) as memory:
        if searched_first:
            assert memory.search("base note 3", **MEANING)[0].id == "b3"
        for start in range(0, len(NEW), batch):
            memory.add(NEW[start : start + batch])
        memory.wait()
        check(memory, len(NEW))
    with trivet.open(lost) as memory:
        check(memory, len(NEW))


@pytest.mark.parametrize("beside", [False, True])
def test_as_many_points_as_before_are_not_taken_for_the_same(lost: str, beside: bool) -> None:
    """As many passages were written after the restore as were lost, some without Qdrant, so the counts are equal."""
    with trivet.open(Address.parse(lost).records if beside else lost) as memory:
        memory.add(NEW[: len(LOST)])
        memory.wait()
    with trivet.open(lost) as memory:
        points, place = points_of(memory)
        assert points.count(place) == len(BASE) + len(LOST)
        check(memory, len(LOST))


def test_metadata_of_the_lost_timeline_does_not_hide_a_document(lost: str) -> None:
    with trivet.open(lost) as memory:
        memory.add([{"id": "tagged", "text": "base note tagged", "meta": {"place": "here"}}])
        assert [hit.id for hit in memory.search("base note", where={"place": "here"}, **MEANING)] == ["tagged"]
        ids = {hit.id for hit in memory.search("base note 0", where={"place": {"ne": "lost"}}, k=30, **MEANING)}
        assert "b0" in ids


def test_another_process_finds_the_same(lost: str) -> None:
    with trivet.open(lost) as memory:
        memory.add(NEW)
        memory.wait()
    script = (
        "import sys, trivet\n"
        "with trivet.open(sys.argv[1]) as memory:\n"
        "    options = dict(weights={'lexical': 0.0, 'dense': 1.0, 'graph': 0.0}, rerankers=[], k=1)\n"
        "    print([memory.search(f'wombat fresh{number}', **options)[0].id for number in range(50)])\n"
        "    print(memory.search('quokka secret1', **options)[0].id)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, lost], capture_output=True, text=True, check=True)
    found, best = done.stdout.splitlines()
    assert found == str([f"new{number}" for number in range(50)])
    assert not best.startswith("lost")


def test_a_record_store_restored_and_embedded_anew(lost: str) -> None:
    with trivet.open(lost) as memory:
        memory.add(NEW)
        memory.reembed("hashing:32")
        check(memory, len(NEW))
    with trivet.open(lost) as memory:
        check(memory, len(NEW))


def test_a_model_number_that_is_given_again_gets_a_collection_of_its_own(tmp_path: Path) -> None:
    """A model of 32 dimensions was lost, and one of 16 dimensions gets its number."""
    url = f"qdrant+local:{tmp_path / 'm'}"
    with trivet.open(url, embedder="hashing:64") as memory:
        memory.add(BASE)
        memory.wait()
    with trivet.open(str(tmp_path / "m" / "words.db"), embedder="hashing:64") as records:
        records.backup(tmp_path / "monday.db")
    with trivet.open(url) as memory:
        memory.add(LOST)
        memory.reembed("hashing:32")
    restore(tmp_path / "monday.db", tmp_path / "m" / "words.db")
    with trivet.open(url) as memory:
        memory.add(NEW)
        memory.reembed("hashing:16")
        assert memory.search("wombat fresh7", k=1, **MEANING)[0].id == "new7"
        points, place = points_of(memory)
        assert points.is_for(place, memory.stats().model or "", 16)
        assert memory.verify().problems == ()


def test_an_open_engine_is_told_that_its_record_store_was_replaced(tmp_path: Path) -> None:
    url = f"qdrant+local:{tmp_path / 'm'}"
    with trivet.open(url, embedder="hashing:64") as memory:
        memory.add(BASE)
        memory.wait()
        with trivet.open(str(tmp_path / "m" / "words.db"), embedder="hashing:64") as records:
            records.backup(tmp_path / "monday.db")
        memory.add(LOST)
        restored = tmp_path / "m" / "restored.db"
        restore(tmp_path / "monday.db", restored)
        restored.replace(tmp_path / "m" / "words.db")
        with pytest.raises(StoreReplacedError):
            memory.search("quokka secret1", **MEANING)


def test_the_marker_follows_every_write_and_is_never_found(tmp_path: Path, taught: Callable[..., Any]) -> None:
    with trivet.open(f"qdrant+local:{tmp_path / 'm'}", embedder=taught("heron", "fox")) as memory:
        points, place = points_of(memory)

        def marked() -> None:
            state = memory._collection.state()
            assert points.mark(place) == Mark(state.version, state.token)

        marked()
        memory.add([{"id": "heron", "text": "the heron"}, {"id": "fox", "text": "the fox"}])
        marked()
        memory.patch("fox", meta={"n": 1})
        marked()
        memory.delete("heron")
        marked()
        assert points.count(place) == 1 and points.numbers(place).isdisjoint({MARKER})
        assert [hit.id for hit in memory.search("heron", k=10, **MEANING)] == ["fox"]
        assert memory.verify().problems == () and memory.verify().checked["points"] == 1


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda points, place: points.remove_points(place, [1]), "1 points missing"),
        (lambda points, place: change(points, place, hash="00"), "1 points of another passage"),
        (lambda points, place: change(points, place, tags=["other"]), "1 points with other metadata"),
        (lambda points, place: change(points, place, vector=[0.0, 0.0, 1.0]), "1 points with another vector"),
        (lambda points, place: points.put(place, "taught", [(99, [1.0, 0.0, 0.0], {"did": 99})]), "without a passage"),
    ],
)
def test_verify_tells_what_is_wrong_and_rebuild_mends_it(
    tmp_path: Path, taught: Callable[..., Any], damage: Callable[[Points, str], None], told: str
) -> None:
    with trivet.open(f"qdrant+local:{tmp_path / 'm'}", embedder=taught("heron", "fox", "lamp")) as memory:
        memory.add([{"id": id, "text": f"the {id}"} for id in ("heron", "fox", "lamp")])
        assert memory.verify().problems == ()
        damage(*points_of(memory))
        (problem,) = memory.verify().problems
        assert told in problem and "run rebuild" in problem
        memory.rebuild()
        assert memory.verify().problems == ()


def change(points: Points, place: str, vector: list[float] | None = None, **payload: Any) -> None:
    (number, data, known) = points.read(place, "taught", [1], vectors=True)[1]
    points.put(place, "taught", [(number, vector or data, {**known, **payload})])


def test_a_point_of_another_passage_is_noticed_and_mended_by_the_search_that_meets_it(
    tmp_path: Path, taught: Callable[..., Any]
) -> None:
    with trivet.open(f"qdrant+local:{tmp_path / 'm'}", embedder=taught("heron", "fox", "lamp")) as memory:
        memory.add([{"id": id, "text": f"the {id}"} for id in ("heron", "fox", "lamp")])
        assert memory.search("heron", **MEANING).hits
        change(*points_of(memory), vector=[0.0, 1.0, 0.0], hash="")
        assert memory.search("heron", **MEANING)[0].id == "heron"
        assert memory.verify().problems == ()


def test_points_without_a_marker_are_compared(tmp_path: Path, taught: Callable[..., Any]) -> None:
    """An older version of trivet wrote no marker and no hashes."""
    url = f"qdrant+local:{tmp_path / 'm'}"
    with trivet.open(url, embedder=taught("heron", "fox", "lamp")) as memory:
        memory.add([{"id": id, "text": f"the {id}"} for id in ("heron", "fox", "lamp")])
        points, place = points_of(memory)
        rows = points.read(place, "taught", [1, 2, 3], vectors=True).values()
        older = [(n, v, {k: p[k] for k in ("did", "tags")}) for n, v, p in rows]
        points.remove_points(place, [MARKER])
        points.put(place, "taught", older)
    with trivet.open(url, embedder=taught("heron", "fox", "lamp")) as memory:
        assert memory.search("fox", **MEANING)[0].id == "fox"
        assert memory.verify().problems == ()
        assert points_of(memory)[0].mark(place) is not None


def test_a_postgres_record_store_that_is_set_back_under_an_open_engine(postgres: Postgres, tmp_path: Path) -> None:
    words = postgres.fresh()
    url = f"qdrant+local:{tmp_path / 'm'}?words={words.replace('?', '%3F').replace('&', '%26').replace('=', '%3D')}"
    try:
        with trivet.open(url, embedder="hashing:64") as memory:
            memory.add(BASE)
            memory.wait()
            saved = postgres.save(words)
            memory.add(LOST)
            memory.wait()
            assert memory.search("quokka secret1", **MEANING)[0].id == "lost1"
            postgres.put_back(saved)
            memory.add(NEW[: len(LOST)])
            memory.wait()
            check(memory, len(LOST))
    finally:
        postgres.sweep()


def test_points_follow_a_record_store_that_is_redistributed(postgres: Postgres, tmp_path: Path) -> None:
    """The documents get other numbers; points with the old ones are never found, and none is left."""
    words = postgres.fresh()
    url = f"qdrant+local:{tmp_path / 'm'}?words={words.replace('?', '%3F').replace('&', '%26').replace('=', '%3D')}"
    try:
        with trivet.open(url, embedder="hashing:64") as memory:
            memory.add(BASE)
            memory.wait()
            before = [(hit.id, round(hit.score, 6)) for hit in memory.search("base note 7", k=5, **MEANING)]
        for by in ("documents", "collections"):
            assert redistribute(words, "default", by).moved
            with trivet.open(url, embedder="hashing:64") as memory:
                found = [(hit.id, round(hit.score, 6)) for hit in memory.search("base note 7", k=5, **MEANING)]
                assert sorted(found) == sorted(before) and found[0] == before[0]
                points, place = points_of(memory)
                assert points.count(place) == len(BASE) and memory.verify().problems == ()
    finally:
        postgres.sweep()
