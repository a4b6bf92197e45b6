"""Documents are written, rewritten, searched, forgotten and compacted: no byte of any file holds them afterwards."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path

import trivet
from robust.account import Account, Scale
from stores.sqlite.test_erasure import fill, holding, terms_of, write_marked
from trivet.engine import Engine
from trivet.stores.indexes import graph_index
from trivet.stores.sqlite import term_index, vector_index

#: Another process has the store open, writes and searches meanwhile: its memory and its indexes count too.
BESIDE = """
import sys, trivet
memory = trivet.open(sys.argv[1], embedder="hashing:64")
print("open", flush=True)
number = 0
for _ in sys.stdin:
    number += 1
    memory.add(f"Harbour Master beside {number}", id=f"beside{number}")
    memory.search("harbour captain")
    print("done", flush=True)
memory.close()
"""


def run(account: Account, scale: Scale, folder: Path, rng: random.Random) -> None:
    kept = term_index.TAIL_LIMIT, vector_index.SNAPSHOT_FROM, graph_index.TAIL_LIMIT
    term_index.TAIL_LIMIT, vector_index.SNAPSHOT_FROM, graph_index.TAIL_LIMIT = 8, 8, 8  # every index is on disk
    try:
        for number in range(scale.erasures):
            place = folder / f"erasure-{number}"
            place.mkdir()
            _erase(account, place, rng)
            if account.ok:
                shutil.rmtree(place, ignore_errors=True)
    finally:
        term_index.TAIL_LIMIT, vector_index.SNAPSHOT_FROM, graph_index.TAIL_LIMIT = kept


def _erase(account: Account, place: Path, rng: random.Random) -> None:
    store = place / "memory.db"
    with trivet.open(store, embedder="hashing:64") as memory:
        memory.update_settings(weights={"lexical": 1, "dense": 1, "trigram": 1, "graph": 1})
        fill(memory, rng.randrange(20, 120))
        marks = write_marked(memory)
        beside = _beside(store) if rng.random() < 0.5 else None
        if not holding(place, marks):
            account.fault("wrong", "the marks are not found where they are: this checks nothing")
        _stir(memory, rng)
        ids = [marks["id"], f"{marks['id']}-2"]
        if rng.random() < 0.5:
            memory.forget(ids)
            _stir(memory, rng)
            memory.compact()
        else:
            memory.forget(where={"id": ids}, compact=True)
        if beside is not None:
            _tell(beside)
        found = [*holding(place, marks), *terms_of(place, marks)]
        for problem in memory.verify().problems:
            account.fault("wrong", problem)
    if beside is not None:
        beside.communicate()
    found += holding(place, marks)
    if found:
        account.fault("leaked", f"{place.name}: forgotten and still there: {found[:6]}")
    account.add("erasures")


def _stir(memory: Engine, rng: random.Random) -> None:
    """Change and delete others, so that pages and segments are shared and used again."""
    for number in rng.sample(range(20), rng.randrange(0, 12)):
        if rng.random() < 0.5:
            memory.delete(f"doc-{number}")
        else:
            memory.add({"id": f"doc-{number}", "text": f"Harbour Master {number} again, tide {rng.random()}."})
    if rng.random() < 0.3:
        memory.prepare()


def _beside(store: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", BESIDE, str(store)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "open\n"
    _tell(process)
    return process


def _tell(process: subprocess.Popen[str]) -> None:
    """Let the other process write and search once."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    process.stdout.readline()
