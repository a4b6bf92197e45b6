"""The comparison with peers reports what was measured: on made-up numbers, and with real processes."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

PEER, OTHER = "zvec HNSW", "Qdrant Edge"


@pytest.fixture
def targets(script: Any) -> Any:
    return script("peers.targets")


@pytest.fixture
def page(script: Any) -> Any:
    return script("peers.page")


@pytest.fixture
def running(script: Any) -> Any:
    return script("peers.running")


def row(p50: float, recall: float = 0.99, build: float = 10.0, **asked: Any) -> dict[str, Any]:
    part = {
        "p50_ms": p50,
        "p95_ms": 2 * p50,
        "not_allowed": 0,
        "under_k": 0,
        "dense": {"recall": recall, "p50_ms": 1.0},
    }
    ask = {name: {**part, "dense": dict(part["dense"])} for name in ("none", "one_percent", "half")}
    return {
        "build": {"s": build, "disk_mb": 5.0, "memory_mb": {"peak": 9.0}, "versions": {"x": "1"}},
        "ask": {**ask, "memory_mb": {"peak": 100.0}} | asked,
        "cold": {"open_to_answer_ms": 500.0, "import_ms": 1.0},
        "write": {"p50_ms": 3.0, "not_found": 0},
        "mixed": {"searches_per_s": 10.0, "writes_per_s": 1.0, "errors": []},
    }


def results(**rows: Any) -> dict[str, Any]:
    machine = {"commit": "abc", "when": "2026-01-01", "cpu": "x", "cores": 2, "python": "3", "load_before": 0.0}
    return {
        "machine": machine,
        "bandwidth": {"one_core_gb_s": 10.0, "all_gb_s": 12.0},
        "rows": rows,
        "judged": {"trivet": {"nDCG@10": 0.7}, PEER: {"failed": "over 9 s"}},
    }


def verdict(targets: Any, found: dict[str, Any], what: str) -> Any:
    return next(item for item in targets.verdicts(found) if item.what == what)


def test_a_ratio_is_the_best_able_peer_over_ours(targets: Any) -> None:
    measured = {"trivet, two legs": row(2.0), PEER: row(7.0), OTHER: row(9.0)}
    told = verdict(targets, results(**{"89k": measured}), "89k: hybrid p50, trivet, two legs")
    assert told.value == 3.5
    assert told.met is True
    assert PEER in told.told


def test_a_peer_that_finds_too_little_is_not_the_best(targets: Any) -> None:
    measured = {"trivet, two legs": row(2.0), PEER: row(0.5, recall=0.9), OTHER: row(4.0)}
    told = verdict(targets, results(**{"89k": measured}), "89k: hybrid p50, trivet, two legs")
    assert (told.value, told.met) == (2.0, False)


def test_a_peer_that_lets_the_forbidden_through_is_not_the_best_under_a_filter(targets: Any) -> None:
    leaky = row(0.1)
    leaky["ask"]["one_percent"]["not_allowed"] = 3
    measured = {"trivet, two legs": row(2.0), PEER: leaky, OTHER: row(8.0)}
    told = verdict(targets, results(**{"89k": measured}), "89k: p50 under 1 %, trivet, two legs")
    assert told.value == 4.0
    assert targets.best(measured, targets.p50) == (PEER, 0.1)


def test_an_engine_that_is_no_hybrid_is_not_compared(targets: Any) -> None:
    measured = {"trivet, two legs": row(2.0), "Chroma (meaning alone)": row(0.1)}
    told = verdict(targets, results(**{"89k": measured}), "89k: hybrid p50, trivet, two legs")
    assert told.met is None


def test_our_own_speed_does_not_count_where_we_find_too_little(targets: Any) -> None:
    measured = {"trivet, two legs": row(0.1, recall=0.5), PEER: row(7.0)}
    told = verdict(targets, results(**{"89k": measured}), "89k: hybrid p50, trivet, two legs")
    assert told.met is None
    assert "under 0.97" in told.told


def test_a_write_that_was_not_found_has_no_time(targets: Any) -> None:
    lost = row(1.0)
    lost["write"] = {"p50_ms": 0.1, "not_found": 1}
    assert targets.write(lost) is None
    assert targets.write(row(1.0)) == 3.0


def test_a_failed_step_is_no_number(targets: Any) -> None:
    assert targets.number({"ask": {"failed": "over 600 s"}}, "ask", "none", "p50_ms") is None
    assert targets.number(None, "build") is None


def test_the_table_says_what_failed_and_what_was_let_through(page: Any) -> None:
    leaky = row(12.34)
    leaky["ask"]["half"] |= {"not_allowed": 7, "under_k": 2}
    leaky["write"]["not_found"] = 2
    measured = {
        "trivet": row(2.0),
        PEER: {"build": {"failed": "over 1,500 s"}},
        OTHER: leaky,
        "txtai": {"unavailable": "ERROR: no | such package"},
    }
    lines = page.table("10k", measured)
    columns = {line.count("|") for line in lines}
    assert len(columns) == 1, "every line has as many cells"
    said = "\n".join(lines)
    assert "**trivet**" in said
    assert "not measured: over 1,500 s" in said
    assert "**7 not allowed**, short lists" in said
    assert "2 not found in 10 s" in said
    assert "no / such package" in said


def test_the_page_and_its_pictures_are_made_of_any_part_of_a_run(page: Any, script: Any) -> None:
    plots = script("peers.plots")
    stopped = {"build": row(1.0)["build"]}  # a run that was killed between two steps
    for found in (
        results(),
        results(**{"89k": {OTHER: stopped}}),
        results(**{"10k": {"trivet": row(2.0), OTHER: stopped, PEER: {"build": {"failed": "x"}}}}),
    ):
        text = page.text(found, "peers-abc.json")
        assert "results/peers-abc.json" in text
        for picture in plots.drawn(found).values():
            assert ET.fromstring(picture).tag.endswith("svg")
    assert "over 9 s" in text
    assert set(plots.drawn(found)) == set(plots.NAMES)


def test_the_floor_is_bytes_over_bandwidth(script: Any) -> None:
    assert script("peers.bandwidth").floor_ms(1_000_000, 48, 12.0) == 4.0


def test_every_row_has_a_module_and_an_environment(script: Any) -> None:
    registry = script("peers.registry")
    names = [item.name for item in registry.ROWS]
    assert len(set(names)) == len(names)
    folder = Path(registry.__file__).parent
    for item in registry.ROWS:
        assert (folder / f"{item.module}.py").exists()
        assert item.ours or item.module in registry.ENVIRONMENTS
    assert [item.name for item in registry.rows(["ZVEC hnsw"])] == ["zvec HNSW"]
    with pytest.raises(SystemExit, match="no such engine"):
        registry.rows(["nobody"])


ORDER = {"module": "trivet", "setting": {"legs": "two"}, "corpus": "tiny", "step": "build", "packages": ["trivet"]}


def test_a_step_over_its_time_or_memory_says_so(running: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "peers").mkdir()
    (tmp_path / "peers/__init__.py").touch()
    worker = tmp_path / "peers/worker.py"
    monkeypatch.setattr(running, "HERE", tmp_path)
    python = Path(sys.executable)
    worker.write_text("import time; time.sleep(60)")
    assert running.run(python, ORDER, running.Limits(0.5, 0.5, 8))["failed"] == "over 0 s"
    worker.write_text("import time; kept = b'x' * 300_000_000; time.sleep(60)")
    assert running.run(python, ORDER, running.Limits(60, 60, 0.2))["failed"] == "over 0.2 GB of memory"
    worker.write_text("raise SystemExit('the index is missing')")
    assert running.run(python, ORDER, running.Limits(60, 60, 8))["failed"] == "the index is missing"
    worker.write_text('print("noise"); print(\'{"s": 1}\')')
    assert running.run(python, ORDER, running.Limits(60, 60, 8)) == {"s": 1}
