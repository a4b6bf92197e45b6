"""Judge what is fitted by sets that the fitting has not seen (`make generalisation`).

Every set is searched with `default` and `careful`, as they ship and with what is fitted in them fitted without the
judged set: the weights of the reranker `learned` and how much the reader counts. For single stages the legs run once
for each topic, and what they find is recorded (``recorded.py``); variants of the weighing, of the graph weight and of
`learned` are then fitted without the judged sets and judged on them: without their whole family, or, for `learned`,
which only conversations have, without the judged set. Keyword queries, cut from the queries of other sets, are judged
and never fitted. The plain fusion is z-scores of lexical and dense at 0.5 each. The reader has no time limit here.
"""

from __future__ import annotations

import argparse
import json
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import generalisation_page
import small_stores
from recorded import DEFAULT, PLAIN, Recorded, careful, fused, kept_scores, record, sampled
from relevance import WITHOUT
from trivet.evaluate import Lab, load, score
from trivet.evaluate.dataset import Dataset, Topic
from trivet.evaluate.evaluation import made
from trivet.evaluate.learning_to_rank import Example, example, fit, ndcg, with_learned
from trivet.fusion.normalize import zscore
from trivet.fusion.weighing import LONG, by_query
from trivet.profile import Profile
from trivet.rerank.learned import FEATURES, Learned, gather
from trivet.text.analysis import Analyzer
from weighing import BALANCES, Curves, features, learn

RESULTS = Path(__file__).parent / "results"
#: Sets that resemble each other in topics and in how their queries were made.
FAMILIES = {
    "abstracts": ("scifact", "adi", "cranfield"),
    "conversation": (
        "locomo",
        "locomo_session",
        "beam_100k",
        "lihua_world",
        "longmemeval_oracle_turn",
    ),
    "multi-hop": ("hotpotqa_200", "twowiki_101", "entailmentbank"),
    "code": ("cosqa",),
    "negation": ("negconstraint",),
    "notes": ("demo",),
}
FAMILY = {name: family for family, names in FAMILIES.items() for name in names}
#: Sets whose queries are also asked as keywords.
KEYWORDS_OF = ("scifact", "cranfield", "hotpotqa_200", "entailmentbank", "cosqa", "locomo", "beam_100k")
AS_KEYWORDS = " as keywords"
WORDS = 3  # of a keyword query: the usual length of the title of a TREC topic
NEVER_FITTED = ("demo",)  # 41 topics of our own would weigh as much as a whole set
MOST = 300  # topics of a set
LEGS = ("lexical", "dense", "graph")
GRAPH_WEIGHTS = (0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8)
WORDED = ("words", "runs")
#: Of 0.01 to 1, set left out: less fits the three sets of turns more closely and costs the demo, whose hits are half
#: notes and half messages, 0.018.
RIDGE = 0.03
SIGNIFICANT = 1.96  # standard errors
MEASURE = "nDCG@10"
#: How much the reader counts among talk, among other texts and for an assistant's turns: the values tried, each with
#: the others as they ship.
MIXING = {
    "weight": (0.3, 0.45, 0.6, 0.8),
    "weight_others": (0.0, 0.1, 0.2, 0.3),
    "assistants": (0.25, 0.5, 0.75, 1.0),
}

Scores = dict[str, Any]  # by set, nDCG@10 of each topic


# --- searching and recording ------------------------------------------------------------------------------------------


def variants() -> dict[str, Profile]:
    """Return the profiles that every set is searched with, by the name of their column."""
    tried = {f"{name} {value:g}": careful(**{name: value}) for name, values in MIXING.items() for value in values}
    return {"plain": PLAIN, "shipped": DEFAULT, "careful": careful(), **tried}


def filled(name: str, data: Path, cache: str | None) -> Iterator[tuple[str, Lab]]:
    """Yield a lab with a set, and the same lab with its topics as keywords, each with its name."""
    dataset = sampled(load("demo" if name == "demo" else data / name, without=WITHOUT.get(name, ())), MOST)
    with Lab.fill(dataset, cache=cache) as lab, kept_scores(lab, cache, name):
        yield name, lab
        if name in KEYWORDS_OF:
            lab.dataset = keywords(dataset)
            yield name + AS_KEYWORDS, lab


def judged(lab: Lab, profile: Profile) -> list[float]:
    """Return nDCG@10 of each topic of the lab's dataset."""
    values = score(lab.rerun(profile), lab.dataset.qrels, (MEASURE,))[MEASURE]
    return [values[topic.id] for topic in lab.dataset.topics]


def collect(name: str, data: Path, cache: str | None) -> dict[str, tuple[list[Recorded], dict[str, list[float]]]]:
    """Return what the legs find for the topics of a set, with what each profile scores; also as keywords."""
    return {
        asked: (record(lab), {column: judged(lab, profile) for column, profile in variants().items()})
        for asked, lab in filled(name, data, cache)
    }


