"""The table of docs/evidence/scale.md that is made from a result file of ``workers.py``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

COORDINATOR = "0"  # its group in a cluster; one PostgreSQL is the coordinator's server too
FILTERS = ("none", "one_percent", "half")
PIECE = "one piece, Citus"


def table(result: Mapping[str, Any]) -> list[str]:
    """Return the figures of each number of workers, collection and legs."""
    lines = [
        "| workers | collection | legs | everything | of one piece | 1 % | 50 % | statements | process | coordinator "
        "| busiest worker | all |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for workers, found in result["workers"].items():
        rows = {(row["layout"], row["profile"], row["filter"]): row for row in found["searches"]}
        for layout, legs in dict.fromkeys((layout, legs) for layout, legs, _ in rows):
            asked = {name: rows[layout, legs, name] for name in FILTERS}
            whole = asked["none"]
            ratio = f"{whole['p50_ms'] / rows[PIECE, legs, 'none']['p50_ms']:.2f}"
            cells = [workers, layout, legs, told(whole), ratio, told(asked["one_percent"]), told(asked["half"])]
            cells += [f"{whole['statements']:g}", *cpu(whole)]
            lines.append(f"| {' | '.join(cells)} |")
    return [*lines, "", _where(result)]


def told(row: Mapping[str, Any]) -> str:
    """Return the times of a search, and the recall of its vectors."""
    recall = f", recall {row['recall']:.3f}" if "recall" in row else ""
    return f"{row['p50_ms']} ({row['p95_ms']}){recall}"


def cpu(row: Mapping[str, Any]) -> list[str]:
    """Return the CPU of the process that asks, the coordinator, the busiest worker, and all together."""
    nodes = dict(row["node_cpu_ms"])
    coordinator, client = nodes.pop(COORDINATOR), row["client_cpu_ms"]
    worker = f"{max(nodes.values()):.1f}" if nodes else "–"
    return [f"{client:.1f}", f"{coordinator:.1f}", worker, f"{client + coordinator + sum(nodes.values()):.1f}"]


def _where(result: Mapping[str, Any]) -> str:
    loads = [row["load_average"] for found in result["workers"].values() for row in found["searches"]]
    version, citus = result["versions"]
    measured = (
        f"{result['documents']:,} documents (`{result['corpus']}`), PostgreSQL {version.split()[0]} with Citus {citus}"
    )
    machine, busy = result["machine"], f"load average {min(loads)} to {max(loads)}"
    told = "p50 (p95) in ms; statements and CPU in ms of a search without a filter, with the CPU of ended processes"
    return f"{told}. {measured}; commit {machine['commit']}; {busy} on {machine['cores']} cores."
