"""Damages one file of the projections after another and looks whether everything is still found.

``heal.py FOLDER DAMAGE [FILE [ATTEMPTS]]``: a process of its own, because a damaged memory-mapped file can end it; the
last line printed names the case it was at.
"""

from __future__ import annotations

import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import trivet
from trivet.stores.sqlite import graph, meaning, words

COUNT = 16
ANIMALS = ("otter", "heron", "badger", "lynx", "marten", "stoat", "vole", "wren", "finch", "newt")
PLACES = ("river", "meadow", "quarry", "harbour", "orchard", "marsh")


def text_of(number: int) -> str:
    animal, place = ANIMALS[number % len(ANIMALS)], PLACES[number % len(PLACES)]
    return f"{animal} of the {place}, number q{number}x; seen near {place} by {animal}s friend {number * 7919}"


def ask(engine: trivet.Engine, query: str, leg: str) -> list[trivet.Hit]:
    weights = {name: float(name == leg) for name in ("lexical", "trigram", "dense")}
    return list(engine.search(query, k=3, profile="default", rerankers=[], weights=weights))


def check(engine: trivet.Engine) -> None:
    """Every document is found by its words, by its spelling and by its meaning."""
    for number in range(COUNT):
        for leg, query in (("lexical", f"q{number}x"), ("trigram", f"number q{number}x"), ("dense", text_of(number))):
            hits = ask(engine, query, leg)
            assert hits and hits[0].id == f"d{number}", f"{leg} finds {[hit.id for hit in hits]} for d{number}"
            if leg == "dense":
                assert abs(hits[0].contributions[0].raw - 1.0) < 1e-5, hits[0].contributions
    results = engine.search("otter river", weights={"graph": 1})
    assert not [item for item in results.degraded if item.part == "graph"], results.degraded
    report = engine.verify()
    assert report.ok, report


def open_small(path: Path) -> trivet.Engine:
    """With limits so low that a few documents lie in the index on disk and in a snapshot."""
    words.TAIL_LIMIT, meaning.SNAPSHOT_FROM, graph.TAIL_LIMIT = 4, 8, 4
    return trivet.open(path, embedder="hashing:64")


def build(path: Path, graph: bool = False) -> None:
    with open_small(path) as engine:
        for start in range(0, COUNT, 8):  # several commits: several segments
            engine.add([{"id": f"d{number}", "text": text_of(number)} for number in range(start, start + 8)])
            engine.wait()
            ask(engine, "otter", "trigram")
            engine._shelf.tidy(graph=graph)
        check(engine)


def truncated(path: Path, rng: random.Random) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def emptied(path: Path, rng: random.Random) -> None:
    path.write_bytes(b"")


def overwritten(path: Path, rng: random.Random) -> None:
    path.write_bytes(rng.randbytes(path.stat().st_size))


def garbled(path: Path, rng: random.Random) -> None:
    """The first and the last bytes are right, the middle is not."""
    data = bytearray(path.read_bytes())
    for at in range(len(data) // 4, len(data) * 3 // 4):
        data[at] = rng.randrange(256)
    path.write_bytes(data)


def flipped(path: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    if data:
        data[rng.randrange(len(data))] ^= 0x55
    path.write_bytes(data)


def deleted(path: Path, rng: random.Random) -> None:
    path.unlink()


DAMAGES: dict[str, Callable[[Path, random.Random], None]] = {
    damage.__name__: damage for damage in (truncated, emptied, overwritten, garbled, flipped, deleted)
}


def main(folder: Path, damage: str, only: str = "", attempts: int = 0) -> None:
    whole = folder / "whole"
    if not whole.exists():
        whole.mkdir()
        build(whole / "memory.db", graph=bool(attempts))  # the long form only: its dozen files double the cases
    held = [path for path in (whole / "memory.db.index").rglob("*") if path.is_file() and path.stat().st_size]
    files = sorted(path.relative_to(whole) for path in held)
    assert {path.suffix for path in files} >= {".npy", ".faiss", ".json", ".idx", ".term", ".store", ".fast"}
    for name in files if damage in DAMAGES else ():
        for attempt in range(attempts or (2 if damage == "flipped" else 1)):
            if only in str(name):
                print(f"{damage} {name} {attempt}", flush=True)
                broken = folder / "broken"
                shutil.rmtree(broken, ignore_errors=True)
                shutil.copytree(whole, broken)
                DAMAGES[damage](broken / name, random.Random(f"{damage}/{name.parent.name}/{name.suffix}/{attempt}"))
                check_healed(broken / "memory.db", told_by_verify=damage in ("garbled", "flipped"))
    print("all healed", flush=True)


def check_healed(path: Path, told_by_verify: bool) -> None:
    with open_small(path) as engine:
        try:
            check(engine)
        except AssertionError:
            # Some wrong bytes cannot be seen from a search. Then verify says so, and rebuild mends it.
            if not told_by_verify or engine.verify().ok:
                raise
            engine.rebuild()
            check(engine)
        engine._shelf.tidy()
    with open_small(path) as engine:  # and what it healed to is sound as well
        check(engine)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:4], attempts=int(sys.argv[4]) if len(sys.argv) > 4 else 0)
