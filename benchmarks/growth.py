"""Write docs/evidence/scale.md: how latency, memory and build time grow, and a plan for 100 million records.

    python benchmarks/growth.py --data ../shared/data --docs        (or: make scale)

Nothing is timed here: times are read from the newest peers-*.json (`make bench-peers`, with 1M), stores-*.json,
workers-*.json and embedding-*.json. Measured are the bytes of each structure of a store, on the shared corpus; without
the data the newest structures-*.json is used. Writes the parts between the marks of docs/evidence/scale.md, and its
charts.
"""

from __future__ import annotations

import argparse
import json
import re
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import scaling
import stores_page
import workers_page
from corpus import SIZES, Corpus, corpus, whole
from growth_plots import drawn
from peers.targets import DEFAULT, TWO_LEGS, number
from speed import machine
from trivet.text.analysis import Analyzer

HERE = Path(__file__).parent
RESULTS, PAGE, IMAGES = HERE / "results", HERE.parent / "docs/evidence/scale.md", HERE.parent / "docs/images"
KINDS = ("peers", "stores", "structures", "embedding", "workers")
TARGETS = (1e6, 1e7, 1e8, 1e9)
#: (what is told, where it is in a row of the peers' file)
MEASURES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("hybrid p50, ms", ("ask", "none", "p50_ms")),
    ("hybrid p95, ms", ("ask", "none", "p95_ms")),
    ("CPU a query, ms", ("ask", "none", "cpu_ms")),
    ("p50 under a 1 % filter, ms", ("ask", "one_percent", "p50_ms")),
    ("p50 under a 50 % filter, ms", ("ask", "half", "p50_ms")),
    ("meaning alone p50, ms", ("ask", "none", "dense", "p50_ms")),
    ("write to found p50, ms", ("write", "p50_ms")),
    ("cold open to answer, ms", ("cold", "open_to_answer_ms")),
    ("build, s", ("build", "s")),
    ("memory while asked, MB", ("ask", "memory_mb", "peak")),
    ("memory peak of the build, MB", ("build", "memory_mb", "peak")),
    ("disk, MB", ("build", "disk_mb")),
)
#: (what is told, how it is assumed to grow, its value in a row of stores.py): the plan for PostgreSQL and Citus.
ASSUMPTIONS: tuple[tuple[str, str, Callable[[dict[str, Any]], float | None]], ...] = (
    ("disk, GB", "n", lambda row: stores_page.disk(row) / 1e9),
    ("load of the rows, s", "n", lambda row: row["load"]["rows_s"] if "load" in row else None),
    ("word index, s", "n", lambda row: row["load"]["words_s"] if "load" in row else None),
    ("HNSW index, s", "n log n", lambda row: row["load"]["vectors_s"] if "load" in row else None),
    ("words, CPU in ms", "n", lambda row: stores_page.cpu_ms(stores_page.ask(row, "words"))),
    ("vectors, CPU in ms", "log n", lambda row: stores_page.cpu_ms(stores_page.ask(row, "vectors"))),
)
#: The files of a store by what they are for; the first that matches counts.
STRUCTURES = (
    ("index: words", re.compile(r"/words/(?!forward)")),
    ("index: forward (passage → words)", re.compile(r"/words/forward")),
    ("index: codes of the vectors", re.compile(r"/meaning-\d+/.*\.faiss$")),
    ("index: vectors and their numbers", re.compile(r"/meaning-\d+/")),
    ("index: graph", re.compile(r"/graph")),
    ("index: other", re.compile(r"")),
)
TABLES = {"vectors": "truth: vectors", "documents": "truth: documents"}


# --- what is there ----------------------------------------------------------------------------------------------------


def newest(kind: str, folder: Path = RESULTS) -> tuple[str, dict[str, Any]] | None:
    """Return (file name, content) of the latest result file of a kind."""
    found = [(path.name, json.loads(path.read_text())) for path in folder.glob(f"{kind}-*.json")]
    return max(found, key=lambda item: str(item[1]["machine"]["when"]), default=None)


def structures(store: Path, records: int) -> dict[str, float]:
    """Return the bytes per record of every structure of a store."""
    found: dict[str, float] = {}
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
        for name, size in connection.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name"):
            kind = TABLES.get(name, "truth: passages, fields, indexes of SQLite")
            found[kind] = found.get(kind, 0.0) + size / records
    index = Path(f"{store}.index")
    for path in index.rglob("*"):
        if path.is_file():
            kind = next(kind for kind, matching in STRUCTURES if matching.search(str(path)))
            found[kind] = found.get(kind, 0.0) + path.stat().st_size / records
    return {kind: round(size, 1) for kind, size in sorted(found.items(), reverse=True)}


