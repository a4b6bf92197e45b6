"""Fit the coefficients of ``trivet.fusion.relevance`` and measure calibration and silence (`make relevance`).

Four kinds of query on every set of a data folder, with the profile `careful`: answerable ones; those that the set marks
as unanswerable; answerable ones with every relevant document excluded, so that related documents remain; and made-up
ones of our own (`made_up_queries.txt`). Every hit has the strengths of its legs, the logit of the reader and a
judgement; a document without a judgement counts as wrong.

Sets are grouped into families. Everything that is reported of a set was fitted without its family. The shipped
coefficients are fitted to all sets; every set has the same weight. `--collect` reads the sets into a folder (a minute
or more each), the rest is computed from that folder; `--docs` writes docs/evidence/relevance.md.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trivet.engine.request import SearchRequest
from trivet.evaluate import Lab, load
from trivet.evaluate.dataset import Dataset
from trivet.evaluate.evaluation import made
from trivet.fusion.relevance import KNOWN, Match, features, never_increasing
from trivet.profile import PROFILES
from trivet.types import LIKELY, STRONG

HERE = Path(__file__).parent
RESULTS, PAGE, MADE_UP = HERE / "results", HERE.parent / "docs/evidence/relevance.md", HERE / "made_up_queries.txt"
FAMILIES = {
    "adi": "abstracts",
    "cranfield": "abstracts",
    "scifact": "abstracts",
    "beam_100k": "conversations",
    "lihua_world": "conversations",
    "locomo": "conversations",
    "entailmentbank": "several hops",
    "hotpotqa_200": "several hops",
    "twowiki_101": "several hops",
    "cosqa": "code",
    "negconstraint": "negation",
}
WITHOUT = {"locomo": ("adversarial",)}
HITS, SHOWN = 20, 10  # hits of a query that are fitted to, and that a page shows
RIDGE = 1e-2  # keeps the coefficients finite; of no weight otherwise
BINS = 10
STEADY = 0.02  # a change of relevance that nobody notices
FALSE = 0.1  # share of false answers at which what is kept is reported
KINDS = ("unanswerable", "removed", "made up")

Kind = tuple[bool, bool, bool]  # words took part, meaning took part, the reader read
#: Name in ``trivet.fusion.relevance`` -> what it is for.
LINES: dict[str, Kind] = {
    "READ": (False, False, True),
    "BOTH": (True, True, False),
    "WORDS": (True, False, False),
    "MEANING": (False, True, False),
}
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Found:
    """One hit: whether it is right, how the legs match it, and the reader's logit."""

    right: bool
    match: Match
    read: float | None


@dataclass(frozen=True, slots=True)
class Asked:
    """One query and its first hits."""

    kind: str
    hits: Sequence[Found]


# --- what is read of a set --------------------------------------------------------------------------------------------


