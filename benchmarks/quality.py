"""Measure the quality of every fusion and of the default's stages on every public dataset (`make results`).

Every system below on every set of a data folder: nDCG@10 and R@10 of each topic, by fusing stored rankings again (a
test shows that this equals a search), and the default by searching, with its times. The result is one JSON file named
by the commit; `docs/evidence/results.md` is made from it. It also holds the default with each of its stages changed
(`stages.py`), and the best profile by mean rank over the sets, each set left out in turn.

Sets are independent: `--only SET --parts FOLDER` measures some in a process of its own, so several can run at a time;
without `--only`, parts in the folder are used and the rest is measured.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import stages
from quality_page import PAGE, page
from trivet.evaluate import (
    Comparison,
    Evaluation,
    Headroom,
    Lab,
    Sweep,
    compare,
    evaluate,
    headroom,
    load,
    score,
    sweep,
)
from trivet.evaluate.dataset import Dataset
from trivet.evaluate.evaluation import made
from trivet.evaluate.significance import interval, paired
from trivet.profile import PROFILES, Profile, Step

RESULTS = Path(__file__).parent / "results"
MEASURES = ("nDCG@10", "R@10", "R@5", "Success@5", "Success@10")
MAIN = MEASURES[0]
SAMPLED = 100
SEEDS = ("episodes", "memories", "chunks", "composite", "snippets")
# LoCoMo's adversarial questions ask for what never happened; the set's own page says to report them apart
WITHOUT = {"locomo": ("adversarial",), "locomo_session": ("adversarial",)}
BARE = Profile(name="bare")  # words and meaning at depth 100, nothing after the fusion
# the default before there were stages: what it was chosen against then, and what every stage has to better
TWO_LEGS = Profile(name="two-legs", normalize="zscore", weighing="query", rerankers=(Step("dedup"),))


def systems() -> dict[str, Profile]:
    """Return the profiles by name, in the order of the table."""
    found = {
        "BM25": BARE.with_changes({"weights": {"lexical": 1, "dense": 0}}),
        "trigram": BARE.with_changes({"weights": {"lexical": 0, "dense": 0, "trigram": 1}}),
        "dense": BARE.with_changes({"weights": {"lexical": 0, "dense": 1}}),
    }
    for k in (60, 5):
        found[f"RRF k={k}"] = BARE.with_changes({"fusion": "rrf", "rrf_k": k})
    for normalize, label, alphas in (
        ("minmax", "min-max", (0.3, 0.5, 0.7)),
        ("tm2c2", "TM2C2", (0.5,)),
        ("zscore", "z-score", (0.3, 0.5, 0.7)),
        ("dbsf", "DBSF", (0.5,)),
    ):
        for alpha in alphas:
            changes = {"fusion": "convex", "normalize": normalize, "alpha": alpha}
            found[f"{label} α={alpha:g}"] = BARE.with_changes(changes)
    found["CombMNZ"] = BARE.with_changes({"fusion": "comb_mnz", "normalize": "minmax"})
    found["ISR"] = BARE.with_changes({"fusion": "isr"})
    found |= {name: PROFILES[name].with_changes({"k": 10}) for name in SEEDS}
    found["two legs"] = TWO_LEGS
    found["default"] = PROFILES["default"]
    return found


def measure(dataset: Dataset, cache: str | None, timed: bool, pictures: Pictures | None = None) -> dict[str, Any]:
    """Measure every system and every stage on one set, and the cost of the stages where they are timed."""
    begun = time.perf_counter()
    told = _progress(dataset.name)
    few = sample(dataset)
    with Lab.fill(dataset, cache=cache, progress=told) as lab:
        values: dict[str, dict[str, dict[str, float]]] = {}
        for number, (name, profile) in enumerate(systems().items(), start=1):
            asked = few if profile.weights["trigram"] else dataset
            values[name] = score(lab.rerun(profile, asked.topics), asked.qrels, MEASURES)
            told(f"fuse {name}", number, len(systems()))
        shipped = evaluate(lab, PROFILES["default"], measures=MEASURES, progress=told)
        if shipped.of(MAIN) != values["default"][MAIN]:
            raise SystemExit(f"{dataset.name}: the shipped path and the re-fusion path differ; one of them is wrong")
        told("stages", 0, 0)
        changed = stages.measured(lab, dataset, few, values["default"], MAIN)
        costs = stages.costs(lab, few.topics) if timed else None
        room = headroom(lab, PROFILES["default"], MAIN)
        if pictures is not None:
            pictures.add(lab, shipped, room)
    main = {name: each[MAIN] for name, each in values.items()}
    better = max(("BM25", "dense"), key=lambda leg: _mean(main[leg]))
    found = shipped.findings
    return {
        "identity": dataset.identity,
        "commit": made()["commit"],
        "documents": len(dataset.documents),
        "topics": len(dataset.topics),
        "notes": list(dataset.notes),
        "systems": {
            name: {
                **{measure: round(_mean(each[measure]), 4) for measure in MEASURES},
                "interval": [round(end, 4) for end in interval(list(each[MAIN].values()))],
            }
            for name, each in values.items()
        },
        "against_default": {
            pair.challenger: stages.told(pair)
            for pair in stages.against(main["default"], {name: main[name] for name in main if name != "default"})
        },
        "against_two_legs": {
            measure: stages.told(paired(values["two legs"][measure], values["default"][measure]))
            for measure in (MAIN, "R@5")
        },
        "stages": changed,
        "costs": costs,
        "better_leg": better,
        "headroom": {
            "oracle": round(room.oracle_mean, 4),
            "best_alpha": room.best_alpha,
            "best": round(room.best_mean, 4),
        },
        "findings": {
            "p50_ms": round(found.p50_ms, 2),
            "p95_ms": round(found.p95_ms, 2),
            "embed_ms": None if found.embed_ms is None else round(found.embed_ms, 2),
            "only": dict(found.only),
            "right": found.right,
            "false_nonsense": found.false_nonsense,
            "false_unanswerable": found.false_unanswerable,
        },
        "seconds": round(time.perf_counter() - begun, 1),
    }


def sample(dataset: Dataset) -> Dataset:
    """Return at most ``SAMPLED`` topics, by hash: the trigram leg takes up to 0.4 s a topic on abstracts."""
    placed = sorted(dataset.topics, key=lambda topic: blake2b(topic.id.encode(), digest_size=8).digest())
    return dataset.sample(topic.id for topic in placed[:SAMPLED])


class Pictures:
    """The input of the report: a few systems on every set."""

    def __init__(self) -> None:
        self.evaluations: list[Evaluation] = []
        self.comparisons: list[Comparison] = []
        self.sweeps: list[Sweep] = []
        self.headrooms: dict[str, Headroom] = {}

    def add(self, lab: Lab, shipped: Evaluation, room: Headroom) -> None:
        known = systems()
        others = [
            evaluate(lab, known[name], name=name, fast=True) for name in ("BM25", "dense", "RRF k=60", "memories")
        ]
        full = evaluate(lab, PROFILES["default"], fast=True)
        default = replace(full, findings=shipped.findings)  # the times are of the shipped path
        self.evaluations += [*others, default]
        self.comparisons.append(compare([others[0], default]))
        plain = BARE.with_changes({"fusion": "convex", "normalize": "zscore"})
        self.sweeps.append(sweep(lab, plain, {"alpha": [step / 10 for step in range(11)]}))
        self.sweeps.append(sweep(lab, known["RRF k=60"], {"rrf_k": [1, 2, 5, 10, 20, 60, 100]}))
        self.headrooms[lab.dataset.identity] = room

    def write(self, path: Path, sets: int) -> None:
        from trivet.evaluate.report import Material, write

        material = Material(
            f"trivet on {sets} public sets",
            self.evaluations,
            comparisons=self.comparisons,
            sweeps=self.sweeps,
            headrooms=self.headrooms,
        )
        print(f"written: {write(material, path)}")


def _mean(values: Mapping[str, float]) -> float:
    return sum(values.values()) / len(values)


def _progress(name: str) -> Any:
    if not sys.stderr.isatty():
        return lambda step, done, total: None

    def told(step: str, done: int, total: int) -> None:
        print(f"\r\033[K{name}: {step} {done}/{total or '?'}", end="", file=sys.stderr, flush=True)

    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a folder of sets in BEIR layout")
    parser.add_argument("--cache", help="where vectors are kept (the user's cache folder otherwise)")
    parser.add_argument("--only", nargs="*", default=(), help="names of sets; all that have judgements otherwise")
    parser.add_argument("--parts", type=Path, help="a folder for each set's results; what is there is taken as it is")
    parser.add_argument("--timed", default=stages.TIMED, help="the set on which the stages' times are taken")
    parser.add_argument("--report", type=Path, help="an HTML page to look at")
    parser.add_argument("--note", default="", help="what a reader of the page should know of this run")
    parser.add_argument("--docs", action="store_true", help="write docs/evidence/results.md from what was measured")
    options = parser.parse_args()
    if not options.data.is_dir():
        raise SystemExit(f"{options.data} is not here: the sets are not shipped (most licences forbid it); give --data")
    folders = [path for path in sorted(options.data.iterdir()) if list(path.glob("qrels*"))]
    measured: dict[str, Any] = {}
    pictures = Pictures() if options.report else None
    for path in folders:
        if options.only and path.name not in options.only:
            continue
        dataset = load(path, without=WITHOUT.get(path.name, ()))
        done = Path(options.parts) / f"{path.name}.json" if options.parts else None
        if done is not None and done.exists() and pictures is None:
            measured[path.name] = json.loads(done.read_text(encoding="utf-8"))
        else:
            measured[path.name] = measure(dataset, options.cache, path.name == options.timed, pictures)
        if done is not None:
            done.parent.mkdir(parents=True, exist_ok=True)
            done.write_text(json.dumps(measured[path.name]), encoding="utf-8")
        one = measured[path.name]
        best = max(one["systems"], key=lambda name: one["systems"][name][MAIN])
        print(
            f"\r{path.name:28} {one['topics']:5} topics  BM25 {one['systems']['BM25'][MAIN]:.4f}  dense "
            f"{one['systems']['dense'][MAIN]:.4f}  default {one['systems']['default'][MAIN]:.4f}  best {best} "
            f"{one['systems'][best][MAIN]:.4f}  {one['seconds']:.0f} s",
            flush=True,
        )
    if pictures is not None:
        pictures.write(options.report, len(measured))
    if options.only and options.parts:  # one of several processes: the whole is put together when all are done
        return
    results = {
        "made": made(),
        "note": options.note,
        "measure": MAIN,
        "profiles": {name: str(profile) for name, profile in systems().items()},
        "stages": {name: str(stage.profile) for name, stage in stages.stages().items()},
        "model": "granite-embedding-30m, int8 (built in)",
        "sets": measured,
    }
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / f"quality-{made()['commit']}.json"
    file.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"written: {file}")
    if options.docs:
        PAGE.write_text(page(results, file.name), encoding="utf-8")
        print(f"written: {PAGE}")


if __name__ == "__main__":
    main()
