"""Documents change their tenant while others search: no answer under a filter holds another tenant's text.

Processes move documents between tenants, each time with a text that says whose it is. Meanwhile every way to read is
asked, with a filter and by an engine that is bound to one.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import trivet
from robust.account import Account, Scale
from trivet.engine import Engine
from trivet.errors import TrivetError

TENANTS = ("ada", "bob", "cyd")
DOCUMENTS, FLIPPERS = 60, 2
MARK = "of{}only"

FLIPPER = """
import random, sys, time
import trivet
from robust.tenants import DOCUMENTS, MARK, TENANTS, document
rng, until = random.Random(int(sys.argv[2])), time.monotonic() + float(sys.argv[3])
memory, moved = trivet.open(sys.argv[1], embedder="hashing:64"), 0
while time.monotonic() < until:
    batch = [document(number, rng.choice(TENANTS), rng.randrange(10**9)) for number in rng.sample(range(DOCUMENTS), 3)]
    if rng.random() < 0.3:
        memory.delete(where={"tenant": rng.choice(TENANTS), "slot": batch[0]["meta"]["slot"]})
    elif rng.random() < 0.5:
        one = batch[0]
        try:
            others = {f"field{MARK.format(name)}": None for name in TENANTS}  # metadata is merged
            memory.patch(one["id"], text=one["text"], title=one["title"], meta={**others, **one["meta"]})
        except trivet.TrivetError:
            memory.add(one)
    else:
        memory.add(batch)
    moved += len(batch)
memory.close()
print(moved)
"""


def document(number: int, tenant: str, salt: int) -> dict[str, Any]:
    """Everything that can be shown of it carries its tenant's mark."""
    mark = MARK.format(tenant)
    return {
        "id": f"d{number}",
        "title": f"Report {mark}",
        "text": f"the pump report {mark} number {salt} by Keeper {mark.title()}",
        "meta": {"tenant": tenant, "slot": number % 7, "session": f"s{number % 5}", f"field{mark}": mark},
    }


def run(account: Account, scale: Scale, folder: Path, rng: random.Random) -> None:
    store = folder / "memory.db"
    with trivet.open(store, embedder="hashing:64") as memory:
        memory.add([document(number, rng.choice(TENANTS), number) for number in range(DOCUMENTS)])
        memory.wait()
    seconds = scale.flip_seconds
    moving = [
        subprocess.Popen(
            [sys.executable, "-c", FLIPPER, str(store), str(rng.randrange(10**9)), str(seconds + 2)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(FLIPPERS)
    ]
    try:
        _read(account, store, rng, seconds)
    finally:
        for process in moving:
            told, complaint = process.communicate(timeout=120)
            if process.returncode:
                account.fault("crashed", complaint)
            else:
                account.add("changes of tenant", int(told))


def _read(account: Account, store: Path, rng: random.Random, seconds: float) -> None:
    until = time.monotonic() + seconds
    with trivet.open(store, embedder="hashing:64") as memory:
        bound = {tenant: memory.within({"tenant": tenant}) for tenant in TENANTS}
        while time.monotonic() < until:
            tenant = rng.choice(TENANTS)
            foreign = [MARK.format(other) for other in TENANTS if other != tenant]
            for name, answer in _answers(memory, bound[tenant], tenant, rng):
                account.add("filtered readings")
                shown = repr(answer).lower()
                if mark := next((mark for mark in foreign if mark in shown), None):
                    account.fault("leaked", f"{name} for {tenant} shows {mark}: {shown[:600]}")


def _answers(memory: Engine, bound: Engine, tenant: str, rng: random.Random) -> Iterator[tuple[str, Any]]:
    where, id = {"tenant": tenant}, f"d{rng.randrange(DOCUMENTS)}"
    asks: tuple[tuple[str, Callable[[], Any]], ...] = (
        ("search", lambda: memory.search("pump report", k=20, where=where)),
        ("search with neighbours", lambda: memory.search("pump report", k=5, where=where, neighbours=2)),
        ("bound search", lambda: bound.search("pump report by Keeper", k=20, weights={"graph": 1.0, "trigram": 1.0})),
        ("bound get", lambda: bound.get(id)),
        ("bound page", lambda: bound.page(limit=50)),
        ("bound documents", lambda: list(bound.documents())),
        ("facets", lambda: memory.facets(where=where)),
        ("bound facets", lambda: bound.facets()),
        ("bound explain", lambda: bound.explain("pump", id)),
        ("explain", lambda: memory.explain("pump", id, where=where)),
        ("bound standing", lambda: bound.redundant()),
        ("bound statistics", lambda: bound.stats()),
        ("a misspelt word", lambda: bound.search("ofadaonlz ofbobonlz ofcydonlz", k=3).trace),
        ("an unknown field", lambda: bound.search("pump", where={"fieldofadaonlz": 1})),
    )
    for name, ask in rng.sample(asks, 5):
        try:
            yield name, ask()
        except TrivetError as error:  # the document is gone, or another's by now; its message is looked at too
            yield name, str(error)
