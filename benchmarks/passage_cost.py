"""Measure what a passage costs on PostgreSQL or a Citus cluster, and write the capacity table.

    python benchmarks/passage_cost.py postgresql://… --data ../shared/data/docs_snippets [--sizes 10000 50000] [--docs]
    python benchmarks/passage_cost.py --docs  # the table again, from the newest result

Loads the first snippets into a schema that must not exist, one collection for each size, and sums the bytes of its
tables and indexes over all nodes; the difference of the two sizes is the cost of a passage, without what is there from
the beginning. The address is that of a superuser, who may look at every node. Bytes do not depend on the contents of
a vector, so the vectors are those of ``hashing:384``. Writes ``results/passages-COMMIT.json``; ``--docs`` writes the
table of docs/how-to/operate-postgresql.md.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import scaling
import snippets
import speed
import stores_page
import trivet

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs/how-to/operate-postgresql.md"
MARKS = ("<!-- capacity: made by benchmarks/passage_cost.py -->", "<!-- /capacity -->")
SCHEMA = "passage_cost"
TARGETS = (1_000_000, 10_000_000, 30_000_000, 100_000_000)
ASKED, WARM = 60, 10
MEMORY = (64e9, 128e9)  # of a worker
_BYTES = """
SELECT json_agg(json_build_array(relname, relkind::text, pg_relation_size(c.oid) +
    CASE WHEN relkind = 'r' THEN pg_table_size(c.oid) - pg_relation_size(c.oid) ELSE 0 END))
FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = '{schema}' AND relkind IN ('r', 'i')
"""


def measure(address: str, data: Path, size: int) -> dict[str, Any]:
    """Load this many snippets, and return the time, the bytes and the times of the legs."""
    found: dict[str, Any] = {"documents": size}
    schema = f"{SCHEMA}_{size}"
    with trivet.open(f"{address}?schema={schema}", embedder="hashing:384", passage_size=100_000) as memory:
        begun = time.perf_counter()
        memory.add(islice(snippets.documents(data), size))
        memory.wait()
        memory._collection.maintenance.update()
        found["load_s"] = round(time.perf_counter() - begun, 1)  # with the indexes
        database = memory._store.database
        found["citus"] = database.server.citus
        found["passages"] = memory.stats().passages
        database.outside(lambda connection: connection.execute("VACUUM ANALYZE"))
        found["bytes"] = kinds(relations(database, schema))
        found["stages_p50_ms"] = legs(memory, snippets.questions(data, ASKED + WARM))
    return found


def relations(database: Any, schema: str) -> list[tuple[str, str, int]]:
    """Return the name, the kind and the bytes of every table and index of a schema, on all nodes."""
    sql = _BYTES.format(schema=schema)
    if database.server.citus:
        rows = database.all("SELECT result FROM run_command_on_all_nodes(%s)", (sql,))
    else:
        rows = database.all(f"SELECT ({sql})::text")
    return [(name, kind, size) for (text,) in rows for name, kind, size in json.loads(text or "null") or []]


def kinds(found: list[tuple[str, str, int]]) -> dict[str, int]:
    """Add up the bytes by what they are for; the name of a shard ends in its number."""
    sums: dict[str, int] = {}
    for name, kind, size in found:
        table = re.sub(r"_\d{6,}$", "", name)
        if kind == "i":
            table = "HNSW index" if name.startswith("meaning_") else "other indexes"
        sums[table] = sums.get(table, 0) + size
    return sums


def legs(memory: Any, questions: list[str]) -> dict[str, float]:
    """Return the median time of each leg, in the plainest profile."""
    times: dict[str, list[float]] = {}
    for at, question in enumerate(questions):
        found = memory.search(question, graph_weight=0.0, rerankers=[])
        for stage in found.trace if at >= WARM else ():
            times.setdefault(stage.name, []).append(stage.ms)
    return {name: round(statistics.median(spent), 1) for name, spent in times.items()}


def costs(small: dict[str, Any], large: dict[str, Any]) -> dict[str, float]:
    """Return the bytes of one more passage, by what they are for."""
    more = large["passages"] - small["passages"]
    return {name: (size - small["bytes"].get(name, 0)) / more for name, size in large["bytes"].items()}


def table(result: dict[str, Any], loaded: stores_page.Row) -> str:
    """Return the capacity table; ``loaded`` is the row of ``stores.py`` that has the time of a load."""
    small, large = result["sizes"]
    cost = costs(small, large)
    disk, index, words = sum(cost.values()), cost["HNSW index"], cost["postings"]
    each_ms = (stores_page.load_s(loaded) or 0.0) / loaded["documents"] * 1000
    half = index - 2 * scaling.DIM  # a number of halfvec has two bytes less
    lines = [
        "| bytes of one more passage | " + " | ".join(_largest(cost)) + " | all |",
        "|---|" + "---|" * (len(_largest(cost)) + 1),
        "| measured | " + " | ".join(f"{cost[name]:,.0f}" for name in _largest(cost)) + f" | **{disk:,.0f}** |",
        "",
        "| passages | disk of one copy | with a standby and a backup | resident, `index=vector` | resident, "
        "`index=halfvec` | workers of 64 GB | workers of 128 GB | load, one writer |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for target in TARGETS:
        resident = target * (words + half)
        cells = [
            f"{target / 1e6:,.0f} M",
            f"{target * disk / 1e9:,.0f} GB",
            f"{target * disk * 3 / 1e9:,.0f} GB",
            f"{target * (words + index) / 1e9:,.0f} GB",
            f"{resident / 1e9:,.0f} GB",
            *(str(math.ceil(resident / (memory * scaling.USABLE))) for memory in MEMORY),
            f"{scaling.hours(target, each_ms, 1):,.1f} h",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    machine, where = result["machine"], "Citus" if large["citus"] else "one server"
    legs = ("lexical", "dense")
    stages = (f"{leg} {small['stages_p50_ms'][leg]} → {large['stages_p50_ms'][leg]} ms" for leg in legs)
    busy = large["load_s"] / large["passages"] * 1000
    lines += [
        "",
        f"Bytes: from {small['passages']:,} and {large['passages']:,} passages on {where}, commit {machine['commit']}. "
        f"Load: {each_ms:.2f} ms a passage, as `benchmarks/stores.py` measured with {loaded['documents']:,} at load "
        f"average {loaded['load']['load_average']:.0f}; {busy:.1f} ms in this run, at load average "
        f"{machine['load_before']:.0f}, both on {machine['cores']} cores. "
        f"Medians of the legs in this run: {'; '.join(stages)}.",
    ]
    return "\n".join(lines)


def loaded() -> stores_page.Row:
    """Return the largest load of one PostgreSQL server in the newest result of ``stores.py``."""
    return [row for row in stores_page.of(stores_page.rows(), "postgresql") if "load" in row][-1]


def _newest(kind: str) -> Path:
    found = ((json.loads(path.read_text())["machine"]["when"], path) for path in HERE.glob(f"results/{kind}-*.json"))
    return max(found)[1]


def _largest(cost: dict[str, float]) -> list[str]:
    return [name for name in sorted(cost, key=lambda name: -cost[name]) if cost[name] >= 10]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address", nargs="?")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sizes", type=int, nargs=2, default=(10_000, 50_000))
    parser.add_argument("--docs", action="store_true")
    args = parser.parse_args()
    if args.address:
        result: dict[str, Any] = {"machine": speed.machine(), "sizes": []}
        for size in args.sizes:
            result["sizes"].append(measure(args.address, args.data, size))
            print(json.dumps(result["sizes"][-1]), flush=True)
        target = HERE / "results" / f"passages-{result['machine']['commit']}.json"
        target.write_text(json.dumps(result, indent=1) + "\n")
    text = table(json.loads(_newest("passages").read_text()), loaded())
    print(text)
    if args.docs:
        before, rest = DOCS.read_text().split(MARKS[0])
        DOCS.write_text(f"{before}{MARKS[0]}\n{text}\n{MARKS[1]}{rest.split(MARKS[1])[1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
