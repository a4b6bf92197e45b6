"""Measure the vectors of training/static.py: words with them beside words alone, on every set of a data folder.

    python benchmarks/static_vectors.py ../shared/data --table static.npz --cache benchmarks/cache

A document has one vector; both lists are cut at 100, and their z-scores added. Prints the mean difference of nDCG@10 to
words alone and its standard error for each weight, and how many documents are embedded in a second.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profiles import BARE, SETS
from recorded import sampled
from trivet.evaluate import Lab, load, score
from trivet.evaluate.run import Answer, Run

READER = Path(__file__).parent.parent / "src/trivet/data/reader/tokenizer.json"
MORE = {"locomo_session": (("adversarial",), True), "longmemeval_oracle_session": ((), True)}
WORDS = BARE.with_changes({"weights": {"lexical": 1, "dense": 0}, "k": 100})
WEIGHTS = (0.1, 0.2, 0.3)
MOST, DEPTH, TOKENS = 300, 100, 384
Floats = NDArray[np.float32]


class StaticVectors:
    """Texts as unit vectors: the sum of the vectors of their tokens."""

    def __init__(self, file: Path) -> None:
        from tokenizers import Tokenizer

        self._table: Floats = np.load(file)["table"].astype(np.float32)
        self._tokenizer = Tokenizer.from_file(str(READER))
        self._tokenizer.enable_truncation(TOKENS)

    def __call__(self, texts: list[str]) -> Floats:
        read = self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        rows = np.stack([self._table[item.ids].sum(axis=0) for item in read])
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def standardised(scores: dict[str, float]) -> dict[str, float]:
    values = np.array(list(scores.values()) or [0.0])
    return {id: float((score - values.mean()) / (values.std() or 1.0)) for id, score in scores.items()}


def fused(words: dict[str, float], vectors: dict[str, float], weight: float) -> dict[str, float]:
    """Return the sum of the z-scores; what a list does not have counts as its last."""
    one, other = standardised(words), standardised(vectors)
    low, lower = min(one.values(), default=0.0), min(other.values(), default=0.0)
    return {id: (1 - weight) * one.get(id, low) + weight * other.get(id, lower) for id in {**one, **other}}


def measured(folder: Path, vectors: StaticVectors, cache: str | None) -> dict[str, Any]:
    without, scoped = (SETS | MORE)[folder.name]
    dataset = sampled(load(folder, without=without, scoped=scoped), MOST)
    documents = list(dataset.documents)
    with Lab.fill(dataset, cache=cache) as lab:
        run = lab.run(WORDS)
    start = time.process_time()
    rows = vectors([f"{item.get('title') or ''}\n{item['text']}".strip() for item in documents])
    speed = len(documents) / (time.process_time() - start)
    scopes: dict[Any, list[int]] = {}
    for place, item in enumerate(documents):
        scopes.setdefault(item.get("meta", {}).get("scope"), []).append(place)
    differences: dict[float, list[float]] = {weight: [] for weight in WEIGHTS}
    topics, alone = dataset.topics, score(run, dataset.qrels, ("nDCG@10",))["nDCG@10"]
    asked = vectors([topic.text for topic in topics])
    for weight in WEIGHTS:
        answers = {}
        for topic, query in zip(topics, asked, strict=True):
            seen = np.arange(len(rows)) if topic.where is None else np.array(scopes[topic.where.value])  # type: ignore[union-attr]
            cosines = rows[seen] @ query
            near = {documents[seen[at]]["id"]: float(cosines[at]) for at in np.argsort(-cosines)[:DEPTH]}
            found = run.answers[topic.id]
            total = fused(dict(zip(found.ids, found.scores, strict=True)), near, weight)
            ids = tuple(sorted(total, key=lambda id: -total[id]))
            answers[topic.id] = Answer(topic.id, ids, tuple(total[id] for id in ids))
        both = score(Run("both", answers), dataset.qrels, ("nDCG@10",))["nDCG@10"]
        differences[weight] = [both[topic.id] - alone[topic.id] for topic in topics]
    return {"words": float(np.mean([alone[topic.id] for topic in topics])), "speed": speed, "differences": differences}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path, help="folder of the evaluation sets")
    parser.add_argument("--table", type=Path, required=True, help="what training/static.py wrote")
    parser.add_argument("--cache", help="folder of the cached vectors")
    options = parser.parse_args()
    vectors = StaticVectors(options.table)
    for name in sorted(SETS | MORE):
        found = measured(options.data / name, vectors, options.cache)
        cells = [
            f"{weight:g}: {np.mean(values):+.4f} ± {np.std(values, ddof=1) / len(values) ** 0.5:.4f}"
            for weight, values in found["differences"].items()
        ]
        print(
            f"{name:28} {found['words']:.3f}  {'  '.join(cells)}  {found['speed']:,.0f} documents a second", flush=True
        )


if __name__ == "__main__":
    main()
