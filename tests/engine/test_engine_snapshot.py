"""An answer is of one state: what a filter allowed is what is read and shown, whatever is written meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import trivet
from trivet.engine import Engine
from trivet.stores.sqlite import document_writes

WORDS: dict[str, Any] = {"alpha": 0, "weights": {"graph": 0.0}, "understanding": "plain"}


@pytest.fixture
def memory(tmp_path: Path) -> Any:
    with trivet.open(tmp_path / "m.db", embedder="none") as opened:
        opened.add([{"id": f"f{n}", "text": f"filler about gardens {n}", "meta": {"tenant": "B"}} for n in range(20)])
        opened.add("public note about pumps", id="d", meta={"tenant": "A"})
        opened.add("another note about pumps", id="e", meta={"tenant": "A"})
        yield opened


def between(memory: Engine, monkeypatch: pytest.MonkeyPatch, change: Callable[[], Any], times: int = 1) -> list[int]:
    """Do something behind the legs and before the texts are read, for so many searches."""
    real, done = memory._pipeline._fuse, [0]

    def fuse(*given: Any) -> Any:
        if done[0] < times:
            done[0] += 1
            thread = threading.Thread(target=change)  # another thread, as another process would
            thread.start()
            thread.join()
        return real(*given)

    monkeypatch.setattr(memory._pipeline, "_fuse", fuse)
    return done


def test_a_document_that_leaves_the_filter_after_it_was_ranked_is_not_shown(
    memory: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    between(memory, monkeypatch, lambda: memory.patch("d", text="SECRET note about pumps", meta={"tenant": "B"}))
    found = memory.search("note about pumps", where={"tenant": "A"}, **WORDS)
    assert [hit.id for hit in found] == ["e"]


def test_nor_one_whose_metadata_alone_changed(memory: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    between(memory, monkeypatch, lambda: memory.patch("d", meta={"tenant": "B"}))
    assert [hit.id for hit in memory.search("note about pumps", where={"tenant": "A"}, **WORDS)] == ["e"]


def test_nor_one_that_was_recalled_where_the_filter_asks_for_that(
    memory: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An access is no new version."""
    between(memory, monkeypatch, lambda: memory.touch("d"))
    where = {"tenant": "A", "accessed": {"exists": False}}
    assert [hit.id for hit in memory.search("note about pumps", where=where, **WORDS)] == ["e"]


def test_a_text_that_is_rewritten_meanwhile_is_looked_for_again(
    memory: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And is not shown for words that it no longer has."""
    done = between(memory, monkeypatch, lambda: memory.patch("d", text="nothing of the kind"))
    assert [hit.id for hit in memory.search("public note about pumps", **WORDS)] == ["e"]
    assert done == [1]


def test_one_that_is_rewritten_again_and_again_is_shown_as_it_is_now(
    memory: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = iter(range(100))
    done = between(memory, monkeypatch, lambda: memory.patch("d", text=f"note about pumps {next(numbers)}"), times=99)
    (shown,) = [hit for hit in memory.search("note about pumps", where={"tenant": "A"}, **WORDS) if hit.id == "d"]
    assert done == [3]
    assert shown.text == shown.document.text == "note about pumps 2"


def test_two_documents_that_change_together_are_of_one_state(memory: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def both() -> None:
        memory.add([{"id": id, "text": "note about pumps", "meta": {"tenant": "A", "round": 2}} for id in "de"])

    memory.add([{"id": id, "text": "note about pumps", "meta": {"tenant": "A", "round": 1}} for id in "de"])
    real, times = memory._collection.documents.fetch, [0]

    def fetch(dids: Any) -> Any:  # between two readings of one answer
        times[0] += 1
        if times[0] == 1:
            thread = threading.Thread(target=both)
            thread.start()
            thread.join()
        return real(dids)

    monkeypatch.setattr(memory._collection.documents, "fetch", fetch)
    rounds = {hit.document.meta["round"] for hit in memory.search("note about pumps", **WORDS)}
    assert rounds == {1} and times[0] >= 1


def test_a_deletion_by_filter_is_one_transaction(memory: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """What leaves the filter while it is looked up waits, and is not there any more when its turn comes."""
    real, outcome = document_writes.remove, []

    def remove(*given: Any) -> int:
        def patch() -> None:
            try:
                memory.patch("d", meta={"tenant": "B"})
                outcome.append("patched")
            except trivet.TrivetError as error:
                outcome.append(type(error).__name__)

        thread = threading.Thread(target=patch)
        thread.start()
        thread.join(timeout=0.3)
        assert thread.is_alive()  # it waits for the deletion
        done = real(*given)
        waiting.append(thread)
        return done

    waiting: list[threading.Thread] = []
    monkeypatch.setattr(document_writes, "remove", remove)
    assert memory.delete(where={"tenant": "A"}) == 2
    waiting[0].join()
    assert outcome == ["NotFoundError"]
    assert memory.get("d") is None
