"""Measure latency, memory and size against the baseline, in one run on this machine.

    python benchmarks/speed.py --data ../shared/data/docs_snippets

Each part runs in its own process, so that the memory is that part's. Compare timings as ratios within one run.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import snippets
import speed_page

HERE = Path(__file__).parent
K = 20
QUESTIONS = 300
THREADS, SPELLS, SPELL = 8, 10, 0.5  # threads that ask at once; how often, and for how many seconds
LENGTHS = (1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 160, 200)  # words of a question
#: What the default was before it had a graph and a second stage, and what the baseline does: two legs and their fusion.
TWO_LEGS = {"weights": {"graph": 0}, "rerankers": ["dedup"], "understanding": "plain"}


def percentiles(call: Callable[[int], Any], count: int) -> dict[str, float]:
    """Return p50 and p95 in ms over ``count`` queries, after as many others as warm-up."""
    for at in range(count, 2 * count):
        call(at)
    taken = []
    for at in range(count):
        started = time.perf_counter()
        call(at)
        taken.append((time.perf_counter() - started) * 1000)
    return {"p50_ms": round(float(np.percentile(taken, 50)), 3), "p95_ms": round(float(np.percentile(taken, 95)), 3)}


def rss_mb() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


# --- the parts, each run as `speed.py --part NAME` in a process of its own -------------------------------------------


def part_start(data: Path, work: Path) -> dict[str, Any]:
    def best(command: list[str]) -> float:
        taken = []
        for _ in range(7):
            started = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            taken.append((time.perf_counter() - started) * 1000)
        return round(float(np.median(taken)), 1)

    bare = best([sys.executable, "-c", "pass"])
    return {
        "python_ms": bare,
        "import_trivet_ms": round(best([sys.executable, "-c", "import trivet"]) - bare, 1),
        "help_ms": best([str(Path(sys.executable).with_name("trivet")), "--help"]),
    }


def part_words(data: Path, work: Path) -> dict[str, Any]:
    """Measure lexical indexing: until `add` has returned and the first search has finished."""
    import trivet

    items = list(snippets.documents(data))
    started = time.perf_counter()
    with trivet.open(work / "words.db", embedder="none") as engine:
        engine.add(iter(items))
        stored = time.perf_counter()
        engine.search(snippets.questions(data, 1)[0], k=K)
        ended = time.perf_counter()
    return {
        "documents": len(items),
        "index_s": round(ended - started, 2),
        "documents_per_s": round(len(items) / (ended - started)),
        "first_search_ms": round((ended - stored) * 1000, 1),
    }


def part_load(data: Path, work: Path) -> dict[str, Any]:
    import trivet

    rows = snippets.vectors(data)
    started = time.perf_counter()
    with trivet.open(work / "hybrid.db", embedder="vectors:384") as engine:
        engine.add({**item, "vector": row} for item, row in zip(snippets.documents(data), rows, strict=True))
        stats = engine.stats()
    return {
        "load_s": round(time.perf_counter() - started, 2),
        "store_mb": round(stats.bytes_store / 1e6),
        "index_mb": round(stats.bytes_index / 1e6),
    }


def part_open(data: Path, work: Path) -> dict[str, Any]:
    """Measure a cold open until the first result (a new process, the files in the page cache)."""
    import trivet

    question = snippets.questions(data, 1)[0]
    vector = np.ones(384, dtype=np.float32)
    started = time.perf_counter()
    with trivet.open(work / "hybrid.db") as engine:
        engine.search(question, k=K, vector=vector)
        return {"open_and_first_answer_ms": round((time.perf_counter() - started) * 1000, 1)}


def part_hybrid(data: Path, work: Path) -> dict[str, Any]:
    import trivet

    asked = snippets.questions(data, 2 * QUESTIONS)
    vectors = _question_vectors(asked)
    filters = {"all": None, "half": {"site": "mdn"}, "one_percent": _one_percent(data)}
    found: dict[str, Any] = {}
    with trivet.open(work / "hybrid.db") as engine:
        engine.prepare()  # every index in place: a graph that is still being made would be left out, and said to be
        assert not engine.search(asked[0], K, vector=vectors[0]).degraded
        for name, where in filters.items():
            found[name] = percentiles(lambda at, w=where: engine.search(asked[at], K, w, vector=vectors[at]), QUESTIONS)
            found[f"two_legs_{name}"] = percentiles(
                lambda at, w=where: engine.search(asked[at], K, w, vector=vectors[at], **TWO_LEGS), QUESTIONS
            )
        for name, weights in (("words_only", {"dense": 0}), ("meaning_only", {"lexical": 0})):
            found[name] = percentiles(
                lambda at, w=weights: engine.search(asked[at], K, vector=vectors[at], weights=w), QUESTIONS
            )
        stages: dict[str, list[float]] = {}
        for at in range(QUESTIONS):
            for stage in engine.search(asked[at], K, vector=vectors[at]).trace:
                stages.setdefault(stage.name, []).append(stage.ms)
        found["stages_p50_ms"] = {name: round(float(np.median(taken)), 3) for name, taken in stages.items()}
        found["rss_mb"] = rss_mb()
    return found


def part_threads(data: Path, work: Path) -> dict[str, Any]:
    """Measure the searches a second of one thread and of eight that ask at once, in turns of half a second."""
    import trivet

    asked = snippets.questions(data, 2 * QUESTIONS)
    vectors = _question_vectors(asked)
    found: dict[str, Any] = {}
    with trivet.open(work / "hybrid.db") as engine:
        engine.prepare()

        def ask(ends: float, first: int, changes: Mapping[str, Any]) -> int:
            done = 0
            while time.perf_counter() < ends:
                at = (first + done) % len(asked)
                engine.search(asked[at], K, vector=vectors[at], **changes)
                done += 1
            return done

        for name, changes in (("two_legs", TWO_LEGS), ("default", {})):
            ask(time.perf_counter() + SPELL, 0, changes)  # a warm-up
            rates: dict[int, list[float]] = {1: [], THREADS: []}
            for spell, threads in itertools.product(range(SPELLS), rates):
                started = time.perf_counter()
                with ThreadPoolExecutor(threads) as pool:
                    firsts = [37 * number + 101 * spell for number in range(threads)]
                    done = sum(pool.map(partial(ask, started + SPELL, changes=changes), firsts))
                rates[threads].append(done / (time.perf_counter() - started))
            found[name] = {str(threads): round(float(np.median(each)), 1) for threads, each in rates.items()}
    return found


def part_lengths(data: Path, work: Path) -> dict[str, Any]:
    """Measure questions of 1 to 200 words in a new process, the first ones included."""
    import trivet

    words = " ".join(snippets.questions(data, QUESTIONS)).split()
    chance = random.Random(snippets.SEED)
    asked = [" ".join(chance.sample(words, chance.choice(LENGTHS))) for _ in range(2 * QUESTIONS)]
    vectors = _question_vectors(asked)
    found: dict[str, Any] = {}
    with trivet.open(work / "hybrid.db") as engine:
        for name, changes in (("default", {}), ("two_legs", TWO_LEGS)):
            taken = []
            for question, vector in zip(asked, vectors, strict=True):
                started = time.perf_counter()
                engine.search(question, K, vector=vector, **changes)
                taken.append((time.perf_counter() - started) * 1000)
            found[name] = {f"p{at}_ms": round(float(np.percentile(taken, at)), 3) for at in (50, 99)}
            found[name]["first_ms"] = round(taken[0], 3)
    return found


def part_embedded(data: Path, work: Path) -> dict[str, Any]:
    """Measure hybrid queries that are embedded: none is in the model's cache."""
    import trivet
    from trivet.models.embedders import load_embedder

    embedder = load_embedder("builtin")
    assert embedder is not None
    asked = snippets.questions(data, QUESTIONS * 2)
    embedder.embed_queries(["warm"])
    with trivet.open(work / "hybrid.db") as engine:
        engine.prepare()
        fresh = iter(asked)

        def ask(_: int) -> None:
            question = next(fresh)
            engine.search(question, K, vector=embedder.embed_queries([question])[0])

        return {**percentiles(ask, QUESTIONS), "rss_mb": rss_mb()}