def terms(given: Corpus, sample: int = 2_000) -> float:
    """Return the number of distinct terms of a record, which is its number of postings."""
    analyse = Analyzer().terms
    return sum(len(set(analyse(whole(each)))) for each in islice(given.documents(), sample)) / sample


def measure(size: str, data: Path) -> Path:
    """Build the corpus with the default and measure the files."""
    from peers.trivet import Engine

    given = corpus(size, data)
    with tempfile.TemporaryDirectory(prefix="trivet-growth-") as folder:
        engine = Engine(Path(folder), {"legs": "default"})
        engine.build(given)
        engine.close()
        found = structures(engine.path, len(given))
    result = {
        "machine": machine(),
        "size": size,
        "documents": len(given),
        "terms_a_record": round(terms(given), 1),
        "bytes_a_record": found,
    }
    target = RESULTS / f"structures-{result['machine']['commit'].split('+')[0]}.json"
    target.write_text(json.dumps(result, indent=1) + "\n")
    return target


# --- what it says -----------------------------------------------------------------------------------------------------


def points(peers: dict[str, Any], row: str, path: tuple[str, ...]) -> list[tuple[float, float]]:
    """Return (records, value) of each measured size."""
    sizes = sorted(peers["rows"], key=lambda name: SIZES.get(name, 0))
    read = ((SIZES.get(size), number(peers["rows"][size].get(row), *path)) for size in sizes)
    return [(float(records), value) for records, value in read if records and value is not None]


def curves(peers: dict[str, Any]) -> list[str]:
    """Return a line for each measure: the values by size, and the exponent between the smallest and the largest."""
    lines = []
    for row in (TWO_LEGS, DEFAULT):
        names = [size for size in SIZES if row in peers["rows"].get(size, {})]
        if not names:
            continue
        lines += [f"**{row}**", "", f"| | {' | '.join(names)} | grows as |", "|---|" + "---|" * (len(names) + 1)]
        for told, path in MEASURES:
            found = dict(points(peers, row, path))
            cells = [shown(found.get(float(SIZES[size]))) for size in names]
            ends = sorted(found.items())
            power = scaling.exponent(ends[0], ends[-1]) if len(ends) > 1 else None
            lines.append(f"| {told} | {' | '.join(cells)} | {'–' if power is None else f'n^{power:.2f}'} |")
        lines.append("")
    return lines[:-1]


def bytes_table(kept: dict[str, Any]) -> list[str]:
    found = kept["bytes_a_record"]
    lines = ["| structure | bytes a record |", "|---|---|"]
    lines += [f"| {kind} | {size:,.0f} |" for kind, size in found.items()]
    return [*lines, f"| **all** | **{sum(found.values()):,.0f}** |"]


def largest(stores: dict[str, Any]) -> dict[str, Any] | None:
    """Return the row of PostgreSQL with the most documents."""
    found = stores_page.of(list(stores["rows"].values()), "postgresql")
    return found[-1] if found else None


def layouts(files: dict[str, dict[str, Any] | None]) -> dict[str, tuple[float, float]]:
    """Return layout → (resident bytes, bytes on disk) per record and copy, where something was measured."""
    found: dict[str, tuple[float, float]] = {}
    peers, stores, kept = files["peers"], files["stores"], files["structures"]
    if peers:
        for row in (TWO_LEGS, DEFAULT):
            resident = scaling.slope(points(peers, row, ("ask", "memory_mb", "peak")))
            kept_on = scaling.slope(points(peers, row, ("build", "disk_mb")))
            if resident and kept_on:
                found[f"one file, {row}"] = (resident[1] * 1e6, kept_on[1] * 1e6)
    if stores and kept and (server := largest(stores)):
        words = kept["terms_a_record"] * scaling.POSTING  # have to be resident beside whatever finds by meaning
        disk = stores_page.disk(server) / server["documents"]
        truth, whole_, small = disk - scaling.FULL, 4 * scaling.DIM * scaling.QDRANT, scaling.DIM * scaling.QDRANT
        found["PostgreSQL/Citus, `index=vector`"] = (words + scaling.FULL, disk)
        found["PostgreSQL/Citus, `index=halfvec`"] = (words + scaling.HALF, truth + scaling.HALF)
        found["Qdrant, vectors in memory, + record store"] = (words + whole_, truth + whole_)
        found["Qdrant, int8 in memory, vectors on disk, + record store"] = (words + small, truth + whole_ + small)
    return found


