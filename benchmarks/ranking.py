"""What are the weights of the `learned` reranker, and what are they worth? (`make ranking`)

Learns the weights that ship in ``trivet.rerank.learned`` and says what they are worth on what they were not learnt
from. Training: the train split of SciFact and the dev split of CoSQA; of sets with a single split, the topics whose id
has an even hash. Judged on: the test splits, and the other half of the topics; once with all sets in the training,
once with the judged set left out of it altogether. Of a set, at most 1,000 topics, chosen by hash. Every set counts
the same.

`--collect` reads one set after the other into a folder (minutes each); the rest is arithmetic on what lies there.
"""

from __future__ import annotations

import argparse
import json
import pickle
from dataclasses import asdict, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from trivet.evaluate import Lab, load
from trivet.evaluate.evaluation import made
from trivet.evaluate.learning import RIDGE, Example, examples, fit, ndcg
from trivet.evaluate.significance import paired
from trivet.profile import PROFILES, Profile
from trivet.rerank.learned import FEATURES, Learned

RESULTS = Path(__file__).parent / "results"
TRAIN = {"scifact": "train", "cosqa": "dev"}  # sets that have a split of their own for it
WITHOUT = {"locomo": ("adversarial",), "locomo_session": ("adversarial",)}
MOST = 1_000
# The graph leg knows the turns beside a turn already. With it, this one gains nothing (its weight comes out below 0);
# it is there for stores that keep no graph, where `tune --rerank` may find it worth something.
HELD = "neighbour"
# what the reranker stands behind: the default without it
BASE: Profile = PROFILES["default"].with_changes(
    {"name": "base", "rerankers": [step for step in PROFILES["default"].rerankers if step.name != Learned.name]}
)


class Part:
    """One split of one set: its topics as the reranker sees them."""

    def __init__(self, name: str, split: str, found: dict[str, Example]) -> None:
        self.name, self.split, self.topics = name, split, found

    def learnt(self, topic: str) -> bool:
        """Is this topic for learning?"""
        if self.name in TRAIN:
            return self.split == TRAIN[self.name]
        return blake2b(topic.encode(), digest_size=1).digest()[0] % 2 == 0

    @property
    def training(self) -> list[Example]:
        kept = np.array([1.0, *(float(name != HELD) for name in FEATURES)])
        telling = [example for topic, example in self.topics.items() if self.learnt(topic)]
        return [replace(example, rows=example.rows * kept) for example in telling]

    @property
    def unseen(self) -> dict[str, Example]:
        return {topic: example for topic, example in self.topics.items() if not self.learnt(topic)}


def collect(data: Path, folder: Path, cache: str | None, only: list[str]) -> None:
    for path in sorted(
        each for each in data.iterdir() if (each / "qrels.tsv.gz").exists() or (each / "qrels").exists()
    ):
        for split in ("test", *([TRAIN[path.name]] if path.name in TRAIN else [])):
            kept = folder / f"{path.name}.{split}.pickle"
            if kept.exists() or (only and path.name not in only):
                continue
            dataset = load(str(path), split, without=WITHOUT.get(path.name, ()))
            if not dataset.topics:
                continue
            asked = sorted(dataset.topics, key=lambda topic: blake2b(topic.id.encode()).digest())[:MOST]
            with Lab.fill(dataset, cache=cache) as lab:
                found = examples(lab, BASE, asked, dataset.qrels, None)
            folder.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(pickle.dumps((path.name, split, found)))
            print(f"{path.name}/{split}: {len(found):,} topics", flush=True)


def judged(part: Part, learned: Learned) -> dict[str, Any]:
    """On topics it has not learnt from: the fused order against the learned one."""
    nothing = Learned(**dict.fromkeys(FEATURES, 0.0))
    before = {topic: ndcg(example, nothing) for topic, example in part.unseen.items()}
    after = {topic: ndcg(example, learned) for topic, example in part.unseen.items()}
    pair = paired(before, after)
    return {
        "topics": pair.n,
        "fused": round(pair.mean_baseline, 4),
        "learned": round(pair.mean_challenger, 4),
        "difference": round(pair.difference, 4),
        "p": round(pair.p, 5),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="a folder of sets in BEIR layout")
    parser.add_argument("--parts", type=Path, default=Path("build/ranking"), help="where what was read is kept")
    parser.add_argument("--collect", nargs="*", metavar="SET", help="read these sets (all, if none is named) and stop")
    parser.add_argument("--cache", help="folder with embeddings made before")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    collect(given.data, given.parts, given.cache, given.collect or [])
    if given.collect is not None:
        return
    parts = [Part(*pickle.loads(path.read_bytes())) for path in sorted(given.parts.glob("*.pickle"))]
    learned = fit([part.training for part in parts if part.training])
    report: dict[str, Any] = {
        **made(),
        "base": BASE.identity,
        "ridge": RIDGE,
        "weights": asdict(learned),
        "sets": {},
    }
    for part in (part for part in parts if part.unseen):
        left_out = fit([other.training for other in parts if other.name != part.name and other.training])
        report["sets"][part.name] = {"all": judged(part, learned), "left_out": judged(part, left_out)}
        found = report["sets"][part.name]
        print(
            f"{part.name:28} {found['all']['fused']:.4f} {found['all']['learned']:.4f} ({found['all']['p']:.4f}) "
            f"left out {found['left_out']['learned']:.4f} ({found['left_out']['p']:.4f})",
            flush=True,
        )
    for way in ("all", "left_out"):
        values = [found[way] for found in report["sets"].values()]
        report[f"mean_{way}"] = {
            name: round(sum(each[name] for each in values) / len(values), 4) for name in ("fused", "learned")
        }
    print(json.dumps({name: report[name] for name in ("weights", "mean_all", "mean_left_out")}, indent=2))
    out = given.out or RESULTS / f"ranking-{report['commit']}.json"
    out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
