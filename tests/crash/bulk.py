"""A process that adds many documents at once and tells of every batch that is stored. ``bulk.py STORE ROUND``."""

from __future__ import annotations

import sys
from pathlib import Path

import trivet
from trivet.engine import ingest

sys.path.insert(0, str(Path(__file__).parent))
from journal import word

COUNT = 3_000


def main(store: str, round_number: int) -> None:
    ingest.BATCH_DOCUMENTS = 150  # more transactions to be killed in
    with trivet.open(store, embedder="hashing") as engine:
        print("opened", flush=True)
        while True:
            engine.add(
                ({"id": str(at), "text": f"{word(at)} again, round {round_number}"} for at in range(COUNT)),
                progress=lambda done, _: print(f"stored {done} .", flush=True),
            )
            engine.search("again")
            engine.wait()
            round_number += 1


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
