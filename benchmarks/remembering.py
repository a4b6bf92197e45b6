"""Fit and measure what `remember` says about a newer statement and an older one (`make remembering`).

The pairs are those of `benchmarks/remember/pairs.tsv`. The half `fit` gives the coefficients and the thresholds of
`trivet.memory.relation`; this script prints them, and a test compares them with those in the source. The half `test`
is only measured. The page is `docs/evidence/remembering.md`.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import trivet
from trivet.evaluate.evaluation import made
from trivet.memory import relation
from trivet.memory.statements import difference
from trivet.models.embedders import load_embedder

HERE = Path(__file__).parent
PAIRS, RESULTS, PAGE = HERE / "remember/pairs.tsv", HERE / "results", HERE.parent / "docs/evidence/remembering.md"
LABELS = (relation.SAME, relation.UPDATED, relation.CONTRADICTING, relation.RELATED, relation.UNRELATED)
REPORTED = LABELS[:3]
BY_WORDS, WITH_MEANING = "words", "with meaning"
PENALTY = 1.0  # of the squared coefficients
FOLDS = 5
STEPS = tuple(step / 100 for step in range(20, 96))  # thresholds that are tried
RECALL = 0.85  # that a threshold must keep on `fit`, in cross-validation: a margin above the .8 that is asked for


@dataclass(frozen=True, slots=True)
class Pair:
    label: str
    domain: str
    language: str
    old: str
    new: str
    source: str  # written, or found by a search

    @property
    def fit(self) -> bool:
        return sha256(self.old.encode()).digest()[0] % 2 == 1


def pairs() -> list[Pair]:
    """Return the judged pairs."""
    rows = PAIRS.read_text(encoding="utf-8").splitlines()[1:]
    return [Pair(*row.split("\t")) for row in rows]


def meanings(found: Sequence[Pair]) -> list[float]:
    """Return the scaled cosine of each pair, by the built-in embedder."""
    embedder = load_embedder("granite")
    if embedder is None:
        raise SystemExit("granite: the built-in embedder is missing; install the package with its model")
    old = np.asarray(embedder.embed_passages([pair.old for pair in found]))
    new = np.asarray(embedder.embed_passages([pair.new for pair in found]))
    return [relation.scaled(float(cosine), embedder.unrelated) for cosine in (old * new).sum(axis=1)]


GROUPS: dict[str, Callable[[Pair], bool]] = {
    "all": lambda pair: True,
    "English": lambda pair: pair.language == "en",
    "German": lambda pair: pair.language == "de",
    "Chinese": lambda pair: pair.language == "zh",
    "written as a pair": lambda pair: pair.source == "written",
    "without the unrelated": lambda pair: pair.label != relation.UNRELATED,
}


# --- fitting ----------------------------------------------------------------------------------------------------------


def logistic(features: Any, positive: Any) -> Any:
    """Return the constant and the coefficients of a logistic regression (Newton's method)."""
    rows = np.c_[np.ones(len(features)), features]
    penalty = PENALTY * np.diag([0.0, *np.ones(rows.shape[1] - 1)])
    weights = np.zeros(rows.shape[1])
    for _ in range(30):
        told = 1 / (1 + np.exp(-rows @ weights))
        slope = rows.T @ (told - positive) + penalty @ weights
        weights -= np.linalg.solve((rows.T * (told * (1 - told))) @ rows + penalty, slope)
    return weights


def left_out(features: Any, positive: Any) -> Any:
    """Return the probability of each row, told by coefficients of the other folds."""
    told = np.zeros(len(features))
    for fold in range(FOLDS):
        out = np.arange(len(features)) % FOLDS == fold
        weights = logistic(features[~out], positive[~out])
        told[out] = 1 / (1 + np.exp(-np.c_[np.ones(out.sum()), features[out]] @ weights))
    return told


def precise(features: Any, positive: Any) -> float:
    """Return the threshold with the highest precision at the recall asked for."""
    told = left_out(features, positive)
    enough = (step for step in STEPS if (told[positive] >= step).mean() >= RECALL)
    return max(enough, key=lambda step: (_precision(told >= step, positive), step))


def balanced(features: Any, positive: Any) -> float:
    """Return the threshold that keeps the most of both sides."""
    told = left_out(features, positive)
    return max(STEPS, key=lambda step: (told[positive] >= step).mean() + (told[~positive] < step).mean())


def _precision(told: Any, positive: Any) -> float:
    return float((told & positive).sum() / told.sum()) if told.any() else 0.0


def fitted(found: Sequence[Pair], meaning: Sequence[float]) -> dict[str, Any]:
    """Return the coefficients and thresholds of `relation`, from the half `fit`."""
    rows = [(pair, difference(pair.old, pair.new), told) for pair, told in zip(found, meaning, strict=True) if pair.fit]
    about = np.array([pair.label in REPORTED for pair, _, _ in rows])
    by_words = np.array([relation.about_features(found, None) for _, found, _ in rows])
    by_meaning = np.array([relation.about_features(found, told) for _, found, told in rows])
    alike = [(pair, found) for pair, found, _ in rows if pair.label in REPORTED]
    replaces = np.array([pair.label != relation.SAME for pair, _ in alike])
    kinds = np.array([relation.replaces_features(found) for _, found in alike])
    return {
        "ABOUT_BY_WORDS": _rounded(logistic(by_words, about)),
        "ABOUT_BY_MEANING": _rounded(logistic(by_meaning, about)),
        "REPLACES": _rounded(logistic(kinds, replaces)),
        "BY_WORDS": precise(by_words, about),
        "BY_MEANING": precise(by_meaning, about),
        "REPLACED": balanced(kinds, replaces),
    }


def _rounded(weights: Any) -> tuple[float, ...]:
    return tuple(round(float(weight), 2) for weight in weights)


# --- measuring --------------------------------------------------------------------------------------------------------


def measured(found: Sequence[Pair], meaning: Sequence[float] | None) -> dict[str, Any]:
    """Return precision and recall of "same or replaces", and how often each label was told for each label."""
    known = meaning or [None] * len(found)
    told = [relation.relate(pair.old, pair.new, value).name for pair, value in zip(found, known, strict=True)]
    counted = Counter((pair.label, name) for pair, name in zip(found, told, strict=True))
    right = sum(counted[label, name] for label in REPORTED for name in REPORTED)
    return {
        "pairs": len(found),
        "precision": right / max(1, sum(name in REPORTED for name in told)),
        "recall": right / max(1, sum(pair.label in REPORTED for pair in found)),
        "confusion": {label: {name: counted[label, name] for name in LABELS} for label in LABELS},
    }


def in_store(found: Sequence[Pair]) -> dict[str, Any]:
    """Remember each newer statement beside all older ones; return how often the one that it is about is reported."""
    older = {text: f"old-{n}" for n, text in enumerate(dict.fromkeys(pair.old for pair in found))}
    about = [pair for pair in found if pair.label in REPORTED]
    reported = 0
    with TemporaryDirectory() as folder, trivet.open(Path(folder) / "pairs.db") as engine:
        engine.add([{"id": id, "text": text} for text, id in older.items()])
        for pair in about:
            told = engine.remember(pair.new, id="new").similar
            reported += older[pair.old] in {item.id for item in told if item.relation in REPORTED}
            engine.delete("new")
    return {"documents": len(older), "pairs": len(about), "recall": reported / len(about)}


def results(found: Sequence[Pair], meaning: Sequence[float]) -> dict[str, Any]:
    """Return what is measured on `test`, in all and by group, by words alone and with the meaning."""
    rows = [(pair, told) for pair, told in zip(found, meaning, strict=True) if not pair.fit]
    groups = {name: [row for row in rows if keep(row[0])] for name, keep in GROUPS.items()}
    return {
        way: {
            name: measured([pair for pair, _ in group], [told for _, told in group] if way == WITH_MEANING else None)
            for name, group in groups.items()
        }
        for way in (BY_WORDS, WITH_MEANING)
    }


# --- the page ---------------------------------------------------------------------------------------------------------

HEAD = """# Remembering

Made by `make remembering` (`benchmarks/remembering.py`); do not edit. Commit `{commit}`, `benchmarks/results/{file}`.

`remember` compares a new statement with older ones and reports those that it repeats, updates or contradicts. The
{pairs} judged pairs are our own (`benchmarks/remember/README.md`). Half of them, by a hash, were used for fitting; the
tables show the other half, {test} pairs. *Precision*: of the pairs told as same, updated or contradicting, those
judged as one of them. *Recall*: of the pairs judged so, those told so.

The standard error of precision or recall over all pairs is about {error:.2f}. The words of change and the pairs have
one author. After the first measurement harder pairs were added twice and the features changed, so the half that is
shown was seen before the end. Expect less on other data.

| pairs | number | precision, words | recall, words | precision, with meaning | recall, with meaning |
|---|---|---|---|---|---|"""

STORE = """
In one store with {documents} older statements, `remember` reports the one that a newer statement is about in
{recall:.0%} of {pairs} cases: the search for candidates included, with the built-in embedder.

## Confusion

With the meaning. Rows are judged, columns are told.

| | {labels} |
|---|---|---|---|---|---|"""

MODEL = """
## Coefficients

Each feature is between 0 and 1. A pair is reported from a probability of {BY_WORDS} by words, {BY_MEANING} with the
meaning; it is a replacement from {REPLACED}.

| same or replaced | by words | with the meaning |
|---|---|---|"""
FEATURES = (
    "constant",
    "content words in common",
    "content words in common after the common beginning (three or more are 1)",
    "places where each has words of its own (two or more are 1; 0 with a word of change)",
    "another subject",
    "scaled cosine, squared",
)
KINDS = (
    "constant",
    "other numbers",
    "a negation in one of them",
    "a word of change in the newer one only",
    "words in the same order around an exchange",
)


def page(found: dict[str, Any], file: str) -> str:
    """Return the page."""
    words, both = found["results"][BY_WORDS], found["results"][WITH_MEANING]
    test = both["all"]["pairs"]
    head = HEAD.format(commit=found["made"]["commit"], file=file, pairs=found["pairs"], test=test, error=found["error"])
    lines = [head]
    for name in GROUPS:
        cells = (f"{way[name][part]:.2f}" for way in (words, both) for part in ("precision", "recall"))
        lines.append(f"| {name} | {both[name]['pairs']} | {' | '.join(cells)} |")
    lines.append(STORE.format(**found["store"], labels=" | ".join(LABELS)))
    for label, row in both["all"]["confusion"].items():
        lines.append(f"| **{label}** | {' | '.join(str(row[name]) for name in LABELS)} |")
    fit = found["fitted"]
    lines.append(MODEL.format(**fit))
    by_words = [*map(str, fit["ABOUT_BY_WORDS"]), "–"]
    rows = zip(FEATURES, by_words, fit["ABOUT_BY_MEANING"], strict=True)
    lines += [f"| {name} | {one} | {other} |" for name, one, other in rows]
    lines += ["", "| replaced, not the same | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in zip(KINDS, fit["REPLACES"], strict=True)]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    found = pairs()
    meaning = meanings(found)
    told = results(found, meaning)
    recall, positive = told[WITH_MEANING]["all"]["recall"], sum(p.label in REPORTED for p in found if not p.fit)
    report = {
        "made": made(),
        "pairs": len(found),
        "fitted": fitted(found, meaning),
        "results": told,
        "error": float(np.sqrt(recall * (1 - recall) / positive)),
        "store": in_store([pair for pair in found if not pair.fit]),
    }
    for old in RESULTS.glob("remembering-*.json"):
        old.unlink()
    target = RESULTS / f"remembering-{report['made']['commit'].rstrip('+')}.json"
    target.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(report, target.name), encoding="utf-8")
    print(page(report, target.name))


if __name__ == "__main__":
    main()
