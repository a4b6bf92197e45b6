"""Everything acknowledged is there after processes were killed at random moments."""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import trivet

from .crew import HERE, MEANING_ALONE, WORDS_ALONE, Crew, audit, every_text, found_by, journalled, written
from .journal import steps, word

pytestmark = [pytest.mark.crash, pytest.mark.slow, pytest.mark.timeout(180)]


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

    assert written(folder) > writers * 10, "the writers did next to nothing"
    certain = [id for known in journalled(folder) for id, texts in known.items() if len(texts) == 1]
    assert len(certain) > 100, "almost nothing was acknowledged: this checks nothing"
    assert len(every_text(folder)) > 200
    assert list(audit(store, folder, rng)) == []


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
