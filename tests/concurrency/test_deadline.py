"""A deadline ends reads, and never leaves half a write."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trivet
from trivet.concurrency import deadline
from trivet.engine import Engine
from trivet.errors import DeadlineError, exit_code

LONG = 60.0  # seconds: as good as for ever
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


class Slow:
    """An embedder that takes a given time for queries."""

    id = spec = "slow"
    dim, unrelated = 8, 0.0

    def __init__(self, asked: Callable[[], None] = lambda: None) -> None:
        self.asked = asked

    def embed_passages(self, texts: list[str]) -> Any:
        return np.ones((len(texts), self.dim), dtype="f4")

    def embed_queries(self, texts: list[str]) -> Any:
        self.asked()
        return self.embed_passages(texts)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with trivet.open(tmp_path / "memory.db", embedder="none") as opened:
        opened.add([{"id": str(number), "text": f"note {number}", "meta": {"n": number}} for number in range(20)])
        yield opened


# --- the limit itself -------------------------------------------------------------------------------------------------


def test_without_a_limit_nothing_is_checked() -> None:
    assert deadline.left() is None
    assert not deadline.passed()
    assert deadline.within(5.0) == 5.0
    deadline.check()


def test_the_sooner_of_two_limits_holds() -> None:
    with deadline.limit(0.0):
        with deadline.limit(LONG), pytest.raises(DeadlineError, match="time for this request is over"):
            deadline.check()
        assert deadline.left() == deadline.within(5.0) == 0.0
        with deadline.lifted():
            deadline.check()
        assert deadline.passed()
    with deadline.limit(LONG), deadline.limit(0.0):
        assert deadline.passed()
    assert not deadline.passed()
    assert exit_code(DeadlineError("x")) == 1


def test_another_thread_has_it_only_if_it_is_carried() -> None:
    with ThreadPoolExecutor(1) as pool:
        with deadline.limit(LONG):
            assert pool.submit(deadline.left).result() is None
            assert pool.submit(deadline.carried(deadline.left)).result() is not None
        assert pool.submit(deadline.left).result() is None, "it is taken off again"
        with deadline.limit(0.0):
            begun: list[int] = []
            late = pool.submit(deadline.carried(lambda: begun.append(1)))
            assert isinstance(late.exception(), DeadlineError)
            assert begun == []


def test_a_cancelled_request_is_over_in_every_thread_that_works_for_it() -> None:
    cancelled = threading.Event()
    with ThreadPoolExecutor(1) as pool, deadline.until(None, cancelled):
        waiting = deadline.carried(deadline.left)
        assert (deadline.left(), deadline.within(5.0), pool.submit(waiting).result()) == (None, 5.0, None)
        with deadline.limit(LONG):
            cancelled.set()
            assert deadline.passed()
            assert deadline.left() == 0.0
        with pytest.raises(DeadlineError):
            deadline.check()
        assert isinstance(pool.submit(waiting).exception(), DeadlineError)
        with deadline.lifted():
            deadline.check()
        with deadline.until(None, threading.Event()):
            assert deadline.passed(), "the event that was there before stays"
    deadline.check()


# --- reading ----------------------------------------------------------------------------------------------------------


def test_a_statement_without_end_is_interrupted(engine: Engine) -> None:
    with deadline.limit(0.05), pytest.raises(DeadlineError):
        engine._collection.rows.all(ENDLESS, ())  # type: ignore[attr-defined]
    assert engine.get("3") is not None, "the connection is of use again"


@pytest.mark.parametrize(
    "call",
    [
        lambda engine: engine.search("note"), lambda engine: engine.explain("note", "3"),
        lambda engine: engine.facets(), lambda engine: engine.timeline(), lambda engine: engine.redundant(),
        lambda engine: engine.page(), lambda engine: list(engine.documents()), lambda engine: list(engine.lines()),
        lambda engine: engine.get("3"), lambda engine: engine.links(), lambda engine: engine.stats(),
    ],
)  # fmt: skip
def test_nothing_is_read_when_the_time_is_over(engine: Engine, call: Callable[[Engine], Any]) -> None:
    with deadline.limit(0.0), pytest.raises(DeadlineError):
        call(engine)
    call(engine)


def test_a_long_list_of_documents_ends_in_the_middle(engine: Engine) -> None:
    engine.add({"id": f"more {number}", "text": "x"} for number in range(1_000))
    seen = engine.documents()
    next(seen)
    with deadline.limit(0.0), pytest.raises(DeadlineError):
        list(seen)


# --- searching --------------------------------------------------------------------------------------------------------


def test_a_leg_works_under_the_limit_of_the_search(tmp_path: Path) -> None:
    ended = threading.Event()

    def work() -> None:
        try:
            while True:
                deadline.check()
                ended.wait(0.005)
        except DeadlineError:
            ended.set()
            raise

    with trivet.open(tmp_path / "memory.db", embedder=Slow(work)) as engine:
        engine.add("a note")
        with deadline.limit(0.2), pytest.raises(DeadlineError):
            engine.search("note")
        assert ended.wait(LONG), "the leg's own thread ended, too"
        assert engine.search("note", alpha=0).hits


def test_a_search_does_not_wait_for_a_leg_that_hangs(tmp_path: Path) -> None:
    free = threading.Event()
    with trivet.open(tmp_path / "memory.db", embedder=Slow(lambda: bool(free.wait(LONG)) and None)) as engine:
        engine.add("a note")
        try:
            with deadline.limit(0.2), pytest.raises(DeadlineError):
                engine.search("note")
            assert not free.is_set(), "it hangs still, and the caller has his thread back"
        finally:
            free.set()


def test_an_index_is_built_for_all_who_ask(tmp_path: Path) -> None:
    """Otherwise a store whose index takes longer than a request would never get one."""
    with trivet.open(tmp_path / "memory.db", embedder="none") as engine:
        engine.add({"id": str(number), "text": f"note {number} on the alder"} for number in range(3_000))
        engine._collection.maintenance.discard()
        index = engine._collection.lexical.opened.open().index  # type: ignore[attr-defined]
        with deadline.limit(0.0):
            index.catch_up(engine_version(engine))
        assert index.is_near(engine_version(engine), 0)
        files = sorted((tmp_path / "memory.db.index").rglob("*"))

        def late() -> None:
            raise DeadlineError("late")

        with pytest.raises(DeadlineError):
            index.healed(late)
        assert sorted((tmp_path / "memory.db.index").rglob("*")) == files, "to run out of time is no damage"
        assert engine.search("alder").hits
        assert engine.verify().problems == ()


def engine_version(engine: Engine) -> int:
    with deadline.lifted():
        return engine._collection.state().version


# --- writing ----------------------------------------------------------------------------------------------------------


def test_no_write_begins_when_the_time_is_over(engine: Engine) -> None:
    before = engine.stats().documents
    for write in (
        lambda: engine.add("late"),
        lambda: engine.remember("late"),
        lambda: engine.delete("3"),
        lambda: engine.patch("3", title="late"),
        lambda: engine.update_settings(k=3),
        lambda: engine.link("1", "2"),
        lambda: engine.feedback("q", "1"),
    ):
        with deadline.limit(0.0), pytest.raises(DeadlineError):
            write()
    assert engine.stats().documents == before
    assert engine.links() == []
    assert engine.feedbacks() == []


def test_a_write_that_has_begun_is_done_to_the_end(engine: Engine) -> None:
    database = engine._store.database  # type: ignore[attr-defined]
    steps = ENDLESS.replace("FROM n)", "FROM n WHERE x < 300000)")
    with deadline.limit(0.02), database.write() as connection:
        while (rest := deadline.left()) is not None and rest > 0.0:  # lifted: there is none
            raise AssertionError
        connection.execute("UPDATE documents SET title = 'whole' WHERE id = '3'")
        for _ in range(5):
            connection.execute(steps).fetchone()
            engine._collection.rows.all(steps, ())  # type: ignore[attr-defined]
    found = engine.get("3")
    assert found is not None
    assert found.title == "whole"


def test_a_write_waits_for_another_thread_no_longer_than_it_may(engine: Engine) -> None:
    database = engine._store.database  # type: ignore[attr-defined]
    held, free = threading.Event(), threading.Event()

    def hold() -> None:
        with database.write():
            held.set()
            free.wait(LONG)

    other = threading.Thread(target=hold)
    other.start()
    try:
        assert held.wait(LONG)
        with deadline.limit(0.1), pytest.raises(DeadlineError):
            engine.add({"id": "late", "text": "late"})
        assert not free.is_set()
    finally:
        free.set()
        other.join()
    engine.add({"id": "late", "text": "in time"})


def test_a_write_waits_for_another_process_no_longer_than_it_may(engine: Engine) -> None:
    other = sqlite3.connect(engine.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        with deadline.limit(0.1), pytest.raises(DeadlineError):
            engine.add({"id": "late", "text": "late"})
    finally:
        other.execute("ROLLBACK")
        other.close()
    engine.add({"id": "late", "text": "in time"})
    assert engine.get("late") is not None
