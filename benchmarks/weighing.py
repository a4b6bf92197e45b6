"""What do a question's own score curves say about the weights? (`make weighing`)

Learns the coefficients of ``trivet.fusion.weighing`` and says what they are worth on what they were not learnt from.
Training: the train split of SciFact and the dev split of CoSQA; of sets with a single split, the topics whose id has an
even hash. Judged on: the test splits, and the other half of the topics; once with all sets in the training, once with
the judged set left out of it altogether. memdaily_zh takes no part: the built-in model does not read Chinese.

The balance between words and meaning is a number a, and nDCG@10 as a function of it is known at 21 points a topic. The
model is logistic in the features; the mean over the sets of the (smoothed) nDCG at the balance it chooses is climbed by
gradient.
"""

from __future__ import annotations

import argparse
import json
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from trivet.evaluate import Lab, load, score
from trivet.evaluate.dataset import Dataset
from trivet.evaluate.evaluation import made
from trivet.evaluate.significance import paired
from trivet.fusion.weighing import FEATURES, features
from trivet.profile import Profile

RESULTS = Path(__file__).parent / "results"
TRAIN = {"scifact": "train", "cosqa": "dev"}  # sets that have a split of their own for it
WITHOUT = {"locomo": ("adversarial",), "locomo_session": ("adversarial",)}
LEFT_OUT = ("memdaily_zh",)
BALANCES = np.linspace(0, 1, 21)
MEASURE = "nDCG@10"
PENALTY, STEPS, RATE = 1e-3, 2_000, 0.05
BASE = Profile(name="zscore", fusion="convex", normalize="zscore")


class Part:
    """One set: its topics' features, and nDCG@10 at every balance."""

    def __init__(self, dataset: Dataset, training: bool | None, cache: str | None) -> None:
        """``training``: all of it is for learning, none of it is, or (None) the even half is."""
        with Lab.fill(dataset, cache=cache) as lab:
            curves = {}
            for topic, rankings in lab.rankings(BASE).items():
                by_leg = {ranking.leg: ranking for ranking in rankings if len(ranking)}
                if len(by_leg) == 2:  # one leg alone has nothing to be weighed against
                    curves[topic] = (by_leg["lexical"], by_leg["dense"])
            topics = [topic for topic in dataset.topics if topic.id in curves]
            found = [
                score(lab.rerun(BASE.with_changes({"alpha": float(balance)})), dataset.qrels, (MEASURE,))[MEASURE]
                for balance in BALANCES
            ]
        self.name = dataset.name
        self.topics = [topic.id for topic in topics]
        self.seen = np.array([features(topic.text, *curves[topic.id]) for topic in topics])
        self.values = np.array([[values[topic.id] for values in found] for topic in topics])
        even = np.array([blake2b(topic.id.encode(), digest_size=1).digest()[0] % 2 == 0 for topic in topics])
        self.learnt = even if training is None else np.full(len(topics), training)


def learn(parts: list[Part]) -> tuple[Any, Any, Any]:
    """Weights (the intercept first), means and deviations of the features; every set counts the same."""
    parts = [part for part in parts if part.learnt.any()]
    seen = np.concatenate([part.seen[part.learnt] for part in parts])
    values = np.concatenate([_smoothed(part.values[part.learnt]) for part in parts])
    share = np.concatenate([np.full(part.learnt.sum(), 1 / part.learnt.sum() / len(parts)) for part in parts])
    means, deviations = seen.mean(0), seen.std(0)
    rows = np.concatenate([np.ones((len(seen), 1)), (seen - means) / deviations], axis=1)
    weights = first = second = np.zeros(rows.shape[1])
    # Adam, slowing to a halt: at a constant rate it circles the top, and where it stops is a matter of rounding
    for step in range(1, STEPS + 1):
        balance = 1 / (1 + np.exp(-rows @ weights))
        slope = _at(values, balance)[1]
        gradient = PENALTY * np.r_[0, weights[1:]] - rows.T @ (share * slope * balance * (1 - balance))
        first, second = 0.9 * first + 0.1 * gradient, 0.99 * second + 0.01 * gradient**2
        rate = RATE * (1 - step / STEPS)
        weights = weights - rate * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.99**step)) + 1e-6)
    return weights, means, deviations


