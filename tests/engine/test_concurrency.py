"""Threads of one process and processes on one store see each other's writes."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import trivet
from trivet.concurrency import admission, deadline
from trivet.engine.leg_threads import LegThreads
from trivet.errors import DeadlineError, NotFoundError, StoreError
from trivet.legs.lexical import Lexical
from trivet.stores.sqlite import term_index, vector_index

WORDS_ALONE = {"lexical": 1.0, "dense": 0.0}
MEANING_ALONE = {"lexical": 0.0, "dense": 1.0}

# Another process on the same store, which does as it is told: one JSON line in, one out.
OTHER = """
import json, sys
import trivet
from trivet.stores.sqlite import vector_index, term_index

path, limits = sys.argv[1], json.loads(sys.argv[2])
if limits:
    term_index.TAIL_LIMIT, vector_index.SNAPSHOT_FROM = limits
with trivet.open(path) as engine:
    def search(query, **options):
        return [hit.id for hit in engine.search(query, **options)]

    def add(documents):
        told = engine.add(documents)
        return [told.added, told.updated]

    def settings(**changes):
        return engine.update_settings(**changes).k

    def tidy():
        engine.wait()
        engine._collection.maintenance.update()

    def reembed(spec):
        return engine.reembed(spec)

    def drop():
        engine.drop()

    def size(table):
        sql = f"SELECT count(*) FROM {table} WHERE cid = ?"
        return engine._collection.rows.all(sql, (engine._collection.rows.cid,))[0][0]

    known = dict(search=search, add=add, delete=engine.delete, settings=settings)
    def feedback(*args):
        return engine.feedback(*args).query

    def feedbacks():
        return [[given.query, given.id, given.good] for given in engine.feedbacks()]

    known.update(tidy=tidy, reembed=reembed, drop=drop, size=size)
    known.update(feedback=feedback, feedbacks=feedbacks, forget=engine.forget_feedback)
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        name, args, options = json.loads(line)
        print(json.dumps(known[name](*args, **options)), flush=True)