def part_recall(data: Path, work: Path) -> dict[str, Any]:
    """Return the share of the exact top 50 that the quantised scan with rescoring returns."""
    import trivet

    rows = snippets.vectors(data)
    ids = [item["id"] for item in snippets.documents(data)]
    vectors = _question_vectors(snippets.questions(data, 100))
    shares = []
    with trivet.open(work / "hybrid.db") as engine:
        for vector in vectors:
            exact = {ids[at] for at in np.argsort(-(rows @ vector))[:50]}
            hits = engine.search(
                "", 50, vector=vector, weights={"lexical": 0, "graph": 0}, rerankers=[], dense_depth=50
            )
            shares.append(len(exact & {hit.id for hit in hits}) / 50)
    return {"dense_recall_at_50": round(float(np.mean(shares)), 4)}


def part_baseline(data: Path, work: Path) -> dict[str, Any]:
    from baseline import Baseline

    rows = snippets.vectors(data)
    asked = snippets.questions(data, 2 * QUESTIONS)
    vectors = _question_vectors(asked)
    base = Baseline(work / "baseline.db", rows)
    started = time.perf_counter()
    base.load(snippets.documents(data))
    found: dict[str, Any] = {"load_s": round(time.perf_counter() - started, 2)}
    pages = _one_percent(data)["page"]
    marks = ", ".join("?" * len(pages))
    filters: dict[str, Any] = {
        "all": None,
        "half": ("json_extract(s.meta, '$.site') = ?", ["mdn"]),
        "one_percent": (f"json_extract(s.meta, '$.page') IN ({marks})", pages),
    }
    for name, where in filters.items():
        few = QUESTIONS if where is None else QUESTIONS // 5  # filtered it takes a tenth of a second each
        found[name] = percentiles(lambda at, w=where: base.search(asked[at], vectors[at], K, w), few)
    found["rss_mb"] = rss_mb()
    return found


