"""The documents, vectors and queries of ``speed.py`` and ``stores.py``.

The documents are ``docs_snippets`` (given by path, not part of the repository). The vectors are computed once by the
built-in model and kept under ``benchmarks/cache``, int8 with one scale for each row. The queries are eight consecutive
words of random documents.
"""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

CACHE = Path(__file__).parent / "cache"
SEED = 20260301
Floats = npt.NDArray[np.float32]


def documents(data: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(data / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            item = json.loads(line)
            yield {"id": item["_id"], "title": item["title"], "text": item["text"], "meta": item["metadata"]}


def vectors(data: Path) -> Floats:
    """Return the documents' unit vectors from the cache, or compute them (minutes per core)."""
    kept = CACHE / f"{data.name}.granite.npz"
    if not kept.exists():
        _make(data, kept)
    stored = np.load(kept)
    rows: Floats = stored["codes"].astype(np.float32) * stored["scale"][:, None]
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _make(data: Path, kept: Path) -> None:
    from rich.progress import track

    from trivet.models.embedders import load_embedder

    embedder = load_embedder("builtin")
    assert embedder is not None
    texts = [f"{item['title']}\n{item['text']}" for item in documents(data)]
    batches = range(0, len(texts), 64)
    rows = np.concatenate(
        [embedder.embed_passages(texts[at : at + 64]) for at in track(batches, "embedding, once", transient=True)]
    )
    scale = np.abs(rows).max(axis=1) / 127
    scale[scale == 0] = 1
    CACHE.mkdir(exist_ok=True)
    np.savez(kept, codes=np.rint(rows / scale[:, None]).astype(np.int8), scale=scale.astype(np.float32))


def questions(data: Path, count: int) -> list[str]:
    chance = random.Random(SEED)
    texts = [item["text"] for item in documents(data)]
    found: list[str] = []
    while len(found) < count:
        words = re.findall(r"[A-Za-z][A-Za-z'-]+", chance.choice(texts))
        if len(words) >= 12:
            at = chance.randrange(len(words) - 8)
            found.append(" ".join(words[at : at + 8]))
    return found
