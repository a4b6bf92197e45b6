"""Stored passages are embedded in the background, once, whatever happens in between."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from trivet.engine import Engine, background
from trivet.engine.models import EMBED_AT_ONCE
from trivet.errors import EmbedderError

Open = Callable[..., Engine]

MANY = EMBED_AT_ONCE * 2
TEXTS = [{"id": str(n), "text": f"cat number {n}"} for n in range(MANY)]


def until(true: Callable[[], bool]) -> None:
    """Wait for something another thread does; a hang fails the test, slowness does not."""
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.005)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "PAUSE", 0.01)
    monkeypatch.setattr(background, "LONGEST_PAUSE", 0.02)


class TestFailure:
    def test_in_bulk_it_is_told_and_tried_again(self, open_store: Open, taught: Any) -> None:
        model = taught("cat")
        model.fail = EmbedderError("the model server is down")
        memory = open_store(embedder=model)
        assert memory.add(TEXTS).pending == MANY
        until(lambda: memory.stats().embed_error != "")
        assert memory.stats().embed_error == "the model server is down"
        found = memory.search("cat", dense_timeout=60_000)
        assert found.degraded[0].part == "dense"
        assert found.degraded[0].reason == f"{MANY} of {MANY} passages are not embedded yet (the model server is down)"
        assert len(found) == 10
        model.fail = None
        until(lambda: memory.stats().pending == 0)  # nobody had to ask
        until(lambda: memory.stats().embed_error == "")
        assert memory.search("cat").degraded == ()

    def test_wait_says_why_and_works_once_it_can(self, open_store: Open, taught: Any) -> None:
        model = taught("cat")
        model.fail = ConnectionError("refused")
        memory = open_store(embedder=model)
        memory.add(TEXTS)
        with pytest.raises(EmbedderError, match=f"{MANY} passages are not embedded: ConnectionError: refused"):
            memory.wait(timeout=60)
        model.fail = None
        memory.wait(timeout=60)
        assert memory.stats().pending == 0
        assert memory.stats().embed_error == ""

    def test_wait_does_not_repeat_an_old_complaint(
        self, open_store: Open, taught: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The last attempt failed an hour ago and the next is an hour away; the embedder is back now."""
        monkeypatch.setattr(background, "PAUSE", 3_600.0)
        monkeypatch.setattr(background, "LONGEST_PAUSE", 3_600.0)
        model = taught("cat")
        model.fail = ConnectionError("refused")
        memory = open_store(embedder=model)
        memory.add(TEXTS)
        until(lambda: memory.stats().embed_error != "")
        model.fail = None
        memory.wait(timeout=60)
        assert memory.stats().pending == 0

    @pytest.mark.parametrize("failure", [EmbedderError("down"), ConnectionError("down"), ValueError("down")])
    def test_a_single_add_is_stored_and_says_so(self, open_store: Open, taught: Any, failure: Exception) -> None:
        """The document is durable: an exception would tell the caller the opposite."""
        model = taught("cat")
        memory = open_store(embedder=model)
        model.fail = failure
        told = memory.add("one cat", id="a")
        assert (told.added, told.pending) == (1, 1)
        assert [(item.part, item.reason) for item in told.degraded] == [("dense", "down")]
        assert memory.get("a") is not None
        assert [hit.id for hit in memory.search("cat")] == ["a"]
        model.fail = None
        until(lambda: memory.stats().pending == 0)
        assert [hit.id for hit in memory.search("cat", alpha=1)] == ["a"]

    def test_a_failure_half_way_keeps_the_first_half(
        self, open_store: Open, taught: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(background, "BATCH", 4)
        model = taught("cat")
        real, calls = model.embed_passages, []

        def third_time_unlucky(texts: list[str]) -> Any:
            calls.append(list(texts))
            if len(calls) == 3:
                raise EmbedderError("one hiccup")
            return real(texts)

        monkeypatch.setattr(model, "embed_passages", third_time_unlucky)
        memory = open_store(embedder=model)
        memory.add(TEXTS)
        until(lambda: memory.stats().pending == 0)
        embedded = Counter(text for number, texts in enumerate(calls) if number != 2 for text in texts)
        assert embedded == Counter(item["text"] for item in TEXTS)  # each once, the hiccup's again


class TestClose:
    def test_mid_way_loses_nothing_and_embeds_nothing_twice(
        self, open_store: Open, taught: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(background, "BATCH", 4)
        model = taught("cat")
        memory = open_store(embedder=model)
        real, second = model.embed_passages, threading.Event()

        def watched(texts: list[str]) -> Any:
            if model.passages:
                model.gate.clear()
                second.set()
            return real(texts)

        monkeypatch.setattr(model, "embed_passages", watched)
        memory.add(TEXTS)
        assert second.wait(60)
        closing = threading.Thread(target=memory.close)
        closing.start()
        until(lambda: memory._models.backlog._stop.is_set())
        model.gate.set()  # the batch in hand is finished
        closing.join()
        again_model = taught("cat")
        again_model.gate.clear()
        again = open_store(embedder=again_model)
        assert again.stats().documents == MANY
        assert again.stats().embedded == 8
        assert again.stats().pending == MANY - 8
        again_model.gate.set()
        again.wait(timeout=60)
        assert again.stats().pending == 0
        assert Counter(model.passages + again_model.passages) == Counter(item["text"] for item in TEXTS)

    def test_in_the_moment_before_it_begins(self, open_store: Open, taught: Any) -> None:
        """Stopped and woken just before it forgets that it was woken, it used to sleep for ever."""
        memory = open_store(embedder=taught("cat"))
        work = memory._models.backlog
        cleared, closing = work._wake.clear, threading.Thread(target=work.close)

        def clear() -> None:
            closing.start()
            until(work._stop.is_set)
            cleared()

        work._wake.clear = clear  # type: ignore[method-assign]
        memory._models.embed_in_background()
        assert work._thread is not None
        work._thread.join(30)
        assert not work._thread.is_alive()
        closing.join(30)

    def test_what_waits_is_taken_up_when_the_store_is_opened(self, open_store: Open, taught: Any) -> None:
        first = taught("cat")
        first.fail = EmbedderError("down")
        memory = open_store(embedder=first)
        memory.add(TEXTS)
        memory.close()
        second = taught("cat")
        again = open_store(embedder=second)
        until(lambda: again.stats().pending == 0)
        assert len(second.passages) == MANY

    def test_a_dropped_collection_stops_its_backlog(self, open_store: Open, taught: Any) -> None:
        model = taught("cat")
        model.fail = EmbedderError("down")
        memory = open_store(embedder=model)
        other = memory.collection("other", embedder=model)
        other.add(TEXTS)
        other.drop()
        assert not other._models.backlog.running
        assert memory.add("still here").added == 1


class TestOneAtATime:
    def test_a_second_engine_leaves_it_to_the_first(self, open_store: Open, taught: Any) -> None:
        busy, idle = taught("cat"), taught("cat")
        busy.gate.clear()
        one = open_store(embedder=busy)
        one.add(TEXTS)
        until(lambda: bool(busy.passages))  # it holds the lock and hangs
        two = open_store(embedder=idle)
        two.add([{"id": f"more{n}", "text": f"dog number {n}"} for n in range(MANY)])
        assert two.stats().embed_error == ""
        assert idle.passages == []
        busy.gate.set()
        one.wait(timeout=60)
        two.wait(timeout=60)
        assert two.stats().pending == 0
        embedded = Counter(busy.passages + idle.passages)
        assert max(embedded.values()) == 1
        assert len(embedded) == 2 * MANY

    def test_progress_counts_to_the_end(self, open_store: Open, taught: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(background, "BATCH", 8)
        memory = open_store(embedder=taught("cat", name="old"))
        memory.add(TEXTS)
        memory.wait(timeout=60)
        told: list[tuple[int, int]] = []
        memory.reembed(taught("cat", "dog", name="new"), progress=lambda done, total: told.append((done, total)))
        assert told == [(done, MANY) for done in range(8, MANY + 1, 8)]

    def test_what_the_model_reads(self) -> None:
        assert background.joined("", "text") == "text"
        assert background.joined("Title", "text") == "Title\ntext"