def _question_vectors(asked: list[str]) -> Any:
    from trivet.models.embedders import load_embedder

    embedder = load_embedder("builtin")
    assert embedder is not None
    return embedder.embed_queries(asked)


def _one_percent(data: Path) -> dict[str, list[str]]:
    """Return a filter that allows about one document in a hundred."""
    pages: dict[str, int] = {}
    for item in snippets.documents(data):
        pages[item["meta"]["page"]] = pages.get(item["meta"]["page"], 0) + 1
    chosen: list[str] = []
    wanted, total = sum(pages.values()) // 100, 0
    for at, (page, count) in enumerate(pages.items()):
        if at % 97 == 0 and total < wanted:
            chosen.append(page)
            total += count
    return {"page": chosen}


PARTS = {
    "start": part_start,
    "words": part_words,
    "load": part_load,
    "open": part_open,
    "hybrid": part_hybrid,
    "threads": part_threads,
    "lengths": part_lengths,
    "embedded": part_embedded,
    "recall": part_recall,
    "baseline": part_baseline,
}


def machine() -> dict[str, Any]:
    names = (line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name"))
    git = partial(subprocess.run, capture_output=True, text=True, cwd=HERE.parent)
    commit = git(["git", "rev-parse", "--short", "HEAD"]).stdout.strip()
    dirty = bool(git(["git", "status", "--porcelain", "src", "pyproject.toml"]).stdout)
    return {
        "commit": commit + ("+changes" if dirty else ""),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": next(names, "?: ?").split(":")[1].strip(),
        "cores": os.cpu_count(),
        "load_before": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
    }


def run(data: Path, work: Path) -> dict[str, Any]:
    from rich.console import Console

    console = Console(stderr=True)
    results: dict[str, Any] = {"machine": machine(), "dataset": data.name}
    for name in PARTS:
        with console.status(f"{name} …"):
            command = [sys.executable, str(HERE / "speed.py"), "--part", name, "--data", str(data), "--work", str(work)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        results[name] = json.loads(done.stdout.splitlines()[-1])
        console.print(f"{name}: {json.dumps(results[name])}", highlight=False)
    return results


def report(results: dict[str, Any]) -> bool:
    from rich.console import Console
    from rich.table import Table

    table = Table(
        title=f"{results['dataset']}, {results['words']['documents']:,} documents, {results['machine']['cpu']}"
    )
    for column, justify in (("what", "left"), ("measured", "right"), ("target", "right"), ("", "left")):
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    met = True
    for what, read, compare, limit in speed_page.TARGETS:
        value = read(results)
        good = speed_page.met(value, compare, limit)
        met &= good
        table.add_row(what, f"{value:,.1f}", f"{compare} {limit:g}", "[green]met[/]" if good else "[red]missed[/]")
    Console().print(table)
    return met


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a folder with corpus.jsonl.gz, such as docs_snippets")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="where the JSON goes")
    parser.add_argument("--docs", action="store_true", help="write docs/evidence/speed.md")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if not (args.data / "corpus.jsonl.gz").exists():
        print(
            f"skipped: there is no {args.data / 'corpus.jsonl.gz'}; give the folder of the data set with --data",
            file=sys.stderr,
        )
        return 0
    if args.part:
        print(json.dumps(PARTS[args.part](args.data, args.work)))
        return 0
    snippets.vectors(args.data)
    work = Path(tempfile.mkdtemp(prefix="trivet-bench-"))
    try:
        results = run(args.data, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    args.out.mkdir(parents=True, exist_ok=True)
    target = args.out / f"speed-{results['machine']['commit']}-{results['dataset']}.json"
    target.write_text(json.dumps(results, indent=2) + "\n")
    if args.docs:
        speed_page.write(target)
    met = report(results)
    print(f"written to {target.relative_to(Path.cwd()) if target.is_relative_to(Path.cwd()) else target}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