def collect(data: Path, folder: Path, cache: str | None, topics: int, only: Sequence[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in FAMILIES:
        kept = folder / f"{name}.json"
        if kept.exists() or (only and name not in only) or not (data / name).is_dir():
            continue
        dataset = load(data / name, without=WITHOUT.get(name, ()))
        kept.write_text(json.dumps(list(read(dataset, cache, topics))), encoding="utf-8")
        print(f"{dataset.identity}: {kept.stat().st_size:,} bytes", flush=True)


def read(dataset: Dataset, cache: str | None, topics: int) -> Iterable[dict[str, Any]]:
    """Yield every query with the first hits of `careful`, read without a time limit."""

    def sample(found: Iterable[Any]) -> list[Any]:
        return sorted(found, key=lambda topic: blake2b(topic.id.encode()).digest())[:topics]

    asked, silent = sample(dataset.topics), sample(dataset.unanswerable)
    steps = [
        {"name": step.name, **({"budget_ms": 600_000.0} if step.name == "reader" else step.options)}
        for step in PROFILES["careful"].rerankers
    ]
    profile = PROFILES["careful"].with_changes({"k": HITS, "rerankers": steps, "follow_links": False})
    made_up = MADE_UP.read_text(encoding="utf-8").splitlines()
    with Lab.fill(replace(dataset, topics=(*asked, *silent)), cache=cache) as lab:

        def hits(text: str, where: Any, at: Any, right: set[str], exclude: Sequence[str] = ()) -> list[Any]:
            run = lab.engine._pipeline._run(
                SearchRequest(text, where, profile, tuple(exclude), None, 0, at or lab._now, None, None, {})
            )
            numbers = lab.engine._collection.documents.numbers([hit.id for hit in run.results])
            return [[hit.id in right, *run.pool.match(numbers[hit.id]), _read(hit)] for hit in run.results]

        for topic in asked:
            right = {id for id, grade in dataset.qrels[topic.id].items() if grade > 0}
            yield {"kind": "answerable", "hits": hits(topic.text, topic.where, topic.at, right)}
            yield {"kind": "removed", "hits": hits(topic.text, topic.where, topic.at, set(), sorted(right))}
        for topic in silent:
            yield {"kind": "unanswerable", "hits": hits(topic.text, topic.where, topic.at, set())}
        for place, text in enumerate(made_up):
            yield {"kind": "made up", "hits": hits(text, asked[place % len(asked)].where, None, set())}


def _read(hit: Any) -> float | None:
    notes = [item.reason for item in hit.adjustments if item.reranker == "reader"]
    return float(notes[0].removeprefix("logit ")) if notes else None


def loaded(folder: Path) -> dict[str, list[Asked]]:
    """Return the queries of every set that was collected."""
    return {
        file.stem: [
            Asked(item["kind"], [Found(row[0], Match(*row[1:3]), row[3]) for row in item["hits"]])
            for item in json.loads(file.read_text(encoding="utf-8"))
        ]
        for file in sorted(folder.glob("*.json"))
    }


# --- arithmetic -------------------------------------------------------------------------------------------------------


def seen_as(kind: Kind, hit: Found) -> tuple[Match, float | None]:
    """Return what a search with only these legs, and with or without a reader, knows of a hit."""
    words, meaning, reads = kind
    match = Match((hit.match.words or 0.0) if words else None, (hit.match.meaning or 0.0) if meaning else None)
    return match, (hit.read if hit.read is not None else -10.0) if reads else None


def fitted(kind: Kind, sets: Iterable[Sequence[Asked]]) -> Floats:
    """Return the coefficients for one kind of search: logistic regression by Newton's method."""
    rows, right, weight = [], [], []
    for queries in sets:
        hits = [hit for query in queries if query.kind != "removed" for hit in query.hits]
        rows += [features(*seen_as(kind, hit)) for hit in hits]
        right += [hit.right for hit in hits]
        weight += [1000.0 / len(hits)] * len(hits)
    x, y, w = np.array(rows), np.array(right, float), np.array(weight)
    line = np.zeros(x.shape[1])
    for _ in range(100):
        p = _logistic(x @ line)
        step = np.linalg.solve(
            (x * (w * p * (1 - p))[:, None]).T @ x + RIDGE * np.eye(len(line)), x.T @ (w * (y - p)) - RIDGE * line
        )
        line += step
        if np.abs(step).max() < 1e-9:
            break
    return line


def relevances(kind: Kind, line: Floats, hits: Sequence[Found]) -> list[float]:
    """Return the relevance of the hits that a page shows, as a search computes it."""
    rows = [features(*seen_as(kind, hit)) for hit in hits[:SHOWN]]
    return never_increasing(_logistic(np.array(rows) @ line).tolist()) if rows else []


def _logistic(odds: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(odds, -30, 30))))


@dataclass(frozen=True, slots=True)
class Judged:
    """The queries of one set with relevances that were fitted without its family."""

    pairs: Floats  # hits of answerable queries: relevance, right
    best_right: Floats  # by answerable query with a right hit, the relevance of the best of them
    best: Mapping[str, Floats]  # by kind of query without an answer, the relevance of the first hit
    moved: Floats  # by how much the relevance of a hit changes where every other hit is taken away

    def kept(self, threshold: float) -> float:
        return float((self.best_right >= threshold).mean())

    def false(self, kind: str, threshold: float) -> float:
        return float((self.best[kind] >= threshold).mean())

    @property
    def error(self) -> float:
        return calibration_error(self.pairs)


