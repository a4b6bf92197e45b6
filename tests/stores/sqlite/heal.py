"""Damage the files of the indexes one by one and check that everything is still found.

``heal.py FOLDER DAMAGE [FILE [ATTEMPTS [SEED]]]``: a process of its own, because a damaged memory-mapped file can end
it; the last line printed names the case it was at.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import trivet
from trivet.stores.indexes import graph_index
from trivet.stores.sqlite import term_index, vector_index
from trivet.stores.sqlite.half_precision import ROUNDING

COUNT = 16
ANIMALS = ("otter", "heron", "badger", "lynx", "marten", "stoat", "vole", "wren", "finch", "newt")
TREES = ("Alder", "Birch", "Cedar", "Hazel", "Larch", "Maple", "Rowan", "Willow")
PLACES = ("river", "meadow", "quarry", "harbour", "orchard", "marsh")


def text_of(number: int) -> str:
    animal, place = ANIMALS[number % len(ANIMALS)], PLACES[number % len(PLACES)]
    seen = f"seen near {place} by {animal}s friend {number * 7919} of {TREES[number // 2]} Lodge"
    return f"{animal} of the {place}, number q{number}x; {seen}"


def ask(engine: trivet.Engine, query: str, leg: str, k: int = 3) -> list[trivet.Hit]:
    weights = {name: float(name == leg) for name in ("lexical", "trigram", "dense")}
    return list(engine.search(query, k=k, profile="default", rerankers=[], weights=weights))


def answers(engine: trivet.Engine) -> dict[str, list[str]]:
    """What each leg alone answers to a question about every document, its words, its spelling, a phrase of it, its
    neighbours in meaning; and what the graph knows of it. Before any ``verify``."""
    found: dict[str, list[str]] = {}
    for number in range(COUNT):
        animal, place = ANIMALS[number % len(ANIMALS)], PLACES[number % len(PLACES)]
        asked = {
            "word": ("lexical", f"q{number}x"),
            "words": ("lexical", f"{animal} {place} friend {number * 7919}"),
            "phrase": ("lexical", f'"{animal} of the {place}" number'),
            "trigram": ("trigram", f"number q{number}x"),
            "dense": ("dense", text_of(number)),
        }
        for name, (leg, query) in asked.items():
            hits = ask(engine, query, leg, k=COUNT)
            shown = [f"{hit.id} {hit.contributions[0].raw:.4f}" if leg == "dense" else hit.id for hit in hits]
            # documents that score the same stand in the order of their segments, which healing may change
            found[f"{name} {number}"] = [*shown[:1], *sorted(shown[1:])]
    graph = engine._collection.graph.mentions(engine._collection.state().version)
    for number in range(COUNT):
        _, concepts, marks = graph.named_by(np.array([number + 1]))
        shared = graph.frequency(concepts) > 1  # what one document alone has needs no name
        names = [
            graph.written(concept) if some else "" for concept, some in zip(concepts.tolist(), shared, strict=True)
        ]
        named = zip(concepts.tolist(), names, marks.tolist(), strict=True)
        found[f"graph {number}"] = sorted(f"{concept:x} {name} {mark}" for concept, name, mark in named)
        naming = graph.naming(np.sort(concepts))
        found[f"graph {number}"] += [f"{did} {pid}" for did, pid in zip(naming.did, naming.pid, strict=True)]
    return found


def check(engine: trivet.Engine) -> None:
    """Every document is found by its words, by its spelling and by its meaning."""
    for number in range(COUNT):
        for leg, query in (("lexical", f"q{number}x"), ("trigram", f"number q{number}x"), ("dense", text_of(number))):
            hits = ask(engine, query, leg)
            assert hits and hits[0].id == f"d{number}", f"{leg} finds {[hit.id for hit in hits]} for d{number}"
            if leg == "dense":
                assert abs(hits[0].contributions[0].raw - 1.0) <= ROUNDING, hits[0].contributions
    results = engine.search("otter river", weights={"graph": 1})
    assert not [item for item in results.degraded if item.part == "graph"], results.degraded
    engine.search("otter river but not lamp", k=COUNT, rerankers=["learned", "avoid"])  # reads positions of terms
    report = engine.verify()
    assert report.ok, report


def open_small(path: Path) -> trivet.Engine:
    """With limits so low that a few documents lie in the index on disk and in a snapshot."""
    term_index.TAIL_LIMIT, vector_index.SNAPSHOT_FROM, graph_index.TAIL_LIMIT = 4, 8, 4
    return trivet.open(path, embedder="hashing:64")


def build(path: Path, graph: bool = False) -> None:
    with open_small(path) as engine:
        for start in range(0, COUNT, 8):  # several commits: several segments
            engine.add([{"id": f"d{number}", "text": text_of(number)} for number in range(start, start + 8)])
            engine.wait()
            ask(engine, "otter", "trigram")
            engine._collection.maintenance.update(graph=graph)
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
        data[rng.randrange(len(data))] ^= rng.choice((0x55, 1 << rng.randrange(8)))
    path.write_bytes(data)


def deleted(path: Path, rng: random.Random) -> None:
    path.unlink()


DAMAGES: dict[str, Callable[[Path, random.Random], None]] = {
    damage.__name__: damage for damage in (truncated, emptied, overwritten, garbled, flipped, deleted)
}


def main(folder: Path, damage: str, only: str = "", attempts: int = 0, seed: str = "") -> None:
    whole = folder / "whole"
    if not whole.exists():
        whole.mkdir()
        build(whole / "memory.db", graph=bool(attempts))  # the long form only: its dozen files double the cases
    held = [path for path in (whole / "memory.db.index").rglob("*") if path.is_file() and path.stat().st_size]
    files = sorted(path.relative_to(whole) for path in held)
    told = folder / "answers.json"
    if not told.exists():
        shutil.copytree(whole, folder / "asked")
        with open_small(folder / "asked" / "memory.db") as engine:
            told.write_text(json.dumps(answers(engine)))
    right = json.loads(told.read_text())
    assert {path.suffix for path in files} >= {".npy", ".faiss", ".json", ".idx", ".term", ".store", ".fast"}
    cases = 0
    for name in files if damage in DAMAGES else ():
        for attempt in range(attempts or (2 if damage == "flipped" else 1)):
            if only in str(name):
                print(f"{damage} {name} {attempt}", flush=True)
                cases += 1
                broken = folder / f"broken{cases}"  # never a folder that a thread of the case before may still read
                shutil.copytree(whole, broken)
                rng = random.Random(f"{seed}{damage}/{name.parent.name}/{name.suffix}/{attempt}")
                DAMAGES[damage](broken / name, rng)
                check_healed(broken / "memory.db", right)
                shutil.rmtree(broken)
    print("all healed", flush=True)


def check_healed(path: Path, right: dict[str, list[str]]) -> None:
    """Every search answers as before the damage, before anybody asks ``verify``; and what it healed to is sound."""
    with open_small(path) as engine:
        now = answers(engine)
        wrong = {asked: (now[asked], right[asked]) for asked in right if now[asked] != right[asked]}
        assert not wrong, f"other answers than before the damage: {wrong}"
        check(engine)
        engine._collection.maintenance.update()
    with open_small(path) as engine:
        check(engine)


if __name__ == "__main__":
    main(
        Path(sys.argv[1]),
        *sys.argv[2:4],
        attempts=int(sys.argv[4] or 0) if len(sys.argv) > 4 else 0,
        seed="".join(sys.argv[5:]),
    )
