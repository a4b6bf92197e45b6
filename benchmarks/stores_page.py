"""The result files of ``stores.py``, and the tables made from them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
FEW = 100_000  # documents of the table in docs/how-to/choose-a-store.md
Row = dict[str, Any]  # of one layout and size

_SERVERS = {"postgresql": "PostgreSQL", "pg_textsearch": "PostgreSQL with pg_textsearch"}
_FILTERS = {"none": "everything", "one_percent": "1 %", "half": "50 %", "one_site": "one site"}
_LEGS = ("words", "vectors", "two legs", "default")


def newest(folder: Path = RESULTS) -> Path | None:
    """Return the latest result file."""
    found = [(json.loads(path.read_text())["machine"]["when"], path) for path in folder.glob("stores-*.json")]
    return max(found)[1] if found else None


def rows(folder: Path = RESULTS) -> list[Row]:
    """Return all rows of the latest result file, by layout and size."""
    path = newest(folder)
    return list(json.loads(path.read_text())["rows"].values()) if path else []


def keep(layout: str, row: Row, machine: Mapping[str, Any], folder: Path = RESULTS) -> Path:
    """Write a row and those of earlier runs to the file of this commit, and return the file.

    The times of a load stay with what was loaded: a server that is asked again has those of the row before.
    """
    before = newest(folder)
    kept: dict[str, Row] = json.loads(before.read_text())["rows"] if before else {}
    name = f"{layout}, {row['documents']}"
    loaded = {"load": kept[name]["load"]} if "load" not in row and "load" in kept.get(name, {}) else {}
    kept[name] = {"layout": layout, **loaded, **row, "commit": machine["commit"], "cores": machine["cores"]}
    target = folder / f"stores-{str(machine['commit']).partition('+')[0]}.json"
    target.write_text(json.dumps({"machine": machine, "rows": kept}, indent=1) + "\n")
    return target


def of(found: Sequence[Row], layout: str) -> list[Row]:
    """Return the rows of a layout, the smallest first."""
    return sorted((row for row in found if row["layout"] == layout), key=lambda row: int(row["documents"]))


def ask(row: Row, profile: str, where: str = "none") -> dict[str, Any]:
    """Return what a profile took with a filter."""
    return next(asked for asked in row["searches"] if (asked["profile"], asked["filter"]) == (profile, where))


def cpu_ms(asked: Mapping[str, Any]) -> float:
    """Return the CPU of the process that asks and of the servers for a search."""
    return float(asked["client_cpu_ms"] + asked["server_cpu_ms"])


def load_s(row: Row) -> float | None:
    """Return the seconds of a load with the indexes on the server."""
    load = row.get("load")
    return None if load is None else float(load["rows_s"] + load["words_s"] + load["vectors_s"])


def disk(row: Row) -> int:
    """Return the bytes of all tables and indexes, on all nodes."""
    return sum(row["bytes"].values())


def told(row: Row) -> str:
    """Return what a layout is, for a table."""
    name, _, workers = row["layout"].partition("-")
    if name in _SERVERS:
        return _SERVERS[name]
    how = "in one piece" if name == "citus" else f"distributed, {row['shards']} shards"
    return f"Citus, {workers} workers, {how}"


def few_table(found: Sequence[Row]) -> str:
    """Return the table of docs/how-to/choose-a-store.md."""
    measured = [row for layout in _SERVERS for row in of(found, layout) if row["documents"] == FEW]
    lines = [f"| server | profile | {' | '.join(_FILTERS.values())} |", "|---|---|" + "---|" * len(_FILTERS)]
    for row in measured:
        for profile in ("two legs", "default"):
            cells = (_cell(ask(row, profile, where)) for where in _FILTERS)
            lines.append(f"| {told(row)} | {profile} | {' | '.join(cells)} |")
    return "\n".join(
        [*lines, "", f"p50 (p95) and CPU in ms, {FEW:,} documents, the query already embedded; {_where(measured)}."]
    )


def load_table(found: Sequence[Row]) -> list[str]:
    """Return the table of loading and disk."""
    lines = [
        "| server | documents | documents a second | word index, s | HNSW index, s | disk, GB | HNSW, GB |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in _ordered(found):
        load = row.get("load")
        steps = [f"{row['documents'] / load['rows_s']:,.0f}"] if load else ["–"] * 3
        steps += [f"{load[step]:,.0f}" for step in ("words_s", "vectors_s")] if load else []
        cells = [told(row), f"{row['documents']:,}", *steps]
        cells += [f"{disk(row) / 1e9:.2f}", f"{row['bytes'].get('HNSW index', 0) / 1e9:.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def search_table(found: Sequence[Row]) -> list[str]:
    """Return the table of the times of a search, and of the recall of its vectors."""
    wheres = {name: shown for name, shown in _FILTERS.items() if name != "one_site"}
    lines = [f"| server | documents | legs | {' | '.join(wheres.values())} |", "|---|---|---|" + "---|" * len(wheres)]
    for row in _ordered(found):
        measured = {asked["profile"] for asked in row["searches"]}
        for profile in (profile for profile in _LEGS if profile in measured):
            cells = (_cell(ask(row, profile, where)) for where in wheres)
            lines.append(f"| {told(row)} | {row['documents']:,} | {profile} | {' | '.join(cells)} |")
    return [*lines, "", f"p50 (p95) and CPU of process and server in ms, the query already embedded; {_where(found)}."]


def _ordered(found: Sequence[Row]) -> list[Row]:
    return sorted(found, key=lambda row: (row["documents"], row["layout"] not in _SERVERS, told(row)))


def _cell(asked: Mapping[str, Any]) -> str:
    recall = f", recall {asked['recall']:.3f}" if "recall" in asked else ""
    cpu = f", {cpu_ms(asked):.1f}" if "server_cpu_ms" in asked else ""
    return f"{asked['p50_ms']} ({asked['p95_ms']}){cpu}{recall}"


def _where(found: Sequence[Row]) -> str:
    """Return the commits, servers and load of some rows."""
    commits = ", ".join(dict.fromkeys(row["commit"] for row in found))
    servers = ", ".join(
        dict.fromkeys(row["server"] + (f" with Citus {row['citus']}" if "citus" in row else "") for row in found)
    )
    loads = [asked["load_average"] for row in found for asked in row["searches"]]
    busy = " to ".join(dict.fromkeys(str(load) for load in (min(loads), max(loads)))) if loads else "unknown"
    return f"{servers}; commit {commits}; load average {busy} on {found[0]['cores'] if found else '?'} cores"
