"""Measure the cost of embedding one query with the built-in model, and the share of it outside the model.

    python benchmarks/embedding.py --docs        (or: make bench-embedding)

Measured in this process: loading; short, medium and long queries with one and two threads, in int8 and in float32; the
stages of one call; the same query again; eight threads at once, with one query or several in a run of the model. No
data is needed: the queries are cut from texts of the package.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import embedding_page
from speed import machine
from trivet.errors import EmbedderError
from trivet.models.embedders import granite, load_embedder
from trivet.models.embedders.local import LocalModel, PooledSession
from trivet.models.embedders.sentences import SENTENCES
from trivet.models.encoders.byte_pairs import BytePairTokenizer, pack
from trivet.models.encoders.encoder import POOLINGS, Builder, Plan
from trivet.models.encoders.session import open_session

RESULTS = Path(__file__).parent / "results"
ROUNDS = 5  # of all questions of a kind
LOADS = 5  # fresh processes
ASKING = 8  # threads at once
TOGETHER = 800  # questions that they ask
FIRST = """
import json, time
from trivet.models.embedders import load_embedder
wall, cpu = time.perf_counter(), time.process_time()
load_embedder("granite").embed_queries(["where is the otter?"])
print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu]))
"""


def questions() -> dict[str, list[str]]:
    """Return forty different queries of each length."""
    lines = list(SENTENCES)
    around = [lines[at:] + lines[:at] for at in range(len(lines))]
    return {
        "short": [" ".join(line.split()[:4]) for line in lines],
        "medium": lines,
        "long": [" ".join(turned[:6]) for turned in around],
    }


def spread(times: Sequence[float]) -> dict[str, float]:
    return {name: round(float(np.percentile(times, at)) * 1000, 3) for name, at in (("p50_ms", 50), ("p95_ms", 95))}


def timed(ask: Callable[[str], Any], texts: Sequence[str]) -> dict[str, float]:
    """Time every query ``ROUNDS`` times, after one round that does not count."""
    for text in texts:
        ask(text)
    walls = []
    cpu = time.process_time()
    for _ in range(ROUNDS):
        for text in texts:
            started = time.perf_counter()
            ask(text)
            walls.append(time.perf_counter() - started)
    return {**spread(walls), "cpu_ms": round((time.process_time() - cpu) / len(walls) * 1000, 3)}


def first_call() -> dict[str, float]:
    """Time import, hash check, graph, session and first embedding, in new processes."""
    found = [
        json.loads(subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, check=True).stdout)
        for _ in range(LOADS)
    ]
    return {
        "wall_ms": round(median(each[0] for each in found) * 1000),
        "cpu_ms": round(median(each[1] for each in found) * 1000),
    }


def opened(plan: Plan, threads: int = 1, texts: int | str = 1) -> PooledSession:
    """Return the model as the package opens it, with that number of threads and texts in one run."""
    header, tokenizer, weights = granite.read_pack(granite.pack_bytes())
    shape = granite.shape(header)
    build = Builder(shape, weights, plan)
    state = build.embeddings(build.graph.input("input_ids", "int64", texts, "length"))
    for layer in range(shape.layers):
        state = build.layer(state, layer)
    build.graph.output(POOLINGS[shape.pooling](build, state), "sentence_embedding", "float32", texts, shape.hidden)
    session = open_session(build.graph.serialised(), EmbedderError, fuse=False, threads=threads)
    return PooledSession(BytePairTokenizer(pack(tokenizer), int(header["meta"]["max_length"])), session)


def alone() -> dict[str, Any]:
    """Measure one query at a time."""
    found: dict[str, Any] = {}
    for precision, plan in granite.PLANS.items():
        for threads in (1, 2):
            model = opened(plan, threads)
            row = found.setdefault(precision, {})[str(threads)] = {}
            for kind, texts in questions().items():
                row[kind] = timed(model.vector, texts)
    return found


def parts() -> dict[str, Any]:
    """Measure the stages of one call: tokens, the model's run, and the rest (`embed_passages` has no cache)."""
    model = load_embedder("granite")
    assert isinstance(model, LocalModel)
    inside = model._model().session
    found: dict[str, Any] = {}
    for kind, texts in questions().items():
        ids = {text: inside._tokenizer.encode(text).ids for text in texts}
        feeds = {text: {"input_ids": np.array([ids[text]], dtype=np.int64)} for text in texts}
        steps = {
            "tokens": timed(inside._tokenizer.encode, texts),
            "run": timed(lambda text, feeds=feeds: inside._session.run([inside._output], feeds[text]), texts),
            "whole": timed(lambda text: model.embed_passages([text]), texts),
        }
        found[kind] = {"mean_tokens": round(float(np.mean([len(each) for each in ids.values()])), 1)}
        found[kind] |= {step: took["p50_ms"] for step, took in steps.items()}
    return found


