"""A process does not grow over a hundred thousand queries.

Memory and handles are read twenty times on the way. What the first third takes is warm-up (caches fill, allocators
keep their arenas); after it the line through the readings must be flat.

What it has to be told from, measured over 20,000 questions: an array of a megabyte that comes and goes (readings lie up
to 1.2 MB apart), and the words that analysers remember, up to a fixed number: with ten thousand different ones 24 bytes
a question, with ten none. So a slope over a few thousand questions means nothing by itself.
"""

from __future__ import annotations

import gc
import os
import random
import re
import threading
import time
from pathlib import Path

import numpy as np

import trivet
from robust.account import Account, Scale

DOCUMENTS = 300
READINGS = 20
MOST_PER_QUERY = 100.0  # bytes; at this rate a million questions cost 100 MB
SLACK = 4_000_000  # bytes: three times what the allocator was seen to move between two readings
OPENINGS = 25
PATIENCE = 10.0  # seconds
POOLED = re.compile(r"trivet-(?:\w+_[0-7]|helper)")  # the threads of the pool of a leg, and the one beside them
WORDS = ("harbour", "lantern", "granite", "willow", "copper", "otter", "river", "meadow", "quarry", "orchard", "marsh")


def run(account: Account, scale: Scale, folder: Path, rng: random.Random) -> None:
    with trivet.open(folder / "memory.db", embedder="hashing") as engine:
        engine.add([{"id": f"d{at}", "text": _text(rng, 30), "meta": {"n": at % 10}} for at in range(DOCUMENTS)])
        engine.wait()
        readings = _ask(account, scale.queries, engine, rng)
    _judge(account, readings)
    _open_again(account, folder / "memory.db")


def _text(rng: random.Random, length: int) -> str:
    return " ".join(rng.choices(WORDS, k=length)) + f" number {rng.randrange(10_000)}"


def _ask(account: Account, queries: int, engine: trivet.Engine, rng: random.Random) -> list[tuple[int, int, int, int]]:
    """(queries, bytes, handles, threads)"""
    profiles = ("default", "memories", "chunks", "episodes", "composite", "snippets")
    quick = {"profile": "default", "understanding": "plain", "rerankers": [], "weights": {"graph": 0}}
    found = []
    for number in range(1, queries + 1):
        where = {"n": {"gte": rng.randrange(9)}} if number % 3 == 0 else None
        how = quick if number % 5 else {"profile": profiles[number // 5 % len(profiles)]}
        engine.search(_text(rng, rng.randint(1, 8)), k=rng.randint(1, 20), where=where, **how)
        if number % max(queries // READINGS, 1) == 0:
            gc.collect()
            found.append((number, _resident(), _handles(), _threads()))
        if number % 10_000 == 0:
            account.tell(f"leaks: {number:,} queries, {_resident() / 1e6:.1f} MB, {_handles()} handles")
    account.add("queries", queries)
    return found


def _judge(account: Account, readings: list[tuple[int, int, int, int]]) -> None:
    settled = readings[len(readings) // 3 :]
    asked, sizes = (np.array([reading[at] for reading in settled], dtype=float) for at in (0, 1))
    slope = float(np.polyfit(asked, sizes, 1)[0]) if len(settled) > 1 else 0.0
    grown = slope * float(asked[-1] - asked[0])
    told = f"memory {slope:+.1f} bytes a query after warm-up ({sizes[0] / 1e6:.1f} → {sizes[-1] / 1e6:.1f} MB)"
    least = max(MOST_PER_QUERY, SLACK / max(float(asked[-1] - asked[0]), 1.0))
    account.note(f"{told}; a leak is told from {least:,.0f} on")
    if slope > MOST_PER_QUERY and grown > SLACK:
        account.fault("leaked", f"{slope:.0f} bytes a query: {grown / 1e6:.1f} MB")
    for name, at in (("handles", 2), ("threads", 3)):
        if settled[-1][at] > settled[0][at]:
            account.fault("leaked", f"{name}: {settled[0][at]} → {settled[-1][at]}")


def _open_again(account: Account, store: Path) -> None:
    """What is opened and closed leaves nothing open."""
    handles, before = [], set(threading.enumerate())
    for _ in range(OPENINGS):
        with trivet.open(store) as engine:
            engine.search("otter")
        gc.collect()
        handles.append(_handles())
    account.add("openings", OPENINGS)
    if handles[-1] > handles[2]:
        account.fault("leaked", f"handles after an opening: {handles[2]} → {handles[-1]}")
    until = time.monotonic() + PATIENCE  # one that was told to end may still be at it
    while (left := set(threading.enumerate()) - before) and time.monotonic() < until:
        time.sleep(0.1)
    if left:
        account.fault("leaked", f"threads of what is closed: {sorted(thread.name for thread in left)}")


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def _threads() -> int:
    """Count the threads. On a busy machine a leg's pool grows to eight and a helper starts: a second one counts."""
    names = [thread.name for thread in threading.enumerate()]
    return len(names) - len({name for name in names if POOLED.fullmatch(name)})


def _handles() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
