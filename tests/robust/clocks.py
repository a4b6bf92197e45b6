"""Everything is kept and found when the clock jumps back and forth.

The clock every module of trivet reads is exchanged for one that jumps by up to ten years at every look.
"""

from __future__ import annotations

import contextlib
import random
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from unittest import mock

import trivet
from crash.journal import word
from robust.account import Account, Scale

FAR = 10 * 365.25 * 86_400  # seconds


def run(account: Account, scale: Scale, folder: Path, rng: random.Random) -> None:
    with trivet.open(folder / "memory.db", embedder="hashing") as engine:
        engine.add("so that every module is loaded", id="first")
        engine.search("loaded")
        with jumping(rng) as jumps:
            for number in range(scale.jumps):
                _step(account, engine, number, rng)
                if number % 10 == 9:
                    with trivet.open(folder / "memory.db") as other:
                        _look(account, other, number)
            account.add("jumps of the clock", jumps[0])
        _look(account, engine, scale.jumps - 1)
        for problem in engine.verify().problems:
            account.fault("wrong", f"after the clock jumped: {problem}")
    if not jumps[0]:
        account.fault("wrong", "nobody looked at the clock: this checks nothing")


@contextlib.contextmanager
def jumping(rng: random.Random) -> Iterator[list[int]]:
    """Every look at the wall clock is somewhere else; yields how many looks there were."""
    looks = [0]

    def shift() -> float:
        looks[0] += 1
        return rng.uniform(-FAR, FAR)

    class Jumping(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + timedelta(seconds=shift())

    real = time.time
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch("time.time", lambda: real() + shift()))
        for name, module in list(sys.modules.items()):
            if name.startswith("trivet") and getattr(module, "datetime", None) is datetime:
                stack.enter_context(mock.patch.object(module, "datetime", Jumping))
        yield looks


def _step(account: Account, engine: trivet.Engine, number: int, rng: random.Random) -> None:
    text = f"{word(number)} at the quay"
    engine.add(text, id=f"d{number}")
    engine.add(f"{text}, told again", id=f"d{number}")  # written later, whatever the clock says
    kept = engine.get(f"d{number}")
    if kept is None or kept.text != f"{text}, told again":
        account.fault("lost", f"d{number} holds {kept!r}")
    for good in (True, False):
        engine.feedback(text, f"d{number}", good)
    said = [given.good for given in engine.feedbacks() if given.id == f"d{number}"]
    if said != [False]:
        account.fault("lost", f"the last verdict on d{number}: {said}")
    engine.touch([f"d{number}"])
    k = 1 + number % 50
    engine.update_settings(k=k)
    if engine.settings.k != k or engine.settings_history(1)[0].profile.k != k:
        account.fault("lost", f"settings: k is {engine.settings.k}, {k} was acknowledged")
    if number % 7 == 3:
        engine.link(f"d{number}", f"d{number - 1}", "supersedes")


def _look(account: Account, engine: trivet.Engine, last: int) -> None:
    for number in range(max(0, last - 10), last + 1):
        query = {"alpha": 0, "understanding": "plain", "rerankers": [], "profile": "default"}
        found = [hit.id for hit in engine.search(word(number), k=3, **query)]
        wanted = f"d{number + 1}" if (number + 1) % 7 == 3 and number + 1 <= last else f"d{number}"
        if found != [wanted]:
            account.fault("wrong", f"d{number} is to be found as {wanted}, found: {found}")
