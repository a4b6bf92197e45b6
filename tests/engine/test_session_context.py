"""Turns next to a good candidate rank higher: under filters, deletions and pages, and the hit says why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import trivet
from trivet.errors import InputError
from trivet.types import Hit

TURNS = [
    ("q", "Kettle, kettle: bought?", {"session": "tea", "level": "open"}),
    ("a", "The red one, it was on sale.", {"session": "tea", "level": "open"}),
    ("b", "Nice colour.", {"session": "tea", "level": "secret"}),
    ("x", "My kettle is at the repair shop.", {"session": "work", "level": "open"}),
    ("y", "The weather was fine.", {"level": "open"}),
    ("z", "A kettle of fish.", {"level": "open"}),
]
PLAIN = {
    "weights": {"lexical": 1.0, "dense": 0.0, "graph": 0.0},
    "rerankers": [],
    "normalize": "zscore",
    "match": "any",
}


@pytest.fixture
def memory() -> Iterator[trivet.Engine]:
    with trivet.open(":memory:", embedder="none") as engine:
        engine.add([{"id": id, "text": text, "meta": meta} for id, text, meta in TURNS])
        yield engine


def found(memory: trivet.Engine, context: float = 0.4, query: str = "kettle bought", **how: Any) -> dict[str, Hit]:
    return {hit.id: hit for hit in memory.search(query, context=context, **PLAIN, **how)}


def test_a_neighbour_that_no_leg_found_becomes_a_hit(memory: trivet.Engine) -> None:
    assert "a" not in found(memory, 0.0)
    hits = found(memory)
    assert next(iter(hits)) == "q" and "a" in hits and "b" not in hits and "y" not in hits
    answer, added = hits["a"], 0.4 * hits["q"].fused
    (change,) = answer.adjustments
    assert answer.contributions == () and answer.fused == change.before == 0.0
    assert change.reranker == "context" and change.after == answer.score
    assert answer.score == pytest.approx(added)
    assert change.reason == f"+{added:.2f} from q"


def test_two_found_turns_lift_each_other(memory: trivet.Engine) -> None:
    before, after = found(memory, 0.0, "kettle sale"), found(memory, 0.4, "kettle sale")
    assert after["q"].score == pytest.approx(before["q"].score + 0.4 * before["a"].score)
    assert after["q"].fused == pytest.approx(before["q"].fused)
    assert "from a" in after["q"].adjustments[0].reason
    assert after["z"].score == before["z"].score and after["z"].adjustments == ()


def test_off_is_as_if_it_were_not_there(memory: trivet.Engine) -> None:
    off = memory.search("kettle bought", context=0.0, **PLAIN)
    assert all(hit.score == hit.fused and hit.adjustments == () for hit in off)
    assert "context" not in [stage.name for stage in off.trace]


def test_the_trace_has_the_stage_where_there_are_sessions(memory: trivet.Engine) -> None:
    stages = {stage.name: stage for stage in memory.search("kettle bought", context=0.4, **PLAIN).trace}
    assert list(stages).index("fusion") < list(stages).index("context") < list(stages).index("fetch")
    assert stages["context"].ms >= 0.0 and stages["context"].detail == "1 lifted"
    nothing = memory.search("fish", context=0.4, **PLAIN)
    assert "context" not in [stage.name for stage in nothing.trace]


def test_a_hidden_neighbour_adds_nothing(memory: trivet.Engine) -> None:
    query, open_only = "nice colour kettle sale", {"level": "open"}
    seen = found(memory, 0.4, query)
    assert seen["b"].fused > seen["q"].fused and seen["a"].adjustments[0].reason.endswith("from b")
    hits, off = found(memory, 0.4, query, where=open_only), found(memory, 0.0, query, where=open_only)
    assert hits["a"].score == pytest.approx(off["a"].score + 0.4 * off["q"].score)
    assert hits["a"].adjustments[0].reason.endswith("from q")


@pytest.mark.parametrize("bound", [False, True])
def test_what_a_filter_or_a_bound_caller_may_not_see_never_enters(memory: trivet.Engine, bound: bool) -> None:
    memory.add([{"id": "a2", "text": "sale", "meta": {"session": "tea", "level": "open"}}])
    where = {"level": "open"}
    caller, how = (memory.within(where), {}) if bound else (memory, {"where": where})
    hits = found(caller, 0.9, "sale red one", **how)
    assert set(hits) == {"q", "a", "a2"}  # b is between a and a2
    assert found(caller, 0.9, "sale red one", exclude=["q"], **how).keys() == {"a", "a2"}


def test_a_deleted_turn_adds_nothing_and_the_next_one_takes_its_place(memory: trivet.Engine) -> None:
    assert "a" in found(memory) and "b" not in found(memory)
    memory.delete("a")
    assert "b" in found(memory) and "from q" in found(memory)["b"].adjustments[0].reason


def test_a_superseded_neighbour_gives_its_place_to_its_successor(memory: trivet.Engine) -> None:
    memory.add("It was the blue one after all.", id="newer")
    memory.link("newer", "a", "supersedes")
    hits = found(memory)
    assert "a" not in hits and hits["newer"].stands_for == ("a",)
    assert "from q" in hits["newer"].adjustments[0].reason


def test_explain_names_the_neighbour(memory: trivet.Engine) -> None:
    told = memory.explain("kettle bought", "a", context=0.4, **PLAIN)
    assert told.rank is not None and told.hit is not None
    assert told.reason == f"rank {told.rank}, found by no leg: context {told.hit.adjustments[0].reason}"
    assert memory.explain("kettle bought", "q", context=0.4, **PLAIN).reason == "rank 1"
    assert memory.explain("kettle bought", "a", context=0.0, **PLAIN).reason == "no leg has it among its best"


def test_bad_values_are_refused_by_name(memory: trivet.Engine) -> None:
    for value in (-0.1, 1.5, "much", True):
        with pytest.raises(InputError, match="context"):
            memory.search("kettle", context=value)
