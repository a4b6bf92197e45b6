"""The postings give the same scores as the passages, whatever was written after they were made."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trivet
from servers import Postgres
from trivet.engine import Engine
from trivet.stores import bm25
from trivet.stores.postgres import postings, scope
from trivet.stores.postgres.postings import LARGEST, Lists, Postings, Sum, affordable, plan
from trivet.stores.postgres.tables import MAX_PARTS, Tables

from .conftest import rows

WORDS = {"weights": {"lexical": 1.0, "dense": 0.0, "graph": 0.0}, "rerankers": [], "k": 40, "understanding": "plain"}
SOME = ("heron", "river", "stone", "lamp", "fox", "hill", "moss", "oak", "mist", "reed")


def texts(count: int, seed: int = 3) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    return [
        {
            "id": f"d{n}",
            "text": " ".join(draw.choices(SOME, weights=range(1, 11), k=draw.randint(2, 30))),
            "meta": {"part": n % 3, "few": n % 40},
        }
        for n in range(count)
    ]


def scores(memory: Engine, question: str, **options: Any) -> dict[str, float]:
    """Return the scores above the last one: of several with the last score, any may have been cut."""
    found = [(hit.id, round(hit.contributions[0].raw, 6)) for hit in memory.search(question, **{**WORDS, **options})]
    return {id: score for id, score in found if score > found[-1][1]} | {"": found[-1][1] if found else 0.0}


@pytest.fixture(params=["collections", "documents"])
def both(request: pytest.FixtureRequest, postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A store whose postings are made from 50 passages on, and a SQLite store with the same documents."""
    monkeypatch.setattr(postings, "PACK_FROM", 50)
    with (
        trivet.open(postgres.fresh(distribute=request.param), embedder="none") as memory,
        trivet.open(tmp_path / "memory.db", embedder="none") as reference,
    ):
        for each in (memory, reference):
            each.add(texts(300))
        memory._collection.maintenance.update()
        yield memory, reference
    postgres.sweep()


def reach(memory: Engine) -> list[int]:
    return [last for (last,) in rows(memory, "SELECT max(last) FROM segments GROUP BY cid ORDER BY cid")]


QUESTIONS = ("heron", "heron river stone", "moss lamp oak mist", "reed mist oak moss hill fox", "heron nowhere")


def test_scores_are_those_of_the_embedded_store(both: tuple[Engine, Engine]) -> None:
    memory, reference = both
    table = memory._collection.rows.tables.postings  # type: ignore[attr-defined]
    assert reach(memory) and rows(memory, f"SELECT count(*) FROM {table}")[0][0] >= len(SOME)
    for question in QUESTIONS:
        for match in ("any", "all", "auto"):
            assert scores(memory, question, match=match) == scores(reference, question, match=match), question


def test_what_came_went_or_changed_since_is_seen(both: tuple[Engine, Engine]) -> None:
    memory, reference = both
    before = reach(memory)
    for each in both:
        each.delete([f"d{n}" for n in range(0, 60, 2)])
        each.add([{"id": "d1", "text": "heron heron heron"}, {"id": "late", "text": "moss heron stone"}])
    assert reach(memory) == before, "too little to make a segment of"
    for question in QUESTIONS:
        assert scores(memory, question, match="any") == scores(reference, question, match="any"), question


@pytest.mark.parametrize("most_named", [5, 20_000])
@pytest.mark.parametrize("where", [{"part": 1}, {"few": 7}, {"few": [1, 2, 3], "part": 0}])
def test_a_filter_is_applied_before_the_cut(
    both: tuple[Engine, Engine], where: Any, most_named: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scope, "MAX_LISTED", most_named)
    for question in QUESTIONS:
        for options in ({"k": 5, "lexical_depth": 5}, {"k": 5, "lexical_depth": 5, "exclude": ["d7", "d47"]}):
            one, two = (scores(each, question, match="any", where=where, **options) for each in both)
            assert one == two, question


