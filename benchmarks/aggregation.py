"""Compare two scores of a long document: its best passage, or the mean of its best three (`make aggregation`).

The dense leg over whole documents, alone and fused with the lexical leg (z-score, equal weights). Exact cosine over
every passage, so that only the aggregation differs. All topics of the test split; nothing is fitted.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from trivet.evaluate import Lab, load, score
from trivet.evaluate.evaluation import made
from trivet.evaluate.run import Answer, Run
from trivet.evaluate.significance import paired
from trivet.filters import parse_filter
from trivet.fusion import fuse
from trivet.profile import PROFILES
from trivet.types import Ranking

SETS = ("locomo_session", "longmemeval_oracle_session", "longmemeval_oracle_turn", "beam_100k")
WITHOUT = {"locomo_session": ("adversarial",)}
MEASURE = "nDCG@10"
DEPTH = 100
BASE = PROFILES["default"].with_changes({"rerankers": [], "weighing": "fixed", "understanding": "plain", "k": DEPTH})
WORDS = BASE.with_changes({"weights": {"lexical": 1.0, "dense": 0.0}})


def measure(dataset: Any, cache: str | None) -> dict[str, Any]:
    with Lab.fill(dataset, cache=cache) as lab:
        shelf = lab.engine._collection
        state = shelf.state()
        _, _, dids, data = shelf.vectors_after(state.model.mid, 0)
        owners, rows = np.array(dids), np.frombuffer(data, "<f4").reshape(len(dids), -1)
        ids = {did: document.id for did, document in shelf.documents.page(None, 0, 10**9)}
        words = {topic: found[0] for topic, found in lab.rankings(WORDS).items() if found}
        runs: dict[str, dict[str, Answer]] = {}
        for topic in dataset.topics:
            scope = shelf.filters.scope(parse_filter(topic.where), [], state.version)
            allowed = None if scope is None else np.array(scope.dids())
            cosines = rows @ lab._cached.embed_queries([topic.text])[0]
            for way, count in (("best", 1), ("mean of 3", 3)):
                ranked = aggregated(cosines, owners, allowed, count)
                both = fuse("convex", [words.get(topic.id, Ranking("lexical")), ranked],
                            {"lexical": 0.5, "dense": 0.5}, rrf_k=60.0, normalize="zscore")  # fmt: skip
                for name, keys in ((way, ranked.keys), (f"{way}, with words", [each.key for each in both])):
                    listed = tuple(ids[int(key)] for key in keys[:10])
                    runs.setdefault(name, {})[topic.id] = Answer(topic.id, listed, tuple(range(len(listed), 0, -1)))
    values = {name: score(Run(name, answers), dataset.qrels, (MEASURE,))[MEASURE] for name, answers in runs.items()}
    found: dict[str, Any] = {name: round(sum(each.values()) / len(each), 4) for name, each in values.items()}
    for suffix in ("", ", with words"):
        pair = paired(values[f"best{suffix}"], values[f"mean of 3{suffix}"])
        found[f"difference{suffix}"] = [round(pair.difference, 4), round(pair.p, 5)]
    return found


def aggregated(cosines: Any, owners: Any, allowed: Any, count: int) -> Ranking:
    """Return documents ranked by the mean of their best ``count`` passages."""
    seen = np.flatnonzero(np.isin(owners, allowed)) if allowed is not None else np.arange(len(owners))
    order = seen[np.lexsort((-cosines[seen], owners[seen]))]
    of, scores = owners[order], cosines[order]
    starts = np.flatnonzero(np.r_[True, of[1:] != of[:-1]])
    within = np.arange(len(of)) - np.repeat(starts, np.diff(np.r_[starts, len(of)]))
    kept = within < count
    sums = np.add.reduceat(np.where(kept, scores, 0.0), starts)
    means = sums / np.add.reduceat(kept.astype(float), starts)
    best = np.argsort(-means, kind="stable")[:DEPTH]
    keys, values = of[starts][best].tolist(), means[best].tolist()
    return Ranking("dense", tuple(keys), tuple(values), tuple(keys))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="a folder of sets in BEIR layout")
    parser.add_argument("--cache", help="folder with embeddings made before")
    args = parser.parse_args()
    report: dict[str, Any] = {**made(), "sets": {}}
    for name in SETS:
        dataset = load(str(args.data / name), without=WITHOUT.get(name, ()))
        report["sets"][name] = measure(dataset, args.cache)
        print(name, json.dumps(report["sets"][name]), flush=True)
    out = Path(__file__).parent / "results" / f"aggregation-{report['commit']}.json"
    out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