"""


class Other:
    def __init__(self, path: Path, limits: tuple[int, int] | None = None) -> None:
        command = [sys.executable, "-W", "error", "-c", OTHER, str(path), json.dumps(limits)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self._answer() == "ready"

    def __call__(self, name: str, *args: Any, **options: Any) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([name, args, options]) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise AssertionError(f"the other process ended: {self._process.communicate()[1]}")
        return json.loads(line)

    def close(self) -> str:
        _, complaints = self._process.communicate(timeout=60)
        return complaints


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[trivet.Engine]:
    with trivet.open(tmp_path / "memory.db", embedder="hashing:64") as opened:
        yield opened


@pytest.fixture
def start(tmp_path: Path, engine: trivet.Engine) -> Iterator[Callable[..., Other]]:
    started: list[Other] = []

    def make(limits: tuple[int, int] | None = None) -> Other:
        started.append(Other(tmp_path / "memory.db", limits))
        return started[-1]

    yield make
    assert [other.close() for other in started] == [""] * len(started)


@pytest.fixture
def other(start: Callable[..., Other]) -> Other:
    return start()


def found(engine: trivet.Engine, query: str, k: int = 5, **options: Any) -> list[str]:
    results = engine.search(query, k=k, rerankers=[], **options)
    assert results.degraded == (), results.degraded
    return [hit.id for hit in results]


def numbered(first: int, last: int, what: str = "heron") -> list[dict[str, Any]]:
    return [{"id": f"d{number}", "text": f"{what} q{number}x", "meta": {"n": number}} for number in range(first, last)]


# --- two processes ----------------------------------------------------------------------------------------------------


def test_what_another_process_adds_the_next_search_sees(engine: trivet.Engine, other: Other) -> None:
    assert found(engine, "heron") == []
    for number in range(20):
        other("add", numbered(number, number + 1))
        assert found(engine, f"q{number}x", weights=WORDS_ALONE) == [f"d{number}"]
        assert found(engine, f"heron q{number}x", k=1, weights=MEANING_ALONE) == [f"d{number}"]
        assert len(found(engine, "heron", k=50, where={"n": {"lte": number}}, weights=WORDS_ALONE)) == number + 1


def test_what_this_process_adds_the_other_sees(engine: trivet.Engine, other: Other) -> None:
    for number in range(20):
        engine.add(numbered(number, number + 1))
        assert other("search", f"q{number}x", weights=WORDS_ALONE) == [f"d{number}"]
        assert other("search", f"heron q{number}x", k=1, weights=MEANING_ALONE) == [f"d{number}"]


def test_a_bulk_of_another_process_is_seen(engine: trivet.Engine, other: Other) -> None:
    engine.add("mine", id="mine")
    assert found(engine, "mine") == ["mine"]
    assert other("add", numbered(0, 1500)) == [1500, 0]
    other("tidy")
    for number in (0, 700, 1499):
        assert found(engine, f"q{number}x", weights=WORDS_ALONE) == [f"d{number}"]
        assert found(engine, f"heron q{number}x", k=1, weights=MEANING_ALONE) == [f"d{number}"]
    assert found(engine, "mine", weights=WORDS_ALONE) == ["mine"]


def test_what_another_process_deletes_is_gone(engine: trivet.Engine, other: Other) -> None:
    engine.add(numbered(0, 10))
    assert len(found(engine, "heron", k=20)) == 10
    assert other("delete", ["d3", "d4"]) == 2
    for weights in (WORDS_ALONE, MEANING_ALONE):
        assert set(found(engine, "heron", k=20, weights=weights)) == {
            f"d{number}" for number in (0, 1, 2, 5, 6, 7, 8, 9)
        }
    assert engine.get("d3") is None
    assert other("delete", where={"n": {"gte": 5}}) == 5
    assert set(found(engine, "heron", k=20)) == {"d0", "d1", "d2"}


def test_what_another_process_rewrites_answers_by_its_new_words_only(engine: trivet.Engine, other: Other) -> None:
    engine.add(numbered(0, 5))
    assert found(engine, "q2x", weights=WORDS_ALONE) == ["d2"]
    assert other("add", [{"id": "d2", "text": "a stork instead"}]) == [0, 1]
    assert found(engine, "q2x", weights=WORDS_ALONE) == []
    assert found(engine, "stork", weights=WORDS_ALONE) == ["d2"]
    assert engine.search("stork", k=1)[0].text == "a stork instead"
    assert found(engine, "a stork instead", k=1, weights=MEANING_ALONE) == ["d2"]


def test_settings_changed_by_another_process_are_in_force_at_the_next_search(
    engine: trivet.Engine, other: Other
) -> None:
    engine.add(numbered(0, 10))
    assert len(engine.search("heron")) == 10
    other("settings", k=3, fusion="rrf")
    results = engine.search("heron")
    assert len(results) == 3
    assert " rrf " in results.profile
    assert engine.settings.k == 3
    engine.update_settings(k=4)
    assert len(other("search", "heron")) == 4
    assert engine.settings.fusion == "rrf", "the other's change was undone"


def test_a_field_that_another_process_brought_can_be_filtered_by(engine: trivet.Engine, other: Other) -> None:
    engine.add("mine", id="mine")
    other("add", [{"id": "a", "text": "mine too", "meta": {"brand-new": 1}}])
    assert found(engine, "mine", where={"brand-new": 1}, weights=WORDS_ALONE) == ["a"]


def test_a_process_that_opened_before_the_index_was_rewritten_still_answers_right(
    engine: trivet.Engine, start: Callable[..., Other], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(term_index, "TAIL_LIMIT", 16)
    monkeypatch.setattr(vector_index, "SNAPSHOT_FROM", 32)
    other = start((16, 32))
    engine.add(numbered(0, 60))
    engine.wait()
    engine._collection.maintenance.update()
    assert len(found(engine, "heron", k=100)) == 60
    for start_at in range(60, 300, 60):  # the other merges and deletes the files this one has open
        other("add", numbered(start_at, start_at + 60))
        other("delete", [f"d{number}" for number in range(start_at - 60, start_at - 30)])
        other("tidy")
        for number in range(start_at - 30, start_at, 7):
            assert found(engine, f"q{number}x", weights=WORDS_ALONE) == [f"d{number}"]
            assert found(engine, f"heron q{number}x", k=1, weights=MEANING_ALONE) == [f"d{number}"]
        assert found(engine, f"q{start_at - 45}x", weights=WORDS_ALONE) == []
        assert len(found(engine, "heron", k=1000, weights=WORDS_ALONE)) == engine.stats().documents
        assert len(found(engine, "heron", k=1000, weights=MEANING_ALONE)) == engine.stats().documents
    assert engine.verify().ok


def test_a_process_that_never_looked_at_the_index_while_it_was_rewritten(
    engine: trivet.Engine, start: Callable[..., Other], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it holds is many commits old when it looks again."""
    monkeypatch.setattr(term_index, "TAIL_LIMIT", 16)
    monkeypatch.setattr(vector_index, "SNAPSHOT_FROM", 32)
    other = start((16, 32))
    engine.add(numbered(0, 60))
    engine.wait()
    engine._collection.maintenance.update()
    assert len(found(engine, "heron", k=100)) == 60
    for round_number in range(5):
        other("add", numbered(0, 60, f"stork round{round_number}"))
        other("tidy")
    assert found(engine, "heron", k=100, weights=WORDS_ALONE) == []
    assert found(engine, "round3", k=100, weights=WORDS_ALONE) == []
    assert len(found(engine, "round4", k=100, weights=WORDS_ALONE)) == 60
    assert engine.verify().ok


