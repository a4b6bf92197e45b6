"""``close`` leaves no thread behind, and a thread that hangs does not hold it up forever."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import trivet
from trivet.concurrency import threads
from trivet.concurrency.threads import Background, ThreadPool


@pytest.fixture
def ours() -> Callable[[], list[str]]:
    """The names of the engine's threads that were started since: an engine of another test may still be open."""
    before = set(threading.enumerate())

    def names() -> list[str]:
        return [each.name for each in threading.enumerate() if each.name.startswith("trivet-") and each not in before]

    return names


class TestPool:
    def test_its_threads_are_gone_when_it_is_closed(self) -> None:
        pool = ThreadPool(3, "test-pool")
        doing = [pool.submit(time.sleep, 0.05) for _ in range(3)]
        pool.close()
        assert all(future.done() for future in doing)
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("test-pool")]

    def test_what_waits_in_it_is_dropped(self) -> None:
        pool, go = ThreadPool(1, "test-pool"), threading.Event()
        pool.submit(go.wait, 60)
        waiting = pool.submit(go.wait, 60)
        threading.Timer(0.05, go.set).start()
        pool.close()
        assert waiting.cancelled()

    def test_one_that_hangs_is_left_to_itself(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(threads, "CLOSE_TIMEOUT", 0.05)
        pool, go = ThreadPool(2, "test-pool"), threading.Event()
        hanging = pool.submit(go.wait, 60)
        pool.close()
        assert not hanging.done()  # it came back before the other did
        go.set()
        assert hanging.result(60)

    def test_the_timeout_is_for_all_of_them_together(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Five pools that hang are not waited for five times."""
        monkeypatch.setattr(threads, "CLOSE_TIMEOUT", 1.0)
        asked: list[float] = []
        monkeypatch.setattr(threads, "_join", lambda threads, timeout: asked.append(timeout()))
        threads.close([ThreadPool(1, "test-pool") for _ in range(5)])
        assert asked == sorted(asked, reverse=True) and asked[0] <= 1.0

    def test_closed_by_one_of_its_own_threads(self) -> None:
        pool = ThreadPool(1, "test-pool")
        assert pool.submit(pool.close).result(60) is None


class TestBackground:
    def test_no_thread_is_forgotten_when_many_start_at_once(self) -> None:
        background, go, done = Background("test-background"), threading.Event(), []
        starting = threading.Barrier(8)

        def work() -> None:
            go.wait(60)
            done.append(1)

        def start() -> None:
            starting.wait(60)
            background.start(work)

        starters = [threading.Thread(target=start) for _ in range(8)]
        for each in starters:
            each.start()
        for each in starters:
            each.join()
        go.set()
        background.join()
        assert len(done) == 8

    def test_after_the_end_nothing_is_started(self) -> None:
        background, done = Background("test-background"), []
        background.end()
        background.start(done.append, 1)
        background.join()
        assert done == []


class TestEngine:
    def test_no_thread_of_a_store_is_alive_after_its_close(self, tmp_path: Path, ours: Callable[[], list[str]]) -> None:
        with trivet.open(tmp_path / "m.db", embedder="hashing:8") as memory:
            memory.add([{"id": str(n), "text": f"otter {n} of the river"} for n in range(40)])
            memory.wait()
            memory.search("otter", trigram_weight=0.2, graph_weight=0.2)
            assert any(name.startswith("trivet-lexical") for name in ours()), "nothing ran in a thread: no test"
        assert ours() == []

    def test_a_model_that_hangs_does_not_hold_up_the_close(
        self, tmp_path: Path, taught: Any, monkeypatch: pytest.MonkeyPatch, ours: Callable[[], list[str]]
    ) -> None:
        monkeypatch.setattr(threads, "CLOSE_TIMEOUT", 0.05)
        model = taught("otter")
        memory = trivet.open(tmp_path / "m.db", embedder=model)
        memory.add("an otter")
        model.gate.clear()
        assert memory.search("otter", dense_timeout=50).degraded[0].part == "dense"
        memory.close()
        assert any(name.startswith("trivet-dense") for name in ours())  # it hangs, and the close came back
        model.gate.set()
        until = time.monotonic() + 60
        while ours():
            assert time.monotonic() < until, "it never ended"
            time.sleep(0.005)