def test_a_filter_that_allows_too_many_to_remember(
    both: tuple[Engine, Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, reference = both
    monkeypatch.setattr(scope, "MAX_KEPT", 10)
    monkeypatch.setattr(scope, "MAX_LISTED", 10)
    assert scores(memory, "moss lamp", where={"part": 1}) == scores(reference, "moss lamp", where={"part": 1})


def test_much_that_is_new_is_taken_in_by_itself(both: tuple[Engine, Engine], monkeypatch: pytest.MonkeyPatch) -> None:
    memory, _ = both
    before = reach(memory)
    monkeypatch.setattr(postings, "PACK_FROM", 10_000)
    memory.add([{**item, "id": f"new-{item['id']}"} for item in texts(400, seed=5)])
    by_themselves = {question: scores(memory, question) for question in QUESTIONS}
    monkeypatch.setattr(postings, "PACK_FROM", 50)
    memory.add("something else", id="other")
    memory.delete("other")
    memory.search("heron")
    memory._store._background.join()  # type: ignore[attr-defined]
    assert all(now > then for now, then in zip(reach(memory), before, strict=True))
    assert {question: scores(memory, question) for question in QUESTIONS} == by_themselves
    memory.rebuild()
    assert memory.verify().ok and {question: scores(memory, question) for question in QUESTIONS} == by_themselves


def test_the_commonest_words_are_left_out_where_they_cost_too_much(
    both: tuple[Engine, Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, _ = both
    monkeypatch.setattr(postings, "MAX_READ", 60)
    monkeypatch.setattr(postings, "MAX_READ_TOGETHER", 60)
    found = memory.search("heron reed mist", match="any", **WORDS)
    assert found.hits and "without the 2 commonest" in found.trace[0].detail
    some = {"a": 50, "b": 5, "c": 20}
    assert affordable(some, ["a"]) == ["a", "b"], "what must occur is read whatever it costs"


def test_a_search_that_widens_reads_the_terms_that_it_may(
    both: tuple[Engine, Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first look requires all words and reads them whatever they cost; the second leaves the commonest out."""
    memory, _ = both
    monkeypatch.setattr(postings, "MAX_READ", 60)
    monkeypatch.setattr(postings, "MAX_READ_TOGETHER", 60)
    widened = scores(memory, "heron reed mist", depths={"lexical": 300})
    assert widened == scores(memory, "heron reed mist", depths={"lexical": 300}, match="any") and len(widened) > 1


def test_the_limit_is_that_of_one_part(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "PACK_FROM", 20)
    monkeypatch.setattr(postings, "MAX_READ", 160)  # in one piece 300 passages have each word, in a part about 75
    details = []
    for by in ("collections", "documents"):
        with trivet.open(postgres.fresh(distribute=by), embedder="none") as memory:
            memory.add([{"id": f"d{n}", "text": f"heron n{n}" if n % 10 else f"heron river n{n}"} for n in range(300)])
            memory._collection.maintenance.update()
            details.append(str(memory.search("heron river", match="any", **WORDS).trace[0].detail))
    assert "without the 1 commonest" in details[0] and "without" not in details[1]
    postgres.sweep()


def test_all_parts_together_have_a_limit_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "MAX_READ", 100)
    monkeypatch.setattr(postings, "MAX_READ_TOGETHER", 250)
    common = {"a": 90, "b": 100, "c": 110}
    read = [affordable(common, [], parts) for parts in (1, 2, 3, 64)]
    assert read == [["a"], ["a", "b"], ["a", "b"], ["a", "b"]]


@given(st.lists(st.integers(1, 3 * LARGEST), min_size=1, max_size=30), st.sampled_from([1, MAX_PARTS]))
def test_segments_cover_everything_once_and_stay_few(added: list[int], step: int) -> None:
    known: list[tuple[int, int]] = []
    last = 0
    for amount in added:
        last += amount * step
        made = plan(known, last, LARGEST * step)
        gone = {first for old, _, _ in made for first in old}
        known = [item for item in known if item[0] not in gone] + [(first, to) for _, first, to in made]
        assert known[0][0] == 1 and known[-1][1] == last
        assert all(one[1] + 1 == two[0] for one, two in itertools.pairwise(known))
        assert all(to - first < LARGEST * step for first, to in known)
    assert len(known) <= 2 * (last // (LARGEST * step)) + 22


def test_the_best_of_a_segment_by_hand() -> None:
    entry = [("at", ">i4"), ("length", ">i4"), ("count", ">i2")]
    first = np.array([(0, 10, 1), (5, 40, 1)], dtype=entry)  # of the part in the third place
    second = np.array([(2, 10, 2)], dtype=entry)
    tables = Tables(9, (4, 7, 11, 12))
    of_parts = [(3, first.tobytes()), (1, second.tobytes())]
    lists = Lists(tables, {MAX_PARTS * 7 + 1: {"heron": of_parts}})
    asked = Sum({"heron": 2.0}, frozenset(), 20.0)
    found = lists.best(asked, 2)
    assert [pid for _, pid in found] == [(7 + 2) * MAX_PARTS + 1, 7 * MAX_PARTS + 3]
    assert found[0][0] == pytest.approx(2.2 * 2.0 * 2 / (2 + 1.2 * (0.25 + 0.75 * 10 / 20)))
    assert [pid for _, pid in lists.best(asked, 9, np.array([12 * MAX_PARTS + 3]))] == [12 * MAX_PARTS + 3]
    assert lists.best(Sum({"heron": 2.0}, frozenset({"fox"}), 20.0), 9) == []


@given(
    st.lists(st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0]), min_size=1, max_size=40),
    st.integers(1, 12),
    st.sets(st.integers(0, 39)),
)
def test_some_places_tell_what_is_too_low_and_change_nothing(values: list[float], most: int, places: set[int]) -> None:
    scores = np.array(values)
    some = np.array(sorted(place for place in places if place < len(values)), dtype=np.int64)
    found = postings._highest(scores, most, some if len(some) > most else None)
    best = sorted(range(len(values)), key=lambda at: (-values[at], at))[:most]
    assert sorted(found.tolist()) == sorted(at for at in best if values[at] > 0.0)


def test_the_lengths_of_nearly_all_passages_are_rounded_by_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = np.array([0, 41, 1_000, bm25._TABLE - 1])
    expected = bm25._rounded(lengths).tolist()
    assert bm25.rounded(lengths).tolist() == expected
    monkeypatch.setattr(bm25, "_rounded", lambda lengths: pytest.fail("one by one"))
    assert bm25.rounded(lengths.astype(">i4")).tolist() == expected


def test_two_who_make_the_postings_at_once_make_them_once(both: tuple[Engine, Engine]) -> None:
    memory, _ = both
    tables = memory._collection.rows.tables  # type: ignore[attr-defined]
    made = rows(memory, "SELECT first, last FROM segments WHERE cid = %s", tables.root)
    database = memory._store.database  # type: ignore[attr-defined]
    with database.locked(f"postings_{tables.root}") as mine:
        assert mine
        Postings(database, tables).pack(made[-1][1] + 1_000 * tables.step)
    assert rows(memory, "SELECT first, last FROM segments WHERE cid = %s", tables.root) == made
