"""There is one judgement for each query and document, the latest, and keeping it changes nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trivet
from trivet.errors import NotFoundError, StoreError
from trivet.stores.sqlite import feedback
from trivet.stores.sqlite.collection import SqliteCollection
from trivet.types import Feedback

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def said(query: str = "q", id: str = "a", good: bool = True, minutes: float = 0) -> Feedback:
    return Feedback(query, id, good, NOON + timedelta(minutes=minutes))


def verdicts(collection: SqliteCollection) -> list[tuple[str, str, bool]]:
    return [(item.query, item.id, item.good) for item in collection.feedback.read()]


@pytest.fixture
def stocked(engine: trivet.Engine, collection: SqliteCollection) -> SqliteCollection:
    engine.add([{"id": "a", "text": "a red fox"}, {"id": "b", "text": "a grey heron"}])
    engine.wait(timeout=60)
    return collection


class TestOneVerdict:
    def test_what_is_read_is_what_was_said(self, stocked: SqliteCollection) -> None:
        given = Feedback("Ä “question” \0 \U0001f600\nin two lines", "b", False, datetime.now(UTC))
        stocked.feedback.add(given)
        assert stocked.feedback.read() == [given]

    def test_the_later_replaces_the_earlier(self, stocked: SqliteCollection) -> None:
        for good in (True, False, True):
            stocked.feedback.add(said(good=good))
            assert verdicts(stocked) == [("q", "a", good)]

    def test_each_question_and_each_document_has_its_own(self, stocked: SqliteCollection) -> None:
        for query, id in (("q", "a"), ("q", "b"), ("Q", "a"), ("q ", "a")):
            stocked.feedback.add(said(query, id))
        assert len(stocked.feedback.read()) == 4

    def test_said_now_counts_though_the_clock_was_set_back(self, stocked: SqliteCollection) -> None:
        stocked.feedback.add(said(good=True, minutes=10))
        stocked.feedback.add(said(good=False, minutes=0))
        assert verdicts(stocked) == [("q", "a", False)]

    def test_in_order_of_time(self, stocked: SqliteCollection) -> None:
        stocked.feedback.restore([said("third", minutes=3), said("first", minutes=1), said("second", minutes=2)])
        assert [query for query, _, _ in verdicts(stocked)] == ["first", "second", "third"]

    def test_what_was_said_in_the_same_moment_keeps_its_order(self, stocked: SqliteCollection) -> None:
        names = ["z", "a", "m", "b"]
        stocked.feedback.restore([said(name) for name in names])
        assert [query for query, _, _ in verdicts(stocked)] == names


class TestRestore:
    def test_a_later_verdict_stays(self, stocked: SqliteCollection) -> None:
        stocked.feedback.add(said(good=True, minutes=5))
        assert stocked.feedback.restore([said(good=False, minutes=4)]) == 0
        assert verdicts(stocked) == [("q", "a", True)]
        assert stocked.feedback.restore([said(good=False, minutes=6)]) == 1
        assert verdicts(stocked) == [("q", "a", False)]

    def test_the_same_again_is_no_news(self, stocked: SqliteCollection) -> None:
        given = [said(), said("other", "b", False)]
        assert stocked.feedback.restore(given) == 2
        assert stocked.feedback.restore(given) == 0
        assert stocked.feedback.read() == given

    def test_of_two_in_the_same_moment_the_one_that_comes_later_counts(self, stocked: SqliteCollection) -> None:
        assert stocked.feedback.restore([said(good=True), said(good=False)]) == 2
        assert verdicts(stocked) == [("q", "a", False)]

    def test_a_document_that_is_not_here_is_kept(self, stocked: SqliteCollection) -> None:
        assert stocked.feedback.restore([said(id="nowhere")]) == 1
        assert verdicts(stocked) == [("q", "nowhere", True)]

    def test_nothing(self, stocked: SqliteCollection) -> None:
        assert stocked.feedback.restore([]) == 0

    @settings(max_examples=60, deadline=None)
    @given(
        st.lists(
            st.tuples(st.sampled_from("pq"), st.sampled_from("ab"), st.booleans(), st.integers(0, 3)), max_size=12
        ).flatmap(lambda rows: st.tuples(st.just(rows), st.permutations(rows)))
    )
    def test_whatever_the_order_the_latest_time_wins(
        self, both: tuple[list[tuple[str, str, bool, int]], list[tuple[str, str, bool, int]]]
    ) -> None:
        found = []
        for rows in both:
            with trivet.open(":memory:", embedder="none") as engine:
                engine._collection.feedback.restore([said(*row) for row in rows])
                found.append({(item.query, item.id): item.at for item in engine.feedbacks()})
        expected = {
            (query, id): NOON + timedelta(minutes=max(row[3] for row in both[0] if row[:2] == (query, id)))
            for query, id, _, _ in both[0]
        }
        assert found == [expected, expected]


class TestForget:
    @pytest.mark.parametrize(
        ("query", "id", "left"),
        [
            ("p", "a", [("p", "b"), ("q", "a"), ("q", "b")]),
            ("p", None, [("q", "a"), ("q", "b")]),
            (None, "a", [("p", "b"), ("q", "b")]),
            (None, None, []),
            ("P", None, [("p", "a"), ("p", "b"), ("q", "a"), ("q", "b")]),
        ],
    )
    def test_of_a_question_of_a_document_or_of_both(
        self, stocked: SqliteCollection, query: str | None, id: str | None, left: list[tuple[str, str]]
    ) -> None:
        stocked.feedback.restore([said(q, d) for q in "pq" for d in "ab"])
        assert stocked.feedback.remove(query, id) == 4 - len(left)
        assert [(q, d) for q, d, _ in verdicts(stocked)] == left


class TestBesideTheRest:
    def test_it_is_no_news_to_the_indexes(self, engine: trivet.Engine, stocked: SqliteCollection) -> None:
        engine.search("fox")
        before = stocked.state()
        stocked.feedback.add(said())
        stocked.feedback.restore([said("other")])
        stocked.feedback.remove("other", None)
        assert stocked.state() == before
        assert stocked.lexical.is_current(before)
        assert stocked.vectors.is_current(before)

    def test_verify_is_as_before(self, engine: trivet.Engine, stocked: SqliteCollection) -> None:
        before = engine.verify()
        stocked.feedback.add(said())
        assert engine.verify() == before
        assert before.ok

    def test_deleting_and_replacing_a_document_keeps_it(self, engine: trivet.Engine, stocked: SqliteCollection) -> None:
        stocked.feedback.add(said())
        engine.add("changed", id="a")
        assert verdicts(stocked) == [("q", "a", True)]
        assert engine.delete("a") == 1
        assert verdicts(stocked) == [("q", "a", True)]
        with pytest.raises(NotFoundError, match="document 'a' not found"):
            stocked.feedback.add(said(good=False))
        engine.add("back again", id="a")
        stocked.feedback.add(said(good=False))
        assert verdicts(stocked) == [("q", "a", False)]

    def test_drop_deletes_it_and_only_its_own(self, engine: trivet.Engine, stocked: SqliteCollection) -> None:
        other = engine.collection("other", embedder="none")
        other.add("x", id="a")
        stocked.feedback.add(said(good=True))
        other._collection.feedback.add(said(good=False))
        assert (verdicts(stocked), verdicts(other._collection)) == ([("q", "a", True)], [("q", "a", False)])
        other.drop()
        assert stocked.rows.all("SELECT DISTINCT cid FROM feedback", ()) == [(stocked.rows.cid,)]
        assert verdicts(stocked) == [("q", "a", True)]

    def test_nothing_goes_into_a_collection_that_was_dropped(
        self, engine: trivet.Engine, stocked: SqliteCollection
    ) -> None:
        other = engine.collection("other", embedder="none")
        other.add("x", id="a")
        engine.collection("other").drop()
        for call in (
            lambda: other._collection.feedback.add(said()),
            lambda: other._collection.feedback.restore([said()]),
            lambda: other._collection.feedback.remove(None, None),
            lambda: other._collection.feedback.read(),
        ):
            with pytest.raises(NotFoundError, match="'other' was dropped"):
                call()
        assert stocked.rows.all("SELECT * FROM feedback", ()) == []

    @pytest.mark.parametrize("damage", ["at = 'noon'", "at = 1e300", "at = x'00'", "query = x'ff'", "id = x'ff'"])
    def test_a_damaged_row_is_told(self, stocked: SqliteCollection, damage: str) -> None:
        stocked.feedback.add(said())
        with stocked.rows.database.write() as connection:
            connection.execute(f"UPDATE feedback SET {damage}")
        with pytest.raises(StoreError, match=r"the feedback on .* for .* is damaged; run `trivet doctor`"):
            stocked.feedback.read()

    def test_a_verdict_is_found_by_the_index(self, stocked: SqliteCollection) -> None:
        asked: list[str] = []
        with stocked.rows.database.write() as connection:
            connection.set_trace_callback(asked.append)
            feedback._delete(connection, stocked.rows.cid, "q", "a")
            feedback._restore(connection, stocked.rows.cid, [said()])
            connection.set_trace_callback(None)
            for sql in asked:
                plan = " | ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}"))
                assert "(cid=? AND query=? AND id=?)" in plan, f"{sql}: {plan}"
        assert len(asked) == 2