def plan(files: dict[str, dict[str, Any] | None]) -> list[str]:
    head = " | ".join(f"{millions(target)} records" for target in TARGETS)
    lines = [
        f"A machine: {scaling.CORES} cores, {scaling.RAM / 1e9:.0f} GB memory, {scaling.DISK / 1e12:.0f} TB disk, "
        f"{scaling.USABLE:.0%} of both used; {scaling.COPIES} copies of everything on a server, one of a file. In each "
        "cell: memory that has to be resident, disk, machines.",
        "",
        f"| layout | bytes resident, on disk | records on one machine | {head} |",
        "|---|---|---|" + "---|" * len(TARGETS),
    ]
    for name, (memory, disk) in layouts(files).items():
        single = name.startswith("one file")
        cells = []
        for target in TARGETS:
            found = scaling.need(target, memory, disk, 1 if single else scaling.COPIES)
            many = f"{found.machines:,}" if not single or found.machines == 1 else "does not fit"
            cells.append(f"{size(found.memory)}, {size(found.disk)}, **{many}**")
        fits = millions(scaling.one_machine(memory, disk))
        lines.append(f"| {name} | {memory:,.0f}, {disk:,.0f} | {fits} | {' | '.join(cells)} |")
    return lines


def asking(files: dict[str, dict[str, Any] | None]) -> list[str]:
    """Return the cost of a query that goes to every shard of a million, or to a server."""
    lines: list[str] = []
    head = f"| {' | '.join(millions(target) for target in TARGETS)} |"
    lines += [f"| a query over everything {head}", "|---|" + "---|" * len(TARGETS)]
    peers, stores = files["peers"], files["stores"]
    for row in (TWO_LEGS, DEFAULT) if peers else ():
        found = dict(points(peers, row, ("ask", "none", "cpu_ms")))
        if (each := found.get(1e6)) is not None:
            cells = (f"{shown(target / 1e6 * each)} ms" for target in TARGETS)
            lines.append(f"| CPU, shards of 1 M as measured ({shown(each)} ms), {row} | {' | '.join(cells)} |")
            rates = (f"{scaling.CORES * 1000 / (target / 1e6 * each):,.1f}" for target in TARGETS)
            lines.append(f"| … queries a second for {scaling.CORES} cores | {' | '.join(rates)} |")
    if stores and (server := largest(stores)):
        stages, each = stores_page.ask(server, "two legs")["stages_p50_ms"], server["documents"]
        # the workers compare vectors, each shard on a core; the process that asks sums up the postings of all
        divided = {"lexical": (1, "summed up by one process"), "dense": (scaling.MOST_PARTS, "{} shards at a time")}
        for leg, (parts, how) in divided.items():
            cells = (f"{shown(max(stages[leg], stages[leg] * target / parts / each))} ms" for target in TARGETS)
            told = f"PostgreSQL, {leg}, {how.format(parts)}, if it grew in proportion"
            lines.append(f"| {told} ({stages[leg]} ms at {each:,}) | {' | '.join(cells)} |")
    return lines


def checked(stores: dict[str, Any]) -> list[str]:
    """Return what each assumption says from the smallest size, what was measured at the largest, and what follows."""
    found = stores_page.of(list(stores["rows"].values()), "postgresql")
    small, large = found[0], found[-1]
    sizes, further = (small["documents"], large["documents"]), (1e7, 1e8)
    lines = [
        f"| one PostgreSQL server | grows as | at {sizes[0]:,} | predicted for {sizes[1]:,} | measured | "
        f"measured / predicted | {' | '.join(millions(target) for target in further)} |",
        "|---|---|---|---|---|---|" + "---|" * len(further),
    ]
    for told, order, value in ASSUMPTIONS:
        begun, ended = value(small), value(large)
        if begun is None or ended is None:
            continue
        predicted = begun * scaling.grown(order, *sizes)
        cells = [order, shown(begun), shown(predicted), shown(ended), f"{ended / predicted:.2f}"]
        cells += [shown(ended * scaling.grown(order, sizes[1], target)) for target in further]
        lines.append(f"| {told} | {' | '.join(cells)} |")
    return lines


def fan_out() -> list[str]:
    lines = ["| shards | some shard beyond its p95 | beyond its p99 |", "|---|---|---|"]
    for parts in (1, 2, 8, 16, 32, 64):
        cells = (f"{scaling.late(parts):.0%}", f"{scaling.late(parts, 0.01):.0%}")
        lines.append(f"| {parts} | {cells[0]} | {cells[1]} |")
    return lines


def making(files: dict[str, dict[str, Any] | None]) -> list[str]:
    """Return the cost of loading everything once."""
    each: dict[str, float] = {}
    if files["embedding"]:
        each["embedding (128 tokens a record)"] = files["embedding"]["alone"]["int8"]["1"]["long"]["cpu_ms"]
    if files["peers"] and (built := scaling.slope(points(files["peers"], TWO_LEGS, ("build", "s")))):
        each["building, one file, two legs, one writer"] = built[1] * 1000
    if files["stores"] and (server := largest(files["stores"])) and (seconds := stores_page.load_s(server)):
        each["loading PostgreSQL, one writer"] = seconds / server["documents"] * 1000
    lines = [f"| work | ms a record | {' | '.join(millions(target) for target in TARGETS)} |"]
    lines.append("|---|---|" + "---|" * len(TARGETS))
    for name, ms in each.items():
        cores = scaling.CORES if name.startswith("embedding") else 1
        cells = (span(scaling.hours(target, ms, cores)) for target in TARGETS)
        lines.append(f"| {name}{f', {cores} cores' if cores > 1 else ''} | {ms:.2f} | {' | '.join(cells)} |")
    return lines