def _at(values: Any, balance: Any) -> tuple[Any, Any]:
    """The values between the known points, and their slope."""
    place = np.clip(balance, 0, 1) * (len(BALANCES) - 1)
    left = np.minimum(place.astype(int), len(BALANCES) - 2)
    rows = np.arange(len(values))
    low, high = values[rows, left], values[rows, left + 1]
    return low + (high - low) * (place - left), (high - low) * (len(BALANCES) - 1)


def _smoothed(values: Any) -> Any:
    """nDCG jumps where two documents change places; a Gaussian over the balances lets the climb see further."""
    kernel = np.exp(-0.5 * (np.arange(-6, 7) / 2.5) ** 2)
    padded = np.pad(values, ((0, 0), (6, 6)), mode="edge")
    return np.stack([padded[:, at : at + 13] @ (kernel / kernel.sum()) for at in range(values.shape[1])], axis=1)


def judged(part: Part, model: tuple[Any, Any, Any]) -> dict[str, Any]:
    """On topics the model has not learnt from: chosen balance against 0.5 for everyone, and the oracle."""
    weights, means, deviations = model
    rows = ~part.learnt
    balance = 1 / (1 + np.exp(-(weights[0] + (part.seen[rows] - means) / deviations @ weights[1:])))
    values = part.values[rows]
    chosen = values[np.arange(len(values)), np.rint(balance * (len(BALANCES) - 1)).astype(int)]
    ids = [topic for topic, kept in zip(part.topics, rows, strict=True) if kept]
    middle = values[:, len(BALANCES) // 2]
    pair = paired(dict(zip(ids, middle.tolist(), strict=True)), dict(zip(ids, chosen.tolist(), strict=True)))
    return {
        "topics": len(ids),
        "balance": round(float(balance.mean()), 3),
        "fixed": round(float(middle.mean()), 4),
        "by_query": round(float(chosen.mean()), 4),
        "oracle": round(float(values.max(1).mean()), 4),
        "difference": round(pair.difference, 4),
        "p": round(pair.p, 5),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a folder of sets in BEIR layout")
    parser.add_argument("--cache", help="where vectors are kept (the user's cache folder otherwise)")
    options = parser.parse_args()
    parts: list[Part] = []
    for path in sorted(options.data.iterdir()):
        if not list(path.glob("qrels*")) or path.name in LEFT_OUT:
            continue
        if path.name in TRAIN:
            parts.append(Part(load(path, TRAIN[path.name]), True, options.cache))
        kept = load(path, without=WITHOUT.get(path.name, ()))
        parts.append(Part(kept, False if path.name in TRAIN else None, options.cache))
        print(path.name, flush=True)
    model = learn(parts)
    told: dict[str, Any] = {}
    for part in parts:
        if part.learnt.all():
            continue
        apart = learn([other for other in parts if other.name != part.name])
        told[part.name] = {"unseen_topics": judged(part, model), "unseen_set": judged(part, apart)}
        print(part.name, json.dumps(told[part.name]), flush=True)
    gains = {how: np.mean([one[how]["difference"] for one in told.values()]) for how in ("unseen_topics", "unseen_set")}
    weights, means, deviations = model
    results = {
        "made": made(),
        "measure": MEASURE,
        "features": list(FEATURES),
        "means": [round(float(value), 4) for value in means],
        "deviations": [round(float(value), 4) for value in deviations],
        "coefficients": [round(float(value), 2) for value in weights[1:]],
        "intercept": round(float(weights[0]), 2),
        "mean_gain": {how: round(float(gain), 4) for how, gain in gains.items()},
        "sets": told,
    }
    file = RESULTS / f"weighing-{made()['commit']}.json"
    file.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({key: results[key] for key in list(results)[2:8]}, indent=1))
    print(f"written: {file}; put the numbers into src/trivet/fusion/weighing.py (a test compares the two)")


if __name__ == "__main__":
    main()
