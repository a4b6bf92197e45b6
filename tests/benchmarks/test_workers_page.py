"""The table about workers of a cluster is made of its result file, on made-up numbers."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def page(script: Any) -> Any:
    return script("workers_page")


def row(layout: str, where: str, p50: float, nodes: dict[str, float]) -> dict[str, Any]:
    return {
        "layout": layout,
        "profile": "vectors",
        "filter": where,
        "p50_ms": p50,
        "p95_ms": 2 * p50,
        "client_cpu_ms": 2.0,
        "node_cpu_ms": nodes,
        "load_average": p50 / 10,
        "statements": 7.0,
        "recall": 0.9876,
    }


def test_a_worker_that_is_added_takes_a_part_of_the_cpu(page: Any) -> None:
    nodes = {"2": {"0": 3.0, "1": 8.0, "2": 9.0}, "4": {"0": 3.0, "1": 4.0, "2": 5.0, "3": 4.0, "4": 4.0}}
    searches = {
        workers: [
            row(layout, where, p50, used)
            for layout, p50, used in (
                ("one piece, PostgreSQL", 9.0, {"0": 8.0}),
                (page.PIECE, 10.0, own),
                ("4 shards", 15.0, own),
            )
            for where in page.FILTERS
        ]
        for workers, own in nodes.items()
    }
    result = {
        "machine": {"commit": "abc", "cores": 2},
        "corpus": "generated-200k",
        "documents": 200_000,
        "versions": ["15.18 (Debian)", "13.2-1"],
        "workers": {workers: {"searches": found} for workers, found in searches.items()},
    }
    lines = page.table(result)
    assert len(lines) == 2 + 6 + 2
    told = "15.0 (30.0), recall 0.988"
    for workers, worker, every in (("2", "9.0", "22.0"), ("4", "5.0", "22.0")):
        start = f"| {workers} | 4 shards | vectors | {told} | 1.50 |"
        (line,) = (line for line in lines if line.startswith(start))
        assert line.endswith(f"| 7 | 2.0 | 3.0 | {worker} | {every} |")
    assert "| 2 | one piece, PostgreSQL | vectors | 9.0 (18.0), recall 0.988 | 0.90 |" in lines[2]
    assert lines[2].endswith("| 2.0 | 8.0 | – | 10.0 |")
    assert "Citus 13.2-1; commit abc; load average 0.9 to 1.5 on 2 cores" in lines[-1]
