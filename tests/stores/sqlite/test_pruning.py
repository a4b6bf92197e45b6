"""The log of removals is pruned, and an index that has not read it notices."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import trivet
from trivet.stores.indexes import graph_index
from trivet.stores.indexes.graph_index import GraphIndex
from trivet.stores.sqlite import database as database_module
from trivet.stores.sqlite import maintenance, term_index, vector_index
from trivet.stores.sqlite.database import Database
from trivet.stores.sqlite.term_index import TermIndex
from trivet.stores.sqlite.term_search import TermSearch
from trivet.stores.sqlite.vector_index import VectorIndex
from trivet.text.analysis import Analyzer

from .passage_list import PassageList, VectorList


def found(index: TermIndex, text: str) -> set[int]:
    return {did for _, _, did in TermSearch(index).bm25(Analyzer("en").query(text), "any", 10, None)[0]}


@pytest.mark.parametrize("on_disk", [False, True])
def test_an_index_of_words_that_missed_removals_begins_anew(
    on_disk: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(term_index, "TAIL_LIMIT", 0 if on_disk else 100)
    records, analyse = PassageList(), Analyzer("en")
    records.add_all(["red fox", "red hen", "red owl"])
    index = TermIndex(tmp_path / "words", records, analyse.line, "x", halves=analyse.halves)
    index.catch_up(records.version)
    assert found(index, "red") == {1, 2, 3}
    records.remove(2)
    records.removals.prune()  # by a process that updated no index
    index.catch_up(records.version)
    assert found(index, "red") == {1, 3}
    again = TermIndex(tmp_path / "words", records, analyse.line, "x", halves=analyse.halves)
    again.catch_up(records.version)
    assert found(again, "red") == {1, 3}


def test_an_index_of_words_is_written_anew_only_where_it_holds_removed_passages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(term_index, "TAIL_LIMIT", 0)
    records, analyse = PassageList(), Analyzer("en")
    index = TermIndex(tmp_path / "words", records, analyse.line, "x", halves=analyse.halves)
    for text in ("red fox", "red hen", "red owl"):
        records.add_all([text])
        index.catch_up(records.version)
    before = (tmp_path / "words").stat().st_ino
    index.rewrite()
    assert (tmp_path / "words").stat().st_ino == before
    records.remove(2)
    index.rewrite()
    assert (tmp_path / "words").stat().st_ino != before
    index.catch_up(records.version)
    assert found(index, "red hen") == {1, 3} and index.size == 2


def test_vectors_that_missed_removals_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_index, "SNAPSHOT_FROM", 2)
    records = VectorList()
    for at in range(6):
        records.add(at + 1, np.eye(8, dtype=np.float32)[at])
    index, other = (VectorIndex(tmp_path / "v", records, 8) for _ in range(2))
    for each in (index, other):
        each.catch_up(records.version)
    index.compact()
    records.remove(3)
    index.rewrite()
    assert index.applied == records.last_removed()
    records.removals.prune()
    for each in (index, other, VectorIndex(tmp_path / "v", records, 8)):
        each.catch_up(records.version)
        assert each.size == 5
    records.remove(4)
    records.removals.prune()  # the snapshot was not brought up to date: it is worth nothing now
    fresh = VectorIndex(tmp_path / "v", records, 8)
    fresh.catch_up(records.version)
    assert fresh.size == 4


class Sources(PassageList):
    def triples_of(self, dids: object) -> dict[int, tuple[()]]:
        return {}


def test_a_graph_that_missed_removals_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_index, "TAIL_LIMIT", 2)
    records = Sources()
    records.add_all([f"Blue Falcon meets Captain Number{at}" for at in range(6)])
    index, other = (GraphIndex(tmp_path / "g", records, "x") for _ in range(2))
    for each in (index, other):
        each.catch_up(records.version)
    index.settle()
    records.remove(3)
    index.rewrite()
    records.removals.prune()
    for each in (index, other, GraphIndex(tmp_path / "g", records, "x")):
        assert each.graph(records.version).documents == 5


OTHER = """
import sys, random, trivet
random.seed(7)
with trivet.open(sys.argv[1], embedder="hashing:16") as engine:
    own = {}
    print("ready", flush=True)
    for turn in range(120):
        id = f"other-{turn}"
        engine.add({"id": id, "text": f"shared walrus word{turn}"})
        own[id] = turn
        if len(own) > 10:
            gone = random.choice(sorted(own))
            turned = own.pop(gone)
            assert engine.delete(gone) == 1
            hits = [hit.id for hit in engine.search(f"word{turned}", k=5, match="all")]
            assert gone not in hits, (turn, gone, hits)
        id = random.choice(sorted(own))
        hits = [hit.id for hit in engine.search(f"walrus word{own[id]}", k=5)]
        assert hits[0] == id, (turn, id, hits)
        everything = {hit.id for hit in engine.search("walrus", k=100)}
        assert set(own) <= everything, (turn, set(own) - everything)
    print(" ".join(sorted(own)))
