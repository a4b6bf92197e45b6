"""Measures the reader over the pools of ``pools.py``: nDCG@10 of the mixed ranking against not reading.

python training/evaluate.py mix      from scores-teacher.npz and scores-student.npz of the GPU machine
python training/evaluate.py product  the shipped int8 files through the product's scorer, on the CPU
python training/evaluate.py speed    CPU milliseconds per pair, student and teacher
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from trivet.evaluate import score
from trivet.evaluate.run import Answer, Run
from trivet.models.scorers.folder import FolderScorer, load

WORK = Path(__file__).parent / "work"
RESULTS = Path(__file__).parent / "results"
WEIGHTS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
MEASURES = ("nDCG@10", "Success@5", "Success@10")
MAIN = MEASURES[0]
#: Splits that may be used for choosing the weight.
TRAINING = ("cosqa-dev", "scifact-train")
Floats = npt.NDArray[np.float64]
Row = dict[str, Any]


def pool(name: str) -> list[Row]:
    """Return the topics of a pool with their hits."""
    with gzip.open(WORK / "pools" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def standardised(values: Floats) -> Floats:
    """Return z-scores over the pool of one topic; zeros where all values are the same."""
    spread = values.std()
    return (values - values.mean()) / spread if spread > 0 else np.zeros_like(values)


def mixed(rows: list[Row], scores: Floats | None, weight: float) -> dict[str, dict[str, float]]:
    """Return measure → topic → value of the ranking by ``(1 - weight) * ours + weight * reader``."""
    answers, at = {}, 0
    for row in rows:
        hits = row["hits"]
        value = standardised(np.array([hit["score"] for hit in hits]))
        if scores is not None:
            value = (1 - weight) * value + weight * standardised(np.asarray(scores[at : at + len(hits)], np.float64))
        at += len(hits)
        order = np.argsort(-value, kind="stable")
        ids = tuple(hits[place]["id"] for place in order)
        answers[row["topic"]] = Answer(row["topic"], ids, tuple(float(value[place]) for place in order))
    return score(Run("mixed", answers), {row["topic"]: row["qrels"] for row in rows}, MEASURES)


def difference(first: dict[str, float], second: dict[str, float]) -> tuple[float, float]:
    """Return the mean of second - first over the topics, and its standard error."""
    found = np.array([second[topic] - first[topic] for topic in first])
    return float(found.mean()), float(found.std(ddof=1) / math.sqrt(len(found)))


def mean(values: dict[str, float]) -> float:
    """Return the mean over the topics."""
    return sum(values.values()) / len(values)


def mix(scores: Path) -> None:
    """Write ``results/mix.json``: each set, model, form and weight; the weight chosen with the set left out."""
    found: dict[str, Any] = {}
    per_topic: dict[tuple[str, str, float], dict[str, float]] = {}
    models = {name: np.load(scores / f"scores-{name}.npz") for name in ("teacher", "student")}
    plain: dict[str, dict[str, float]] = {}
    for key in models["student"].files:
        name, _, _form = key.partition("#")
        rows = pool(name)
        base = mixed(rows, None, 0.0)
        plain[key] = base[MAIN]
        entry: dict[str, Any] = {
            "topics": len(rows),
            "default": {part: round(mean(base[part]), 4) for part in MEASURES},
        }
        for model, stored in models.items():
            for weight in WEIGHTS:
                values = mixed(rows, stored[key], weight)
                per_topic[key, model, weight] = values[MAIN]
                gain, error = difference(base[MAIN], values[MAIN])
                entry[f"{model} w={weight:g}"] = {
                    **{part: round(mean(values[part]), 4) for part in MEASURES},
                    "gain": round(gain, 4),
                    "error": round(error, 4),
                }
        found[key] = entry
    best_form = [key for key in found if key.endswith("#context") or key.replace("#text", "#context") not in found]
    chosen = {}
    for key in best_form:
        family = key.partition("-")[0]
        others = [
            other for other in best_form if other.partition("-")[0] != family or other.partition("#")[0] in TRAINING
        ]
        others = [other for other in others if other != key]
        line: dict[str, Any] = {"topics": found[key]["topics"], "default": found[key]["default"][MAIN]}
        for model in models:
            gains = {w: float(np.mean([found[other][f"{model} w={w:g}"]["gain"] for other in others])) for w in WEIGHTS}
            weight = max(gains, key=lambda w: gains[w])
            values = per_topic[key, model, weight]
            gain, error = difference(plain[key], values)
            line[model] = {"w": weight, MAIN: round(mean(values), 4), "gain": round(gain, 4), "error": round(error, 4)}
        chosen[key] = line
    tests = [key for key in chosen if key.partition("#")[0] not in TRAINING]
    total = {model: round(float(np.mean([chosen[key][model]["gain"] for key in tests])), 4) for model in models}
    by_weight = {
        f"{model} w={w:g}": round(float(np.mean([found[key][f"{model} w={w:g}"]["gain"] for key in tests])), 4)
        for model in models
        for w in WEIGHTS
    }
    RESULTS.mkdir(exist_ok=True)
    summary = {"left_out": chosen, "mean_gain": total, "mean_gain_by_weight": by_weight, "sets": found}
    (RESULTS / "mix.json").write_text(json.dumps(summary, indent=1) + "\n")
    for key, line in chosen.items():
        print(f"{key:36} {line['topics']:5} {line['default']:.3f}", *(f"{m} {line[m]}" for m in models))
    print(total, by_weight)


def product(names: list[str], topics: int, folder: Path) -> None:
    """Write ``results/product-FOLDER.json``: ``folder:PATH?int8`` on the CPU, first ``topics`` of each set."""
    scorer = load(f"{folder}?int8")
    file = RESULTS / f"product-{folder.name}.json"
    found = json.loads(file.read_text()) if file.exists() else {}
    stored = WORK / "scores" / f"scores-{folder.name}.npz"
    gpu = np.load(stored) if stored.exists() else {}
    for key in names:
        name, _, form = key.partition("#")
        rows = pool(name)
        count = sum(len(row["hits"]) for row in rows[:topics])
        rows = rows[:topics]
        begun, spent = time.perf_counter(), time.process_time()
        given = np.array([s for row in rows for s in scorer.scores(row["query"], [hit[form] for hit in row["hits"]])])
        took = time.process_time() - spent
        base = mixed(rows, None, 0.0)[MAIN]
        entry: dict[str, Any] = {"topics": len(rows), "pairs": count, "cpu_ms_per_pair": round(1000 * took / count, 2)}
        entry["default"] = round(mean(base), 4)
        scored = {"int8": given}
        if key in gpu:
            scored["gpu"] = gpu[key][:count]
            entry["difference_to_gpu"] = round(float(np.abs(given - scored["gpu"]).mean()), 4)
        for weight in (0.5, 0.6, 0.7, 0.8):
            for label, scores in scored.items():
                values = mixed(rows, scores, weight)[MAIN]
                gain, error = difference(base, values)
                entry[f"{label} w={weight:g}"] = {
                    MAIN: round(mean(values), 4),
                    "gain": round(gain, 4),
                    "error": round(error, 4),
                }
        found[key] = entry
        file.write_text(json.dumps(found, indent=1) + "\n")
        print(key, f"{time.perf_counter() - begun:.0f} s", json.dumps(entry), flush=True)


def speed() -> None:
    """Write ``results/speed.json``: CPU milliseconds per pair, one thread, the median of several pairs."""
    models: dict[str, FolderScorer] = {
        "student, our graph, int8": load(f"{WORK / 'student'}?int8"),
        "teacher, our graph, int8": load(f"{WORK / 'teacher'}?int8"),
        "teacher, the ONNX file as found": load(str(WORK / "teacher-onnx")),
    }
    found: dict[str, Any] = {"machine": os.uname().machine, "load": os.getloadavg()[0]}
    for label, model in models.items():
        model.scores("warm", ["up"])
        for length in (48, 80, 128, 256):
            passage = " ".join(["word"] * (length - 8))
            times = []
            for _ in range(15):
                begun = time.process_time()
                model.scores("one two three four five", [passage])
                times.append(1000 * (time.process_time() - begun))
            found.setdefault(label, {})[str(length)] = round(float(np.median(times)), 2)
        print(label, found[label], flush=True)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "speed.json").write_text(json.dumps(found, indent=1) + "\n")


def main() -> None:
    """Run one of the measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("mix", "product", "speed"))
    parser.add_argument("names", nargs="*", help="of product: SET-SPLIT#text or #context")
    parser.add_argument("--topics", type=int, default=100_000)
    parser.add_argument("--folder", default="student", help="of product: student or teacher")
    options = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    if options.step == "mix":
        mix(WORK / "scores")
    elif options.step == "product":
        product(options.names, options.topics, WORK / options.folder)
    else:
        speed()


if __name__ == "__main__":
    main()
