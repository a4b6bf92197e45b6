"""The trigram leg gives what scoring every passage with ``word_similarity`` would."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivet.engine import Engine
from trivet.legs import trigram
from trivet.legs.leg import LegQuery
from trivet.legs.trigram import Trigram
from trivet.stores.sqlite.trigrams import LIKELIEST, PER_DOCUMENT, rank_candidates
from trivet.text.analysis import Analyzer
from trivet.text.trigrams import word_similarity

KEYWORDS = Analyzer("en").keywords


class Index:
    """Proposes all its passages, pid by pid; pid 21 is the second passage of document 2."""

    def __init__(self, texts: dict[int, str]) -> None:
        self.texts, self.asked = texts, []

    def search(self, keywords: str, threshold: float, depth: int, scope: Any, version: int) -> Any:
        def propose(trigrams: list[str], count: int) -> list[tuple[float, int, int]]:
            self.asked.append((trigrams, count, scope, version))
            return [(1.0, pid, pid // 10) for pid in list(self.texts)[:count]]

        return rank_candidates(keywords, threshold, depth, propose, self.passage_texts)

    def passage_texts(self, pids: Sequence[int]) -> dict[int, str]:
        return {pid: self.texts[pid] for pid in pids if pid in self.texts}


def leg(index: Index, keywords: Any = KEYWORDS) -> Trigram:
    collection: Any = SimpleNamespace(trigrams=index, analyzer=SimpleNamespace(keywords=keywords))
    return Trigram(collection)


def by_hand(texts: dict[int, str], keywords: str, threshold: float, depth: int) -> list[tuple[int, float]]:
    best: dict[int, float] = {}
    for pid, text in texts.items():
        score = word_similarity(keywords, text)
        if score >= threshold:
            best[pid // 10] = max(best.get(pid // 10, 0.0), score)
    return sorted(best.items(), key=lambda item: (-item[1], item[0]))[:depth]


class TestKeywords:
    def test_of_the_seed(self) -> None:
        assert KEYWORDS("When was Stargate Atlantis cancelled?") == ["stargate", "atlantis", "cancelled"]

    def test_they_are_not_stemmed(self) -> None:
        assert KEYWORDS("Running the cancelled shows") == ["running", "cancelled", "shows"]

    def test_only_stop_words_are_all_there_is(self) -> None:
        assert KEYWORDS("who was it") == ["who", "was", "it"]

    def test_what_is_asked_of_the_store(self) -> None:
        index, scope = Index({}), object()
        leg(index).rank(LegQuery("the Fox", 42, scope), 3)
        assert index.asked == [(["  f", " fo", "fox", "ox "], LIKELIEST, scope, 42)]
        leg(index).rank(LegQuery("the Fox", 42, scope), 500)
        assert index.asked[1][1] == PER_DOCUMENT * 500

    @pytest.mark.parametrize("text", ["?!", "", "\u2014", "\U0001f600"])
    def test_no_keywords_no_call(self, text: str) -> None:
        index = Index({10: "text"})
        made = leg(index).rank(LegQuery(text, 1), 5)
        assert (made.keys, made.notes, index.asked) == ((), ("no keywords in the query",), [])

    def test_a_page_of_keywords_is_cut(self) -> None:
        index = Index({})
        leg(index).rank(LegQuery(" ".join(f"word{n}" for n in range(5_000)), 1), 5)
        assert len(index.asked[0][0]) < trigram.MAX_CHARACTERS + 1


class TestScoring:
    @given(
        texts=st.dictionaries(st.integers(10, 59), st.text("abcdé ", max_size=12), max_size=12),
        query=st.text("abcdé ", min_size=1, max_size=8),
        gate=st.sampled_from([None, 0.0, 0.1, 0.3, 0.5, 0.9, 1.0]),
        depth=st.integers(1, 6),
    )
    def test_as_if_every_passage_were_scored(
        self, texts: dict[int, str], query: str, gate: float | None, depth: int
    ) -> None:
        made = leg(Index(texts), str.split).rank(LegQuery(query, 1, gate=gate), depth)
        if not query.split():
            assert made.keys == ()
            return
        expected = by_hand(texts, " ".join(query.split()), 0.3 if gate is None else gate, depth)
        assert list(zip(made.keys, made.scores, strict=True)) == expected
        for key, score, pid in zip(made.keys, made.scores, made.passages, strict=True):
            assert pid // 10 == key
            assert word_similarity(" ".join(query.split()), texts[pid]) == score

    def test_the_threshold_is_reached_by_what_equals_it(self) -> None:
        index = Index({10: "stargate"})
        score = word_similarity("stargates", "stargate")
        assert 0.3 < score < 1.0
        for gate, kept in ((score, 1), (score + 1e-9, 0)):
            assert len(leg(index).rank(LegQuery("stargates", 1, gate=gate), 5)) == kept

    def test_without_a_gate_it_is_seed_002s(self) -> None:
        assert trigram.THRESHOLD == 0.3
        index = Index({10: "a text on stargates", 20: "nothing of the kind"})
        assert leg(index).rank(LegQuery("stargate", 1), 5).keys == (1,)

    def test_typos_and_parts_of_words(self) -> None:
        index = Index({10: "the Stargate Atlantis series", 20: "a cooking show"})
        assert leg(index).rank(LegQuery("stargaet atlantsi", 1), 5).keys == (1,)

    def test_one_per_document_by_its_best_passage(self) -> None:
        made = leg(Index({20: "fix", 21: "fox", 10: "foxes"})).rank(LegQuery("fox", 1), 5)
        assert (made.keys, made.passages) == ((2, 1), (21, 10))
        assert made.scores[0] == 1.0

    def test_a_passage_that_went_meanwhile_is_passed_over(self) -> None:
        index = Index({10: "fox", 20: "fox"})
        index.passage_texts = lambda pids: {20: "fox"}  # type: ignore[method-assign]
        assert leg(index).rank(LegQuery("fox", 1), 5).keys == (2,)

    def test_it_says_when_there_were_more_than_were_scored(self) -> None:
        few = leg(Index(dict.fromkeys(range(10, 9 + LIKELIEST), "fox")))
        assert few.rank(LegQuery("fox", 1), 5).notes == ()
        many = leg(Index(dict.fromkeys(range(10, 10 + LIKELIEST), "fox")))
        assert many.rank(LegQuery("fox", 1), 5).notes == (f"scored the {LIKELIEST} likeliest passages",)


@pytest.mark.parametrize("query", ["harbour lights", "harbor", "lantren", "kettle", "ttl", "stone river"])
def test_through_the_engine_with_few_passages(open_store: Callable[..., Engine], query: str) -> None:
    memory = open_store()
    texts = [
        "harbour lights",
        "the harbor light",
        "lantern of stone",
        "kettles on the river",
        "a stony riverbed",
        "zzz",
    ]
    memory.add([{"id": str(n), "text": text, "title": "Title" if n % 2 else ""} for n, text in enumerate(texts)])
    found = memory.search(query, weights={"lexical": 0, "dense": 0, "graph": 0, "trigram": 1}, rerankers=[])
    keywords = " ".join(KEYWORDS(query))
    scores = {str(n): word_similarity(keywords, f"Title\n{text}" if n % 2 else text) for n, text in enumerate(texts)}
    assert {hit.id: hit.contributions[0].raw for hit in found} == {
        id: score for id, score in scores.items() if score >= 0.3
    }
