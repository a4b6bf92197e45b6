"""Eight processes that read and write one store lose nothing and see nothing wrong."""

from __future__ import annotations

import random
import time
from pathlib import Path

from crash.crew import Crew, audit, written
from crash.journal import steps
from robust.account import Account, Scale

WRITERS, READERS = 5, 3
TOLD_EVERY = 60.0  # seconds


def run(account: Account, scale: Scale, folder: Path, rng: random.Random) -> None:
    store, place = folder / "memory.db", folder / "crew"
    place.mkdir()
    crew = Crew(store, place, rng.randrange(1 << 30))
    until = time.monotonic() + scale.crowd_seconds
    try:
        for number in range(WRITERS):
            crew.start("writer", number)
        for number in range(READERS):
            crew.start("reader", number)
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, TOLD_EVERY))
            account.tell(f"crowd: {written(place):,} writes acknowledged, {max(left - TOLD_EVERY, 0):.0f} s to go")
        crew.stop()
    finally:
        crew.end()
    account.add("processes", WRITERS + READERS)
    account.add("seconds of them", round(scale.crowd_seconds))
    account.add("writes of them", written(place))
    account.add("searches of them", sum(_searches(path) for path in place.glob("reader-*.jsonl")))
    if crew.complaints():
        account.fault("crashed", crew.complaints())
    if any(code for _, code in crew.exits):
        account.fault("crashed", str(crew.exits))
    for told in audit(store, place, rng):
        account.fault(*told.split(": ", 1))


def _searches(path: Path) -> int:
    return max((step["searches"] for step in steps(path)), default=0)
