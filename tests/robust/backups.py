"""A backup made while others write is a whole store with everything acknowledged before it began."""

from __future__ import annotations

import random
import time
from pathlib import Path

import trivet
from crash.crew import MEANING_ALONE, WORDS_ALONE, Crew, Texts, found_by, journalled, unique_word, written
from crash.journal import steps
from robust.account import Account, Scale

WRITERS = 3
HEAD_START = 100  # writes before the first backup
PATIENCE = 120.0  # seconds for them


def run(account: Account, scale: Scale, folder: Path, rng: random.Random) -> None:
    store, place = folder / "memory.db", folder / "crew"
    place.mkdir()
    crew = Crew(store, place, rng.randrange(1 << 30))
    try:
        for number in range(WRITERS):
            crew.start("writer", number)
        until = time.monotonic() + PATIENCE
        while written(place) < HEAD_START and time.monotonic() < until:
            time.sleep(0.2)
        for number in range(scale.backups):
            time.sleep(rng.uniform(0.0, 0.5))
            counts = {path: len(list(steps(path))) for path in place.glob("writer-*.jsonl")}
            before = journalled(place)
            target = folder / f"restored-{number}" / "memory.db"
            target.parent.mkdir()
            with trivet.open(store, embedder="hashing") as engine:
                engine.backup(target)
            account.add("backups")
            _compare(account, target, before, _tried(counts), rng)
        crew.stop()
    finally:
        crew.end()
    if crew.complaints():
        account.fault("crashed", crew.complaints())


def _tried(counts: dict[Path, int]) -> Texts:
    """What was begun since: id → the texts it may have got while the backup was made."""
    found: Texts = {}
    for path, count in counts.items():
        for step in list(steps(path))[count:]:
            for id, text in step.get("texts", {}).items():
                found.setdefault(id, set()).add(text)
    return found


def _compare(account: Account, target: Path, before: list[Texts], since: Texts, rng: random.Random) -> None:
    """An id holds what it held before the backup began, or something that was written while it was made."""
    with trivet.open(target, embedder="hashing") as engine:
        stored = {document.id: document.text for document in engine.documents()}
        for known in before:
            for id in known:
                texts = set().union(*(each.get(id, set()) for each in before)) if id.startswith("shared") else known[id]
                if stored.get(id) not in texts | since.get(id, set()):
                    account.fault("lost", f"{target.parent.name}: {id} holds {stored.get(id)!r}, acknowledged {texts}")
        engine.wait(timeout=60)
        for id, text in rng.sample(sorted(stored.items()), min(30, len(stored))):
            if found_by(engine, unique_word(text), WORDS_ALONE) != [id]:
                account.fault("wrong", f"{target.parent.name}: {id} is not found by its word")
            if found_by(engine, text, MEANING_ALONE, k=1) != [id]:
                account.fault("wrong", f"{target.parent.name}: {id} is not found by its meaning")
        for problem in engine.verify().problems:
            account.fault("wrong", f"{target.parent.name}: {problem}")
    if len(stored) < 50:
        account.fault("wrong", f"{target.parent.name}: only {len(stored)} documents: this checks nothing")
