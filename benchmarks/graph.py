"""Measure what the graph leg adds to the default profile (`python benchmarks/graph.py --data DATA`).

The default with the graph leg at several weights, against the default without it. The constants of the walk and the
weight were chosen on the topics whose id has an even hash (``--half even``); the others are reported.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from trivet.evaluate import Lab, load, score
from trivet.evaluate.evaluation import made
from trivet.evaluate.significance import paired
from trivet.profile import PROFILES

RESULTS = Path(__file__).parent / "results"
SETS = (
    "twowiki_101",
    "hotpotqa_200",
    "entailmentbank",
    "locomo",
    "longmemeval_oracle_turn",
    "beam_100k",
    "scifact",
    "cosqa",
    "lihua_world",
)
WITHOUT = {"locomo": ("adversarial",), "locomo_session": ("adversarial",)}
MEASURES = ("R@5", "R@10", "nDCG@10")
WEIGHTS = (0.2, 0.3, 0.4, 0.5)


def of_half(topic: str, half: str) -> bool:
    even = blake2b(topic.encode(), digest_size=1).digest()[0] % 2 == 0
    return half == "all" or even == (half == "even")


def judged(path: Path, weights: tuple[float, ...], half: str, cache: str | None) -> dict[str, Any]:
    dataset = load(path, without=WITHOUT.get(path.name, ()))
    topics = [
        topic for topic in dataset.topics if of_half(topic.id, half) and any(dataset.qrels.get(topic.id, {}).values())
    ]
    qrels = {topic.id: dataset.qrels[topic.id] for topic in topics}
    base = PROFILES["default"]
    told: dict[str, Any] = {"topics": len(topics)}
    with Lab.fill(dataset, cache=cache) as lab:
        without = score(lab.rerun(base, topics), qrels, MEASURES)
        told["without"] = {measure: round(_mean(values), 4) for measure, values in without.items()}
        for weight in weights:
            profile = replace(base, name=f"graph-{weight:g}", weights={**base.weights, "graph": weight})
            run = lab.rerun(profile, topics)
            found = score(run, qrels, MEASURES)
            pairs = {measure: paired(without[measure], found[measure]) for measure in MEASURES}
            alone = sum(
                legs == ("graph",) and qrels[answer.topic].get(id, 0) > 0
                for answer in run.answers.values()
                for id, legs in zip(answer.ids, answer.legs, strict=True)
            )
            told[f"{weight:g}"] = {
                measure: [round(_mean(found[measure]), 4), round(pair.difference, 4), round(pair.p, 5)]
                for measure, pair in pairs.items()
            } | {"right_by_graph_alone": alone}
    return told


def _mean(values: dict[str, float]) -> float:
    return sum(values.values()) / len(values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a folder of sets in BEIR layout")
    parser.add_argument("--cache", help="where vectors are kept (the user's cache folder otherwise)")
    parser.add_argument("--half", choices=("odd", "even", "all"), default="odd", help="which topics")
    parser.add_argument("--weights", type=float, nargs="+", default=WEIGHTS)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--write", action="store_true", help="keep the numbers under benchmarks/results")
    options = parser.parse_args()
    sets: dict[str, Any] = {}
    for name in options.sets:
        sets[name] = judged(options.data / name, tuple(options.weights), options.half, options.cache)
        print(name, json.dumps(sets[name]), flush=True)
    if options.write:
        file = RESULTS / f"graph-{made()['commit']}.json"
        file.write_text(json.dumps({"made": made(), "half": options.half, "sets": sets}, indent=1) + "\n")
        print(f"written: {file}")


if __name__ == "__main__":
    main()