def test_a_model_changed_by_another_process_is_used_at_the_next_search(engine: trivet.Engine, other: Other) -> None:
    engine.add(numbered(0, 30))
    engine.wait()
    assert found(engine, "heron q7x", k=1, weights=MEANING_ALONE) == ["d7"]
    assert other("reembed", "hashing:32") == 30
    assert found(engine, "heron q7x", k=1, weights=MEANING_ALONE) == ["d7"]
    engine.add(numbered(30, 35))
    assert found(engine, "heron q33x", k=1, weights=MEANING_ALONE) == ["d33"]
    assert other("search", "heron q33x", k=1, weights=MEANING_ALONE) == ["d33"]
    assert engine.stats().model == "hashing/32/1"
    assert engine.stats().embedded == 35
    assert engine.verify().ok


def test_feedback_of_another_process_is_seen_at_once(engine: trivet.Engine, other: Other) -> None:
    def seen() -> list[list[Any]]:
        return [[given.query, given.id, given.good] for given in engine.feedbacks()]

    engine.add(numbered(0, 3))
    engine.feedback("which heron", "d1")
    assert other("feedbacks") == [["which heron", "d1", True]]
    other("feedback", "which heron", "d2")
    other("feedback", "which heron", "d1", False)
    assert seen() == other("feedbacks") == [["which heron", "d2", True], ["which heron", "d1", False]]
    assert engine.forget_feedback("which heron", "d1") == 1
    assert seen() == other("feedbacks") == [["which heron", "d2", True]]
    assert other("forget") == 1
    assert seen() == []


