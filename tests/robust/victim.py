"""A process that does one thing again and again until it is killed. ``victim.py FOLDER DEED NUMBER``

It says ``opened``, and writes down in its journal what it is about to do and what it was told is done.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path

import trivet
from crash.journal import Journal, word
from trivet.engine import collections_in, ingest
from trivet.stores.sqlite import term_index, vector_index

IDS = 150
IMPORTED = 400


def text_of(number: int, revision: int, at: int) -> str:
    return f"{word(number, revision, at)} by the harbour, lantern {revision % 7} of {at % 11}"


def add(engine: trivet.Engine, folder: Path, number: int) -> None:
    rng, journal = random.Random(number), Journal(folder / "add.jsonl")
    for revision in count():
        ids = [f"a{at}" for at in rng.sample(range(IDS), rng.choice((1, 3, 40)))]
        texts: dict[str, str | None] = {id: text_of(number, revision, at) for at, id in enumerate(ids)}
        if revision % 4 == 3:
            texts = dict.fromkeys(ids)
        step = number * 100_000 + revision
        journal.put(state="try", number=step, texts=texts)
        if revision % 4 == 3:
            engine.delete(ids)
        else:
            engine.add([{"id": id, "text": text, "meta": {"n": revision}} for id, text in texts.items()])
        journal.put(state="done", number=step)


def import_(engine: trivet.Engine, folder: Path, number: int) -> None:
    """Each batch that ``progress`` tells of is done; the file's order is the order they are stored in."""
    journal = Journal(folder / "import.jsonl")
    for revision in count():
        texts = {f"i{at}": text_of(number, revision, at) for at in range(IMPORTED)}
        source = folder / "import.txt"
        source.write_text("".join(json.dumps({"id": id, "text": text}) + "\n" for id, text in texts.items()))
        journal.put(state="try", number=number * 1_000_000 + revision * 1000, texts=texts)
        engine.import_(source, partial(stored, journal, number * 1_000_000 + revision * 1000, texts))


def stored(journal: Journal, first: int, texts: dict[str, str], done: int, _: int) -> None:
    part = dict(list(texts.items())[:done])
    journal.put(state="try", number=first + done, texts=part)
    journal.put(state="done", number=first + done)


def reembed(engine: trivet.Engine, folder: Path, number: int) -> None:
    for revision in count():
        engine.reembed(("hashing:96", "hashing:64")[(number + revision) % 2])


def rebuild(engine: trivet.Engine, folder: Path, number: int) -> None:
    while True:
        engine.rebuild()


def settings(engine: trivet.Engine, folder: Path, number: int) -> None:
    journal = Journal(folder / "settings.json")
    for revision in count(1):
        k = 1 + (number * 37 + revision) % 900
        journal.put(state="try", k=k)
        engine.update_settings(k=k, by=f"victim {number}")
        journal.put(state="done", k=k)


def backup(engine: trivet.Engine, folder: Path, number: int) -> None:
    for revision in count():
        engine.backup(folder / f"backup-{number}-{revision}.db")


DEEDS: dict[str, Callable[[trivet.Engine, Path, int], None]] = {
    "add": add,
    "import": import_,
    "reembed": reembed,
    "rebuild": rebuild,
    "settings": settings,
    "backup": backup,
}


def main(folder: Path, deed: str, number: int) -> None:
    # so low that a few hundred documents have everything on disk that many have, and more moments to be killed in
    ingest.BATCH_DOCUMENTS, term_index.TAIL_LIMIT, vector_index.SNAPSHOT_FROM = 40, 30, 60
    store = folder / "memory.db"
    with trivet.open(store, embedder=None if collections_in(store) else "hashing:64") as engine:
        print("opened", flush=True)
        DEEDS[deed](engine, folder, number)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
