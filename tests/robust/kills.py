"""Everything acknowledged is there after a process was killed at any moment.

One store lives through a dozen kills, each of a process that adds, imports, embeds anew, rebuilds, changes settings or
makes a backup. What it was told is done must be there; what it only began may be, whole.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import trivet
from crash.crew import MEANING_ALONE, WORDS_ALONE, found_by, unique_word
from crash.journal import outcomes, steps
from robust.account import Account, Scale
from robust.victim import DEEDS
from trivet.stores.sqlite.settings import KEPT

A_STORE = 12  # kills of one store, over what the killed ones left
PATIENCE = 60.0  # seconds for a process to say that it has opened the store
LONGEST = 0.7  # seconds from then to its end


def run(account: Account, scale: Scale, folder: Path, rng: random.Random) -> None:
    deeds = list(DEEDS)
    for number in range(scale.kills):
        store, at = folder / f"store-{number // A_STORE}", number % A_STORE
        if at == 0:
            store.mkdir()
        deed = deeds[number % len(deeds)] if number else "add"
        if not _killed(store, deed, number, rng, account):
            continue
        account.add("kills")
        for kind, told in _audit(store, rng):
            account.fault(kind, f"after the kill of {deed!r} ({store.name}, kill {at}): {told}")
        if number % 20 == 19:
            account.tell(f"kills: {number + 1} of {scale.kills}")


def _killed(store: Path, deed: str, number: int, rng: random.Random, account: Account) -> bool:
    command = [sys.executable, "-W", "error", "-m", "robust.victim", str(store), deed, str(number)]
    complaints = store / f"{number}.err"
    with complaints.open("wb") as errors, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(rng.uniform(0.0, LONGEST))
        ended = process.poll()
        process.kill()
    if not first.startswith(b"opened") or ended is not None or complaints.stat().st_size:
        account.fault("crashed", f"{deed}: it ended by itself ({ended}): {complaints.read_text()[-1500:]}")
        return False
    return True


def _audit(store: Path, rng: random.Random) -> Iterator[tuple[str, str]]:
    may_hold = {}
    for path in store.glob("*.jsonl"):
        may_hold.update(outcomes(path))
    with trivet.open(store / "memory.db") as engine:
        stored = {document.id: document.text for document in engine.documents()}
        for id, texts in may_hold.items():
            if stored.get(id) not in texts:
                yield "lost", f"{id} holds {stored.get(id)!r}, acknowledged: {texts}"
        for id in stored.keys() - may_hold.keys():
            yield "strange", id
        yield from _settings(store, engine)
        engine.wait(timeout=PATIENCE)
        for id, text in rng.sample(sorted(stored.items()), min(20, len(stored))):
            if (found := found_by(engine, unique_word(text), WORDS_ALONE)) != [id]:
                yield "wrong", f"{id} by its word: {found}"
            if (found := found_by(engine, text, MEANING_ALONE, k=1)) != [id]:
                yield "wrong", f"{id} by its meaning: {found}"
        for problem in engine.verify().problems:
            yield "wrong", problem
    for path in store.glob("backup-*.db"):
        with trivet.open(path) as copy:
            for problem in copy.verify().problems:
                yield "wrong", f"{path.name}: {problem}"
        for left in store.glob(f"{path.name}*"):
            if left.is_file():
                left.unlink()


def _settings(store: Path, engine: trivet.Engine) -> Iterator[tuple[str, str]]:
    """The last that was acknowledged, or the one that was being written."""
    told = [step for path in store.glob("settings.json") for step in steps(path)]
    done = [step["k"] for step in told if step["state"] == "done"]
    before = done[-1] if done else trivet.PROFILES["default"].k  # the first change may have been cut short
    may_be = {before, *(step["k"] for step in told[-1:])}
    if engine.settings.k not in may_be:
        yield "lost", f"settings: k is {engine.settings.k}, acknowledged: {may_be}"
    numbers = [change.number for change in engine.settings_history(KEPT)]
    last = numbers[0] if numbers else 0
    if last < len(done) or numbers != list(range(last, max(0, last - KEPT), -1)):
        yield "lost", f"the history of the settings: {json.dumps(numbers[:20])}, acknowledged {len(done)}"