def keywords(dataset: Dataset) -> Dataset:
    """Return the dataset with each query cut to its rarest content words, in their order."""
    analyzer = Analyzer("en")
    counts: dict[str, int] = {}
    for document in dataset.documents:
        for term in set(analyzer.terms(f"{document.get('title') or ''} {document.get('text') or ''}")):
            counts[term] = counts.get(term, 0) + 1

    def frequency(word: str) -> int:
        return max((counts.get(term, 0) for term in analyzer.terms(word)), default=0)

    def cut(topic: Topic) -> Topic:
        words = [word.strip("?.,;:!\"'()") for word in topic.text.split()]
        content = [word for word in words if word and word.lower() not in analyzer.stop_words]
        kept = set(sorted(content, key=frequency)[:WORDS])
        return replace(topic, text=" ".join(dict.fromkeys(word for word in content if word in kept)) or topic.text)

    return replace(dataset, topics=tuple(map(cut, dataset.topics)))


# --- scoring ----------------------------------------------------------------------------------------------------------


def gain(grades: Iterable[float]) -> float:
    """Return the discounted gain of the first ten grades."""
    first = np.array(list(grades)[:10], dtype=float)
    return float((first / np.log2(2 + np.arange(len(first)))).sum())


@dataclass(frozen=True)
class Points:
    """One topic as numbers: the normalised score of each candidate in each leg, its grade, and the best gain."""

    rows: Any
    grades: Any
    ideal: float
    graph: float  # share of the graph's weight that a list of this length allows

    @classmethod
    def of(cls, item: Recorded) -> Points:
        keys: dict[Any, int] = {}
        for ranking in item.rankings:
            for key in ranking.keys:
                keys.setdefault(key, len(keys))
        rows = np.zeros((len(keys), len(LEGS)))
        for ranking in item.rankings:
            for key, value in zip(ranking.keys, zscore(ranking), strict=True):
                rows[keys[key], LEGS.index(ranking.leg)] = value
        grades = np.array([max(0, item.judged.get(item.hits[key].id, 0)) for key in keys], dtype=float)
        ideal = gain(sorted((grade for grade in item.judged.values() if grade > 0), reverse=True))
        longest = max((len(ranking) for ranking in item.rankings if ranking.leg != "graph"), default=0)
        return cls(rows, grades, ideal, min(1.0, np.log(1 + longest) / np.log(1 + LONG)))

    def ndcg(self, alpha: float, graph: float) -> float:
        """Return nDCG@10 with this balance and this graph weight."""
        total = self.rows @ np.array([1 - alpha, alpha, graph * self.graph])
        order = np.argsort(-total, kind="stable")[:10]
        return gain(self.grades[order]) / self.ideal if self.ideal else 0.0


