"""Does it know when it has no answer? (`make abstention`)

Three kinds of question on every set of a data folder, through `search` as it ships: those that have an answer, those
that the set itself says nothing answers, and the first kind once more with every right document taken away, so that
what is left is about the matter and does not answer it, as in SQuAD 2.0. Told for each threshold of relevance: the
share of answerable topics whose right hit is still shown, and the share of the others that are answered all the same.
The topics are those that nothing was fitted to (`calibration.py`'s rule), at most 300 a set. What nobody judged may be
right: then an answer after the right documents were taken away is called false and is not.

The page is `docs/RELEVANCE.md`; the reliability on it is from the newest results of `calibration.py`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from calibration import LEFT_OUT, SHOWN, for_learning
from ranking import TRAIN, WITHOUT
from trivet.evaluate import Lab, load
from trivet.evaluate.dataset import Dataset, Topic
from trivet.evaluate.evaluation import made

HERE = Path(__file__).parent
RESULTS, PAGE = HERE / "results", HERE.parent / "docs" / "RELEVANCE.md"
MOST = 300
THRESHOLDS = tuple(round(0.1 * step, 1) for step in range(10))
RULE = 0.05  # as in calibration.py: at most this share of the topics with a right hit may lose all of them


def read(dataset: Dataset, cache: str | None) -> dict[str, Any]:
    """For every topic asked: the best relevance shown, that of the best right hit, and the best with those away."""
    asked = _sample([topic for topic in dataset.topics if not for_learning(dataset.name, dataset.split, topic.id)])
    silent = _sample(
        [topic for topic in dataset.unanswerable if not for_learning(dataset.name, dataset.split, topic.id)]
    )
    with Lab.fill(replace(dataset, topics=(*asked, *silent)), cache=cache) as lab:
        whole = lab.run(SHOWN).answers
        answered = []
        for topic in asked:
            right = {id for id, grade in dataset.qrels[topic.id].items() if grade > 0}
            shown = whole[topic.id]
            best = max(
                (value for id, value in zip(shown.ids, shown.relevances, strict=True) if id in right), default=0.0
            )
            left = lab.engine.search(topic.text, where=topic.where, profile=SHOWN, at=topic.at, exclude=sorted(right))
            answered.append(
                [max(shown.relevances, default=0.0), best, max((hit.relevance for hit in left), default=0.0)]
            )
    return {
        "identity": dataset.identity,
        "commit": made()["commit"],
        "asked": answered,
        "silent": [max(whole[topic.id].relevances, default=0.0) for topic in silent],
    }


def _sample(topics: Sequence[Topic]) -> list[Topic]:
    return sorted(topics, key=lambda topic: blake2b(topic.id.encode()).digest())[:MOST]


# --- arithmetic -------------------------------------------------------------------------------------------------------


def rates(part: Mapping[str, Any], threshold: float) -> dict[str, float | None]:
    """Of one set at one threshold: right answers kept, and both kinds of false answer."""
    found = np.array(part["asked"], dtype=float).reshape(-1, 3)
    before = found[:, 1] > 0
    return {
        "kept": float((found[before, 1] >= threshold).mean()) if before.any() else None,
        "taken_away": float(((found[:, 2] >= threshold) & (found[:, 2] > 0)).mean()) if len(found) else None,
        "unanswerable": float(np.mean(np.array(part["silent"]) >= threshold)) if part["silent"] else None,
    }


def told_apart(part: Mapping[str, Any]) -> dict[str, float | None]:
    """The chance that a question with an answer has a higher best relevance than one without: 0.5 is luck."""
    found = np.array(part["asked"], dtype=float).reshape(-1, 3)
    return {
        "taken_away": _auc(found[:, 0], found[:, 2]),
        "unanswerable": _auc(found[:, 0], np.array(part["silent"], dtype=float)),
    }


def _auc(high: Any, low: Any) -> float | None:
    if not len(high) or not len(low):
        return None
    return float((high[:, None] > low).mean() + 0.5 * (high[:, None] == low).mean())


def mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


# --- the page ---------------------------------------------------------------------------------------------------------


HEAD = """# What relevance means

Made by `make abstention` (`benchmarks/abstention.py`); do not edit. `relevance` is a probability (ADR 21): of hits told
0.8, about eight in ten should be right. This page says how near that is, and what a threshold can do.

Reliability: [{calibration}](../benchmarks/results/{calibration}). Abstention: commit `{commit}`,
[{abstention}](../benchmarks/results/{abstention}). Topics that nothing was fitted to; every set counts the same; what
nobody judged counts as wrong.

## Of hits told so much, how many are right?

{hits:,} hits; calibration error {error:.3f}. `trivet eval --report` draws the same for your own data.

| relevance | hits | told | right | |
|---|---|---|---|---|"""

THRESHOLD = """
## If only hits above a threshold are shown

