"""The rows of `benchmarks/stores.py` are kept over runs, and what is told of them, on made-up numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

LOAD = {"rows_s": 100.0, "words_s": 20.0, "vectors_s": 30.0, "load_average": 1.0}


@pytest.fixture
def page(script: Any) -> Any:
    return script("stores_page")


def row(documents: int = 100_000, **more: Any) -> dict[str, Any]:
    asked = [
        {
            "profile": profile,
            "filter": where,
            "p50_ms": 3.0,
            "p95_ms": 4.0,
            "client_cpu_ms": 1.0,
            "server_cpu_ms": 1.5,
            "load_average": 0.5,
        }
        | ({"recall": 0.9876} if profile == "vectors" else {})
        for profile in ("words", "vectors", "two legs", "default")
        for where in ("none", "one_percent", "half", "one_site")
    ]
    sizes = {"vectors": 6_000_000_000, "HNSW index": 2_000_000_000}
    return {
        "documents": documents,
        "server": "PostgreSQL 18.6",
        "bytes": sizes,
        "searches": asked,
        **more,
    }


def machine(commit: str, when: str) -> dict[str, Any]:
    return {"commit": commit, "when": when, "cores": 2}


def test_rows_of_earlier_runs_are_kept_and_a_new_one_replaces_its_own(page: Any, tmp_path: Path) -> None:
    page.keep("postgresql", row(load=LOAD), machine("a", "2026-01-01"), tmp_path)
    page.keep("citus-2", row(citus="13.2"), machine("b+changes", "2026-01-02"), tmp_path)
    target = page.keep("postgresql", row(10), machine("c", "2026-01-03"), tmp_path)
    assert target == tmp_path / "stores-c.json"
    found = {(each["layout"], each["documents"]): each["commit"] for each in page.rows(tmp_path)}
    assert found == {("postgresql", 100_000): "a", ("citus-2", 100_000): "b+changes", ("postgresql", 10): "c"}
    assert [each["documents"] for each in page.of(page.rows(tmp_path), "postgresql")] == [10, 100_000]


def test_a_server_that_is_asked_again_keeps_the_times_of_its_load(page: Any, tmp_path: Path) -> None:
    page.keep("postgresql", row(load=LOAD), machine("a", "2026-01-01"), tmp_path)
    page.keep("postgresql", row(), machine("b", "2026-01-02"), tmp_path)
    (kept,) = page.rows(tmp_path)
    assert kept["commit"] == "b" and kept["load"] == LOAD
    assert page.load_s(kept) == 150  # the graph is not on the server
    assert page.load_s(row()) is None


def test_without_a_result_there_are_no_rows(page: Any, tmp_path: Path) -> None:
    assert page.newest(tmp_path) is None
    assert page.rows(tmp_path) == []


def test_a_layout_is_told_in_words(page: Any) -> None:
    assert page.told(row(layout="postgresql")) == "PostgreSQL"
    assert page.told(row(layout="citus-4", shards=1)) == "Citus, 4 workers, in one piece"
    assert page.told(row(layout="distributed-2", shards=8)) == "Citus, 2 workers, distributed, 8 shards"


def test_tables_by_hand(page: Any) -> None:
    one = row(layout="postgresql", load=LOAD, commit="abc", cores=2)
    other = row(layout="citus-2", shards=1, citus="13.2", commit="abc", cores=2)
    load = page.load_table([other, one])
    assert load[2] == "| PostgreSQL | 100,000 | 1,000 | 20 | 30 | 8.00 | 2.00 |"
    assert load[3] == "| Citus, 2 workers, in one piece | 100,000 | – | – | – | 8.00 | 2.00 |"
    searches = page.search_table([one, other])
    vectors = "3.0 (4.0), 2.5, recall 0.988"
    assert f"| PostgreSQL | 100,000 | vectors | {vectors} | {vectors} | {vectors} |" in searches
    assert searches[-1].endswith(
        "PostgreSQL 18.6, PostgreSQL 18.6 with Citus 13.2; commit abc; load average 0.5 on 2 cores."
    )
    words = [asked for asked in one["searches"] if asked["profile"] == "words"]
    only = {**one, "searches": words}
    assert len(page.search_table([only])) == 2 + 1 + 2  # of what was measured
    few = page.few_table([one, other])
    assert "| PostgreSQL | default | 3.0 (4.0), 2.5 | 3.0 (4.0), 2.5 | 3.0 (4.0), 2.5 | 3.0 (4.0), 2.5 |" in few
    assert "Citus" not in few


def test_the_rows_are_in_the_repository(page: Any) -> None:
    path = page.newest()
    assert path is not None, "run `python benchmarks/stores.py`"
    assert json.loads(path.read_text())["rows"]
