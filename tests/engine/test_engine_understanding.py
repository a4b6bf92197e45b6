"""Query understanding through the whole engine; words only, so that a hit has one cause."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from trivet.engine import Engine
from trivet.errors import InputError
from trivet.types import Results

WORDS = {"weights": {"lexical": 1.0, "dense": 0.0, "graph": 0.0}}


def ids(found: Results) -> list[str]:
    return [hit.id for hit in found]


def told(found: Results, stage: str) -> str:
    return next((each.detail for each in found.trace if each.name == stage), "")


@pytest.fixture
def memory(open_store: Callable[..., Engine]) -> Iterator[Engine]:
    engine = open_store(embedder="none")
    engine.add(
        [
            {"id": "gulls", "text": "Birds of the harbour: gulls and terns.", "kind": "note", "meta": {"page": 12}},
            {"id": "owls", "text": "Birds of the old wood, mostly owls.", "kind": "note", "meta": {"author": "ana"}},
            {"id": "list", "text": "Birds seen this year.", "kind": "list", "meta": {"author": "ben"}},
            {"id": "code", "text": "The feeder stopped with E4711 again and again, and would not start."},
            {"id": "parts", "text": "Start the feeder, E 4711 times, start it, stop it, start the feeder again."},
        ]
    )
    yield engine
    engine.close()


class TestNegation:
    def test_what_is_not_wanted_neither_pulls_up_nor_stays_up(self, memory: Engine) -> None:
        plain = memory.search("birds but not gulls", understanding="plain", **WORDS)
        assert plain[0].id == "gulls"
        found = memory.search("birds but not gulls", **WORDS)
        assert found[-1].id == "gulls"
        assert found[-1].adjustments[-1].reason == "contains 100% of what the query excludes"
        assert told(found, "understand") == "not 'gulls'"

    def test_the_page_is_as_ever_where_nothing_is_said_against(self, memory: Engine) -> None:
        found = memory.search("birds", k=1, offset=2, **WORDS)
        assert len(found) == 1
        assert "avoid" not in told(found, "rerank")


class TestFields:
    def test_a_known_field_is_a_filter(self, memory: Engine) -> None:
        assert ids(memory.search("birds kind:list", **WORDS)) == ["list"]
        assert ids(memory.search("birds author:ana", **WORDS)) == ["owls"]
        assert ids(memory.search("birds page:12", **WORDS)) == ["gulls"]
        assert set(ids(memory.search("birds -author:ana", **WORDS))) == {"gulls", "list"}
        assert told(memory.search("birds kind:list", **WORDS), "understand") == "filter kind:list"

    def test_it_is_added_to_the_callers_own(self, memory: Engine) -> None:
        assert ids(memory.search("birds kind:note", where={"author": "ana"}, **WORDS)) == ["owls"]

    def test_what_no_document_within_the_callers_filter_has_is_text(self, memory: Engine) -> None:
        """As for a collection that holds nothing else: whether others have it is not told."""
        found = memory.search("birds kind:list", where={"author": "ana"}, **WORDS)
        unknown = memory.search("birds kind:nonsense", where={"author": "ana"}, **WORDS)
        assert ids(found) == ids(unknown) == ["owls"]

    @pytest.mark.parametrize("text", ["birds kind:recipe", "birds colour:red", "birds created:soon", 'birds kind:"'])
    def test_what_no_document_has_is_text(self, memory: Engine, text: str) -> None:
        assert len(memory.search(text, **WORDS)) == 3

    def test_a_field_alone_is_still_a_question(self, memory: Engine) -> None:
        assert "list" in ids(memory.search("kind:list", **WORDS)) or len(memory.search("kind:list", **WORDS)) == 0


class TestNames:
    def test_a_code_is_worth_more_than_its_parts(self, memory: Engine) -> None:
        found = memory.search("feeder E4711 start", **WORDS)
        assert found[0].id == "code"
        assert told(found, "understand") == "exactly 'E4711'"
        plain = memory.search("feeder E4711 start", understanding="plain", **WORDS)
        by_id = {hit.id: hit.contributions[0].raw for hit in plain}
        assert found[0].contributions[0].raw > by_id["code"]


class TestSpelling:
    def test_the_nearest_word_is_looked_for_and_said(self, memory: Engine) -> None:
        found = memory.search("harbuor", **WORDS)
        assert ids(found) == ["gulls"]
        assert "did you mean 'harbour' for 'harbuor'?" in told(found, "lexical")

    def test_a_word_that_is_there_is_not_touched(self, memory: Engine) -> None:
        memory.add({"id": "harbor", "text": "A harbor in Maine."})
        assert ids(memory.search("harbor", **WORDS)) == ["harbor"]

    def test_plain_is_plain(self, memory: Engine) -> None:
        assert ids(memory.search("harbuor", understanding="plain", **WORDS)) == []

    def test_in_the_index_on_disk_as_in_the_tail(self, memory: Engine) -> None:
        memory.add([{"id": f"n{n}", "text": f"note {n} on lanterns"} for n in range(600)])
        found = memory.search("latnerns", k=3, **WORDS)
        assert len(found) == 3
        assert "did you mean 'lantern' for 'latnern'?" in told(found, "lexical")


class TestTime:
    @pytest.fixture
    def diary(self, open_store: Callable[..., Engine]) -> Iterator[Engine]:
        engine = open_store(embedder="none")
        for month in range(1, 7):
            engine.add(
                {
                    "id": f"m{month}",
                    "text": "A walk to the lake.",
                    "meta": {"timestamp": f"2026-{month:02d}-10T09:00:00"},
                }
            )
        yield engine
        engine.close()

    def test_the_time_asked_for_comes_first(self, diary: Engine) -> None:
        found = diary.search("walk to the lake in April", at="2026-06-20", **WORDS)
        assert ids(found)[0] == "m4"
        copies = diary.search("walk to the lake in April", at="2026-06-20", rerankers=["temporal", "dedup"], **WORDS)
        assert ids(copies) == ["m4"]  # of copies the one of that time is kept
        assert told(found, "understand") == "'in April' is 2026-04-01 to 2026-05-01"

    def test_a_filter_where_the_caller_says_so(self, diary: Engine) -> None:
        found = diary.search("walk to the lake in April", at="2026-06-20", temporal="filter", **WORDS)
        assert ids(found) == ["m4"]

    def test_the_moment_of_the_question_counts(self, diary: Engine) -> None:
        found = diary.search("walk to the lake last month", at="2026-04-20", **WORDS)
        assert found[0].id == "m3"


class TestOtherWays:
    def test_wordings_are_asked_together(self, memory: Engine) -> None:
        found = memory.search("gulls", queries=["owls", "feeder"], **WORDS)
        assert set(ids(found)) == {"gulls", "owls", "code", "parts"}
        assert "3 wordings" in told(found, "lexical")
        assert ids(memory.search("gulls", queries=[], **WORDS)) == ["gulls"]

    @pytest.mark.parametrize(("queries", "why"), [("owls", "not a list"), ([1], "not text"), (["x"] * 17, "too many")])
    def test_wordings_that_are_none(self, memory: Engine, queries: object, why: str) -> None:
        with pytest.raises(InputError, match=f"queries: .*{why}"):
            memory.search("gulls", queries=queries, **WORDS)

    def test_words_of_the_first_hits_find_more(self, memory: Engine) -> None:
        assert ids(memory.search("terns", **WORDS)) == ["gulls"]
        found = memory.search("terns", expansion=5, **WORDS)
        assert found[0].id == "gulls"
        assert {"owls", "list"} <= set(ids(found))
        assert "words added" in told(found, "lexical")

    def test_what_stands_around_a_hit(self, open_store: Callable[..., Engine]) -> None:
        engine = open_store(embedder="none")
        for turn, text in enumerate(["Hello.", "Where is the ladder?", "In the shed.", "Thank you."]):
            engine.add({"id": f"t{turn}", "text": text, "meta": {"session": "s1"}})
            engine.add({"id": f"other{turn}", "text": "something else", "meta": {"session": "s2"}})
        (hit,) = engine.search("ladder", neighbours=2, context=0.0, **WORDS)
        assert [(part.ordinal, part.text) for part in hit.context] == [
            (-1, "Hello."),
            (1, "In the shed."),
            (2, "Thank you."),
        ]
        assert engine.search("ladder", **WORDS)[0].context == ()

    @pytest.mark.parametrize("key", ["session", "thread_id", "conversation"])
    def test_turns_of_another_owner_are_of_another_session(self, open_store: Callable[..., Engine], key: str) -> None:
        engine = open_store(embedder="none")
        for turn, text in enumerate(["Hello.", "Where is the ladder?", "In the shed."]):
            engine.add({"id": f"t{turn}", "text": text, "meta": {key: 1, "user": "ann"}})
            engine.add({"id": f"o{turn}", "text": "something of Ben's", "meta": {key: 1, "user": "ben"}})
            engine.add({"id": f"n{turn}", "text": "something of nobody's", "meta": {key: 1}})
            engine.add({"id": f"p{turn}", "text": "in a project", "meta": {key: 1, "user": "ann", "project": "x"}})
        (hit,) = engine.search("ladder", neighbours=2, context=0.0, **WORDS)
        assert [part.text for part in hit.context] == ["Hello.", "In the shed."]

    def test_the_passages_beside_a_passage(self, open_store: Callable[..., Engine]) -> None:
        engine = open_store(embedder="none", passage_size=20)
        parts = [f"Chapter {n}.\n\n" + f"plain{n} " * 30 for n in range(5)]
        engine.add({"id": "book", "text": "\n\n".join(parts)})
        (hit,) = engine.search("plain2", neighbours=1, **WORDS)
        around = [part.ordinal - hit.passage.ordinal for part in hit.context]
        assert around == [-1, 1]
        assert all(part.text == hit.document.text[part.start : part.end] for part in hit.context)