def test_two_engines_on_one_file_see_each_others_feedback(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with trivet.open(path, embedder="none") as one, trivet.open(path) as two:
        one.add("heron", id="a")
        given = one.feedback("which bird", "a")
        assert two.feedbacks() == [given]
        later = two.feedback("which bird", "a", good=False)
        assert one.feedbacks() == two.feedbacks() == [later]


def test_feedback_of_many_threads_at_once_is_all_there(tmp_path: Path) -> None:
    path, threads, each = tmp_path / "memory.db", 6, 15
    with trivet.open(path, embedder="none") as one, trivet.open(path) as two:
        one.add(numbered(0, 3))
        start = threading.Barrier(threads)

        def judge(number: int) -> None:
            start.wait(60)
            engine = (one, two)[number % 2]
            for at in range(each):
                engine.feedback(f"question {number} {at}", "d0")
                engine.feedback("the one all judge", "d1", good=at % 2 == 0)
                assert engine.search("heron").hits

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(judge, range(threads)))
        expected = {f"question {number} {at}" for number in range(threads) for at in range(each)}
        assert {given.query for given in one.feedbacks()} == expected | {"the one all judge"}
        assert one.feedbacks() == two.feedbacks()
        assert len(one.feedbacks()) == len(expected) + 1
        assert one.verify().ok


def test_a_collection_dropped_by_another_process_says_so(engine: trivet.Engine, other: Other) -> None:
    engine.add("heron")
    assert len(engine.search("heron")) == 1
    other("drop")
    for call in (lambda: engine.search("heron"), lambda: engine.stats(), lambda: engine.add("more")):
        with pytest.raises(NotFoundError, match=r"'default' was dropped"):
            call()
    assert other("size", "documents") == 0, "a write went into a collection that is no more"


