"""The capacity table of docs/how-to/operate-postgresql.md, on made-up numbers and as the page has it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def cost(script: Any) -> Any:
    return script("passage_cost")


def measured(passages: int) -> dict[str, Any]:
    """A megabyte that is there from the beginning, then 1,000, 2,000 and 500 bytes a passage."""
    each = {"vectors": 1_000, "HNSW index": 2_000, "postings": 500}
    return {
        "documents": passages,
        "passages": passages,
        "citus": True,
        "load_s": passages / 1_000,
        "bytes": {name: 1_000_000 + size * passages for name, size in each.items()},
        "stages_p50_ms": {"lexical": 1.0, "dense": 2.0},
    }


RESULT = {
    "machine": {"commit": "abc", "load_before": 1.2, "cores": 2},
    "sizes": [measured(10_000), measured(50_000)],
}


LOADED = {
    "documents": 1_000_000,
    "load": {"rows_s": 600.0, "words_s": 100.0, "vectors_s": 300.0, "load_average": 1.2},
}


def test_what_is_there_from_the_beginning_is_not_the_cost_of_a_passage(cost: Any) -> None:
    assert cost.costs(*RESULT["sizes"]) == {"vectors": 1_000, "HNSW index": 2_000, "postings": 500}


def test_shards_and_indexes_are_added_up(cost: Any) -> None:
    found = [
        ("vectors_102001", "r", 10),
        ("vectors_102002", "r", 20),
        ("vectors", "r", 1),
        ("meaning_1_1_102001", "i", 5),
    ]
    assert cost.kinds([*found, ("vectors_pkey_102001", "i", 7)]) == {"vectors": 31, "HNSW index": 5, "other indexes": 7}


def test_a_row_of_the_table(cost: Any) -> None:
    """100 M × 3,500 bytes; resident 2,500, as halfvec 768 less; 173.2 GB / 44.8 and / 89.6 GB; 1 ms each."""
    row = next(line for line in cost.table(RESULT, LOADED).splitlines() if line.startswith("| 100 M"))
    assert row == "| 100 M | 350 GB | 1,050 GB | 250 GB | 173 GB | 4 | 2 | 27.8 h |"


def test_the_page_has_the_table_of_the_newest_result(cost: Any) -> None:
    page = cost.DOCS.read_text(encoding="utf-8")
    newest = json.loads(cost._newest("passages").read_text(encoding="utf-8"))
    assert cost.table(newest, cost.loaded()) in page, "run `python benchmarks/passage_cost.py --docs`"