def judged(kind: Kind, line: Floats, queries: Sequence[Asked]) -> Judged:
    pairs, best_right, moved = [], [], []
    best: dict[str, list[float]] = {}
    for query in queries:
        values = relevances(kind, line, query.hits)
        for half in (0, 1):
            alone = relevances(kind, line, query.hits[:SHOWN][half::2])
            moved += [abs(one - other) for one, other in zip(values[half::2], alone, strict=True)]
        if query.kind != "answerable":
            best.setdefault(query.kind, []).append(values[0] if values else 0.0)
            continue
        told = [(value, float(hit.right)) for value, hit in zip(values, query.hits, strict=False)]
        pairs += told
        if any(right for _, right in told):
            best_right.append(max(value for value, right in told if right))
    silent = {name: np.array(found) for name, found in best.items()}
    return Judged(np.array(pairs), np.array(best_right), silent, np.array(moved))


def calibration_error(pairs: Floats) -> float:
    """Return the mean distance of relevance and the share that is right, over ten bins."""
    place = np.minimum((pairs[:, 0] * BINS).astype(int), BINS - 1)
    bins = [pairs[place == number] for number in range(BINS) if (place == number).any()]
    return float(sum(len(rows) * abs(rows[:, 0].mean() - rows[:, 1].mean()) for rows in bins) / len(pairs))


def mean_false(parts: Iterable[Judged], kinds: Sequence[str], threshold: float) -> float:
    """Return the share of queries without an answer that get a hit: the mean over kinds of the means over sets."""
    by_kind = [[part.false(kind, threshold) for part in parts if kind in part.best] for kind in kinds]
    return float(np.mean([np.mean(found) for found in by_kind if found]))


def kept_at(parts: Sequence[Judged], kinds: Sequence[str], most: float) -> tuple[float, float]:
    """Return the lowest threshold with at most ``most`` false answers, and what it keeps, every set counting alike."""
    threshold = next(t for t in np.arange(0.0, 1.001, 0.005) if mean_false(parts, kinds, float(t)) <= most)
    return float(threshold), float(np.mean([part.kept(float(threshold)) for part in parts]))


# --- results and page -------------------------------------------------------------------------------------------------


def results(sets: Mapping[str, list[Asked]]) -> dict[str, Any]:
    lines = {name: fitted(kind, sets.values()).round(2).tolist() for name, kind in LINES.items()}
    found: dict[str, Any] = {**made(), "coefficients": lines, "profiles": {}}
    for name, kind in (("default", LINES["BOTH"]), ("careful", LINES["READ"])):
        parts = {}
        for tested, queries in sets.items():
            others = [rest for other, rest in sets.items() if FAMILIES[other] != FAMILIES[tested]]
            parts[tested] = judged(kind, fitted(kind, others), queries)
        every = list(parts.values())
        pairs = np.concatenate([part.pairs for part in every])
        thresholds = sorted({0.0, KNOWN, LIKELY, STRONG, *(round(0.1 * step, 1) for step in range(1, 10))})
        silence = {each: kept_at(every, [each], FALSE) for each in KINDS} | {"all": kept_at(every, KINDS, FALSE)}
        found["profiles"][name] = {
            "hits": len(pairs),
            "error": calibration_error(pairs),
            "moved": float(np.mean([(part.moved > STEADY).mean() for part in every])),
            "bins": _bins(pairs),
            "thresholds": [
                [t, float(np.mean([part.kept(t) for part in every])), *(mean_false(every, [k], t) for k in KINDS)]
                for t in thresholds
            ],
            "silence": silence,
            "sets": {
                tested: {"error": part.error, "kept": part.kept(KNOWN), "kept_likely": part.kept(LIKELY)}
                | {k: part.false(k, LIKELY) for k in part.best}
                for tested, part in parts.items()
            },
        }
    return found


def _bins(pairs: Floats) -> list[list[float]]:
    place = np.minimum((pairs[:, 0] * BINS).astype(int), BINS - 1)
    return [
        [n / BINS, int(rows[:, 0].size), float(rows[:, 0].mean()), float(rows[:, 1].mean())]
        for n in range(BINS)
        if len(rows := pairs[place == n])
    ]


