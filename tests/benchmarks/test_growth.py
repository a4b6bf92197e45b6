"""Growth exponents and the plan of docs/evidence/scale.md, on made-up numbers that are easy to check."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

import trivet

ROOT = Path(__file__).parents[2]
SIZES = {"10k": 10_000, "89k": 88_956, "1M": 1_000_000}


@pytest.fixture
def growth(script: Any) -> Any:
    return script("growth")


@pytest.fixture
def scaling(script: Any) -> Any:
    return script("scaling")


def row(records: int) -> dict[str, Any]:
    """Latency by the root of the size, memory 100 MB and 400 bytes a record, everything else in proportion."""
    part = {
        "p50_ms": records**0.5 / 100,
        "p95_ms": records**0.5 / 50,
        "cpu_ms": records / 1e5,
        "dense": {"p50_ms": 2.0},
    }
    return {
        "ask": {"none": part, "one_percent": part, "half": part, "memory_mb": {"peak": 100 + records * 400 / 1e6}},
        "build": {"s": records / 5_000, "disk_mb": records * 6_000 / 1e6, "memory_mb": {"peak": 500.0}},
        "write": {"p50_ms": 3.0},
        "cold": {"open_to_answer_ms": 200.0},
    }


def server(documents: int, words_ms: float) -> dict[str, Any]:
    """PostgreSQL: loading and bytes in proportion, an HNSW index that takes three times as long as it should."""
    part = {
        "p50_ms": words_ms,
        "p95_ms": 9.0,
        "client_cpu_ms": words_ms,
        "server_cpu_ms": 0.0,
        "stages_p50_ms": {"lexical": 7.0, "dense": 6.0},
        "load_average": 1.0,
    }
    asked = [
        {"profile": profile, "filter": where, **part}
        for profile in ("words", "vectors", "two legs", "default")
        for where in ("none", "one_percent", "half", "one_site")
    ]
    load = {"rows_s": documents / 2_000, "words_s": documents / 4_000, "vectors_s": documents / 4_000}
    return {
        "layout": "postgresql",
        "server": "PostgreSQL 18.6",
        "documents": documents,
        "load": load,
        "bytes": {"vectors": 6_000 * documents, "HNSW index": 4_000 * documents},
        "searches": asked,
        "commit": "abc",
        "cores": 2,
    }


def files(*sizes: str) -> dict[str, dict[str, Any] | None]:
    rows = {size: {name: row(SIZES[size]) for name in ("trivet", "trivet, two legs")} for size in sizes}
    servers = {"small": server(10_000, words_ms=0.7), "large": server(100_000, words_ms=7.7)}
    kinds = ("short", "medium", "long")
    return {
        "peers": {"rows": rows},
        "stores": {"rows": servers},
        "structures": {"documents": 1000, "terms_a_record": 70.0, "bytes_a_record": {"truth: a": 1.0, "index: b": 2.0}},
        "workers": None,
        "embedding": {"alone": {"int8": {"1": {kind: {"cpu_ms": 16.0} for kind in kinds}}}},
    }  # fmt: skip


NAMES = {"peers": "peers-abc.json"}


def test_an_exponent_is_0_for_what_stays_and_1_for_what_grows_in_proportion(scaling: Any) -> None:
    assert scaling.exponent((10, 7.0), (1000, 7.0)) == 0
    assert scaling.exponent((10, 7.0), (1000, 700.0)) == pytest.approx(1)
    assert scaling.exponent((10, 7.0), (1000, 70.0)) == pytest.approx(0.5)
    assert scaling.exponent((10, 0.0), (1000, 70.0)) is None


def test_what_a_record_adds_is_told_from_what_the_process_takes_anyway(scaling: Any) -> None:
    floor, each = scaling.slope([(10, 999.0), (100, 105.0), (1100, 155.0)])
    assert each == pytest.approx(0.05) and floor == pytest.approx(100.0)
    assert scaling.slope([(10, 1.0)]) is None


def test_machines_are_counted_by_what_runs_out_first_and_never_fewer_than_copies(scaling: Any) -> None:
    memory, disk = scaling.RAM * scaling.USABLE, scaling.DISK * scaling.USABLE
    assert scaling.need(1e6, 1, 1).machines == 2
    assert scaling.need(1e6, memory * 3 / 1e6, 1).machines == 6  # two copies of three machines' memory
    assert scaling.need(1e6, 1, disk * 3 / 1e6, copies=1).machines == 3
    assert scaling.one_machine(memory / 1e6, 1) == pytest.approx(1e6)


def test_the_more_parts_the_likelier_one_is_late(scaling: Any) -> None:
    assert scaling.late(1) == pytest.approx(0.05)
    assert scaling.late(2) == pytest.approx(1 - 0.95 * 0.95)
    assert scaling.late(64) > scaling.late(8) > scaling.late(2)


def test_hours_are_of_all_cores(scaling: Any) -> None:
    assert scaling.hours(3_600_000, 16.0, 16) == pytest.approx(1.0)


def test_the_curves_have_every_size_and_the_power_of_each(growth: Any) -> None:
    lines = growth.curves(files("10k", "89k", "1M")["peers"])
    assert "| | 10k | 89k | 1M | grows as |" in lines
    assert "| hybrid p50, ms | 1.00 | 2.98 | 10.0 | n^0.50 |" in lines
    assert "| build, s | 2.00 | 17.8 | 200 | n^1.00 |" in lines
    assert "| write to found p50, ms | 3.00 | 3.00 | 3.00 | n^0.00 |" in lines


def test_a_size_that_is_not_there_is_not_made_up(growth: Any) -> None:
    found = files("89k")
    assert "| hybrid p50, ms | 2.98 | – |" in growth.curves(found["peers"])
    assert not any(name.startswith("one file") for name in growth.layouts(found))  # one size has no slope
    assert "CPU, shards of 1 M" not in "\n".join(growth.asking(found))
    failed = files("89k", "1M")
    failed["peers"]["rows"]["1M"]["trivet"] = {"build": {"failed": "memory"}}  # type: ignore[index]
    assert "| hybrid p50, ms | 2.98 | – | – |" in growth.curves(failed["peers"])


def test_the_plan_follows_from_the_bytes(growth: Any) -> None:
    found = growth.layouts(files("10k", "89k", "1M"))
    assert found["one file, trivet, two legs"] == pytest.approx((400, 6_000))
    words, vectors = 70 * 10, 4 * 384
    assert found["PostgreSQL/Citus, `index=vector`"] == pytest.approx((words + vectors + 320, 10_000))
    assert found["Qdrant, vectors in memory, + record store"][0] == pytest.approx(words + vectors * 1.5)
    lines = growth.plan(files("10k", "89k", "1M"))
    (line,) = (line for line in lines if "one file, trivet, two legs" in line)
    assert "| 224 M |" in line  # 128 GB, seven tenths of it, at 400 bytes
    assert line.endswith("400 GB, 6.0 TB, **does not fit** |")


def test_what_a_question_costs_is_every_shards_cost(growth: Any) -> None:
    lines = growth.asking(files("10k", "89k", "1M"))
    assert "| 10.0 ms | 100 ms | 1,000 ms | 10,000 ms |" in lines[2]
    assert "| 1,600.0 | 160.0 | 16.0 | 1.6 |" in lines[3]
    (words,) = (line for line in lines if "lexical" in line)
    assert words.endswith("| 70.0 ms | 700 ms | 7,000 ms | 70,000 ms |")
    (vectors,) = (line for line in lines if "dense" in line)
    assert vectors.endswith("| 6.00 ms | 9.38 ms | 93.8 ms | 938 ms |")


def test_filling_it(growth: Any) -> None:
    lines = growth.making(files("10k", "89k", "1M"))
    assert any(line.startswith("| embedding (128 tokens a record), 16 cores | 16.00 | 17 min |") for line in lines)
    assert any(line.startswith("| loading PostgreSQL, one writer | 1.00 | 17 min |") for line in lines)


def test_assumptions_are_checked_by_two_sizes(growth: Any) -> None:
    lines = growth.checked(files("10k", "89k", "1M")["stores"])
    assert "at 10,000 | predicted for 100,000 | measured | measured / predicted | 10 M | 100 M |" in lines[0]
    (disk,) = (line for line in lines if line.startswith("| disk, GB"))
    assert disk == "| disk, GB | n | 0.10 | 1.00 | 1.00 | 1.00 | 100 | 1,000 |"
    (words,) = (line for line in lines if line.startswith("| words"))
    assert words.startswith("| words, CPU in ms | n | 0.70 | 7.00 | 7.70 | 1.10 |")
    (index,) = (line for line in lines if line.startswith("| HNSW"))
    assert "| n log n | 2.50 | 31.2 | 25.0 | 0.80 |" in index


def test_servers_are_in_both_tables_and_none_is_none(growth: Any) -> None:
    made = growth.blocks(files("10k", "89k", "1M"), NAMES)
    assert made["servers"].count("| PostgreSQL | 100,000 |") == 1 + 4  # its load, and its four rankings
    assert "python benchmarks/stores.py" in growth.blocks({**files("89k"), "stores": None}, NAMES)["checked"]


def test_every_picture_is_sound_and_shows_both(growth: Any, script: Any) -> None:
    found = script("growth_plots").drawn(growth._lines(files("10k", "89k", "1M")["peers"]))
    assert sorted(found) == ["scale-build.svg", "scale-cpu.svg", "scale-latency.svg", "scale-memory.svg"]
    for _, picture in found.values():
        assert "trivet, two legs" in picture
        ET.fromstring(picture)


def test_a_mark_that_is_missing_is_an_error(growth: Any) -> None:
    page = "a\n<!-- scale:plan:start -->\nold\n<!-- scale:plan:end -->\nz\n"
    assert growth.put(page, {"plan": "new"}) == page.replace("old", "new")
    with pytest.raises(SystemExit, match="no mark scale:making"):
        growth.put(page, {"making": "new"})


def test_the_newest_run_counts_and_none_is_none(growth: Any, tmp_path: Path) -> None:
    assert growth.newest("peers", tmp_path) is None
    for name, when in (("a", "2026-02-01"), ("b", "2026-01-01")):
        (tmp_path / f"peers-{name}.json").write_text(json.dumps({"machine": {"when": when}}))
    assert growth.newest("peers", tmp_path)[0] == "peers-a.json"


def test_every_byte_of_a_store_is_counted_once(growth: Any, tmp_path: Path) -> None:
    store = tmp_path / "memory.db"
    with trivet.open(store, embedder="hashing:64") as engine:
        engine.add([{"id": str(at), "text": f"otter {at} of the river"} for at in range(1_200)])
        engine.wait()
        engine.prepare()
    found = growth.structures(store, 1_200)
    index = sum(path.stat().st_size for path in Path(f"{store}.index").rglob("*") if path.is_file())
    assert sum(found.values()) == pytest.approx((store.stat().st_size + index) / 1_200, abs=1)  # each is rounded
    assert {"truth: vectors", "index: words", "index: forward (passage → words)"} <= found.keys()


def test_the_page_is_of_runs_in_the_repository(growth: Any) -> None:
    text = (ROOT / "docs/evidence/scale.md").read_text(encoding="utf-8")
    names = {name.split("-")[0]: name for name in re.findall(r"benchmarks/results/([a-z]+-\w+\.json)", text)}
    assert names, "run `make scale`"
    kept = {kind: json.loads((ROOT / "benchmarks/results" / name).read_text()) for kind, name in names.items()}
    made = growth.blocks({kind: kept.get(kind) for kind in growth.KINDS}, names)
    assert growth.put(text, made) == text
