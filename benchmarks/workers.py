"""Measure a collection in one piece and distributed by document, over two and over four workers of a Citus cluster.

    python benchmarks/workers.py --data ../shared/data [--corpus generated-200k] [--shards 4 8] [--folder NODES]

Starts a cluster of ``tools/cluster.py`` with two workers and loads the corpus into each layout: one PostgreSQL without
Citus (another database of the coordinator's server), one piece on a worker, and once for each number of shards. All
layouts are asked in turn, in blocks, with and without a filter. Then two workers are added, the shards are rebalanced,
and all of it is measured again. Reports p50 and p95, statements of a search, recall@50, and the CPU of each node with
that of processes that have ended. What a cluster in ``--folder`` holds is not loaded again. Writes
``results/workers-COMMIT.json``; the table of docs/evidence/scale.md is written by ``make scale``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
sys.path.insert(0, str(Path(__file__).parent))
import cluster as clusters
import trivet
from corpus import FILTERS, GENERATED, Corpus, corpus
from servers import listening
from speed import machine
from stores import PATIENT, PROFILES, SETTINGS, load, recall, server_cpu

RESULTS = Path(__file__).parent / "results"
BLOCK, BLOCKS = 40, 3  # queries that are asked of a layout before the next one is, and how often it has its turn
WARM, COUNTED = 10, 10  # queries before a block; queries whose statements are counted
LEGS = ("vectors", "words", "two legs")
PLAIN = "one piece, PostgreSQL"


@dataclass(slots=True)
class Asked:
    """What a layout took for the queries of one profile and filter so far."""

    spent: list[float] = field(default_factory=list)  # ms
    client: float = 0.0  # s of CPU
    nodes: dict[int, float] = field(default_factory=dict)  # the same, by the number of the node's group

    def row(self) -> dict[str, Any]:
        """Return the figures of one search."""
        self.spent.sort()
        count = len(self.spent)
        return {
            "p50_ms": round(statistics.median(self.spent), 1),
            "p95_ms": round(self.spent[int(0.95 * count)], 1),
            "client_cpu_ms": round(self.client / count * 1000, 1),
            "node_cpu_ms": {str(node): round(seconds / count * 1000, 1) for node, seconds in self.nodes.items()},
            "load_average": round(os.getloadavg()[0], 1),
        }


def addresses(url: str, shards: list[int]) -> dict[str, str]:
    """Return the address of each layout on a cluster, by its name."""
    plain = f"{url.rpartition('/')[0]}/plain"
    spread = {f"{count} shards": f"{url}?distribute=documents&schema=dist{count}&shards={count}" for count in shards}
    return {PLAIN: plain, "one piece, Citus": f"{url}?schema=piece", **spread}


def measure(layouts: dict[str, Any], made: Corpus) -> list[dict[str, Any]]:
    """Ask each layout in turn, and return a row for each layout, profile and filter."""
    found = []
    for profile in LEGS:
        for name, where in FILTERS.items():
            for layout, asked in _asked(layouts, made, where, PROFILES[profile]).items():
                memory = layouts[layout]
                row = {"layout": layout, "profile": profile, "filter": name, **asked.row()}
                row["statements"] = _statements(memory, made, where, PROFILES[profile])
                if profile == "vectors":
                    row["recall"] = recall(memory, made, 100, name, PROFILES[profile])
                print(f"  {row}", flush=True)
                found.append(row)
    return found


def _asked(layouts: dict[str, Any], made: Corpus, where: dict[str, str], options: dict[str, Any]) -> dict[str, Asked]:
    found = {layout: Asked() for layout in layouts}
    for block in range(BLOCKS):
        for layout, memory in layouts.items():
            for at in range(-WARM, 0):
                _search(memory, made, at, where, options)
            asked, client, server = found[layout], time.process_time(), server_cpu(memory)
            for at in range(block * BLOCK, (block + 1) * BLOCK):
                begun = time.perf_counter()
                _search(memory, made, at, where, options)
                asked.spent.append((time.perf_counter() - begun) * 1000)
            asked.client += time.process_time() - client
            for node, seconds in server_cpu(memory).items():
                asked.nodes[node] = asked.nodes.get(node, 0.0) + seconds - server[node]
    return found


def _search(memory: Any, made: Corpus, at: int, where: dict[str, str], options: dict[str, Any]) -> None:
    text, vector = made.questions[at]["text"], made.asked[at]
    found = memory.search(text, vector=vector, where=where or None, **options, **PATIENT)
    assert not found.degraded, found.degraded


def _statements(memory: Any, made: Corpus, where: dict[str, str], options: dict[str, Any]) -> float:
    """Return how many statements a search sends, those that begin and end a transaction too."""
    with listening() as heard:
        for at in range(COUNTED):
            _search(memory, made, at, where, options)
    return round(len(heard) / COUNTED, 1)


def placed(memory: Any) -> dict[str, int]:
    """Return how many shards with documents of a distributed collection each worker has."""
    rows = memory._store.database.all(
        "SELECT s.nodeport, count(DISTINCT s.shardid) FROM citus_shards s JOIN distributed_parts p ON "
        "s.shardid = get_shard_id_for_distribution_column('distributed_passages', p.part) GROUP BY 1 ORDER BY 1"
    )
    return {f"worker {at}": int(count) for at, (_, count) in enumerate(rows, start=1)}


# --- the cluster ------------------------------------------------------------------------------------------------------


@contextmanager
def served(folder: Path | None) -> Iterator[clusters.Cluster]:
    """Yield a cluster with two workers: a new one, or that in a folder."""
    programs, user = clusters.programs(), clusters.plain_user("postgres")
    if folder is not None:
        yield clusters.Cluster.open(folder, programs, user)
        return
    with tempfile.TemporaryDirectory(prefix="trivet-workers-") as own:
        Path(own).chmod(0o755)  # the servers run as another user
        made = clusters.Cluster(Path(own) / "nodes", programs, user).make(2, _settings())
        made.sql(made.coordinator, "CREATE DATABASE plain")
        try:
            yield made
        finally:
            clusters.Cluster.open(made.folder, programs, user).delete()  # with the workers that were added


def _settings() -> dict[str, str]:
    return {**clusters.SETTINGS, **clusters.UNSAFE, **SETTINGS, "shared_buffers": "'1GB'"}


def grown(found: clusters.Cluster) -> clusters.Cluster:
    """Add two workers and move shards to them."""
    for _ in range(2):
        found = found.add(f"worker{len(found.nodes)}", _settings())
    found.sql(found.coordinator, "SELECT citus_rebalance_start(shard_transfer_mode => 'block_writes')")
    found.sql(found.coordinator, "SELECT citus_rebalance_wait()")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder with docs_snippets, to make the corpus")
    parser.add_argument("--corpus", default="generated-200k", choices=GENERATED)
    parser.add_argument("--shards", type=int, nargs="+", default=[4, 8], help="of the layouts by document")
    parser.add_argument("--folder", type=Path, help="of a running cluster with two workers")
    args = parser.parse_args()
    made, this = corpus(args.corpus, args.data), machine()
    rows: dict[str, Any] = {}
    with served(args.folder) as cluster, ExitStack() as opened:
        layouts = {
            layout: opened.enter_context(trivet.open(address, embedder=f"vectors:{made.vectors.shape[1]}"))
            for layout, address in addresses(cluster.coordinator.url, args.shards).items()
        }
        for layout, memory in layouts.items():
            if not memory.stats().documents:
                print(f"{layout}: loading {len(made):,} documents", flush=True)
                load(memory, made)
        server = layouts[f"{args.shards[0]} shards"]._store.database
        versions = server.all(
            "SELECT current_setting('server_version'), extversion FROM pg_extension WHERE extname = 'citus'"
        )
        for workers in (2, 4):
            if workers > 2:
                cluster = grown(cluster)
            where = {layout: placed(memory) for layout, memory in layouts.items() if "shards" in layout}
            print(f"{workers} workers: {where}", flush=True)
            rows[str(workers)] = {"placed": where, "searches": measure(layouts, made)}
    result = {"machine": this, "corpus": args.corpus, "documents": len(made), "versions": versions[0], "workers": rows}
    target = RESULTS / f"workers-{str(this['commit']).partition('+')[0]}.json"
    target.write_text(json.dumps(result, indent=1) + "\n")
    print(f"written: {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