PAGE_TEXT = """# Relevance

Made by `make relevance` (`benchmarks/relevance.py`); do not edit. `relevance` is the probability that a document
answers the query: of the hits with a relevance of 0.8, about eight in ten should be right. It depends on the query and
the document, and never increases down the list (ADR 41).

Commit `{commit}`, `benchmarks/results/{file}`. {sets} sets; what is said of a set was fitted without
its whole family. Every set counts alike; an unjudged document counts as wrong.

## Calibration

Calibration error over all hits: `default` {default_error:.3f} ({hits:,} hits), `careful` {careful_error:.3f}.
Where every other hit is taken away, as a filter may do, {default_moved:.0%} of the others (`careful`:
{careful_moved:.0%}) change by more than {steady:g}: hits that are out of order share the mean of their relevances.

| relevance | `default`: hits | right | `careful`: hits | right |
|---|---|---|---|---|
{bins}

## Words

A hit is *strong* from {strong:g}, *likely* from {likely:g}, else *weak*. MCP and chat leave out what is below
{known:g}; where nothing is left they say that nothing is known.

## Thresholds

Kept: queries whose right hit is still shown, of those that had one among the first ten. False: queries without an
answer that still get a hit. *Unanswerable*: the set says so. *Removed*: answerable, with every right document excluded,
so that documents about the same subject remain. *Made up*: questions of our own that no set can answer.

| | `default` | | | | `careful` | | | |
|---|---|---|---|---|---|---|---|---|
| threshold | kept | unanswerable | removed | made up | kept | unanswerable | removed | made up |
{thresholds}

At {false:.0%} false answers, kept:

| false answers to | `default` | `careful` |
|---|---|---|
{silence}

## By set

Calibration error; kept and false (removed) at {likely:g}, the least of a likely hit.

| set | family | `default`: error | kept | false | `careful`: error | kept | false |
|---|---|---|---|---|---|---|---|
{by_set}
"""


def page(found: Mapping[str, Any], file: str) -> str:
    """Return docs/evidence/relevance.md."""
    both = [found["profiles"][name] for name in ("default", "careful")]
    default, careful = both
    return PAGE_TEXT.format(
        commit=found["commit"],
        file=file,
        sets=len(default["sets"]),
        default_error=default["error"],
        careful_error=careful["error"],
        hits=default["hits"],
        default_moved=default["moved"],
        careful_moved=careful["moved"],
        steady=STEADY,
        strong=STRONG,
        likely=LIKELY,
        known=KNOWN,
        false=FALSE,
        bins="\n".join(_bin_row(number / BINS, both) for number in range(BINS)),
        thresholds="\n".join(
            _row(f"{one[0]:g}", *(f"{value:.0%}" for value in (*one[1:], *other[1:])))
            for one, other in zip(default["thresholds"], careful["thresholds"], strict=True)
        ),
        silence="\n".join(
            _row(
                "the three kinds, equally" if name == "all" else name,
                *("{1:.0%} (from {0:.2f})".format(*profile["silence"][name]) for profile in both),
            )
            for name in (*KINDS, "all")
        ),
        by_set="\n".join(
            _row(name, FAMILIES[name], *(cell for profile in both for cell in _set_cells(profile["sets"][name])))
            for name in default["sets"]
        ),
    )


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _bin_row(begin: float, profiles: Sequence[Mapping[str, Any]]) -> str:
    cells = []
    for profile in profiles:
        row = next((row for row in profile["bins"] if row[0] == begin), None)
        cells += [f"{row[1]:,}", f"{row[3]:.2f}"] if row else ["0", "–"]
    return _row(f"{begin:.1f} – {begin + 1 / BINS:.1f}", *cells)


def _set_cells(part: Mapping[str, float]) -> tuple[str, ...]:
    return f"{part['error']:.3f}", f"{part['kept_likely']:.0%}", f"{part['removed']:.0%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path, help="folder of the evaluation sets")
    parser.add_argument("--collected", type=Path, default=HERE / "cache/relevance")
    parser.add_argument("--cache", help="folder of the cached vectors")
    parser.add_argument("--topics", type=int, default=100, help="at most so many of a set")
    parser.add_argument("--only", nargs="*", default=(), help="collect these sets only")
    parser.add_argument("--docs", action="store_true", help="write docs/evidence/relevance.md and the results file")
    options = parser.parse_args()
    collect(options.data, options.collected, options.cache, options.topics, options.only)
    found = results(loaded(options.collected))
    for name, line in found["coefficients"].items():
        print(f"{name} = ({', '.join(f'{value:g}' for value in line)})")
    for name, profile in found["profiles"].items():
        print(
            name, f"error {profile['error']:.3f}", {k: [round(x, 3) for x in v] for k, v in profile["silence"].items()}
        )
    if options.docs:
        for old in RESULTS.glob("relevance-*.json"):
            old.unlink()
        file = RESULTS / f"relevance-{found['commit']}.json"
        file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(page(found, file.name), encoding="utf-8")


if __name__ == "__main__":
    main()