class Study:
    """The recorded sets, and what each variant scores on them; ``scores`` has a mapping of columns for each set."""

    def __init__(
        self, records: Mapping[str, list[Recorded]], scores: Mapping[str, Mapping[str, Sequence[float]]]
    ) -> None:
        self.records, self.scores = records, scores
        self.points = {name: [Points.of(item) for item in items] for name, items in records.items()}
        self.plain = self.column("plain")
        self.examples = {name: list(map(_example, items)) for name, items in records.items()}
        self.everywhere = {
            name: [_everywhere(item, one) for item, one in zip(items, self.examples[name], strict=True)]
            for name, items in records.items()
        }

    def column(self, name: str) -> Scores:
        """Return what one of the profiles searched with scores."""
        return {each: np.array(columns[name]) for each, columns in self.scores.items()}

    def default_without(self, judged: str) -> Profile:
        """Return the default profile with the weights of `learned` fitted without the judged set."""
        sets = self.fitted_to(judged, False)
        return with_learned(DEFAULT, _fit([self.examples[each] for each in sets], FEATURES))

    def mixing_without(self, judged: str) -> dict[str, float]:
        """Return how much the reader counts, chosen by the mean of all sets but the judged one."""
        sets = self.fitted_to(judged, False)

        def gained(name: str, value: float) -> float:
            return float(np.mean([np.mean(self.scores[each][f"{name} {value:g}"]) for each in sets]))

        return {name: max(values, key=lambda value: gained(name, value)) for name, values in MIXING.items()}

    def fusion(self, alpha: float, graph: float) -> Scores:
        return {name: np.array([item.ndcg(alpha, graph) for item in items]) for name, items in self.points.items()}

    def fitted_to(self, judged: str, whole_family: bool) -> list[str]:
        """Return the sets that may be fitted to when this one is judged; all for the name ``""``."""
        own = judged.removesuffix(AS_KEYWORDS)
        return [
            name
            for name in self.records
            if not name.endswith(AS_KEYWORDS)
            and name not in NEVER_FITTED
            and name != own
            and not (whole_family and FAMILY[name] == FAMILY.get(own))
        ]

    def weighing(self, left_out: bool) -> Scores:
        """Return the scores of the weights per query, fitted without the judged family or to all sets."""
        curves = {name: self._curves(name) for name in self.records}
        models: dict[tuple[str, ...], Any] = {}
        found = {}
        for name, own in curves.items():
            sets = tuple(self.fitted_to(name if left_out else "", True))
            models.setdefault(sets, None)
            if models[sets] is None:
                models[sets] = learn([curves[each] for each in sets])
            found[name] = models[sets].judged(own)
        return found

    def _curves(self, name: str) -> Curves:
        kept, values = [], []
        for item, points in zip(self.records[name], self.points[name], strict=True):
            legs = {ranking.leg: ranking for ranking in item.rankings if len(ranking)}
            if {"lexical", "dense"} <= legs.keys():
                kept.append(features(item.query.text, legs["lexical"], legs["dense"]))
            else:  # one leg alone is not weighed: the features do not matter
                kept.append((0.0,) * 8)
            values.append([points.ndcg(float(balance), DEFAULT.weights["graph"]) for balance in BALANCES])
        return Curves(np.array(kept), np.array(values))

    def learned(self, names: Sequence[str], left_out: bool, everywhere: bool = False) -> Scores:
        """Return the scores of the reranker with these features, fitted without the judged sets or to all.

        ``everywhere`` lets the wording count in every set, not among messages alone; then the family is left out.
        """
        examples = self.everywhere if everywhere else self.examples
        models: dict[tuple[str, ...], Learned] = {}
        found = {}
        for name in self.records:
            sets = tuple(self.fitted_to(name if left_out else "", everywhere))
            if sets not in models:
                models[sets] = _fit([examples[each] for each in sets], names)
            found[name] = np.array([ndcg(item, models[sets]) for item in examples[name]])
        return found

    def weights(self) -> Learned:
        """Return the weights fitted to all sets."""
        return _fit([self.examples[name] for name in self.fitted_to("", False)], FEATURES)


def _example(item: Recorded) -> Example:
    hits = fused(item, by_query, DEFAULT.weights, Learned.sees)
    return example(item.asked, hits, item.tools, item.judged)


def _everywhere(item: Recorded, gated: Example) -> Example:
    """Return the example with the wording of every hit, messages or not."""
    hits = fused(item, by_query, DEFAULT.weights, Learned.sees)
    if len(hits) < 2:
        return gated
    alpha = DEFAULT.weights["lexical"] / (DEFAULT.weights["lexical"] + DEFAULT.weights["dense"])
    found = np.array(gather(hits, item.asked, item.tools), dtype=float)
    factors = [np.sqrt(alpha) if name in WORDED else 1.0 for name in FEATURES]
    return replace(gated, rows=np.concatenate([gated.rows[:, :1], found * factors], axis=1))


def _fit(groups: Iterable[Sequence[Example]], names: Sequence[str]) -> Learned:
    """Return the reranker fitted to these sets with these features alone."""
    kept = np.array([1.0, *(float(name in names) for name in FEATURES)])
    telling = [[replace(item, rows=item.rows * kept) for item in group] for group in groups]
    return fit([group for group in telling if any(item.rows[:, 1:].any() for item in group)], RIDGE)


# --- the report -------------------------------------------------------------------------------------------------------


def against(scores: Scores, base: Scores) -> dict[str, dict[str, Any]]:
    """Return the mean of each set, its difference to the base with the standard error, and whether it is below."""
    found = {}
    for name, values in scores.items():
        more = values - base[name]
        error = float(more.std(ddof=1) / np.sqrt(len(more)))
        found[name] = {
            "mean": round(float(values.mean()), 4),
            "difference": round(float(more.mean()), 4),
            "error": round(error, 4),
            "below": bool(more.mean() < -SIGNIFICANT * error),
        }
    return found


def summary(scores: Scores, base: Scores) -> dict[str, Any]:
    """Return the mean difference over the sets and over the keyword queries, and the sets significantly below."""
    found = against(scores, base)
    keyword = [name for name in found if name.endswith(AS_KEYWORDS)]
    natural = [name for name in found if name not in keyword]
    return {
        "sets": round(float(np.mean([found[name]["difference"] for name in natural])), 4),
        "keywords": round(float(np.mean([found[name]["difference"] for name in keyword])), 4),
        "below": [name for name, each in found.items() if each["below"]],
    }