def again() -> dict[str, float]:
    """Measure a repeated query, which is not embedded again."""
    model = load_embedder("granite")
    assert model is not None
    return timed(lambda text: model.embed_queries([text]), questions()["medium"])


def agreement() -> dict[str, float]:
    """Compare int8 with float32 of the same weights, over all queries."""
    texts = [text for kind in questions().values() for text in kind]
    rows = [_unit(np.array([model.vector(text) for text in texts])) for model in map(opened, granite.PLANS.values())]
    cosines = (rows[0] * rows[1]).sum(axis=1)
    return {"mean": round(float(cosines.mean()), 4), "least": round(float(cosines.min()), 4)}


def together() -> dict[str, Any]:
    """Measure eight threads at once: one query or several in a run of the model.

    The queries have the same number of tokens, so nothing is padded: the best case for several in one run.
    """
    length = 16
    model = opened(granite.PLANS["int8"])
    ids = [model.session._tokenizer.encode(text).ids[:length] for text in questions()["long"]]
    rows = [np.array([each], dtype=np.int64) for each in ids]
    single = partial(_one, model, rows)
    found: dict[str, Any] = {"tokens": length, "one by one": _rate(ASKING, 1, single)}
    found["one by one, 2 at a time"] = _rate(2, 1, single)  # would it help to let only as many in as there are cores?
    for size, threads, askers in ((4, 1, 2), (8, 2, 1)):
        several = opened(granite.PLANS["int8"], threads, "texts")
        batch = np.array(ids[:size], dtype=np.int64)
        name = f"{size} in a run, {askers} at a time, threads inside: {threads}"
        found[name] = _rate(askers, size, lambda at, several=several, batch=batch: _run(several, batch))
        apart = _unit(np.concatenate([_run(model, row) for row in rows[:size]]))
        found[name]["cosine to one by one"] = round(float((_unit(_run(several, batch)) * apart).sum(axis=1).min()), 4)
    return found


def _one(model: PooledSession, rows: list[Any], at: int) -> Any:
    return _run(model, rows[at % len(rows)])


def _run(model: PooledSession, ids: Any) -> Any:
    return model.session._session.run([model.session._output], {"input_ids": ids})[0]


def _rate(threads: int, size: int, ask: Callable[[int], Any]) -> dict[str, float]:
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(ask, range(40)))
        started, cpu = time.perf_counter(), time.process_time()
        list(pool.map(ask, range(TOGETHER // size)))
        took, spent = time.perf_counter() - started, time.process_time() - cpu
    return {"questions_per_s": round(TOGETHER / took), "cpu_ms": round(spent / TOGETHER * 1000, 3)}


def _unit(rows: Any) -> Any:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


PARTS: dict[str, Callable[[], Any]] = {
    "first": first_call,
    "alone": alone,
    "parts": parts,
    "again": again,
    "agreement": agreement,
    "together": together,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--docs", action="store_true", help="write docs/evidence/embedding.md")
    args = parser.parse_args()
    results: dict[str, Any] = {"machine": machine()}
    for name, part in PARTS.items():
        results[name] = part()
        print(f"{name}: {json.dumps(results[name])}", file=sys.stderr)
    target = RESULTS / f"embedding-{results['machine']['commit'].split('+')[0]}.json"
    target.write_text(json.dumps(results, indent=1) + "\n")
    print(target)
    if args.docs:
        embedding_page.write(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
