"""Facets and timelines count what the filter allows."""

from __future__ import annotations

from pathlib import Path

import pytest

import trivet
from trivet.errors import InputError


@pytest.fixture
def memory(tmp_path: Path) -> trivet.Engine:
    engine = trivet.open(tmp_path / "memory.db", embedder="none")
    engine.add(
        [
            {"id": str(at), "text": f"barge {at}", "meta": {"tags": ["slow", f"n{at}"], "deep": {"draught": at % 2}}}
            for at in range(6)
        ],
    )
    return engine


def test_a_value_of_a_list_counts_for_each_and_a_nested_field_by_its_path(memory: trivet.Engine) -> None:
    found = {facet.field: facet for facet in memory.facets(values=2)}
    assert list(found) == ["kind", "deep.draught", "tags"]
    assert found["tags"].documents == 6
    assert found["tags"].distinct == 7
    assert found["tags"].values[0] == ("slow", 6)
    assert found["deep.draught"].values == ((0, 3), (1, 3))
    assert {facet.field: facet.documents for facet in memory.facets({"deep.draught": 1})}["tags"] == 3
    with pytest.raises(InputError, match="values: 0 is not"):
        memory.facets(values=0)
    with pytest.raises(InputError, match="did you mean 'tags'"):
        memory.facets("tag=slow")


def test_another_collection_is_not_counted(memory: trivet.Engine) -> None:
    other = memory.collection("other", embedder="none")
    other.add("barge 0", meta={"tags": ["quick"]}, id="0")
    assert [facet.values for facet in other.facets()] == [(("note", 1),), (("quick", 1),)]
    assert memory.redundant().copies == ()
    assert memory.redundant().looked_at == 6


def test_time_is_cut_where_the_calendar_cuts_it(tmp_path: Path) -> None:
    engine = trivet.open(tmp_path / "memory.db", embedder="none")
    moments = ("2025-12-31T23:59:59Z", "2026-01-01T00:00:00Z", "1969-07-20T20:17:00Z", "0001-01-01T00:00:00Z")
    engine.add([{"id": str(at), "text": "x", "created": moment} for at, moment in enumerate(moments)])
    found = engine.timeline()
    assert found.step == "year"
    assert [(one.period, one.documents) for one in found.periods] == [
        ("0001", 1),
        ("1969", 1),
        ("2025", 1),
        ("2026", 1),
    ]
    days = engine.timeline({"created": {"gte": "2025-01-01"}})
    assert (days.step, [one.period for one in days.periods]) == ("day", ["2025-12-31", "2026-01-01"])
    with pytest.raises(InputError, match="field: 'text' is unknown"):
        engine.timeline(field="text")
    assert trivet.open(tmp_path / "empty.db", embedder="none").timeline().periods == ()


def test_a_chain_tells_each_step_and_a_link_to_nothing_tells_none(memory: trivet.Engine) -> None:
    memory.link("1", "0", type="supersedes")
    memory.link("2", "1", type="supersedes")
    memory.patch("3", links=[{"target": "gone", "type": "supersedes"}])
    assert set(memory.redundant().superseded) == {("0", "1"), ("1", "2")}
    assert memory.redundant(["1", "5"]).superseded == (("1", "2"),)
    memory.delete("2")
    assert memory.redundant().superseded == (("0", "1"),)