def stages(study: Study) -> dict[str, Any]:
    """Return what each stage adds to the stage it stands on, fitted to all sets and with the judged ones left out."""
    graph = DEFAULT.weights["graph"]
    base = study.fusion(0.5, graph)
    found: dict[str, Any] = {
        "query understanding": {"left_out": _step(study, study.fusion(0.5, 0.0), study.plain)},
    }
    for weight in GRAPH_WEIGHTS[1:]:
        found[f"graph {weight:g}"] = {"left_out": _step(study, study.fusion(0.5, weight), study.fusion(0.5, 0.0))}
    found["weights per query"] = {
        "visible": _step(study, study.weighing(False), base),
        "left_out": _step(study, study.weighing(True), base),
    }
    variants = {"words and runs, in every set": (WORDED, True)}
    variants |= {f"without {name}": (tuple(each for each in FEATURES if each != name), False) for name in FEATURES}
    for title, (names, everywhere) in {**variants, "all three features, among messages": (FEATURES, False)}.items():
        found[f"learned: {title}"] = {
            "visible": _step(study, study.learned(names, False, everywhere), base),
            "left_out": _step(study, study.learned(names, True, everywhere), base),
        }
    return found


def _step(study: Study, scores: Scores, base: Scores) -> dict[str, Any]:
    return {**summary(scores, base), "below": summary(scores, study.plain)["below"]}


def left_out(study: Study, names: Iterable[str], data: Path, cache: str | None) -> tuple[dict[str, Scores], Any]:
    """Search every set with both profiles fitted without it; also return how much the reader then counts."""
    found: dict[str, Scores] = {"left_out": {}, "careful_left_out": {}}
    mixing = {}
    for name in names:
        for asked, lab in filled(name, data, cache):
            profile, mixing[asked] = study.default_without(asked), study.mixing_without(asked)
            found["left_out"][asked] = np.array(judged(lab, profile))
            found["careful_left_out"][asked] = np.array(judged(lab, careful(profile, **mixing[asked])))
        print(f"left out: {name}", flush=True)
    return found, mixing


def report(study: Study, without: Mapping[str, Scores], former: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the results as plain data; ``without`` is what the profiles score that were fitted without a set."""
    columns = {
        "shipped": study.column("shipped"),
        "left_out": without["left_out"],
        "careful": study.column("careful"),
        "careful_left_out": without["careful_left_out"],
    }
    if former is not None:
        columns = {"former": {name: np.array(former["scores"][name]) for name in study.records}, **columns}
    compared = {name: against(scores, study.plain) for name, scores in columns.items()}
    return {
        "made": made(),
        "former": former and former["commit"],
        "weights": asdict(study.weights()),
        "sets": {
            name: {
                "family": "keywords" if name.endswith(AS_KEYWORDS) else FAMILY[name],
                "topics": len(items),
                "plain": round(float(study.plain[name].mean()), 4),
                **{column: values[name] for column, values in compared.items()},
            }
            for name, items in study.records.items()
        },
        "summary": {column: summary(scores, study.plain) for column, scores in columns.items()},
        "stages": stages(study),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a folder of sets in BEIR layout")
    parser.add_argument("--cache", help="where vectors are kept (the user's cache folder otherwise)")
    parser.add_argument("--records", type=Path, default=Path("build/generalisation"), help="where records are kept")
    parser.add_argument("--sets", nargs="*", default=list(FAMILY), help="the sets to record")
    parser.add_argument("--save-run", type=Path, help="write the scores of the default to this file and stop")
    parser.add_argument("--former", type=Path, help="what --save-run wrote for an earlier version")
    parser.add_argument("--docs", action="store_true", help="write docs/evidence/generalisation.md")
    args = parser.parse_args()
    args.records.mkdir(parents=True, exist_ok=True)
    for name in args.sets:
        kept = args.records / f"{name}.pickle"
        if not kept.exists():
            kept.write_bytes(pickle.dumps(collect(name, args.data, args.cache)))
            print(f"recorded: {name}", flush=True)
    records: dict[str, list[Recorded]] = {}
    columns: dict[str, dict[str, list[float]]] = {}
    for name in args.sets:
        for asked, (recorded, scores) in pickle.loads((args.records / f"{name}.pickle").read_bytes()).items():
            records[asked], columns[asked] = recorded, scores
    study = Study(records, columns)
    if args.save_run:
        scores = {name: [round(value, 6) for value in values["shipped"]] for name, values in columns.items()}
        stores = small_stores.measured(args.data, args.cache)
        args.save_run.write_text(json.dumps({"commit": made()["commit"], "scores": scores, "small_stores": stores}))
        return
    former = json.loads(args.former.read_text()) if args.former else None
    without, mixing = left_out(study, args.sets, args.data, args.cache)
    found = report(study, without, former)
    found["mixing"] = mixing
    found["small_stores"] = small_stores.measured(args.data, args.cache)
    found["small_stores_former"] = former and former["small_stores"]
    file = RESULTS / f"generalisation-{found['made']['commit']}.json"
    file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"written: {file}")
    if args.docs:
        generalisation_page.write(found, file.name)


if __name__ == "__main__":
    main()
