"""Open damaged stores and report what they say. ``patient.py FOLDER FILE WAY FIRST LAST SEED``

One JSON line a case: told (refused, or ``verify`` found it), harmless (nothing that is stored changed), torn (the end
of the log is missing, whole commits of it), silent (something changed and nobody said so) or crashed.
"""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import trivet
from trivet.engine.keys import Keys
from trivet.errors import TrivetError
from trivet.stores.sqlite.database import Database

DOCUMENTS = 40
TABLES = ("documents", "passages", "vectors", "fields", "links", "feedback", "access", "settings_history", "keys")
# what only has to grow, and what is counted from the rows, is no part of what is stored
COLLECTIONS = "SELECT cid, uid, name, config, settings, mid, created FROM collections ORDER BY cid"
Rows = list[Any]


def text_of(number: int) -> str:
    short = f"otter {number} of the river, seen by friend {number * 7919}"
    return f"{short}. " * 400 if number % 13 == 5 else short  # some fill several pages


def build(folder: Path) -> None:
    """``closed/memory.db``: one file. ``open/``: the same with all of it in the log, as a killed process leaves it."""
    for name in ("closed", "open"):
        place = folder / name
        (place / "made").mkdir(parents=True)
        with trivet.open(place / "made" / "memory.db", embedder="hashing:64") as engine:
            for number in range(DOCUMENTS):
                meta = {"n": number, "tags": ["river", f"t{number % 3}"], "deep": {"x": number / 7, "yes": True}}
                moment = f"2024-01-{number % 28 + 1:02d}"
                engine.add(
                    text_of(number), id=f"d{number}", title=f"note {number}", meta=meta, importance=number / 50,
                    valid_from=moment if number % 2 else None,
                )  # fmt: skip
            if name == "closed":
                engine.link("d1", "d2", weight=0.25)
                engine.link("d3", "d4", "supersedes")
                engine.feedback("where is the otter", "d1")
                engine.feedback("where is the heron", "d2", good=False)
                engine.touch(["d5", "d6"])
                engine.update_settings(k=7, by="someone")
                engine.collection("other", embedder="none").add("another collection", id="o1")
                with Keys(place / "made" / "memory.db") as keys:
                    keys.create("dashboard", "read")
            else:  # the last commit is of one document, and stands alone
                engine.wait()
            for suffix in ("", "-wal", "-shm") if name == "open" else ():
                shutil.copy(place / "made" / f"memory.db{suffix}", place / f"memory.db{suffix}")
        if name == "closed":
            shutil.copy(place / "made" / "memory.db", place / "memory.db")
        shutil.rmtree(place / "made")


def dump(path: Path) -> Rows:
    """Everything that is stored, by SQLite alone."""
    with closing(sqlite3.connect(path)) as connection:
        connection.text_factory = bytes
        found: Rows = [connection.execute(COLLECTIONS).fetchall()]
        for table in TABLES:
            found.append(sorted(connection.execute(f"SELECT * FROM {table}").fetchall(), key=repr))
    return found


def flipped(data: bytearray, rng: random.Random) -> bytearray:
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return data


def zeroed(data: bytearray, rng: random.Random) -> bytearray:
    size = rng.choice((512, 4096))
    at = rng.randrange(len(data)) // size * size
    data[at : at + size] = bytes(len(data[at : at + size]))
    return data


def truncated(data: bytearray, rng: random.Random) -> bytearray:
    return data[: rng.randrange(len(data))]


WAYS: dict[str, Callable[[bytearray, random.Random], bytearray]] = {
    way.__name__: way for way in (flipped, zeroed, truncated)
}
CASES = {
    "closed/memory.db": ("flipped", "zeroed", "truncated"),
    "open/memory.db-wal": ("flipped", "zeroed", "truncated"),
    "open/memory.db-shm": ("flipped", "zeroed", "truncated"),
}


def examined(store: Path, whole: Rows, log: bool) -> tuple[str, str]:
    try:
        with trivet.open(store, create=False) as engine:
            problems = engine.verify().problems
            engine.search("otter of the river", k=3)
            list(engine.documents())
    except TrivetError as error:
        return "told", str(error)
    except Exception as error:
        return "crashed", f"{type(error).__name__}: {error}"
    if problems:
        return "told", problems[0]
    now = dump(store)
    if now == whole:
        return "harmless", ""
    if log and _earlier(now, whole):
        return "torn", ""
    return "silent", f"{_difference(now, whole)}"


def _earlier(now: Rows, whole: Rows) -> bool:
    """Tell whether it is the store as it was some commits before; each commit added one document, in order."""
    same = now[1] == [row for row in whole[1] if row in now[1]]
    return same and {row[0] for row in now[1]} == set(range(1, len(now[1]) + 1))


def _difference(now: Rows, whole: Rows) -> str:
    names = ("collections", *TABLES)
    for name, old, new in zip(names, whole, now, strict=True):
        if old != new:
            return f"{name}: {str([row for row in new if row not in old])[:300]}, {len(old)} → {len(new)} rows"
    return ""


def main(folder: Path, file: str, way: str, first: int, last: int, seed: int) -> None:
    source, place = folder / "whole" / Path(file).parent, folder / "broken"
    name = Path(file).name
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(source, place)
    Database(place / "memory.db").close()
    whole = dump(place / "memory.db")
    for number in range(first, last):
        shutil.rmtree(place)
        shutil.copytree(source, place)
        rng = random.Random(f"{seed}/{number}")
        (place / name).write_bytes(WAYS[way](bytearray((place / name).read_bytes()), rng))
        outcome, said = examined(place / "memory.db", whole, name.endswith("-wal"))
        print(json.dumps({"outcome": outcome, "said": said[:1000], "seed": f"{seed}/{number}"}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]), int(sys.argv[6]))
