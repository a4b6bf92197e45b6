"""Is everything there after processes were killed at random moments?"""

from __future__ import annotations

import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any

import pytest

import trivet

from .journal import outcomes, steps, word

pytestmark = [pytest.mark.crash, pytest.mark.slow, pytest.mark.timeout(180)]

HERE = Path(__file__).parent
# plain: a word that no document has is not to be taken for its nearest one, which is another's
WORDS_ALONE = {"alpha": 0, "understanding": "plain"}
MEANING_ALONE = {"alpha": 1, "understanding": "plain"}


class Crew:
    """Processes on one store, each with its own journal and its own file of complaints."""

    def __init__(self, store: Path, folder: Path, seed: int) -> None:
        self.store, self.folder, self.seed = store, folder, seed
        self.members: dict[tuple[str, int], subprocess.Popen[bytes]] = {}
        self.exits: list[tuple[str, int]] = []
        self._complaints: list[IO[bytes]] = []

    def start(self, role: str, number: int) -> None:
        complaints = (self.folder / f"{role}-{number}.err").open("ab")
        self._complaints.append(complaints)
        command = [
            sys.executable,
            "-W",
            "error",
            str(HERE / f"{role}.py"),
            self.store,
            self.folder,
            str(number),
            str(self.seed),
        ]
        self.members[role, number] = subprocess.Popen(command, stdout=complaints, stderr=complaints)

    def kill(self, role: str, number: int) -> None:
        member = self.members[role, number]
        member.send_signal(signal.SIGKILL)
        self.exits.append((f"{role}-{number}", member.wait()))

    def stop(self) -> None:
        (self.folder / "stop").touch()
        for (role, number), member in self.members.items():
            self.exits.append((f"{role}-{number}", member.wait(timeout=60)))

    def end(self) -> None:
        for member in self.members.values():
            if member.poll() is None:
                member.kill()
                member.wait()
        for complaints in self._complaints:
            complaints.close()

    def complaints(self) -> str:
        told = {path.name: path.read_text() for path in sorted(self.folder.glob("*.err"))}
        return "\n".join(f"--- {name}\n{text}" for name, text in told.items() if text)


def found_by(engine: trivet.Engine, query: str, how: dict[str, Any], k: int = 5) -> list[str]:
    return [hit.id for hit in engine.search(query, k=k, profile="default", rerankers=[], **how)]


def unique_word(text: str) -> str:
    return re.findall(r"zz\w+zq", text)[0]


@pytest.mark.parametrize("seed", [7])
def test_nothing_acknowledged_is_lost_when_processes_are_killed(tmp_path: Path, seed: int) -> None:
    store, folder = tmp_path / "memory.db", tmp_path / "crew"
    folder.mkdir()
    writers, readers = 6, 2
    rng = random.Random(seed)
    crew = Crew(store, folder, seed)
    try:
        for number in range(writers):
            crew.start("writer", number)
        for number in range(readers):
            crew.start("reader", number)
        for _ in range(24):
            time.sleep(rng.uniform(0.1, 0.9))
            role, number = rng.choice(list(crew.members))
            crew.kill(role, number)
            crew.start(role, number)
        time.sleep(2.0)
        crew.stop()
    finally:
        crew.end()
    assert not crew.complaints(), crew.complaints()
    # a member killed while it was dying of something else would show another number
    assert {code for _, code in crew.exits} <= {0, -signal.SIGKILL}, crew.exits
    assert sum(code == 0 for _, code in crew.exits) == writers + readers
    counts = [list(steps(folder / f"reader-{number}.jsonl"))[-1] for number in range(readers)]
    assert all(count["searches"] > 0 for count in counts)
    assert any(count["hits"] > 0 for count in counts)

    may_hold = [outcomes(folder / f"writer-{number}.jsonl") for number in range(writers)]
    written = sum(
        step["state"] == "done" for number in range(writers) for step in steps(folder / f"writer-{number}.jsonl")
    )
    assert written > writers * 10, "the writers did next to nothing"
    with trivet.open(store, embedder="hashing") as engine:
        stored = {document.id: document.text for document in engine.documents()}
        check_owned(stored, may_hold)
        check_shared(stored, may_hold)
        assert set(stored) <= {id for known in may_hold for id in known}
        check_counts(engine, stored)
        engine.wait(timeout=60)
        for id, text in stored.items():
            assert found_by(engine, unique_word(text), WORDS_ALONE) == [id]
        for id, text in rng.sample(sorted(stored.items()), 60):
            assert found_by(engine, text, MEANING_ALONE, k=1) == [id]
        replaced = every_text(folder) - set(stored.values())
        for text in rng.sample(sorted(replaced), 200):
            assert found_by(engine, unique_word(text), WORDS_ALONE) == [], "found by a word it no longer has"
        assert engine.verify().ok, engine.verify()
    assert sqlite3.connect(store).execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def every_text(folder: Path) -> set[str]:
    tried = [step["texts"] for path in folder.glob("writer-*.jsonl") for step in steps(path) if step["state"] == "try"]
    return {text for texts in tried for text in texts.values() if text is not None}


