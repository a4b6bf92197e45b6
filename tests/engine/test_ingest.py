"""Many documents are added at once, and a second process indexes them meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import trivet
from trivet.concurrency import deadline
from trivet.engine import Engine, ingest
from trivet.errors import DeadlineError, InputError
from trivet.stores.sqlite import indexer, term_index
from trivet.stores.sqlite.indexer import Indexer

Open = Callable[..., Engine]
NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


def told(number: int) -> dict[str, Any]:
    return {"id": str(number), "text": " ".join(NUMBERS[int(digit)] for digit in f"{number:04d}") + " sheep"}


def many(count: int) -> Iterator[dict[str, Any]]:
    return map(told, range(count))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Indexer]:
    """Loads count as large soon; every second process that is started is in the list."""
    monkeypatch.setattr(ingest, "INDEXER_FROM", 300)
    monkeypatch.setattr(ingest, "BATCH_DOCUMENTS", 100)
    monkeypatch.setattr(indexer, "cores", lambda: 2)
    seen: list[Indexer] = []
    real = Indexer.__init__

    def noted(self: Indexer, *given: Any) -> None:
        real(self, *given)
        seen.append(self)

    monkeypatch.setattr(Indexer, "__init__", noted)
    return seen


def indexed(engine: Engine) -> int:
    """Passages of the index on disk, as a process sees it that has indexed nothing itself."""
    with trivet.open(engine.path) as other:
        return int(other._collection.lexical.opened.open().index.disk_pid)  # type: ignore[attr-defined]


class TestASecondProcess:
    def test_a_large_load_is_indexed_by_it(self, words: Engine, started: list[Indexer]) -> None:
        with words.loading() as load:
            load.add(many(2_000))
            assert load._indexer is started[0]
            assert load._indexer.finish() == ""
            load._indexer = None
            assert indexed(words) == 2_000  # before this process has indexed anything
            assert load.finish() == ()
        assert [hit.id for hit in words.search('"one nine nine nine"', k=1)] == ["1999"]
        assert words.verify().ok

    def test_a_small_one_starts_none(self, words: Engine, started: list[Indexer]) -> None:
        words.add(many(299))
        assert not started

    def test_pieces_of_one_load_count_together(self, words: Engine, started: list[Indexer]) -> None:
        with words.loading() as load:
            for start in range(0, 600, 50):
                load.add([told(start + at) for at in range(50)])
            assert load.finish() == ()
        assert len(started) == 1
        assert words.verify().ok

    def test_it_answers_as_one_process_does(
        self, open_store: Open, started: list[Indexer], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        two = open_store("two.db", embedder="none", language="de")
        two.add(many(1_200))
        assert len(started) == 1
        monkeypatch.setattr(ingest, "INDEXER_FROM", 10**9)
        one = open_store("one.db", embedder="none", language="de")
        one.add(many(1_200))
        assert len(started) == 1
        for engine in (one, two):
            engine.prepare()  # the graph too, which is read in the background
        for question in ("seven sheep", "one one four", "eight"):
            found = [[(hit.id, round(hit.score, 6)) for hit in engine.search(question, k=20)] for engine in (one, two)]
            assert found[0] == found[1]

    def test_where_it_cannot_be_started_the_answer_says_so(
        self, words: Engine, started: list[Indexer], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys, "executable", "")
        found = words.add(many(1_500))
        assert [(item.part, "no second process" in item.reason) for item in found.degraded] == [("load", True)]
        assert found.added == 1_500
        assert indexed(words) == 1_500

    def test_where_it_ends_too_early_the_answer_says_so(self, words: Engine, started: list[Indexer]) -> None:
        with words.loading() as load:
            load.add(many(1_500))
            started[0]._process.kill()
            assert "-9" in load.finish()[0].reason
        assert indexed(words) == 1_500

    def test_with_one_core_there_is_none(
        self, words: Engine, started: list[Indexer], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(indexer, "cores", lambda: 1)
        assert words.add(many(1_500)).degraded == ()
        assert not started

    def test_an_error_ends_it_and_names_the_document(self, words: Engine, started: list[Indexer]) -> None:
        def broken() -> Iterator[dict[str, Any]]:
            yield from many(750)
            yield {"id": "bad", "text": 7}

        with pytest.raises(InputError, match=r"'bad': text: int .* \(the 700 documents before it are stored\)"):
            words.add(broken())
        assert started[0]._process.returncode is not None
        assert words.stats().documents == 700
        assert len(words.search('"zero six nine nine"', k=1)) == 1

    def test_nothing_is_read_ahead_of_what_is_stored(self, words: Engine, started: list[Indexer]) -> None:
        ahead: list[int] = []

        def watched() -> Iterator[dict[str, Any]]:
            for number in range(900):
                ahead.append(number - words.stats().documents)
                yield told(number)

        words.add(watched())
        assert max(ahead) < 100  # a batch

    def test_who_searches_meanwhile_is_answered(self, words: Engine, started: list[Indexer]) -> None:
        def asking() -> Iterator[dict[str, Any]]:
            for number in range(1_000):
                if number % 250 == 249:
                    assert [hit.id for hit in words.search('"zero zero zero seven"', k=1)] == ["7"]
                yield told(number)

        assert words.add(asking()).added == 1_000
        assert words.verify().ok


SCRIPT = """
import sys, trivet
from trivet.engine import ingest
from trivet.stores.sqlite import indexer
ingest.INDEXER_FROM, ingest.BATCH_DOCUMENTS, indexer.cores = 300, 100, lambda: 2
print("begun", flush=True)
engine = trivet.open(sys.argv[1], embedder="none")
load = engine.loading()
def given():
    for number in range(int(sys.argv[2])):
        yield {"id": str(number), "text": f"sheep number {number}"}