Kept: topics whose right hit is still shown, of those that had one. False: questions answered that should not be.
*Unanswerable*: the set itself says that nothing answers them. *Taken away*: answerable ones asked once more with every
right document excluded, so that what is left is about the matter and does not answer it.

| threshold | kept | false, unanswerable | false, taken away |
|---|---|---|---|"""

SETS = """
Chosen on the training topics by the rule “{rule}”: **{threshold:.2f}**. On these topics it keeps {kept} and still
answers {false} of the unanswerable.

At 0.5, and told apart: the chance that a question with an answer has the higher best relevance (0.5 is luck).

| set | topics | kept | false, unanswerable | false, taken away | apart, unanswerable | apart, taken away |
|---|---|---|---|---|---|---|"""

SO = """
## So

Relevance tells right hits from wrong ones. It tells a question that nothing answers from one that something does only
in part: both have passages about the matter, and words and vectors see the matter. A threshold buys few silences with
many right answers, so none is on by default. Set `min_relevance` where a wrong answer costs more than none, and choose
it with `trivet eval` on your own questions; a cross-encoder, or the model that reads the hits, is what can tell “about
it” from “answers it”.
"""


def page(results: Mapping[str, Any], calibration: Mapping[str, Any], names: tuple[str, str]) -> str:
    parts, judged = results["sets"], calibration["judged"]

    def over(threshold: float) -> dict[str, str]:
        rows = [rates(part, threshold) for part in parts.values()]
        return {name: _share(mean([row[name] for row in rows])) for name in ("kept", "unanswerable", "taken_away")}

    lines = [
        HEAD.format(
            abstention=names[0],
            calibration=names[1],
            commit=results["made"]["commit"],
            hits=judged["hits"],
            error=judged["calibration_error"],
        )
    ]
    for item in judged["bins"]:
        told = f"{item['hits']:,} | {item['told']:.2f} | {item['right']:.2f} | `{'█' * round(20 * item['right'])}`"
        lines.append(f"| {item['from']:.1f} – {item['from'] + 0.1:.1f} | {told} |")
    lines.append(THRESHOLD)
    lines += [f"| {threshold:.1f} | " + " | ".join(over(threshold).values()) + " |" for threshold in THRESHOLDS]
    at = over(calibration["threshold"])
    lines.append(
        SETS.format(
            rule=calibration["rule"], threshold=calibration["threshold"], kept=at["kept"], false=at["unanswerable"]
        )
    )
    for name, part in parts.items():
        shares = [_share(value) for value in rates(part, 0.5).values()]
        apart = told_apart(part)
        cells = [f"{len(part['asked'])} + {len(part['silent'])}", shares[0], shares[2], shares[1]]
        lines.append(" | ".join([f"| {name}", *cells, _two(apart["unanswerable"]), _two(apart["taken_away"])]) + " |")
    known = [told_apart(part) for part in parts.values()]
    both = [_two(mean([item[name] for item in known])) for name in ("unanswerable", "taken_away")]
    middle = over(0.5)
    lines.append(
        f"| **mean** | | {middle['kept']} | {middle['unanswerable']} | {middle['taken_away']} | {' | '.join(both)} |"
    )
    return "\n".join([*lines, SO])


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"


def _two(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="a folder of sets in BEIR layout")
    parser.add_argument("--cache", help="folder with embeddings made before")
    parser.add_argument("--only", nargs="*", default=(), help="names of sets; all that have judgements otherwise")
    given = parser.parse_args()
    if not given.data.is_dir():
        raise SystemExit(f"{given.data} is not here: the sets are not shipped (most licences forbid it)")
    calibrations = sorted(RESULTS.glob("calibration-*.json"), key=lambda path: json.loads(path.read_text())["at"])
    if not calibrations:
        raise SystemExit("there are no results of calibration.py: run `make calibration` first")
    parts = {}
    for path in sorted(each for each in given.data.iterdir() if list(each.glob("qrels*"))):
        if path.name in LEFT_OUT or (given.only and path.name not in given.only):
            continue
        parts[path.name] = read(load(path, without=WITHOUT.get(path.name, ())), given.cache)
        print(f"{path.name:28} {rates(parts[path.name], 0.5)} {told_apart(parts[path.name])}", flush=True)
    results = {"made": made(), "profile": SHOWN.identity, "trained_on": TRAIN, "sets": parts}
    out = RESULTS / f"abstention-{results['made']['commit']}.json"
    out.write_text(json.dumps(results, indent=1).replace("\n    ", " ").replace("\n   ", " ") + "\n", encoding="utf-8")
    shown = json.loads(calibrations[-1].read_text(encoding="utf-8"))
    PAGE.write_text(page(results, shown, (out.name, calibrations[-1].name)), encoding="utf-8")
    print(f"written: {out}, {PAGE}")


if __name__ == "__main__":
    main()