def blocks(files: dict[str, dict[str, Any] | None], names: dict[str, str]) -> dict[str, str]:
    """Return the blocks of the page by the names of their marks."""
    absent = {
        "peers": 'Not measured yet: `make bench-peers SIZE="10k 89k 1M scifact"`, then `make scale`.',
        "structures": "Not measured yet: `make scale` with the data.",
    }
    used = ", ".join(f"`benchmarks/results/{name}`" for name in names.values())
    peers, kept = files["peers"], files["structures"]
    pictures = [f"![{told}](../images/{file})" for file, (told, _) in (drawn(_lines(peers)) if peers else {}).items()]
    measured = [*curves(peers), "", *pictures] if peers else [absent["peers"]]
    small = f"At {kept['documents']:,} documents, as it ships." if kept else ""
    return {
        "measured": "\n".join([f"From {used}.", "", *measured]),
        "structures": "\n".join([small, "", *bytes_table(kept)]) if kept else absent["structures"],
        "plan": "\n".join(plan(files)),
        "making": "\n".join(making(files)),
        "asking": "\n".join(asking(files)),
        "fan-out": "\n".join(fan_out()),
        **_servers(files["stores"]),
        "workers": "\n".join(_workers(files["workers"])),
    }


def _servers(stores: dict[str, Any] | None) -> dict[str, str]:
    """Return the blocks about PostgreSQL and Citus."""
    if stores is None:
        absent = "Not measured yet: `python benchmarks/stores.py`, then `make scale`."
        return {"servers": absent, "checked": absent}
    found = list(stores["rows"].values())
    tables = [*stores_page.load_table(found), "", *stores_page.search_table(found)]
    return {"servers": "\n".join(tables), "checked": "\n".join(checked(stores))}


def _workers(workers: dict[str, Any] | None) -> list[str]:
    return ["Not measured yet: `python benchmarks/workers.py`."] if workers is None else workers_page.table(workers)


def _lines(peers: dict[str, Any]) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """Return measure → row → points."""
    return {told: {row: points(peers, row, path) for row in (TWO_LEGS, DEFAULT)} for told, path in MEASURES}


def put(text: str, given: dict[str, str]) -> str:
    """Return the page with the blocks between its marks replaced; raise for a missing mark."""
    for name, block in given.items():
        mark = re.compile(rf"(<!-- scale:{name}:start -->\n).*?(<!-- scale:{name}:end -->)", re.DOTALL)
        if not mark.search(text):
            raise SystemExit(f"growth: docs/evidence/scale.md has no mark scale:{name}")
        text = mark.sub(lambda found, block=block: f"{found[1]}{block}\n{found[2]}", text)
    return text


# --- numbers for people -----------------------------------------------------------------------------------------------


def shown(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def millions(records: float) -> str:
    return f"{records / 1e9:,.3g} G" if records >= 1e9 else f"{records / 1e6:,.3g} M"


def size(count: float) -> str:
    return f"{count / 1e12:,.1f} TB" if count >= 1e12 else f"{count / 1e9:,.3g} GB"


def span(hours: float) -> str:
    return f"{hours / 24:,.0f} d" if hours >= 72 else f"{hours:,.1f} h" if hours >= 1 else f"{hours * 60:,.0f} min"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="the folder with docs_snippets: the structures are measured anew")
    parser.add_argument("--size", default="89k", choices=SIZES)
    parser.add_argument("--docs", action="store_true", help="write docs/evidence/scale.md and its plots")
    args = parser.parse_args()
    if args.data and (args.data / "docs_snippets").is_dir():
        print(measure(args.size, args.data))
    else:
        print("growth: the structures are not measured anew: no --data with docs_snippets (it is not shipped)")
    found = {kind: newest(kind) for kind in KINDS}
    files = {kind: item[1] if item else None for kind, item in found.items()}
    made = blocks(files, {kind: item[0] for kind, item in found.items() if item})
    if not args.docs:
        print("\n\n".join(made.values()))
        return 0
    PAGE.write_text(put(PAGE.read_text(encoding="utf-8"), made), encoding="utf-8")
    if files["peers"]:
        for file, (_, picture) in drawn(_lines(files["peers"])).items():
            (IMAGES / file).write_text(picture, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