def progress(done, _):
    print("stored", done, load._indexer._process.pid if load._indexer else 0, flush=True)
print(load.add(given(), progress=progress).added, load.finish(), flush=True)
"""


@pytest.mark.parametrize("how", ["a script without a guard", "python -c"])
def test_no_script_is_run_twice(tmp_path: Path, how: str) -> None:
    (tmp_path / "load.py").write_text(SCRIPT)
    start = [str(tmp_path / "load.py")] if how != "python -c" else ["-c", SCRIPT]
    done = subprocess.run(
        [sys.executable, *start, str(tmp_path / "memory.db"), "1500"], capture_output=True, text=True, timeout=120
    )
    assert done.stdout.count("begun") == 1, done.stderr
    assert done.stdout.splitlines()[-1] == "1500 ()"


def test_a_load_that_is_killed_ends_its_second_process_and_goes_on_from_there(tmp_path: Path) -> None:
    store = tmp_path / "memory.db"
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(store), "10000000"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    stored = second = 0
    while not second:  # told of by the batch after the one that started it
        line = process.stdout.readline().split()
        assert line, "it ended before it was killed"
        if line[0] == "stored":
            stored, second = int(line[1]), int(line[2])
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    until = time.monotonic() + 60
    while _is_alive(second) and time.monotonic() < until:
        time.sleep(0.02)
    assert not _is_alive(second)
    with trivet.open(store) as engine:
        kept = engine.stats().documents
        assert kept >= stored > 0
        passages = engine.stats().passages
        again = engine.add({"id": str(number), "text": f"sheep number {number}"} for number in range(kept + 10))
        assert (again.unchanged, again.added, again.updated) == (kept, 10, 0)
        assert engine.stats().passages == passages + 10
        assert engine._collection.feed.newest() == kept + 10  # type: ignore[attr-defined]  # nothing was written twice
        assert engine.verify().ok


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_a_portion_ends_where_the_writer_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(term_index, "LULL", 0.0)
    more = term_index._until_pause(lambda: False)
    time.sleep(0.001)
    assert more(10)  # something came since
    time.sleep(0.001)
    assert not more(10)
    assert not term_index._until_pause(lambda: True)(10)


EMBEDDING = """
import sys, time, trivet
import numpy as np
class Counting:
    id = spec = "counting"
    dim, unrelated, batch = 4, 0.0, 5
    def __init__(self, pause): self.pause, self.texts = pause, []
    def embed_queries(self, texts): return np.ones((len(texts), 4))
    def embed_passages(self, texts):
        time.sleep(self.pause)
        self.texts += texts
        print("embedded", len(self.texts), flush=True)
        return np.ones((len(texts), 4))
model = Counting(float(sys.argv[2]))
with trivet.open(sys.argv[1], embedder=model) as engine:
    found = engine.add({"id": str(number), "text": f"sheep number {number}"} for number in range(100))
    engine.wait()
    print("done", found.unchanged, len(model.texts), flush=True)
"""


def test_a_load_that_is_killed_embeds_nothing_again_that_is_embedded(tmp_path: Path) -> None:
    command = [sys.executable, "-c", EMBEDDING, str(tmp_path / "memory.db")]
    process = subprocess.Popen([*command, "0.05"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    while (line := process.stdout.readline()) != "embedded 40\n":
        assert line, "it ended before it was killed"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    with trivet.open(tmp_path / "memory.db", embedder="none") as engine:  # embeds nothing itself
        kept = engine.stats()
    done = subprocess.run([*command, "0"], capture_output=True, text=True, timeout=120, check=True)
    unchanged, embedded = map(int, done.stdout.splitlines()[-1].split()[1:])
    assert unchanged == kept.documents == 100
    assert kept.embedded >= 35  # all that were told of, but for the batch in hand
    assert embedded == 100 - kept.embedded


def test_a_large_load_is_embedded_after_its_last_batch(open_store: Open) -> None:
    engine = open_store(embedder="hashing")
    with engine.loading() as load:
        load.add(many(100))
        assert not engine._models.backlog.running
        assert engine.stats().pending == 100
        load.finish()
        assert engine._models.backlog.running
    engine.wait()
    assert engine.stats().pending == 0


def test_a_load_that_failed_is_embedded_too(open_store: Open) -> None:
    engine = open_store(embedder="hashing")
    with pytest.raises(RuntimeError), engine.loading() as load:
        load.add(many(100))
        raise RuntimeError
    assert engine._models.backlog.running
    engine.wait()
    assert engine.stats().pending == 0


def test_what_a_load_stored_before_its_deadline_is_embedded(open_store: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "BATCH_DOCUMENTS", 100)
    memory = open_store("memory.db", embedder="hashing:16")
    cancelled = threading.Event()

    def ended_after_one_batch() -> Iterator[dict[str, Any]]:
        yield from many(100)
        cancelled.set()
        yield from map(told, range(100, 300))

    with deadline.until(None, cancelled), pytest.raises(DeadlineError):
        memory.add(ended_after_one_batch())
    assert 0 < memory.stats().documents < 300
    until = time.monotonic() + 60
    while memory.stats().pending and time.monotonic() < until:  # nobody calls ``wait``
        time.sleep(0.05)
    assert memory.stats().pending == 0
