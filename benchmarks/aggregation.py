"""Compare ways to score a long document by its passages (`make aggregation`).

By its best passage, by the mean of its best three, or by its best passage after each passage has passed a part of its
score on to the passages before and after it: what smoothing vectors and indexing the words of neighbours would do. The
legs are exact here (cosine, and BM25 with the constants of the stores) over every passage, so that only the aggregation
differs; then they are fused (z-score, equal weights). All topics of the test split; nothing is fitted.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trivet.evaluate import Lab, load, score
from trivet.evaluate.dataset import Dataset, Topic
from trivet.evaluate.evaluation import made
from trivet.evaluate.run import Answer, Run
from trivet.evaluate.significance import paired
from trivet.filters import parse_filter
from trivet.fusion import fuse
from trivet.stores.bm25 import K1, B, rounded
from trivet.stores.contract import passage_of
from trivet.types import Ranking

SETS = ("locomo_session", "longmemeval_oracle_session", "longmemeval_oracle_turn", "beam_100k")
WITHOUT = {"locomo_session": ("adversarial",)}
MEASURE = "nDCG@10"
DEPTH = 100  # documents of a leg
#: Name -> passages that count, and the part of its score that a passage passes on to each neighbour.
WAYS: Mapping[str, tuple[int, float]] = {
    "best": (1, 0.0),
    "mean of 3": (3, 0.0),
    "neighbours 0.2": (1, 0.2),
    "neighbours 0.4": (1, 0.4),
}
LEGS: Mapping[str, Mapping[str, float]] = {
    "dense": {"dense": 1.0},
    "words": {"lexical": 1.0},
    "both": {"lexical": 0.5, "dense": 0.5},
}


class Passages:
    """Every passage of a lab in the order of its documents, with its vector and its postings."""

    def __init__(self, lab: Lab) -> None:
        collection = lab.engine._collection
        documents = dict(collection.documents.page(None, 0, 10**9))
        rows = collection.documents.passages(list(documents))
        rows.sort(key=lambda row: (row[1], row[2]))
        model = collection.state().model
        assert model is not None
        vectors = collection.vectors.by_hash(model.mid, list(documents))
        self.ids = {did: document.id for did, document in documents.items()}
        self.owners = np.array([did for _, did, *_ in rows])
        self.vectors = np.stack([np.frombuffer(vectors[did][digest], "<f4") for _, did, *_, digest in rows])
        self._analyzer = collection.analyzer
        self._postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        lengths = []
        for place, (_, did, ordinal, start, stop, _) in enumerate(rows):
            text = passage_of(documents[did], (did, ordinal, start, stop)).text
            terms = self._analyzer.terms(f"{documents[did].title}\n{text}")
            lengths.append(len(terms))
            for term, count in Counter(terms).items():
                self._postings[term].append((place, count))
        self._saturation = K1 * (1 - B + B * rounded(np.array(lengths)) / max(1.0, float(np.mean(lengths))))

    def bm25(self, query: str) -> Any:
        """Return the BM25 score of each passage."""
        scores, many = np.zeros(len(self.owners)), len(self.owners)
        for term in set(self._analyzer.query(query).terms):
            if found := self._postings.get(term):
                places, counts = (np.array(column) for column in zip(*found, strict=True))
                idf = np.log(1 + (many - len(found) + 0.5) / (len(found) + 0.5))
                scores[places] += idf * counts * (1 + K1) / (counts + self._saturation[places])
        return scores

    def smoothed(self, scores: Any, part: float) -> Any:
        """Return the mean of each score and, with the weight ``part``, that of its better neighbour in the document.

        A passage without a neighbour keeps its score, or long documents would stand above all others.
        """
        if not part:
            return scores
        same = self.owners[1:] == self.owners[:-1]
        before = np.r_[-np.inf, np.where(same, scores[:-1], -np.inf)]
        after = np.r_[np.where(same, scores[1:], -np.inf), -np.inf]
        better = np.maximum(before, after)
        return (scores + part * np.where(np.isfinite(better), better, scores)) / (1 + part)

    def ranking(self, leg: str, scores: Any, allowed: Any, count: int) -> Ranking:
        """Return documents ranked by the mean of their best ``count`` passages; a score of 0 or less is no hit.

        ``allowed`` tells which passages the filter allows; None allows all.
        """
        kept = scores > 0 if allowed is None else (scores > 0) & allowed
        seen = np.flatnonzero(kept)
        if not len(seen):
            return Ranking(leg)
        order = seen[np.lexsort((-scores[seen], self.owners[seen]))]
        of, values = self.owners[order], scores[order]
        starts = np.flatnonzero(np.r_[True, of[1:] != of[:-1]])
        counted = np.arange(len(of)) - np.repeat(starts, np.diff(np.r_[starts, len(of)])) < count
        sums = np.add.reduceat(np.where(counted, values, 0.0), starts)
        means = sums / np.add.reduceat(counted.astype(float), starts)
        best = np.argsort(-means, kind="stable")[:DEPTH]
        keys = of[starts][best].tolist()
        return Ranking(leg, tuple(keys), tuple(means[best].tolist()), tuple(keys))


def measure(dataset: Dataset, cache: str | None) -> dict[str, Any]:
    """Return the mean of each way with each leg, and its difference to the best passage."""
    with Lab.fill(dataset, cache=cache) as lab:
        assert lab._cached is not None
        passages, filters = Passages(lab), lab.engine._collection.filters
        version = lab.engine._collection.state().version
        runs: dict[tuple[str, str], dict[str, Answer]] = defaultdict(dict)
        for topic in dataset.topics:
            scope = filters.scope(parse_filter(topic.where), [], version)
            allowed = None if scope is None else scope.rows(passages.owners)
            vector = lab._cached.embed_queries([topic.text])[0]
            scores = {"lexical": passages.bm25(topic.text), "dense": passages.vectors @ vector}
            for way, (count, part) in WAYS.items():
                ranked = {
                    leg: passages.ranking(leg, passages.smoothed(each, part), allowed, count)
                    for leg, each in scores.items()
                }
                for legs, weights in LEGS.items():
                    runs[legs, way][topic.id] = _answer(topic, ranked, weights, passages.ids)
        many = Counter(Counter(passages.owners.tolist()).values())
    values = {key: score(Run(key[1], answers), dataset.qrels, (MEASURE,))[MEASURE] for key, answers in runs.items()}
    found: dict[str, Any] = {"documents of several passages": round(1 - many[1] / sum(many.values()), 3)}
    for (legs, way), each in values.items():
        pair = paired(values[legs, "best"], each)
        found[f"{legs}, {way}"] = {
            MEASURE: round(sum(each.values()) / len(each), 4),
            "difference": round(pair.difference, 4),
            "p": round(pair.p, 5),
        }
    return found


def _answer(
    topic: Topic, ranked: Mapping[str, Ranking], weights: Mapping[str, float], ids: Mapping[int, str]
) -> Answer:
    rankings: Sequence[Ranking] = [ranked[leg] for leg in weights]
    fused = fuse("convex", rankings, dict(weights), rrf_k=60.0, normalize="zscore")
    listed = tuple(ids[int(each.key)] for each in fused[:10])
    return Answer(topic.id, listed, tuple(range(len(listed), 0, -1)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="a folder of sets in BEIR layout")
    parser.add_argument("--cache", help="folder with embeddings made before")
    parser.add_argument("--sets", nargs="*", default=list(SETS), help="the sets to measure")
    args = parser.parse_args()
    report: dict[str, Any] = {**made(), "sets": {}}
    for name in args.sets:
        dataset = load(args.data / name, without=WITHOUT.get(name, ()))
        report["sets"][name] = measure(dataset, args.cache)
        print(name, json.dumps(report["sets"][name], indent=1), flush=True)
    out = Path(__file__).parent / "results" / f"aggregation-{report['commit']}.json"
    out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