def test_what_one_process_left_unembedded_another_finishes(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with trivet.open(path, embedder="hashing:64") as first:
        first.add(numbered(0, 400))  # goes to the background; closing ends it where it is
    with trivet.open(path) as second:
        second.wait(timeout=60)
        assert second.stats().pending == 0
        assert second.stats().embedded == 400
        assert found(second, "heron q399x", k=1, weights=MEANING_ALONE) == ["d399"]
        assert second.verify().ok


# --- many threads -----------------------------------------------------------------------------------------------------


def test_every_thread_sees_its_own_writes_at_once(engine: trivet.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(term_index, "TAIL_LIMIT", 20)  # the index on disk is rewritten all the while

    def work(worker: int) -> None:
        for number in range(12):
            id = f"w{worker}n{number}"
            engine.add(f"heron {id}", id=id)
            assert [hit.id for hit in engine.search(id, k=1, weights=WORDS_ALONE)] == [id]
            assert [hit.id for hit in engine.search(f"heron {id}", k=1, weights=MEANING_ALONE)] == [id]
            if number % 3 == 0:
                assert engine.delete(id) == 1
                assert id not in [hit.id for hit in engine.search(id, k=50)]

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    assert engine.stats().documents == 6 * 8
    assert engine.verify().ok


def test_searches_never_fail_while_others_write(engine: trivet.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(term_index, "TAIL_LIMIT", 10)
    monkeypatch.setattr(vector_index, "SNAPSHOT_FROM", 20)
    engine.add(numbered(0, 50))
    engine.wait()
    stop = threading.Event()

    def search() -> int:
        count = 0
        while not stop.is_set():
            where = {"n": {"gte": 10}} if count % 2 else None
            results = engine.search("heron", k=20, where=where, weights={"lexical": 1, "trigram": 1, "dense": 1})
            assert len(results) == 20
            assert [item for item in results.degraded if "not embedded yet" not in item.reason] == []
            count += 1
        return count

    with ThreadPoolExecutor(4) as pool:
        searching = [pool.submit(search) for _ in range(3)]
        for number in range(50, 130):
            engine.add(numbered(number, number + 1))
            if number % 20 == 0:
                engine.delete([f"d{number - 1}"])
                engine._collection.maintenance.update()
        stop.set()
        assert all(future.result() > 0 for future in searching)
    assert engine.verify().ok


def test_verify_raises_no_false_alarm_while_others_write(
    engine: trivet.Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    engine.add(numbered(0, 50))
    engine.wait()
    shelf = engine._collection
    news = [numbered(number, number + 1) for number in range(50, 52)]
    look = shelf.state
    with trivet.open(tmp_path / "memory.db") as other:

        def state() -> Any:
            """What this process sees is a moment old when it goes on."""
            found = look()
            if news:
                other.add(news.pop())
            return found

        monkeypatch.setattr(shelf.rows, "state", state)
        report = engine.verify()
    assert news == []
    assert report.ok, report


def test_searches_take_turns_and_find_what_they_find_alone(
    engine: trivet.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def search(at: int) -> list[tuple[str, float]]:  # by one leg: two run at the same time
        hits = engine.search(f"tides {at}", k=5, weights={**WORDS_ALONE, "graph": 0.0})
        return [(hit.id, hit.score) for hit in hits]

    engine.add({"id": f"n{at}", "text": f"note {at} about tides and harbours"} for at in range(40))
    alone = list(map(search, range(40)))
    rank, guard, running, most = Lexical.rank, threading.Lock(), 0, 0

    def counted(*given: Any) -> Any:
        nonlocal running, most
        with guard:
            running, most = running + 1, max(most, running + 1)
        try:
            return rank(*given)
        finally:
            with guard:
                running -= 1

    monkeypatch.setattr(Lexical, "rank", counted)
    monkeypatch.setattr(LegThreads, "_runs_here", lambda *given: True)  # a search stands aside while a pool works
    monkeypatch.setattr(admission.SEARCHES, "_patience", 60.0)  # however slow this machine is now
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(search, range(40)))
    assert found == alone
    assert most == 1


def test_a_search_that_waits_for_its_turn_ends_at_its_deadline(engine: trivet.Engine) -> None:
    engine.add({"id": "n", "text": "tides"})
    asked, go_on = threading.Event(), threading.Event()

    def search() -> None:
        with pytest.raises(DeadlineError), deadline.limit(0.01):
            engine.search("tides")

    def hold() -> None:
        with admission.SEARCHES.taken():
            asked.set()
            go_on.wait(60)

    with ThreadPoolExecutor(2) as pool:
        held = pool.submit(hold)
        assert asked.wait(60)
        pool.submit(search).result(60)
        go_on.set()
        held.result(60)
    assert [hit.id for hit in engine.search("tides")] == ["n"]


def test_the_same_id_written_by_all_threads_is_one_document(engine: trivet.Engine) -> None:
    def work(worker: int) -> None:
        for number in range(10):
            engine.add(f"version {worker} {number}", id="same")

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    assert engine.stats().documents == engine.stats().passages == 1
    document = engine.get("same")
    assert document is not None
    assert document.text.endswith(" 9"), "the last write of some thread won"
    assert [hit.id for hit in engine.search("version", k=5)] == ["same"]
    assert engine.verify().ok


def test_two_engines_of_one_process_share_a_store(tmp_path: Path) -> None:
    with (
        trivet.open(tmp_path / "memory.db", embedder="hashing:64") as first,
        trivet.open(tmp_path / "memory.db") as second,
    ):
        for number in range(30):
            first.add(f"heron q{number}x", id=f"a{number}")
            second.add(f"stork q{number}x", id=f"b{number}")
            assert set(found(first, f"q{number}x", weights=WORDS_ALONE)) == {f"a{number}", f"b{number}"}
            assert set(found(second, f"q{number}x", weights=WORDS_ALONE)) == {f"a{number}", f"b{number}"}


def test_closing_while_others_search_ends_in_answers_or_in_a_store_error(tmp_path: Path) -> None:
    """And not in a crash: sqlite3 does not bear a connection being closed under the thread that uses it."""
    for _ in range(5):
        engine = trivet.open(tmp_path / "memory.db", embedder="hashing:64")
        engine.add(numbered(0, 5))

        def search(engine: trivet.Engine = engine) -> None:
            with contextlib.suppress(StoreError):
                for _ in range(200):
                    engine.search("heron")

        with ThreadPoolExecutor(3) as pool:
            searching = [pool.submit(search) for _ in range(3)]
            engine.close()
            for future in searching:
                future.result()
        with pytest.raises(StoreError, match="closed"):
            engine.search("heron")
