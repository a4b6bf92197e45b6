"""The graph leg starts from the right documents, with the right mass, and says when there is no way on."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from trivet.graph.edges import Edge
from trivet.graph.mentions import TITLE, Block, Entry
from trivet.graph.mentions import MentionGraph as Blocks
from trivet.legs.graph import CEILING, FAINT, TITLED, Graph, heads
from trivet.legs.leg import LegQuery
from trivet.text.concepts import digest
from trivet.types import Ranking

TARN, OSLO = digest("tarn valley"), digest("oslo")


class Connected:
    def __init__(self, *entries: Entry, edges: Sequence[Edge] = ()) -> None:
        self.blocks, self.listed = (
            Blocks([Block.of(entries)], lambda value: {TARN: "Tarn Valley"}.get(value, "")),
            edges,
        )

    def mentions(self, version: int) -> Blocks:
        assert version == 42
        return self.blocks

    def edges(self, dids: Sequence[int], version: int, sessions: bool = True) -> Sequence[Edge]:
        return [tie for tie in self.listed if tie.source in dids]


class Only:
    def __init__(self, *dids: int) -> None:
        self.dids = dids

    def rows(self, dids: Any) -> Any:
        return np.isin(dids, self.dids)


VALLEY = (Entry(1, 10, {TARN: 0}), Entry(2, 20, {TARN: TITLE, OSLO: 0}), Entry(3, 30, {OSLO: TITLE}))


def rank(connected: Connected, text: str = "who?", depth: int = 9, **query: Any) -> Ranking:
    collection: Any = SimpleNamespace(analyzer=SimpleNamespace(stop_words=frozenset()))
    return Graph(collection, connected).rank(LegQuery(text, 42, **query), depth)  # type: ignore[arg-type]


def test_heads_count_by_rank_and_strength() -> None:
    words = Ranking("lexical", (5, 6, 7, 8, 9), (4.0, 2.0, 1.0, 1.0, 1.0), ceiling=4.0)
    meaning = Ranking("dense", (6,), (0.5,), unrelated=0.0)
    whole = 1 + 1 / 2 + 1 / 3 + 1 / 4 + 1
    expected = {5: 1.0 / whole, 6: (0.5 / 2 + 0.5) / whole, 7: 0.25 / 3 / whole, 8: 0.25 / 4 / whole}
    assert dict(heads([words, meaning])) == pytest.approx(expected)
    assert heads([]) == heads([Ranking("lexical")]) == ()


def test_the_mass_is_never_more_than_one() -> None:
    best = [Ranking(leg, tuple(range(1, 9)), (1.0,) * 8) for leg in ("lexical", "dense")]
    assert sum(mass for _, mass in heads(best)) == pytest.approx(1.0)


def test_what_the_seeds_lead_to_with_its_passage_and_its_path() -> None:
    found = rank(Connected(*VALLEY), seeds=((1, 0.6),))
    assert found.keys == (2, 1, 3)
    assert found.scores[0] == pytest.approx(0.6)
    assert found.passages == (20, 10, 30)
    assert found.paths[0] == (1, "Tarn Valley", 2)
    assert (found.floor, found.unrelated, found.ceiling) == (0.0, 0.0, CEILING)
    assert found.notes == ("from 1 seeds",)


def test_a_title_in_the_question_is_a_seed_too() -> None:
    found = rank(Connected(*VALLEY), text="what is in Tarn Valley?")
    assert found.keys[0] == 1
    assert found.paths[0] == (2, "Tarn Valley", 1)
    reached = dict(zip(found.keys, found.scores, strict=True))
    assert reached[1] + reached[3] == pytest.approx(TITLED)
    both = rank(Connected(*VALLEY), text="what is in Tarn Valley?", seeds=((1, 1.0),))
    assert dict(zip(both.keys, both.scores, strict=True))[2] >= 1.0 - TITLED


def test_the_scope_holds_for_seeds_of_the_question_and_on_the_way() -> None:
    assert not rank(Connected(*VALLEY), text="what is in Tarn Valley?", scope=Only(1, 3))
    assert not rank(Connected(*VALLEY), seeds=((1, 1.0),), scope=Only(1, 3))


def test_depth_and_gate_cut() -> None:
    assert len(rank(Connected(*VALLEY), seeds=((1, 0.6),), depth=1)) == 1
    assert rank(Connected(*VALLEY), seeds=((1, 0.6),), gate=0.5).keys == (2,)
    assert len(rank(Connected(*VALLEY), seeds=((1, 0.6),), gate=0.5).paths) == 1


def test_no_seeds_and_no_way_are_said() -> None:
    assert rank(Connected(*VALLEY)).notes == ("no seeds",)
    assert rank(Connected(Entry(1, 10, {})), seeds=((1, 1.0),)).notes == ("nothing is connected with the seeds",)
    faint = Connected(Entry(1, 10, {}), Entry(2, 20, {}), edges=[Edge(1, 2, FAINT / 2, "see-also")])
    assert rank(faint, seeds=((1, 1.0),)).notes == ("nothing is connected with the seeds",)
    clear = Connected(Entry(1, 10, {}), Entry(2, 20, {}), edges=[Edge(1, 2, FAINT * 2, "see-also")])
    assert rank(clear, seeds=((1, 1.0),)).keys == (2,)
