"""Memory: repeated, superseded, outdated, accessed, patched and listed documents."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import trivet
from trivet.engine import Engine
from trivet.errors import InputError, NotFoundError, StoreError, TakenError

Opener = Callable[..., Engine]


def ids(results: Any) -> list[str]:
    return [hit.id for hit in results]


def document(engine: Engine, id: str) -> trivet.Document:
    found = engine.get(id)
    assert found is not None
    return found


class TestRemember:
    def test_what_is_new_is_stored_and_found(self, words: Engine) -> None:
        told = words.remember(
            "The greenhouse door jams", id="door", title="Door", kind="fact", meta={"user": "sam"}, importance=0.8
        )
        assert (told.id, told.stored, told.reinforced, told.similar) == ("door", True, False, ())
        kept = document(words, "door")
        assert (kept.title, kept.kind, kept.meta, kept.importance) == ("Door", "fact", {"user": "sam"}, 0.8)
        assert (kept.accesses, kept.accessed) == (0, None)
        assert ids(words.search("door jams")) == ["door"]

    @pytest.mark.parametrize(
        "again",
        [
            "The greenhouse door jams.",
            "the GREENHOUSE  door\njams.",
            "The greenhouse door jams. ",
            "Ｔhe greenhouse door jams.",
        ],
    )
    def test_the_same_is_reinforced_and_not_stored_twice(self, words: Engine, again: str) -> None:
        first = words.remember("The greenhouse door jams.", meta={"user": "sam", "tags": ["a", "b"]})
        told = words.remember(again, meta={"tags": ["a", "b"], "user": "sam"})
        assert (told.id, told.stored, told.reinforced) == (first.id, False, True)
        assert words.stats().documents == 1
        kept = document(words, first.id)
        assert kept.text == "The greenhouse door jams."
        assert kept.importance == pytest.approx(0.5 + 0.5 * 0.1)
        assert kept.accesses == 1
        assert kept.accessed is not None and datetime.now(UTC) - kept.accessed < timedelta(minutes=1)

    def test_importance_comes_near_to_one_and_never_past(self, words: Engine) -> None:
        id = words.remember("The greenhouse door jams.", importance=0.9).id
        for _ in range(60):
            words.remember("The greenhouse door jams.")
        assert 0.99 < document(words, id).importance <= 1.0
        assert document(words, id).accesses == 60

    def test_an_importance_given_again_counts_when_it_is_higher(self, words: Engine) -> None:
        id = words.remember("The greenhouse door jams.").id
        words.remember("The greenhouse door jams.", importance=0.9)
        assert document(words, id).importance == 0.9
        words.remember("The greenhouse door jams.", importance=0.1)
        assert document(words, id).importance == pytest.approx(0.91)

    @pytest.mark.parametrize(
        "fields",
        [{"kind": "fact"}, {"meta": {"user": "kim"}}, {"meta": {}}, {"title": "Door"}, {"valid_from": "2026-01-01"}],
    )
    def test_of_another_kind_scope_title_or_time_it_is_another_memory(
        self, words: Engine, fields: dict[str, Any]
    ) -> None:
        first = words.remember("The greenhouse door jams.", meta={"user": "sam"})
        told = words.remember("The greenhouse door jams.", **{"meta": {"user": "sam"}, **fields})
        assert told.stored and told.id != first.id
        if "title" not in fields and fields.get("meta") != {"user": "kim"}:  # another user's is not similar
            assert [(item.id, item.similarity) for item in told.similar] == [(first.id, 1.0)]
        else:
            assert "title" in fields or told.similar == ()

    def test_a_number_and_a_truth_value_are_not_the_same_scope(self, words: Engine) -> None:
        words.remember("The greenhouse door jams.", meta={"n": 1})
        assert words.remember("The greenhouse door jams.", meta={"n": True}).stored

    def test_what_was_superseded_is_told_anew(self, words: Engine) -> None:
        """It holds again: to reinforce what is no longer shown would lose it."""
        words.remember("The door is blue.", id="blue")
        words.remember("The door is red.", id="red", links=[{"target": "blue", "type": "supersedes"}])
        told = words.remember("The door is blue.", id="blue again")
        assert (told.id, told.stored) == ("blue again", True)
        assert words.remember("The door is red.").id == "red"

    def test_an_id_of_the_callers_that_says_something_else_is_replaced(self, words: Engine) -> None:
        words.remember("The door is blue.", id="door", links=["x"])
        told = words.remember("The door is red.", id="door")
        assert (told.id, told.stored) == ("door", True)
        assert document(words, "door").text == "The door is red."
        assert len(words.links("door")) == 1, "links that are not mentioned stay"
        assert words.remember("the door is RED.", id="door").reinforced

    def test_under_another_id_the_one_that_is_there_is_reinforced(self, words: Engine) -> None:
        words.remember("The door is blue.", id="door")
        told = words.remember("The door is blue.", id="tür")
        assert (told.id, told.reinforced) == ("door", True)
        assert words.get("tür") is None

    def test_links_given_with_a_copy_go_to_the_one_that_is_there(self, words: Engine) -> None:
        words.remember("old", id="old")
        words.remember("The door is blue.", id="door", links=["a"])
        words.remember("The door is blue.", links=[{"target": "old", "type": "supersedes"}])
        assert {(link.source, link.target) for link in words.links("door")} == {("door", "a"), ("door", "old")}
        assert ids(words.search("old")) == ["door"]

    def test_near_copies_are_reported_and_kept(self, words: Engine) -> None:
        words.remember("Postgres listens on port 5432 in staging.", id="old")
        told = words.remember("Postgres listens on port 5433 in staging.", id="new")
        (near,) = told.similar
        assert (near.id, near.suggestion) == ("old", "supersede")
        assert (near.relation, near.changed, near.statement) == ("contradicting", "5432 → 5433", near.text)
        assert near.text == "Postgres listens on port 5432 in staging."
        assert near.similarity == pytest.approx(12 / 14, abs=1e-3)
        assert words.stats().documents == 2
        assert told.degraded == ()

    def test_a_title_of_a_longer_document_is_contradicted(self, words: Engine) -> None:
        reasons = "Growers compare a week with that of the year before. Compression brings a reading to 1.9 bytes."
        words.add(reasons, id="13m", title="Raw readings are kept for 13 months")
        for n in range(30):  # other documents about readings
            words.add(f"Raw readings of sensor {n} arrive late.", id=f"sensor-{n}")
        (near,) = words.remember("Raw readings are kept for 24 months.").similar
        assert (near.id, near.relation, near.changed) == ("13m", "contradicting", "13 → 24")

    def test_what_the_caller_linked_or_superseded_is_not_reported(self, words: Engine) -> None:
        words.remember("Postgres listens on port 5432 in staging.", id="1")
        new = {"target": "1", "type": "supersedes"}
        assert words.remember("Postgres listens on port 5433 in staging.", id="2", links=[new]).similar == ()
        assert [item.id for item in words.remember("Postgres listens on port 5434 in staging.").similar] == ["2"]

    def test_meaning_finds_what_words_do_not(self, open_store: Opener, taught: Callable[..., Any]) -> None:
        embedder = taught("cat", "kitten", "dog")
        embedder._embed = lambda texts: __import__("numpy").array(
            [[1.0, 0.0, 0.0] if "cat" in text or "kitten" in text else [0.0, 0.0, 1.0] for text in texts], "float32"
        )
        engine = open_store(embedder=embedder)
        engine.remember("a cat sleeps on the sofa", id="cat")
        engine.remember("dogs bark", id="dog")
        told = engine.remember("kittens nap where people sit", id="kitten")
        assert [(item.id, item.similarity, item.suggestion) for item in told.similar] == [("cat", 1.0, "keep both")]
        assert embedder.queries == [], "the passage's own vector asks"

    def test_an_embedder_that_fails_does_not_lose_it(self, open_store: Opener, taught: Callable[..., Any]) -> None:
        embedder = taught("cat")
        engine = open_store(embedder=embedder)
        engine.remember("a cat sleeps on the red sofa", id="a")
        embedder.fail = RuntimeError("out of order")
        told = engine.remember("a cat sleeps on the blue sofa", id="b")
        assert told.stored and [item.id for item in told.similar] == ["a"]
        assert {item.part for item in told.degraded} == {"dense"}

    def test_where_says_among_which_near_copies_are_looked_for(self, words: Engine) -> None:
        words.remember("Postgres listens on port 5432.", meta={"user": "kim"})
        told = words.remember("Postgres listens on port 5433.", meta={"user": "sam"}, where={"user": "sam"})
        assert told.similar == ()
        with pytest.raises(InputError, match="no document has a field 'usr'"):
            words.remember("Postgres listens on port 5434.", id="never", where={"usr": "sam"})
        assert words.get("never") is None

    def test_secrets_are_taken_out_before_anything_is_stored_or_embedded(
        self, open_store: Opener, taught: Callable[..., Any]
    ) -> None:
        secret = "AKIA" + "IOSFODNN7ABCDE2Q"
        embedder = taught("key")
        engine = open_store(embedder=embedder)
        told = engine.remember(f"the key is {secret}", title=f"t {secret}", meta={"m": [secret]}, redact=True)
        assert told.redacted == ("api key",)
        kept = document(engine, told.id)
        assert kept.text == "the key is [redacted: api key]"
        assert secret not in f"{kept}" + "".join(embedder.passages + embedder.queries)
        assert engine.remember(
            f"the key is {secret}", title=f"t {secret}", meta={"m": [secret]}, redact=True
        ).reinforced
        assert engine.remember(f"the key is {secret}").redacted == ()
        engine.add([{"id": "b", "text": f"bulk {secret}"}], redact=True)
        assert document(engine, "b").text == "bulk [redacted: api key]"
        engine.patch("b", title=secret, redact=True)
        assert document(engine, "b").title == "[redacted: api key]"

    def test_a_title_alone_is_a_memory_too(self, words: Engine) -> None:
        first = words.remember("", title="Ports")
        assert words.remember("", title="PORTS").id == first.id
        assert words.remember("Ports").stored

    @pytest.mark.parametrize("text", ["!!!", "the", "…", "“quoted” text: a:b -c"])
    def test_text_without_a_word_is_remembered_once_too(self, words: Engine, text: str) -> None:
        first = words.remember(text)
        assert words.remember(text).id == first.id
        assert words.stats().documents == 1

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"text": ""}, "text is empty"),
            ({"text": "x", "importance": 2}, "importance 2"),
            ({"text": "x", "links": "abc"}, "is not a list of targets"),
            ({"text": "x", "valid_from": "2026-02-01", "valid_to": "2026-01-01"}, "is after valid_to"),
        ],
    )
    def test_what_cannot_be_stored_is_refused(self, words: Engine, fields: dict[str, Any], message: str) -> None:
        with pytest.raises(InputError, match=message):
            words.remember(**fields)
        assert words.stats().documents == 0

    def test_two_engines_that_are_told_the_same_at_once_store_it_once(self, open_store: Opener) -> None:
        engines = [open_store(), open_store()]
        begin = threading.Barrier(8)
        told: list[trivet.types.Remembered] = []  # type: ignore[name-defined]

        def tell(engine: Engine) -> None:
            begin.wait()
            for number in range(10):
                told.append(engine.remember(f"fact number {number}", meta={"user": "sam"}))
                engine.touch(told[-1].id)

        threads = [threading.Thread(target=tell, args=(engines[at % 2],)) for at in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(told) == 80
        assert sum(item.stored for item in told) == 10
        kept = list(engines[0].documents())
        assert len(kept) == 10
        assert [item.accesses for item in kept] == [7 + 8] * 10, "7 reinforcements and 8 touches each"
        assert engines[1].verify().ok


class TestTouch:
    def test_counts_and_times_are_kept_and_a_search_has_nothing_to_catch_up_on(self, words: Engine) -> None:
        words.add([{"id": "a", "text": "fox"}, {"id": "b", "text": "heron", "accessed": "2020-01-01"}])
        before = words._collection.state().version
        assert words.touch(["a", "b", "a", "gone"]) == 2
        assert words.touch("b") == 1
        assert words.touch([]) == 0
        assert (document(words, "a").accesses, document(words, "b").accesses) == (1, 2)
        accessed = document(words, "b").accessed
        assert accessed is not None and accessed.year >= 2026
        assert words._collection.state().version == before

    def test_a_later_access_is_not_set_back(self, words: Engine) -> None:
        future = datetime(2999, 1, 1, tzinfo=UTC)
        words.add("fox", id="a", accessed=future)
        words.touch("a")
        assert document(words, "a").accessed == future

    def test_writing_a_document_again_does_not_forget_its_accesses(self, words: Engine) -> None:
        words.add("fox", id="a")
        words.touch("a")
        seen = document(words, "a").accessed
        assert words.add("fox", id="a").unchanged == 1
        words.add("a red fox", id="a", meta={"n": 1})
        assert (document(words, "a").accesses, document(words, "a").accessed) == (1, seen)
        words.add("a red fox", id="a", meta={"n": 1}, accesses=5)
        words.add("a red fox", id="a", meta={"n": 1}, accesses=2)
        assert document(words, "a").accesses == 5

    def test_a_document_that_went_and_came_back_begins_anew(self, words: Engine) -> None:
        words.add("fox", id="a")
        words.touch("a")
        words.delete("a")
        words.add("fox", id="a")
        assert document(words, "a").accesses == 0

    def test_a_search_touches_only_when_asked_to(self, words: Engine) -> None:
        words.add([{"id": "a", "text": "red fox"}, {"id": "b", "text": "red heron"}, {"id": "c", "text": "owl"}])
        words.search("red")
        assert [item.accesses for item in words.documents()] == [0, 0, 0]
        words.search("red", touch=True)
        assert [item.accesses for item in words.documents()] == [1, 1, 0]
        words.search("nothing of it", touch=True)

    def test_a_filter_on_the_time_of_access_sees_a_touch_at_once(self, words: Engine) -> None:
        words.add([{"id": "a", "text": "red fox"}, {"id": "b", "text": "red heron"}])
        unread = {"accessed": {"exists": False}}
        assert ids(words.search("red", where=unread)) == ["a", "b"]
        words.touch("a")
        assert ids(words.search("red", where=unread)) == ["b"]

    def test_two_engines_lose_no_access(self, open_store: Opener) -> None:
        engines = [open_store(), open_store()]
        engines[0].add([{"id": "a", "text": "fox"}, {"id": "b", "text": "heron"}])

        def read(engine: Engine) -> None:
            for _ in range(25):
                engine.touch(["a", "b"])

        threads = [threading.Thread(target=read, args=(engine,)) for engine in engines * 2]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [item.accesses for item in engines[0].documents()] == [100, 100]

    def test_what_cannot_be_counted_is_found_all_the_same(self, words: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        words.add("fox", id="a")

        def refuse(ids: Any) -> int:
            raise StoreError("store: it is read-only; nothing was written")

        monkeypatch.setattr(words._collection.documents, "touch", refuse)
        found = words.search("fox", touch=True)
        assert ids(found) == ["a"]
        assert [(item.part, "read-only" in item.reason) for item in found.degraded if item.part == "touch"] == [
            ("touch", True)
        ]

    def test_a_dropped_collection_is_not_touched(self, words: Engine) -> None:
        other = words.collection("other")
        other.add("fox", id="a")
        other.touch("a")
        again = words.collection("other")
        other.drop()
        with pytest.raises(NotFoundError, match="dropped"):
            again.touch("a")
        assert words._collection.rows.all("SELECT count(*) FROM access", ()) == [(0,)]


class TestLinks:
    @pytest.fixture
    def filled(self, words: Engine) -> Engine:
        words.add(
            [
                {
                    "id": "other",
                    "text": "a list of what every port of the harbour holds and when",
                    "created": "2026-01-01",
                },
                {"id": "v1", "text": "the port is 5432", "created": "2026-01-01"},
                {"id": "v2", "text": "the port is 5433", "created": "2026-02-01", "kind": "fact"},
                {"id": "v3", "text": "we moved to a socket", "created": "2026-03-01", "meta": {"user": "sam"}},
            ]
        )
        return words

    def test_a_successor_stands_in_the_place_of_what_it_supersedes(self, filled: Engine) -> None:
        # as fused: a reranker reads the successor's own words, and a link is a way for the graph
        plain = {"k": 3, "rerankers": ["dedup"], "graph_weight": 0}
        before = filled.search("port is 5432", **plain)
        assert ids(before) == ["v1", "v2", "other"]
        filled.link("v2", "v1", "supersedes")
        filled.link("v3", "v2", "supersedes")
        assert ids(filled.search("port is 5432", k=3)) == ["v3", "other"]
        after = filled.search("port is 5432", **plain)
        assert ids(after) == ["v3", "other"]
        assert after[0].stands_for == ("v1", "v2")
        assert (after[0].text, after[0].document.id, after[0].rank) == ("we moved to a socket", "v3", 1)
        assert (after[0].score, after[0].contributions) == (before[0].score, before[0].contributions)
        assert after[1].stands_for == ()
        assert [stage.name for stage in after.trace].count("links") == 1

    def test_one_that_is_found_itself_shows_its_own_passage_and_is_there_once(self, filled: Engine) -> None:
        filled.link("v2", "v1", "supersedes")
        found = filled.search("port is 5433", k=3)
        assert ids(found) == ["v2", "other"]
        assert found[0].stands_for == ("v1",)
        assert found[0].text == "the port is 5433"

    def test_a_long_successor_that_no_leg_found_shows_where_it_begins(self, filled: Engine) -> None:
        filled.add("It begins here.\n\n" + "nothing of it. " * 2_000, id="long")
        filled.link("long", "v1", "supersedes")
        found = filled.search("5432", k=1)
        assert ids(found) == ["long"]
        assert found[0].text.startswith("It begins here.")
        assert len(found[0].text) < len(found[0].document.text)

    def test_it_can_be_turned_off_for_a_request_and_in_the_settings(self, filled: Engine) -> None:
        filled.link("v3", "v1", "supersedes")
        assert ids(filled.search("5432", follow_links=False)) == ["v1"]
        filled.update_settings(follow_links=False)
        assert ids(filled.search("5432")) == ["v1"]

    def test_a_filter_holds_for_the_successor(self, filled: Engine) -> None:
        filled.link("v2", "v1", "supersedes")
        filled.link("v3", "v2", "supersedes")
        assert ids(filled.search("5432", where={"kind": "note"}, k=1)) == ["v1"], "the way leads over one not allowed"
        assert ids(filled.search("5432", where={"user": {"exists": False}}, k=1)) == ["v2"]

    def test_who_excludes_the_successor_is_not_given_what_it_supersedes(self, filled: Engine) -> None:
        filled.link("v3", "v1", "supersedes")
        assert ids(filled.search("5432", exclude=["v3"])) == []
        assert ids(filled.search("5432", exclude=["v1"])) == []
        assert ids(filled.search("port", exclude=["v2", "other"])) == ["v3"]

    def test_circles_and_links_to_what_is_gone_are_survived(self, filled: Engine) -> None:
        filled.link("v1", "v2", "supersedes")
        filled.link("v2", "v1", "supersedes")
        filled.link("other", "other", "supersedes")
        assert ids(filled.search("port is 5432", k=3)) == ["v2", "other"], "the younger of two stands for both"
        filled.add("the port is 5432", id="v1", links=[])
        filled.add("nobody", id="n", links=[{"target": "v2", "type": "supersedes"}])
        filled.delete("n")
        assert ids(filled.search("5433", k=1)) == ["v2"]

    def test_pages_do_not_repeat_or_skip(self, words: Engine) -> None:
        words.add([{"id": f"d{number}", "text": "fox " * (20 - number)} for number in range(12)])
        for old, new in (("d0", "d7"), ("d3", "d7"), ("d5", "d1")):
            words.link(new, old, "supersedes")
        for options in ({}, {"profile": "memories"}, {"rerankers": [], "k": 3}):
            k = 3
            pages = [ids(words.search("fox", **{**options, "k": k, "offset": at})) for at in range(0, 12, k)]
            flat = [id for page in pages for id in page]
            assert len(flat) == len(set(flat))
            if options != {"profile": "memories"}:
                assert set(flat) == {f"d{number}" for number in range(12)} - {"d0", "d3", "d5"}

    def test_what_resolves_a_hit_is_on_it_in_its_newest_form(self, filled: Engine) -> None:
        filled.add(
            [{"id": "bug", "text": "crash at start"}, {"id": "fix", "text": "set X"}, {"id": "fix2", "text": "Y"}]
        )
        filled.add([{"id": "guide", "text": "z", "kind": "guide"}])
        filled.link("bug", "guide", "resolved-by")
        filled.link("bug", "fix", "resolved-by")
        assert filled.search("crash")[0].resolved_by == ("fix", "guide")
        filled.link("fix2", "fix", "supersedes")
        assert filled.search("crash")[0].resolved_by == ("fix2", "guide")
        assert filled.search("crash", where={"kind": "note"})[0].resolved_by == ("fix2",)
        assert filled.search("crash", exclude=["fix2"])[0].resolved_by == ("guide",)
        assert filled.search("crash", follow_links=False)[0].resolved_by == ()
        filled.delete(["fix", "fix2", "guide"])
        assert filled.search("crash")[0].resolved_by == ()

    def test_links_of_other_types_change_and_cost_nothing_but_the_graph(self, filled: Engine) -> None:
        before = filled.search("port is 5432", graph_weight=0)
        filled.link("v2", "v1", "see-also")
        filled.search("port is 5432", graph_weight=0)
        asked: list[str] = []
        connection = filled._collection.rows.database.read()
        connection.set_trace_callback(asked.append)
        after = filled.search("port is 5432", graph_weight=0)
        connection.set_trace_callback(None)
        assert not [sql for sql in asked if "links" in sql]
        assert (ids(after), [hit.score for hit in after]) == (ids(before), [hit.score for hit in before])
        assert "links" not in [stage.name for stage in after.trace]

    def test_another_process_sees_a_link_by_its_next_search(self, filled: Engine, open_store: Opener) -> None:
        other = open_store()
        assert ids(other.search("5432")) == ["v1"]
        filled.link("v2", "v1", "supersedes")
        assert ids(other.search("5432")) == ["v2"]
        filled.unlink("v2", "v1")
        assert ids(other.search("5432")) == ["v1"]

    def test_explain_tells_of_the_heir_and_of_the_place(self, filled: Engine) -> None:
        filled.link("v2", "v1", "supersedes")
        told = filled.explain("5432", "v1")
        assert (told.rank, told.reason) == (None, "superseded: 'v2' is shown in its place, at rank 1")
        assert told.verdicts[0].rank == 1
        assert filled.explain("5432", "v2").reason == "rank 1, in the place of 'v1'"


class TestValidity:
    @pytest.fixture
    def filled(self, words: Engine) -> Engine:
        words.add(
            [
                {"id": "always", "text": "office"},
                {"id": "until", "text": "office", "valid_to": "2026-03-01"},
                {"id": "from", "text": "office", "valid_from": "2026-03-01"},
                {"id": "spring", "text": "office", "valid_from": "2026-03-01", "valid_to": "2026-06-01"},
            ]
        )
        return words

    @pytest.mark.parametrize(
        ("moment", "valid"),
        [
            ("2026-02-28T23:59:59Z", {"always", "until"}),
            ("2026-03-01", {"always", "from", "spring"}),
            (datetime(2026, 5, 31, tzinfo=UTC), {"always", "from", "spring"}),
            (datetime(2026, 6, 1, tzinfo=UTC).timestamp(), {"always", "from"}),
            (None, {"always", "until", "from", "spring"}),
        ],
    )
    def test_what_was_not_valid_is_left_out_before_the_cut(self, filled: Engine, moment: Any, valid: set[str]) -> None:
        found = filled.search("office", as_of=moment, rerankers=[])
        assert set(ids(found)) == valid
        assert set(ids(filled.search("office", k=len(valid), as_of=moment, rerankers=[]))) == valid

    def test_it_holds_on_every_leg_and_with_a_filter(self, open_store: Opener, taught: Callable[..., Any]) -> None:
        engine = open_store(embedder=taught("office"))
        engine.add([{"id": "a", "text": "office", "valid_to": "2026-01-01"}, {"id": "b", "text": "office x"}])
        for alpha in (0.0, 1.0):
            assert ids(engine.search("office", alpha=alpha, as_of="2026-02-01")) == ["b"]
        assert ids(engine.search("office", weights={"trigram": 1}, as_of="2026-02-01")) == ["b"]
        assert ids(engine.search("office", where={"id": ["a"]}, as_of="2026-02-01")) == []

    def test_at_a_moment_the_version_of_that_time_is_shown(self, words: Engine) -> None:
        words.add("the port is 5432", id="old", valid_to="2026-03-01")
        words.add("the port is 5433", id="new", valid_from="2026-03-01")
        words.link("new", "old", "supersedes")
        assert ids(words.search("port", as_of="2026-02-01")) == ["old"]
        assert ids(words.search("port", as_of="2026-04-01")) == ["new"]
        assert ids(words.search("5432")) == ["new"]

    def test_explain_knows_the_moment(self, filled: Engine) -> None:
        told = filled.explain("office", "until", as_of="2026-04-01")
        assert (
            told.reason
            == "document 'until' not found in collection 'default' among the documents that the filter allows"
        )
        assert filled.explain("office", "until", as_of="2026-01-01", rerankers=[]).rank is not None

    @pytest.mark.parametrize("moment", ["yesterday", True, [], 1e20])
    def test_what_is_not_a_moment_is_refused(self, filled: Engine, moment: Any) -> None:
        with pytest.raises(InputError, match=r"as_of: .* is not a time"):
            filled.search("office", as_of=moment)


class TestPatch:
    def test_only_what_is_given_changes(self, words: Engine) -> None:
        words.add(
            "red fox", id="a", title="Fox", meta={"n": 1, "deep": {"x": 1, "y": 2}}, valid_to="2026-01-01", links=["b"]
        )
        words.touch("a")
        before = document(words, "a")
        after = words.patch("a", meta={"n": None, "deep": {"x": 5}, "new": [1]}, importance=0.9)
        assert after == document(words, "a")
        assert after.meta == {"deep": {"x": 5, "y": 2}, "new": [1]}
        assert (after.text, after.title, after.importance, after.valid_to) == ("red fox", "Fox", 0.9, before.valid_to)
        assert (after.created, after.accesses, after.accessed) == (before.created, 1, before.accessed)
        assert after.updated is not None and before.updated is not None and after.updated >= before.updated
        assert len(words.links("a")) == 1
        assert ids(words.search("fox", where={"deep.x": 5})) == ["a"]
        assert words.patch("a", valid_to=None).valid_to is None

    def test_a_new_text_is_found_and_the_old_one_is_not(self, open_store: Opener, taught: Callable[..., Any]) -> None:
        engine = open_store(embedder=taught("fox", "heron"))
        engine.add("fox", id="a")
        assert engine.patch("a", text="heron").text == "heron"
        assert ids(engine.search("heron", alpha=0)) == ["a"]
        assert ids(engine.search("fox", alpha=0)) == []
        assert engine.search("heron", alpha=1)[0].contributions[0].raw == pytest.approx(1.0)
        assert engine.verify().ok

    def test_what_changes_nothing_leaves_the_time_of_change(self, words: Engine) -> None:
        words.add("fox", id="a")
        before = document(words, "a").updated
        assert words.patch("a", text="fox").updated == before
        assert words.patch("a").updated == before

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"txt": "x"}, "txt: a patch cannot change it; did you mean 'text'"),
            ({"accesses": 3}, "accesses: a patch cannot change it"),
            ({"importance": 7}, "importance 7"),
            ({"text": ""}, "text is empty"),
            ({"meta": 3}, "meta 3 is not a mapping"),
        ],
    )
    def test_what_cannot_be_is_refused_and_nothing_changes(
        self, words: Engine, fields: dict[str, Any], message: str
    ) -> None:
        words.add("fox", id="a")
        before = document(words, "a")
        with pytest.raises(InputError, match=message):
            words.patch("a", **fields)
        assert document(words, "a") == before

    def test_a_document_that_is_not_there_is_named(self, words: Engine) -> None:
        with pytest.raises(NotFoundError, match="document 'a' not found"):
            words.patch("a", text="fox")

    def test_two_who_change_different_fields_at_once_both_do(self, open_store: Opener) -> None:
        engines = [open_store(), open_store()]
        engines[0].add("fox", id="a")

        def change(at: int) -> None:
            for number in range(20):
                engines[at].patch("a", meta={f"k{at}_{number}": number})

        threads = [threading.Thread(target=change, args=(at,)) for at in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(document(engines[0], "a").meta) == 40


class TestPage:
    def test_pages_are_the_whole_in_order(self, words: Engine) -> None:
        words.add([{"id": f"d{number}", "text": "fox", "meta": {"even": number % 2 == 0}} for number in range(7)])
        after, seen = None, []
        while True:
            page = words.page(after=after, limit=3)
            seen.append([item.id for item in page])
            if (after := page.next) is None:
                break
        assert seen == [["d0", "d1", "d2"], ["d3", "d4", "d5"], ["d6"]]
        assert [item.id for item in words.page({"even": True}, limit=10)] == ["d0", "d2", "d4", "d6"]
        assert words.page(limit=7).next is None
        assert len(words.collection("empty").page()) == 0

    def test_writes_in_between_repeat_and_skip_nothing(self, words: Engine) -> None:
        words.add([{"id": f"d{number}", "text": "fox"} for number in range(6)])
        first = words.page(limit=3)
        words.delete(["d0", "d2"])  # before the cursor, and the one it stands on
        words.add("changed", id="d1")
        words.add("changed", id="d4")
        words.add("new", id="new")
        rest = words.page(after=first.next, limit=10)
        assert [item.id for item in rest] == ["d3", "d4", "d5", "new"]

    @pytest.mark.parametrize("after", ["", "-1", "x", "1.5", "9" * 40, 3, "²"])
    def test_what_is_not_a_cursor_is_refused(self, words: Engine, after: Any) -> None:
        with pytest.raises(InputError, match="after: "):
            words.page(after=after)

    @pytest.mark.parametrize("limit", [0, -1, 1001, True, 2.5, None])
    def test_a_limit_out_of_range_is_refused(self, words: Engine, limit: Any) -> None:
        with pytest.raises(InputError, match="limit: "):
            words.page(limit=limit)


class TestSettingsHistory:
    def test_every_change_says_who_when_and_what(self, words: Engine) -> None:
        assert words.settings_history() == []
        begun = datetime.now(UTC)
        words.update_settings(k=5, by="sam")
        words.update_settings("memories")
        latest, first = words.settings_history()
        assert (first.number, first.by, first.profile.k, first.previous) == (1, "sam", 5, trivet.PROFILES["default"])
        assert (latest.number, latest.by, latest.profile) == (2, "", trivet.PROFILES["memories"])
        assert latest.previous == first.profile
        assert begun <= first.at <= latest.at <= datetime.now(UTC)
        assert words.settings_history(limit=1) == [latest]

    def test_a_change_that_is_refused_is_not_written_down(self, words: Engine) -> None:
        with pytest.raises(InputError):
            words.update_settings(k=0)
        with pytest.raises(InputError, match="by: 3"):
            words.update_settings(k=5, by=3)  # type: ignore[arg-type]
        assert words.settings_history() == []

    def test_revert_takes_the_last_change_back_and_is_a_change_itself(self, words: Engine) -> None:
        words.update_settings(k=5)
        words.update_settings(k=7)
        assert words.revert_settings(by="kim").k == 5
        assert words.settings.k == 5
        assert (words.settings_history()[0].by, words.settings_history()[0].number) == ("kim", 3)
        assert words.revert_settings().k == 7

    def test_revert_to_a_number_is_what_that_change_made(self, words: Engine) -> None:
        for k in (5, 6, 7):
            words.update_settings(k=k)
        assert words.revert_settings(to=2).k == 6
        assert words.revert_settings(to=0) == trivet.PROFILES["default"]

    @pytest.mark.parametrize(
        ("to", "kind"), [(9, NotFoundError), (-1, InputError), (True, InputError), ("1", InputError)]
    )
    def test_what_cannot_be_reverted_to_is_refused(self, words: Engine, to: Any, kind: type[Exception]) -> None:
        words.update_settings(k=5)
        with pytest.raises(kind, match="the history of the settings"):
            words.revert_settings(to=to)
        assert (words.settings.k, len(words.settings_history())) == (5, 1)

    def test_with_no_change_there_is_nothing_to_revert(self, words: Engine) -> None:
        with pytest.raises(NotFoundError, match="never changed"):
            words.revert_settings()

    def test_damaged_settings_can_be_replaced_and_are_unreadable_in_the_history(self, words: Engine) -> None:
        with words._collection.rows.changing() as connection:
            connection.execute("UPDATE collections SET settings = '{broken'")
        words.update_settings("default")
        (change,) = words.settings_history()
        assert change.previous is None

    def test_changes_of_two_engines_are_all_there(self, open_store: Opener) -> None:
        engines = [open_store(), open_store()]

        def change(engine: Engine) -> None:
            for k in range(1, 11):
                engine.update_settings(k=k)

        threads = [threading.Thread(target=change, args=(engine,)) for engine in engines]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        history = engines[0].settings_history()
        assert [item.number for item in history] == list(range(20, 0, -1))
        assert all(new.previous == old.profile for new, old in pairwise(history))

    def test_it_goes_with_its_collection_and_is_nobody_elses(self, words: Engine) -> None:
        other = words.collection("other")
        other.update_settings(k=3)
        assert words.settings_history() == []
        other.drop()
        assert words.collection("other").settings_history() == []


def test_an_export_carries_counts_and_validity_and_leaves_the_history(open_store: Opener, tmp_path: Any) -> None:
    one, two = open_store("one.db"), open_store("two.db")
    one.add("fox", id="a", valid_from="2026-01-01", valid_to="2026-02-01")
    one.add("heron", id="b")
    one.update_settings(k=5, by="sam")
    one.touch(["a"])
    one.touch(["a"])
    one.export(tmp_path / "out.jsonl")
    assert "accesses" not in (tmp_path / "out.jsonl").read_text().splitlines()[2]
    two.import_(tmp_path / "out.jsonl")
    assert list(two.documents()) == list(one.documents())
    assert document(two, "a").accesses == 2
    assert [(change.by, change.profile.k) for change in two.settings_history()] == [("import", 5)]


def test_an_id_that_has_to_be_new_is_one_callers_only(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with trivet.open(path, embedder="none") as one, trivet.open(path) as other:
        told: list[str] = []

        def tell(engine: Engine, who: str) -> None:
            try:
                told.append(engine.remember(f"{who} was first", id="first", only_new=True).id)
            except TakenError as error:
                told.append(str(error))

        threads = [threading.Thread(target=tell, args=(one if n % 2 else other, f"caller {n}")) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert told.count("first") == 1
        assert all("'first' exists" in item for item in told if item != "first")
        kept = one.get("first")
        assert kept is not None
        assert one.remember(kept.text, id="first", only_new=True).reinforced, "the same again is no conflict"
        assert one.remember("replaced", id="first").stored


def test_what_was_taken_out_is_counted_by_kind(tmp_path: Path) -> None:
    key = "AKIA" + "Q2W3E4R5T6Y7U2I3"
    with trivet.open(tmp_path / "memory.db", embedder="none") as engine:
        added = engine.add([f"{key} and {key}", "password = hunter22"], redact=True)
        assert added.redacted == {"api key": 2, "password": 1}
        assert engine.add(f"plain {key}").redacted == {}