def check_owned(stored: dict[str, str], may_hold: list[dict[str, set[str | None]]]) -> None:
    certain = 0
    for known in may_hold:
        for id, texts in known.items():
            if not id.startswith("shared"):
                assert stored.get(id) in texts, f"{id} holds {stored.get(id)!r}, acknowledged: {texts}"
                certain += len(texts) == 1
    assert certain > 100, "almost nothing was acknowledged: this checks nothing"


def check_shared(stored: dict[str, str], may_hold: list[dict[str, set[str | None]]]) -> None:
    """Written by all: the last of one of them won."""
    for id in {id for known in may_hold for id in known if id.startswith("shared")}:
        assert stored.get(id) in set().union(*(known.get(id, set()) for known in may_hold)), id


def check_counts(engine: trivet.Engine, stored: dict[str, str]) -> None:
    stats = engine.stats()
    assert stats.documents == len(stored)
    assert stats.passages == len(stored)


@pytest.mark.parametrize("seed", range(6))
def test_a_bulk_add_killed_at_a_random_moment_keeps_every_batch_it_told_of(tmp_path: Path, seed: int) -> None:
    store = tmp_path / "memory.db"
    rng = random.Random(seed)
    told: set[int] = set()
    for round_number in range(3):  # the same documents again and again, over what the killed ones left
        told |= _killed_bulk(store, rng.uniform(0.0, 1.2), round_number)
        with trivet.open(store, embedder="hashing") as engine:
            present = {int(document.id) for document in engine.documents()}
            assert told <= present
            assert engine.stats().documents == len(present)
            for number in rng.sample(sorted(present), min(25, len(present))):
                assert found_by(engine, word(number), WORDS_ALONE) == [str(number)]
            report = engine.verify()
            assert report.ok, report
    with trivet.open(store, embedder="hashing") as engine:
        engine.wait(timeout=60)
        assert engine.stats().pending == 0
        for number in rng.sample(sorted(told), min(10, len(told))):
            assert str(number) in found_by(engine, f"{word(number)} again", MEANING_ALONE)


def _killed_bulk(store: Path, delay: float, round_number: int) -> set[int]:
    """Start a bulk add and kill it ``delay`` seconds after its first sign of life; what it told of as stored."""
    command = [sys.executable, "-W", "error", str(HERE / "bulk.py"), store, str(round_number)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout and process.stderr
        first = process.stdout.readline()
        time.sleep(delay)
        process.kill()
        lines = [first, *process.stdout.read().split(b"\n")]
        complaints = process.stderr.read().decode()
    assert not complaints, complaints
    counts = [int(line.split()[1]) for line in lines if re.fullmatch(rb"stored \d+ \.\n?", line)]
    assert first.startswith(b"opened")
    return set(range(max(counts, default=0)))
