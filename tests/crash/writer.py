"""A writer process: random adds, updates and deletes on its own ids, each journalled.

``writer.py STORE FOLDER NUMBER SEED``
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

import trivet

sys.path.insert(0, str(Path(__file__).parent))
from journal import Journal, outcomes, steps, word

IDS = 120  # a writer's own ids: small, so that most writes are updates
BUCKETS = 20  # deleted by filter, one at a time
SHARED = 5  # ids that every writer writes to


def text_of(id: str, unique: str, filler: random.Random) -> str:
    return f"{id} says {unique} and " + " ".join(
        filler.choices(("harbour", "lantern", "granite", "willow", "copper"), k=8)
    )


def meta_of(id: str, number: int) -> dict[str, int]:
    return {"writer": -1 if id.startswith("shared") else number, "bucket": int(id.split("-")[1]) % BUCKETS}


def main(store: str, folder: Path, number: int, seed: int) -> None:
    path = folder / f"writer-{number}.jsonl"
    done = list(steps(path))
    revision = max((step["number"] for step in done), default=0)  # goes on where the killed one stopped
    present = {id for id, texts in outcomes(path).items() if None not in texts and not id.startswith("shared")}
    rng = random.Random(f"{seed}/{number}/{revision}")
    journal = Journal(path)
    with trivet.open(store, embedder="hashing") as engine:
        while not (folder / "stop").exists():
            revision += 1
            kind = rng.choices(("one", "few", "many", "shared", "delete", "delete where"), (40, 15, 5, 10, 20, 5))[0]
            if kind == "delete where":
                bucket = revision % BUCKETS
                texts: dict[str, str | None] = dict.fromkeys(f"w{number}-{at}" for at in range(bucket, IDS, BUCKETS))
            elif kind == "delete":
                gone = rng.sample(sorted(present), min(len(present), rng.randint(1, 3)))
                texts = dict.fromkeys(gone)
            elif kind == "shared":
                id = f"shared-{rng.randrange(SHARED)}"
                texts = {id: text_of(id, word(number, revision, 0), rng)}
            else:
                count = {"one": 1, "few": rng.randint(2, 15), "many": rng.randint(20, 60)}[kind]
                ids = [f"w{number}-{at}" for at in rng.sample(range(IDS), count)]
                texts = {id: text_of(id, word(number, revision, at), rng) for at, id in enumerate(ids)}
            if not texts:
                continue
            journal.put(state="try", number=revision, texts=texts)
            if kind == "delete where":
                engine.delete(where={"bucket": bucket, "writer": number})
            elif kind == "delete":
                engine.delete(list(texts))
            else:
                engine.add([{"id": id, "text": text, "meta": meta_of(id, number)} for id, text in texts.items()])
            journal.put(state="done", number=revision)
            if kind == "shared":
                continue
            present = (present - set(texts)) | {id for id, text in texts.items() if text is not None}
            time.sleep(rng.random() * 0.01)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