"""


def test_one_process_compacts_while_another_searches_and_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(term_index, "TAIL_LIMIT", 20)
    path = tmp_path / "memory.db"
    with trivet.open(path, embedder="hashing:16") as engine:
        engine.add([{"id": f"first-{at}", "text": f"shared seal {at}"} for at in range(100)])
        other = subprocess.Popen(
            [sys.executable, "-c", OTHER, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert other.stdout is not None and other.stdout.readline() == "ready\n"
        left, turn, pruned = {f"first-{at}" for at in range(100)}, 0, 0
        while other.poll() is None:
            turn += 1
            engine.add({"id": f"mine-{turn}", "text": f"shared seal mine {turn}"})
            engine.delete(f"mine-{turn}")
            if left and turn % 3 == 0:
                engine.forget(left.pop())
            pruned += engine.compact().pruned
            seen = {hit.id for hit in engine.search("seal", k=200)}
            assert {id for id in seen if id.startswith("first")} == left and f"mine-{turn}" not in seen
        told, errors = other.communicate(timeout=60)
        assert other.returncode == 0, errors
        engine.compact()
        assert pruned > 0
        others = {hit.id for hit in engine.search("walrus", k=300) if hit.id.startswith("other")}
        assert others == set(told.split())
        assert engine.verify().ok
    with trivet.open(path) as engine:
        assert engine.verify().ok
        assert {hit.id for hit in engine.search("shared", k=300)} == left | set(told.split())


def test_many_removals_are_pruned_by_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "PRUNE_FROM", 20)
    path = tmp_path / "memory.db"
    with trivet.open(path, embedder="none") as engine:
        engine.add([{"id": f"d{at}", "text": f"shared seal {at}"} for at in range(100)])
        engine.delete([f"d{at}" for at in range(50)])
        rows = sqlite3.connect(path)
        while rows.execute("SELECT count(*) FROM removed").fetchone()[0]:
            time.sleep(0.01)
        rows.close()
        assert len(engine.search("seal", k=200)) == 50
    with trivet.open(path) as engine:
        assert len(engine.search("seal", k=200)) == 50
        assert engine.verify().ok


def test_free_pages_are_given_back_by_themselves_only_where_they_are_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(tmp_path / "memory.db")
    with database.write() as connection:
        connection.execute("CREATE TABLE much (text TEXT)")
        connection.executemany("INSERT INTO much VALUES (?)", [("x" * 1_000,) for _ in range(1_000)])
    with database.write() as connection:
        connection.execute("DELETE FROM much")

    def free() -> int:
        return int(database.read().execute("PRAGMA freelist_count").fetchone()[0])

    assert free() > 200
    database.vacuum_if_worth_it()
    assert free() > 200  # a megabyte is not worth it
    monkeypatch.setattr(database_module, "VACUUM_FROM", 100_000)
    database.vacuum_if_worth_it()
    assert free() == 0 and Path(f"{database.path}-wal").stat().st_size == 0
    database.close()
