"""Results of a search, and their explanations."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

import trivet
from trivet.engine import Engine, leg_threads, plan
from trivet.errors import InputError, NotFoundError, StoreError
from trivet.fusion.relevance import Match, probability
from trivet.profile import BUILT_IN_LEGS as LEGS
from trivet.stores.sqlite import lexical
from trivet.stores.sqlite.half_precision import ROUNDING
from trivet.types import Results

Open = Callable[..., Engine]

#: Fused by rank, nothing after it: what the legs say is what comes out. The graph leg has tests of its own.
PLAIN: dict[str, Any] = {"fusion": "rrf", "rerankers": [], "graph_weight": 0}


def ids(found: Any) -> list[str]:
    return [hit.id for hit in found]


def order(results: Results, leg: str) -> list[str]:
    """A leg's own order, as the hits' accounts tell it."""
    ranked = [(part.rank, hit.id) for hit in results for part in hit.contributions if part.leg == leg]
    return [id for _, id in sorted(ranked)]


@pytest.fixture
def opposed(open_store: Open, taught: Any) -> Engine:
    """Four documents that words rank d4 d3 d2 d1 and meaning d1 d2 d3 d4 for "apple engine"."""
    memory = open_store(embedder=taught("apple", "pear"))
    memory.add(
        [
            {"id": "d1", "text": "apple"},
            {"id": "d2", "text": "apple pear engine"},
            {"id": "d3", "text": "apple pear pear engine engine"},
            {"id": "d4", "text": "apple pear pear pear engine engine engine"},
        ]
    )
    return memory


QUERY = "apple engine"
BY_WORDS, BY_MEANING = ["d4", "d3", "d2", "d1"], ["d1", "d2", "d3", "d4"]


class TestAccount:
    """Every hit carries its explanation, every response what made it."""

    def test_both_legs_are_heard(self, opposed: Engine) -> None:
        results = opposed.search(QUERY)
        assert order(results, "lexical") == BY_WORDS
        assert order(results, "dense") == BY_MEANING

    @pytest.mark.parametrize("fusion", ["rrf", "convex", "comb_sum", "comb_mnz", "isr"])
    @pytest.mark.parametrize("normalize", ["minmax", "tm2c2", "zscore", "dbsf", "max", "none"])
    def test_shares_sum_to_the_fused_score(self, opposed: Engine, fusion: str, normalize: str) -> None:
        steps = ["importance", "dedup"]
        results = opposed.search(QUERY, fusion=fusion, normalize=normalize, trigram_weight=1, rerankers=steps)
        assert len(results) == 4
        for hit in results:
            assert math.fsum(part.share for part in hit.contributions) == pytest.approx(hit.fused, abs=1e-12)
            # from there every step is told: each reranker goes on where the one before it ended
            told = [hit.fused, *(note.after for note in hit.adjustments)]
            assert [note.before for note in hit.adjustments] == told[:-1]
            assert hit.score == told[-1]
        assert [hit.score for hit in results] == sorted((hit.score for hit in results), reverse=True)
        assert any(hit.adjustments for hit in results)
        for hit in opposed.search(QUERY, fusion=fusion, normalize=normalize, trigram_weight=1, rerankers=["dedup"]):
            assert (hit.score, hit.adjustments) == (hit.fused, ())

    def test_ranks_are_one_based_and_consecutive(self, opposed: Engine) -> None:
        results = opposed.search(QUERY)
        assert [hit.rank for hit in results] == [1, 2, 3, 4]
        for leg in ("lexical", "dense"):
            assert sorted(part.rank for hit in results for part in hit.contributions if part.leg == leg) == [1, 2, 3, 4]

    def test_raw_scores_are_the_legs_own(self, opposed: Engine) -> None:
        (hit, *_) = opposed.search(QUERY, alpha=1, **PLAIN)
        assert hit.id == "d1"
        assert hit.contributions[0].raw == pytest.approx(1.0)
        cosines = {h.id: h.contributions[0].raw for h in opposed.search(QUERY, alpha=1, **PLAIN)}
        expected = {"d1": 1.0, "d2": 1 / math.sqrt(2), "d3": 1 / math.sqrt(5), "d4": 1 / math.sqrt(10)}
        assert cosines == pytest.approx(expected, abs=ROUNDING)

    @pytest.mark.parametrize("query", [QUERY, "apple", "engine", "pear pear", "enjine", "xyz", "?!"])
    @pytest.mark.parametrize("weights", [{"lexical": 5, "trigram": 0.01}, {"trigram": 2}, {"dense": 5}])
    def test_relevance_is_between_0_and_1(self, opposed: Engine, query: str, weights: dict[str, float]) -> None:
        for hit in opposed.search(query, weights=weights):
            assert 0.0 <= hit.relevance <= 1.0

    def test_relevance_is_made_of_what_the_legs_say_not_of_the_fused_score(self, opposed: Engine) -> None:
        """With meaning alone: cosines above what unrelated texts have, which this model puts at 0."""
        cosines = {"d1": 1.0, "d2": 1 / math.sqrt(2), "d3": 1 / math.sqrt(5), "d4": 1 / math.sqrt(10)}
        told = {hit.id: hit.relevance for hit in opposed.search(QUERY, alpha=1, graph_weight=0)}
        expected = {id: probability(Match(meaning=value)) for id, value in cosines.items()}
        assert told == pytest.approx(expected, abs=2 * ROUNDING)  # its slope there is below 2
        for how in ({"fusion": "rrf"}, {"rerankers": []}, {"normalize": "max"}, {"k": 2}):
            again = {hit.id: hit.relevance for hit in opposed.search(QUERY, alpha=1, graph_weight=0, **how)}
            assert again == pytest.approx({id: told[id] for id in again})

    def test_trace_has_every_stage(self, opposed: Engine) -> None:
        weights = {"lexical": 1, "trigram": 1, "dense": 1, "graph": 1}
        results = opposed.search(QUERY, weights=weights, weighing="fixed")
        assert [stage.name for stage in results.trace] == [
            "lexical",
            "trigram",
            "dense",
            "graph",
            "fusion",
            "fetch",
            "rerank",
            "total",
        ]
        stages = {stage.name: stage for stage in results.trace}
        assert all(stage.ms >= 0 for stage in results.trace)
        assert stages["total"].ms >= max(stages["fusion"].ms, stages["fetch"].ms, stages["rerank"].ms)
        assert stages["lexical"].detail.startswith("4 found")
        assert stages["dense"].detail.startswith("4 found, embed ")
        assert stages["fusion"].detail == "convex"
        assert stages["rerank"].detail == "learned"  # the others have nothing to say to this question

    def test_the_profile_that_made_it_is_named(self, opposed: Engine) -> None:
        results = opposed.search(QUERY, profile="memories", rrf_k=7)
        made = trivet.PROFILES["memories"].with_changes({"rrf_k": 7})
        assert results.profile == str(made)
        assert made.identity in results.profile
        assert opposed.search(QUERY).profile == str(opposed.settings)

    def test_nothing_is_degraded_when_all_answer(self, opposed: Engine) -> None:
        assert opposed.search(QUERY).degraded == ()

    def test_the_pool_is_the_union_of_the_legs(self, open_store: Open, taught: Any) -> None:
        memory = open_store(embedder=taught("apple", "pear"))
        memory.add([{"id": "w", "text": "engine"}, {"id": "m", "text": "apple apple"}, {"id": "n", "text": "pebble"}])
        memory.add("apple engine", id="b")
        results = memory.search("apple engine", **PLAIN)
        assert set(ids(results)) == {"w", "m", "b"}
        assert results.candidates == 3
        legs = {hit.id: hit.only_leg for hit in results}
        assert legs["w"] == "lexical"
        assert legs["b"] is None

    def test_the_passage_shown_is_the_one_that_was_found(self, open_store: Open) -> None:
        memory = open_store(passage_size=16)
        memory.add(
            "\n\n".join(f"Chapter {word} tells of {word}." for word in ("salt", "iron", "gold", "zinc")), id="book"
        )
        (hit,) = memory.search("gold")
        assert "gold" in hit.text
        assert "zinc" not in hit.text


class TestOverrides:
    """A weight that does nothing is a bug: each override must reach the fusion."""

    def test_alpha_0_is_words_alone(self, opposed: Engine) -> None:
        results = opposed.search(QUERY, alpha=0, **PLAIN)
        assert ids(results) == BY_WORDS
        assert {part.leg for hit in results for part in hit.contributions} == {"lexical"}

    def test_alpha_1_is_meaning_alone(self, opposed: Engine) -> None:
        results = opposed.search(QUERY, alpha=1, **PLAIN)
        assert ids(results) == BY_MEANING
        assert {part.leg for hit in results for part in hit.contributions} == {"dense"}

    @pytest.mark.parametrize("fusion", ["rrf", "convex", "isr", "comb_sum"])
    def test_alpha_in_between_is_monotone(self, opposed: Engine, fusion: str) -> None:
        """d1 is first by meaning and last by words: the more meaning counts, the higher it stands."""
        steps = [n / 10 for n in range(11)]
        ranks = [ids(opposed.search(QUERY, alpha=alpha, fusion=fusion, rrf_k=1)).index("d1") for alpha in steps]
        assert ranks == sorted(ranks, reverse=True)
        assert (ranks[0], ranks[-1]) == (3, 0)

    @pytest.mark.parametrize("alpha", [0.2, 0.5, 0.9])
    def test_alpha_is_the_weight_in_the_account(self, opposed: Engine, alpha: float) -> None:
        for hit in opposed.search(QUERY, alpha=alpha, **PLAIN):
            weights = {part.leg: part.weight for part in hit.contributions}
            assert weights == pytest.approx({"lexical": 1 - alpha, "dense": alpha})

    def test_weights_reach_the_fusion(self, opposed: Engine) -> None:
        results = opposed.search(QUERY, weights={"lexical": 2, "dense": 3}, rrf_k=10, **PLAIN)
        by_id = {hit.id: hit.fused for hit in results}
        assert by_id["d1"] == pytest.approx(2 / (10 + 4) + 3 / (10 + 1))
        assert by_id["d4"] == pytest.approx(2 / (10 + 1) + 3 / (10 + 4))

    def test_weight_sugar_is_the_same(self, opposed: Engine) -> None:
        sugar = opposed.search(QUERY, lexical_weight=2, dense_weight=3, **PLAIN)
        assert sugar.hits == opposed.search(QUERY, weights={"lexical": 2, "dense": 3}, **PLAIN).hits

    @pytest.mark.parametrize("rrf_k", [0, 5, 60, 1000])
    def test_rrf_k_reaches_the_fusion(self, opposed: Engine, rrf_k: float) -> None:
        (hit, *_) = opposed.search(QUERY, alpha=1, rrf_k=rrf_k, **PLAIN)
        assert hit.fused == pytest.approx(1 / (rrf_k + 1))

    def test_fusion_and_normalize_reach_the_fusion(self, opposed: Engine) -> None:
        def shares(**how: Any) -> dict[str, float]:
            return {hit.id: hit.fused for hit in opposed.search(QUERY, alpha=1, graph_weight=0, rerankers=[], **how)}

        cosines = [1.0, 1 / math.sqrt(2), 1 / math.sqrt(5), 1 / math.sqrt(10)]
        low, width = cosines[-1], cosines[0] - cosines[-1]
        minmax = dict(zip(BY_MEANING, [(c - low) / width for c in cosines], strict=True))
        raw = dict(zip(BY_MEANING, cosines, strict=True))
        tm2c2 = dict(zip(BY_MEANING, [(c + 1) / 2 for c in cosines], strict=True))
        assert shares(fusion="convex", normalize="minmax") == pytest.approx(minmax, abs=2 * ROUNDING / width)
        assert shares(fusion="convex", normalize="none") == pytest.approx(raw, abs=ROUNDING)
        assert shares(fusion="convex", normalize="tm2c2") == pytest.approx(tm2c2, abs=ROUNDING)
        assert shares(fusion="isr") != pytest.approx(minmax, abs=1e-6)

    def test_depth_sugar_is_how_deep_a_leg_looks(self, opposed: Engine) -> None:
        results = opposed.search(QUERY, k=1, lexical_depth=2, dense_depth=3, **PLAIN)
        depths = {stage.name: stage.detail.split(" ")[0] for stage in results.trace if stage.name in LEGS}
        assert depths == {"lexical": "2", "dense": "3"}
        assert results.candidates == 4

    def test_depth_in_multiples_of_k(self, opposed: Engine) -> None:
        results = opposed.search(QUERY, k=1, depths={"lexical": "3k", "dense": "1k"}, **PLAIN)
        depths = {stage.name: stage.detail.split(" ")[0] for stage in results.trace if stage.name in LEGS}
        assert depths == {"lexical": "3", "dense": "1"}

    def test_overrides_are_for_one_request(self, opposed: Engine) -> None:
        before = opposed.search(QUERY).hits
        opposed.search(QUERY, alpha=0.1, k=1, fusion="isr", min_relevance=0.9)
        assert opposed.search(QUERY).hits == before

    def test_rerankers_reach_the_hits(self, open_store: Open) -> None:
        memory = open_store()
        memory.add(
            [{"id": "low", "text": "fig fig", "importance": 0}, {"id": "high", "text": "fig date", "importance": 1}]
        )
        plain = memory.search("fig", fusion="rrf", rerankers=[])
        assert ids(plain) == ["low", "high"]
        ranked = memory.search("fig", fusion="rrf", rerankers=[{"name": "importance", "floor": 0.5}])
        assert ids(ranked) == ["high", "low"]
        assert [(a.reranker, a.before, a.after) for a in ranked[1].adjustments] == [
            ("importance", pytest.approx(0.5 / 61), pytest.approx(0.5 * 0.5 / 61)),
        ]
        assert ranked[1].fused == plain[0].fused  # the account of the fusion stays what it was

    @pytest.mark.parametrize(
        ("wrong", "told"),
        [
            ({"alpha": 1.5}, "alpha"),
            ({"alpha": "0.5"}, "alpha: '0.5' is not a number"),
            ({"alpha": None}, "alpha: None is not a number"),
            ({"k": 0}, "k: 0 is out of range"),
            ({"k": 2.0}, "k: 2.0 is not a whole number"),
            ({"wieghts": {}}, "did you mean 'weights'"),
            ({"weights": {"graf": 1}}, "weights.graf: unknown leg"),
            ({"weights": 3}, "weights: 3 is not a mapping"),
            ({"fusion": "rff"}, "fusion: 'rff' is unknown; known: rrf"),
            ({"profile": "no-such"}, "profile: 'no-such' is unknown; known: default"),
            ({"profile": {"k": 3}}, "is not a name or a Profile"),
            ({"offset": -1}, "offset: -1"),
            ({"offset": True}, "offset: True"),
            ({"at": "yesterday"}, "at: 'yesterday' is not a time"),
            ({"at": [1]}, r"at: \[1\] is not a time"),
            ({"exclude": [7]}, "exclude: 7 is not an id"),
            ({"vector": [1, 2]}, "vector: the collection has no model"),
            ({"lexical_depth": "2k\n"}, "depths.lexical"),
            ({"rerankers": [3]}, "rerankers: 3 is not a reranker"),
        ],
    )
    def test_a_wrong_override_is_named(self, words: Engine, wrong: dict[str, Any], told: str) -> None:
        words.add("something")
        with pytest.raises(InputError, match=told):
            words.search("something", **wrong)


class TestLegsThatAreNotCalled:
    """A weight of 0 means the leg is not called."""

    def test_dense(self, opposed: Engine) -> None:
        opposed._models.embedder.queries.clear()  # type: ignore[union-attr]
        opposed._models.embedder.fail = AssertionError("called at weight 0")  # type: ignore[union-attr]
        for off in ({"alpha": 0}, {"dense_weight": 0}, {"weights": {"dense": 0, "trigram": 1}}):
            results = opposed.search(QUERY, **off)
            assert len(results) == 4
            assert results.degraded == ()
            assert "dense" not in {stage.name for stage in results.trace}
        assert opposed._models.embedder.queries == []  # type: ignore[union-attr]
        assert [item.part for item in opposed.search(QUERY, alpha=0.5).degraded] == ["dense"]  # the trap is set

    @pytest.mark.parametrize(("leg", "index"), [("lexical", "lexical"), ("trigram", "trigrams")])
    def test_words_and_trigrams(self, opposed: Engine, monkeypatch: pytest.MonkeyPatch, leg: str, index: str) -> None:
        def boom(*_: Any) -> None:
            raise AssertionError("called at weight 0")

        monkeypatch.setattr(getattr(opposed._collection, index), "search", boom)
        results = opposed.search(QUERY, weights={"lexical": 1, "trigram": 1, "dense": 1, leg: 0})
        assert len(results) == 4
        assert results.degraded == ()
        assert leg not in {stage.name for stage in results.trace}
        trapped = opposed.search(QUERY, weights={"lexical": 1, "trigram": 1, "dense": 1})
        assert [(item.part, item.reason) for item in trapped.degraded] == [(leg, "called at weight 0")]


class TestNoAnswer:
    def test_nothing_matches(self, words: Engine) -> None:
        words.add("pebbles on the beach")
        assert words.search("quantum chromodynamics").hits == ()

    def test_an_empty_collection(self, open_store: Open, taught: Any) -> None:
        for embedder in ("none", taught("apple")):
            memory = open_store(f"{embedder!s:.3}.db", embedder=embedder)
            assert memory.search("apple", trigram_weight=1).hits == ()
            assert memory.search("apple", where={"unknown": 1}).hits == ()

    def test_min_relevance_can_leave_nothing(self, opposed: Engine) -> None:
        found = {hit.id: hit.relevance for hit in opposed.search(QUERY)}
        bar = sorted(found.values())[1]
        assert set(ids(opposed.search(QUERY, min_relevance=bar))) == {id for id, r in found.items() if r >= bar}
        assert opposed.search(QUERY, min_relevance=1.0).hits == ()

    @pytest.mark.parametrize("fusion", ["rrf", "convex"])
    def test_a_gate_on_each_leg_can_leave_nothing(self, opposed: Engine, fusion: str) -> None:
        """Min-max makes the best of a bad list 1.0: the gate is absolute and comes before."""
        gated = opposed.search(QUERY, gates={"lexical": 100.0, "dense": 1.1}, fusion=fusion)
        assert gated.hits == ()
        assert gated.degraded == ()
        assert gated.candidates == 0

    def test_a_gate_holds_on_its_own_leg(self, opposed: Engine) -> None:
        results = opposed.search(QUERY, dense_gate=0.6, **PLAIN)  # cosines 1, .71, .45, .32
        assert order(results, "dense") == ["d1", "d2"]
        assert order(results, "lexical") == BY_WORDS

    @pytest.mark.parametrize("query", ["???", "—", "😀", "\ud800", "\x00", "''", '""', "()"])
    def test_a_question_without_words_is_no_error(self, opposed: Engine, query: str) -> None:
        results = opposed.search(query, trigram_weight=1)
        assert results.hits == ()
        assert results.degraded == ()

    @pytest.mark.parametrize("query", ["", "   ", "\n"])
    def test_an_empty_question_is_refused(self, words: Engine, query: str) -> None:
        with pytest.raises(InputError, match="query: it is empty"):
            words.search(query)

    @pytest.mark.parametrize("query", [None, 5, b"bytes", ["list"]])
    def test_a_question_is_text(self, words: Engine, query: Any) -> None:
        with pytest.raises(InputError, match=r"query: .* is not text"):
            words.search(query)


class TestDegraded:
    """A leg that fails or is late is left out and named; the others answer."""

    def test_a_failing_embedder(self, opposed: Engine) -> None:
        opposed._models.embedder.fail = RuntimeError("model server is down")  # type: ignore[union-attr]
        results = opposed.search(QUERY, **PLAIN)
        assert [(item.part, item.reason) for item in results.degraded] == [("dense", "model server is down")]
        assert ids(results) == BY_WORDS

    @pytest.mark.parametrize(("leg", "index"), [("lexical", "lexical"), ("trigram", "trigrams"), ("dense", "vectors")])
    def test_any_leg_may_fail(self, opposed: Engine, monkeypatch: pytest.MonkeyPatch, leg: str, index: str) -> None:
        def fail(*_: Any) -> None:
            raise OSError("the index is gone")

        monkeypatch.setattr(getattr(opposed._collection, index), "search", fail)
        results = opposed.search(QUERY, weights={"lexical": 1, "trigram": 1, "dense": 1})
        assert [(item.part, item.reason) for item in results.degraded] == [(leg, "the index is gone")]
        assert {part.leg for hit in results for part in hit.contributions} == {"lexical", "trigram", "dense"} - {leg}
        assert len(results) == 4

    def test_an_error_without_words_is_named_by_its_kind(self, opposed: Engine) -> None:
        opposed._models.embedder.fail = KeyError()  # type: ignore[union-attr]
        assert opposed.search(QUERY).degraded[0].reason == "KeyError"

    def test_all_failing_is_an_error_that_names_them(self, opposed: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: Any) -> None:
            raise OSError("disk on fire")

        monkeypatch.setattr(opposed._collection.lexical, "search", fail)
        opposed._models.embedder.fail = RuntimeError("no model")  # type: ignore[union-attr]
        with pytest.raises(StoreError, match="no leg answered: lexical: disk on fire; dense: no model"):
            opposed.search(QUERY)

    def test_the_only_leg_cannot_answer(self, words: Engine) -> None:
        """Asked for meaning alone where there is no model: silence would look like "no such document"."""
        words.add("apple")
        with pytest.raises(StoreError, match="no leg answered: dense: opened without an embedder"):
            words.search("apple", alpha=1)

    def test_a_slow_leg_is_left_out(self, opposed: Engine) -> None:
        opposed._models.embedder.gate.clear()  # type: ignore[union-attr]
        try:
            results = opposed.search(QUERY, dense_timeout=20, **PLAIN)
        finally:
            opposed._models.embedder.gate.set()  # type: ignore[union-attr]
        assert [(item.part, item.reason) for item in results.degraded] == [("dense", "no answer within 20 ms")]
        assert ids(results) == BY_WORDS

    def test_an_endpoint_that_hangs_does_not_stop_the_words(self, opposed: Engine) -> None:
        """More hanging questions than a leg has threads: the ninth is still answered by its words."""
        opposed._models.embedder.gate.clear()  # type: ignore[union-attr]
        try:
            answers = [opposed.search(QUERY, dense_timeout=1, lexical_timeout=20_000, **PLAIN) for _ in range(20)]
        finally:
            opposed._models.embedder.gate.set()  # type: ignore[union-attr]
        assert [ids(results) for results in answers] == [BY_WORDS] * 20

    @pytest.mark.parametrize("bad", [math.nan, math.inf])
    def test_a_model_that_gives_no_numbers(self, opposed: Engine, bad: float, monkeypatch: pytest.MonkeyPatch) -> None:
        import numpy as np

        monkeypatch.setattr(
            opposed._models.embedder, "embed_queries", lambda texts: np.full((1, 2), bad, dtype=np.float32)
        )
        results = opposed.search(QUERY, **PLAIN)
        assert ids(results) == BY_WORDS
        assert [item.part for item in results.degraded] == ["dense"]
        assert "NaN or infinite" in results.degraded[0].reason

    def test_a_model_that_does_not_normalise(self, opposed: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        import numpy as np

        monkeypatch.setattr(
            opposed._models.embedder, "embed_queries", lambda texts: np.array([[7.0, 0.0]], dtype=np.float32)
        )
        (hit, *_) = opposed.search(QUERY, alpha=1)
        assert hit.contributions[0].raw == pytest.approx(1.0)

    def test_without_an_embedder_it_says_so(self, words: Engine) -> None:
        words.add("apple pie", id="a")
        results = words.search("apple")
        assert ids(results) == ["a"]
        assert [(item.part, item.reason) for item in results.degraded] == [
            ("dense", "found by words alone: opened without an embedder")
        ]
        assert words.search("apple", alpha=0).degraded == ()  # meaning was not asked for

    def test_a_long_question_is_cut_and_says_so(self, words: Engine) -> None:
        words.add("apple pie", id="a")
        results = words.search("apple " + "x" * plan.MAX_QUERY, alpha=0)
        assert ids(results) == ["a"]
        assert [(item.part, item.reason) for item in results.degraded] == [
            ("query", f"{plan.MAX_QUERY + 6:,} characters; only the first {plan.MAX_QUERY:,} were used")
        ]


class TestExclude:
    """`recentIds` of seed 000: out on every leg, before the cut."""

    @pytest.mark.parametrize("leg", [leg for leg in LEGS if leg != "graph"])
    def test_on_every_leg_with_the_limit_still_filled(self, open_store: Open, leg: str) -> None:
        memory = open_store(embedder="hashing")
        memory.add([{"id": str(n), "text": f"episode about apples {'very ' * n}"} for n in range(12)])
        weights = {other: float(other == leg) for other in LEGS}
        how: dict[str, Any] = {**PLAIN, "weights": weights, "k": 4, "depths": dict.fromkeys(LEGS, "1k")}
        first = ids(memory.search("episode apples", **how))
        second = ids(memory.search("episode apples", exclude=first, **how))
        assert len(first) == len(second) == 4
        assert not set(first) & set(second)
        everything = ids(memory.search("episode apples", **{**how, "k": 12}))
        assert set(second) == set([id for id in everything if id not in first][:4])

    def test_one_id_as_text(self, opposed: Engine) -> None:
        assert "d1" not in ids(opposed.search(QUERY, exclude="d1"))
        assert len(opposed.search(QUERY, exclude="d1")) == 3

    def test_unknown_ids_exclude_nothing(self, opposed: Engine) -> None:
        assert opposed.search(QUERY, exclude=["nobody"]).hits == opposed.search(QUERY).hits

    def test_together_with_a_filter(self, opposed: Engine) -> None:
        opposed.add({"id": "d5", "text": "apple engine", "meta": {"x": 1}})
        opposed.add({"id": "d6", "text": "apple engine two", "meta": {"x": 1}})
        assert ids(opposed.search(QUERY, where={"x": 1}, exclude=iter(["d5"]))) == ["d6"]


class TestPaging:
    @pytest.fixture
    def many(self, open_store: Open) -> Engine:
        memory = open_store(embedder="hashing")
        memory.add([{"id": f"{n:02}", "text": f"ripe apple number {n} {'apple ' * (n % 7)}"} for n in range(45)])
        memory.wait()
        return memory

    @pytest.mark.parametrize(
        "how", [{}, PLAIN, {"rerankers": ["importance"]}, {"min_relevance": 0.01}, {"profile": "memories"}]
    )
    def test_page_2_goes_on_where_page_1_ended(self, many: Engine, how: dict[str, Any]) -> None:
        one, two = (many.search("ripe apple", k=10, offset=offset, **how) for offset in (0, 10))
        assert [hit.rank for hit in (*one, *two)] == list(range(1, 21))
        assert len({*ids(one), *ids(two)}) == 20
        scores = [hit.score for hit in (*one, *two)]
        assert scores == sorted(scores, reverse=True)

    @pytest.mark.parametrize("how", [{"pool": 200}, {"pool": 200, **PLAIN}, {"pool": 200, "profile": "composite"}])
    def test_all_pages_are_the_whole_list_once(self, many: Engine, how: dict[str, Any]) -> None:
        how = {**how, "depths": dict.fromkeys(LEGS, 100), "at": "2026-01-01"}
        whole = ids(many.search("ripe apple", k=45, **how))
        pages = [ids(many.search("ripe apple", k=7, offset=offset, **how)) for offset in range(0, 49, 7)]
        assert len(whole) == 45
        assert [id for page in pages for id in page] == whole
        assert [len(page) for page in pages] == [7] * 6 + [3]
        assert many.search("ripe apple", k=7, offset=49, **how).hits == ()

    @pytest.mark.parametrize("how", [{}, PLAIN, {"min_relevance": 0.01}])
    @pytest.mark.parametrize("k", [3, 10, 20, 44])
    def test_what_only_drops_pages_to_the_end(self, many: Engine, how: dict[str, Any], k: int) -> None:
        """The pool bounds what is scored anew, not how far a list can be read."""
        pages = [many.search("ripe apple", k=k, offset=offset, **how) for offset in range(0, 50, k)]
        assert [hit.rank for page in pages for hit in page] == list(range(1, 46))
        assert len({hit.id for page in pages for hit in page}) == 45

    def test_copies_do_not_starve_a_page(self, open_store: Open) -> None:
        """Forty copies above ten other documents: the answer is the one and the ten, on pages of any size."""
        memory = open_store()
        memory.add([{"id": f"copy{n}", "text": "plum plum"} for n in range(40)])
        memory.add([{"id": f"other{n}", "text": f"plum and {n} more things besides"} for n in range(10)])
        steps = ["learned", "dedup"]
        whole = ids(memory.search("plum", k=11, rerankers=steps))
        assert len(whole) == 11
        assert sum(id.startswith("other") for id in whole) == 10
        for k in (1, 2, 5):
            pages = [ids(memory.search("plum", k=k, offset=offset, rerankers=steps)) for offset in range(0, 12, k)]
            assert [id for page in pages for id in page] == whole

    def test_what_scores_anew_sees_the_same_pool_on_every_page(self, many: Engine) -> None:
        how: dict[str, Any] = {"rerankers": ["importance"], "pool": 15, "k": 10}
        assert len(many.search("ripe apple", offset=10, **how)) == 5
        assert many.search("ripe apple", offset=20, **how).hits == ()

    def test_asking_a_page_again_gives_it_again(self, many: Engine) -> None:
        pages = [many.search("ripe apple", k=5, offset=5).hits for _ in range(3)]
        assert pages[0] == pages[1] == pages[2]


class TestExplain:
    def test_a_hit(self, opposed: Engine) -> None:
        told = opposed.explain(QUERY, "d1")
        hit = next(hit for hit in opposed.search(QUERY) if hit.id == "d1")
        assert told.hit == hit
        assert (told.rank, told.reason) == (hit.rank, f"rank {hit.rank}")
        *heard, walk = told.verdicts
        assert [(v.leg, v.rank, v.note) for v in heard] == [("lexical", 4, ""), ("dense", 1, "")]
        assert (walk.leg, walk.rank, walk.note) == ("graph", None, "not reached")
        total = sum(v.weight for v in told.verdicts)  # a contribution shows the weight divided by their sum
        assert [v.weight / total for v in heard] == pytest.approx([part.weight for part in hit.contributions])
        fixed = opposed.explain(QUERY, "d1", weighing="fixed")
        assert [v.weight for v in fixed.verdicts] == [opposed.settings.weights[v.leg] for v in fixed.verdicts]
        assert [v.score for v in heard] == [part.raw for part in hit.contributions]
        assert told.verdicts[1].strength == pytest.approx(1.0)
        assert told.profile == str(opposed.settings)

    def test_too_far_down(self, opposed: Engine) -> None:
        told = opposed.explain(QUERY, "d4", k=1, alpha=1, dense_depth=1, graph_weight=0)
        assert (told.rank, told.hit) == (None, None)
        (verdict,) = told.verdicts
        assert (verdict.rank, verdict.depth, verdict.note) == (None, 1, "not among the best 1")
        assert verdict.score == pytest.approx(1 / math.sqrt(10), abs=ROUNDING)
        assert told.reason == "no leg has it among its best"

    def test_found_but_cut(self, opposed: Engine) -> None:
        told = opposed.explain(QUERY, "d4", k=1, alpha=1)
        assert told.rank is None
        assert told.verdicts[0].rank == 4
        assert told.reason == "found, but not among the best 1 above relevance 0 after fusion and reranking"
        assert told.profile == opposed.search(QUERY, k=1, alpha=1).profile

    def test_below_the_threshold(self, opposed: Engine) -> None:
        told = opposed.explain(QUERY, "d4", alpha=1, min_relevance=0.9)
        assert told.rank is None
        assert "above relevance 0.9" in told.reason

    def test_below_the_gate(self, opposed: Engine) -> None:
        told = opposed.explain(QUERY, "d4", alpha=1, dense_gate=0.9)
        assert told.verdicts[0].note == "below the gate 0.9"
        assert told.verdicts[0].score == pytest.approx(1 / math.sqrt(10), abs=ROUNDING)

    def test_left_out_by_the_filter_or_the_exclusion(self, opposed: Engine) -> None:
        opposed.add({"id": "d5", "text": "apple", "kind": "fact"})
        for how in ({"exclude": ["d1"]}, {"exclude": "d1"}):
            told = opposed.explain(QUERY, "d1", **how)
            assert told.rank is None
            assert told.reason == "left out by the filter or the exclusion"
            notes = {verdict.leg: verdict.note for verdict in told.verdicts}
            left_out = dict.fromkeys(("lexical", "dense"), "left out by the filter or the exclusion")
            assert notes == {**left_out, "graph": "not reached"}

    def test_what_the_filter_hides_is_not_told_from_what_does_not_exist(self, opposed: Engine) -> None:
        opposed.add({"id": "d5", "text": "apple", "kind": "fact"})
        hidden, missing = (opposed.explain(QUERY, id, where={"kind": "fact"}) for id in ("d1", "d9"))
        assert (hidden.rank, hidden.hit, hidden.verdicts) == (None, None, ())
        assert hidden.reason.replace("d1", "d9") == missing.reason
        assert missing.verdicts == ()

    def test_no_match_at_all(self, opposed: Engine) -> None:
        opposed.add("pebbles", id="p")
        told = opposed.explain(QUERY, "p", alpha=0)  # words alone
        assert [(v.rank, v.score, v.note) for v in told.verdicts] == [(None, None, "does not match")]

    def test_a_leg_that_fails_is_told_not_raised(self, opposed: Engine) -> None:
        opposed._models.embedder.fail = RuntimeError("no model")  # type: ignore[union-attr]
        told = opposed.explain(QUERY, "d1", graph_weight=0)
        assert told.rank == 4
        assert [(v.leg, v.rank, v.note) for v in told.verdicts] == [
            ("lexical", 4, ""),
            ("dense", None, "did not answer: no model"),
        ]

    def test_an_unknown_document(self, opposed: Engine) -> None:
        with pytest.raises(NotFoundError, match="document 'nobody' not found in collection 'default'"):
            opposed.explain(QUERY, "nobody")


class TestLanguages:
    """The same analysis for documents and questions, through the whole engine."""

    def test_german(self, open_store: Open) -> None:
        memory = open_store(language="de")
        memory.add([{"id": "h", "text": "Die Häuser stehen am Fluss."}, {"id": "b", "text": "Ein Baum im Garten."}])
        for query in ("Haus", "häuser", "Hauses", "haeuser Fluss", "FLUSS", "die Flüsse"):
            assert ids(memory.search(query))[:1] == ["h"], query
        assert ids(memory.search("und der die das")) == ["h"]  # stop words count where there is nothing else

    @pytest.mark.parametrize(
        ("query", "told"),
        [
            ("klemmende Türen", "klemmt"),
            ("Türen, die geklemmt haben", "klemmt"),
            ("Wo ist die Steuererklärung?", "steu erklar"),
            ("Wohnungsschlüssel", "wohnung schlussel"),
        ],
    )
    def test_german_words_that_no_document_has(self, open_store: Open, query: str, told: str) -> None:
        memory = open_store(language="de", embedder="none")
        memory.add(
            [
                {"id": "klemmt", "text": "Die Gewächshaustür klemmt bei Regen."},
                {"id": "steu erklar", "text": "Die Erklärung zur Steuer liegt beim Amt."},
                {"id": "wohnung schlussel", "text": "Der Schlüssel der Wohnung hängt am Haken."},
                {"id": "other", "text": "Ein Baum im Garten."},
            ]
        )
        found = memory.search(query)
        assert ids(found) == [told]
        assert f"did you mean {told!r}" in next(stage.detail for stage in found.trace if stage.name == "lexical")

    def test_english_stems(self, words: Engine) -> None:
        words.add([{"id": "r", "text": "she was running daily"}, {"id": "w", "text": "they walk"}])
        assert ids(words.search("runs")) == ["r"]
        assert ids(words.search("walked")) == ["w"]

    @pytest.mark.parametrize(
        ("language", "text", "query", "other"),
        [
            ("zh", "我喜欢在北京喝咖啡", "北京咖啡", "上海下雨了"),
            ("ja", "東京タワーへ行きました", "東京タワー", "大阪は雨です"),
            ("ko", "서울에서커피를마셨다", "커피를", "부산에비가온다"),
            ("en", "我喜欢在北京喝咖啡", "北京", "上海下雨了"),
        ],
    )
    def test_scripts_without_spaces(self, open_store: Open, language: str, text: str, query: str, other: str) -> None:
        memory = open_store(language=language)
        memory.add([{"id": "yes", "text": text}, {"id": "no", "text": other}])
        assert ids(memory.search(query)) == ["yes"]

    @pytest.mark.parametrize(
        "query",
        [
            "GatewaySession",
            "gateway_session",
            "gateway session",
            "gatewaysession",
            "GatewaySession.reconnect",
            "reconnect",
        ],
    )
    def test_code_identifiers(self, words: Engine, query: str) -> None:
        words.add(
            [{"id": "c", "text": "call GatewaySession.reconnect() when it drops"}, {"id": "o", "text": "nothing here"}]
        )
        assert ids(words.search(query)) == ["c"]

    def test_a_quoted_phrase_must_occur(self, words: Engine) -> None:
        words.add(
            [
                {"id": "p", "text": "the red fox sleeps"},
                {"id": "s", "text": "the fox is red"},
                {"id": "t", "text": "red"},
            ]
        )
        assert ids(words.search('"red fox"')) == ["p"]
        assert set(ids(words.search("red fox"))) == {"p", "s", "t"}
        assert ids(words.search('sleeping "red fox"')) == ["p"]
        assert ids(words.search('"blue fox"')) == []

    def test_a_quoted_word_must_occur(self, words: Engine) -> None:
        words.add([{"id": "b", "text": "red fox"}, {"id": "o", "text": "red hen"}])
        assert ids(words.search('red "fox"')) == ["b"]

    @pytest.mark.parametrize("where", ["memory", "disk"])
    def test_two_quoted_phrases_must_both_occur(
        self, words: Engine, where: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from trivet.stores.sqlite import term_index as projection

        monkeypatch.setattr(projection, "TAIL_LIMIT", 0 if where == "disk" else 512)
        words.add([{"id": "one", "text": "a blue whale"}, {"id": "both", "text": "the red fox and the blue whale"}])
        assert ids(words.search('"red fox" "blue whale"')) == ["both"]

    def test_all_words_first_any_word_when_that_starves(self, words: Engine) -> None:
        words.add([{"id": f"all{n}", "text": f"copper kettle {n}"} for n in range(3)])
        words.add([{"id": f"one{n}", "text": "copper " * (n + 1)} for n in range(3)])

        def asked(**how: Any) -> tuple[set[str], str]:
            results = words.search("copper kettle", alpha=0, rerankers=[], **how)
            return set(ids(results)), results.trace[0].detail

        assert asked(k=3, lexical_depth=3) == ({"all0", "all1", "all2"}, "3 found, all words")
        found, detail = asked(k=4, lexical_depth=4)
        assert len(found) == 4
        assert detail == "4 found, any word"
        assert asked(match="all") == ({"all0", "all1", "all2"}, "3 found, all words")
        assert len(asked(match="any")[0]) == 6

    @pytest.mark.parametrize(
        "query", ["foo-bar", "it's", "a/b", "(paren", '"unclosed', "x AND y", "col:val", "NEAR(", "a* OR", "^x", "\\"]
    )
    def test_user_text_is_never_a_syntax_error(self, words: Engine, query: str) -> None:
        words.add("foo bar it's a/b paren unclosed x y col val near")
        assert words.search(query, trigram_weight=1).degraded[0].part == "dense"  # the one thing there is to say


class TestThreads:
    def test_eight_threads_add_and_search(self, open_store: Open) -> None:
        memory = open_store(embedder="hashing")
        memory.add([{"id": f"base{n}", "text": f"common base {n}"} for n in range(10)])
        wrong: list[object] = []

        def work(name: int) -> None:
            try:
                for n in range(8):
                    id = f"t{name}-{n}"
                    memory.add(f"common unique{name}x{n}", id=id, meta={"thread": name})
                    found = memory.search(f"unique{name}x{n}", where={"thread": name})
                    if not found.hits or found[0].id != id:
                        wrong.append((id, ids(found)))
                    if any(hit.document.meta["thread"] != name for hit in found):
                        wrong.append(("leak", name))
                    if n % 4 == 3:
                        memory.delete(id)
            except BaseException as error:
                wrong.append(error)

        threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
        memory.wait()
        assert memory.stats().documents == 10 + 8 * 6
        assert memory.verify().problems == ()


class TestInTheCallersThread:
    """A leg that has been quick for a while is asked where the search runs; nothing else changes."""

    WORDS: ClassVar = {"lexical": 1.0, "dense": 0.0, "graph": 0.0}

    @pytest.mark.parametrize(
        ("weights", "brisk_ms", "here"),
        [
            (WORDS, 0.0, ["lexical"]),
            ({**WORDS, "dense": 1.0}, 0.0, ["dense"]),
            ({**WORDS, "dense": 1.0}, 60_000.0, ["dense", "lexical"]),
        ],
    )
    def test_the_answers_are_the_same(
        self, opposed: Engine, weights: dict[str, float], brisk_ms: float, here: list[str], monkeypatch: Any
    ) -> None:
        monkeypatch.setattr(leg_threads, "FAST_MS", 60_000.0)
        monkeypatch.setattr(leg_threads, "POOL_MS", brisk_ms)
        first = opposed.search("apple", weights=weights)
        for _ in range(leg_threads.FAST_RUNS):
            opposed.search("apple", weights=weights)
        asked: list[str] = []
        real = opposed._shared.legs.answer
        monkeypatch.setattr(opposed._shared.legs, "answer", lambda leg, job: asked.append(leg) or real(leg, job))
        again = opposed.search("apple", weights=weights)
        assert asked == here
        assert [(hit.id, hit.score) for hit in again] == [(hit.id, hit.score) for hit in first]

    def test_of_two_quick_legs_one_runs_in_the_helper_thread(self, opposed: Engine, monkeypatch: Any) -> None:
        monkeypatch.setattr(leg_threads, "FAST_MS", 60_000.0)
        monkeypatch.setattr(leg_threads, "POOL_MS", 60_000.0)
        both = {"lexical": 1.0, "dense": 1.0, "graph": 0.0}
        first = [(hit.id, hit.score) for hit in opposed.search("apple", weights=both)]
        lent: list[str] = []
        helper = opposed._shared.legs._helper
        real = helper.offer
        monkeypatch.setattr(helper, "offer", lambda job: lent.append(job._work.args[0].name) or real(job))
        for worth, expected in ((60_000.0, []), (0.0, ["lexical"])):
            monkeypatch.setattr(leg_threads, "HELPER_MS", worth)
            for _ in range(leg_threads.FAST_RUNS + 1):
                lent.clear()
                assert [(hit.id, hit.score) for hit in opposed.search("apple", weights=both)] == first
            assert lent == expected

    @pytest.mark.parametrize("writes", [1, lexical.A_FEW_WRITES + 1])
    def test_some_writes_send_it_back_to_a_thread_of_its_own(
        self, opposed: Engine, writes: int, monkeypatch: Any
    ) -> None:
        monkeypatch.setattr(leg_threads, "FAST_MS", 60_000.0)
        for _ in range(leg_threads.FAST_RUNS + 1):
            opposed.search("apple", weights=self.WORDS)
        for number in range(writes):
            opposed.add(f"a newcomer about apple {number}", id=f"newcomer-{number}")
        asked: list[str] = []
        real = opposed._shared.legs.answer
        monkeypatch.setattr(opposed._shared.legs, "answer", lambda leg, job: asked.append(leg) or real(leg, job))
        found = {hit.id for hit in opposed.search("newcomer", weights=self.WORDS)}
        assert found == {f"newcomer-{number}" for number in range(writes)}
        assert asked == (["lexical"] if writes <= lexical.A_FEW_WRITES else [])

    def test_a_late_answer_is_left_out_all_the_same(self, opposed: Engine, monkeypatch: Any) -> None:
        monkeypatch.setattr(leg_threads, "FAST_MS", 60_000.0)
        for _ in range(leg_threads.FAST_RUNS + 1):
            opposed.search("apple")
        real = opposed._collection.vectors.search

        def late(*given: Any) -> Any:
            time.sleep(0.05)
            return real(*given)

        monkeypatch.setattr(opposed._collection.vectors, "search", late)
        results = opposed.search("apple", dense_timeout=10)
        assert [(item.part, item.reason) for item in results.degraded] == [("dense", "no answer within 10 ms")]
        assert all(part.leg == "lexical" for hit in results for part in hit.contributions)


class TestWeighing:
    def test_the_trace_tells_the_weights_of_the_query(self, open_store: Any) -> None:
        with open_store(embedder="builtin") as memory:
            memory.add([{"id": f"n{at}", "text": text} for at, text in enumerate(NOTES_TO_WEIGH)])
            found = memory.search("where is the kettle?", profile="default", graph_weight=0)
            fusion = next(stage.detail for stage in found.trace if stage.name == "fusion")
            assert fusion == "convex, weighed by query: lexical 0.50 dense 0.50"
            assert {item.weight for hit in found for item in hit.contributions} == {0.5}

    def test_an_identifier_is_first_in_a_store_of_six_notes(self, open_store: Any) -> None:
        with open_store(embedder="builtin") as memory:
            memory.add([{"id": f"n{at}", "text": text} for at, text in enumerate(NOTES_WITH_NAMES)])
            for query, id in (("GatewaySession.reconnect", "n0"), ("ERR_QUOTA_27", "n2"), ("parse_manifest", "n4")):
                found = memory.search(query, profile="default")
                assert found[0].id == id
                used = {item.leg: item.weight for item in found[0].contributions}
                assert used["lexical"] == used["dense"] >= 0.4, (
                    "the words of an identifier carry as much as its meaning"
                )

    @pytest.mark.parametrize(
        "given",
        [{"alpha": 0.3}, {"weights": {"dense": 0.3, "lexical": 0.7}}, {"lexical_weight": 0.7, "dense_weight": 0.3}],
    )
    def test_weights_given_by_hand_are_meant_as_given(self, open_store: Any, given: dict[str, Any]) -> None:
        with open_store(embedder="builtin") as memory:
            memory.add([{"id": f"n{at}", "text": text} for at, text in enumerate(NOTES_TO_WEIGH)])
            found = memory.search("where is the kettle?", profile="default", **given)
            used = {item.leg: item.weight for hit in found for item in hit.contributions}
            assert used["dense"] / used["lexical"] == pytest.approx(0.3 / 0.7)
            alone = memory.search("where is the kettle?", profile="default", **given, graph_weight=0)
            assert {item.weight for hit in alone for item in hit.contributions if item.leg == "dense"} == {0.3}

    def test_explain_tells_the_weights_the_question_was_given(self, open_store: Any) -> None:
        with open_store(embedder="builtin") as memory:
            memory.add([{"id": f"n{at}", "text": text} for at, text in enumerate(NOTES_TO_WEIGH)])
            told = memory.explain("where is the kettle?", "n0", profile="default")
            assert told.hit is not None
            used = {item.leg: item.weight for item in told.hit.contributions}
            total = sum(verdict.weight for verdict in told.verdicts)
            told_weights = {verdict.leg: verdict.weight / total for verdict in told.verdicts if verdict.leg in used}
            assert set(used) >= {"lexical", "dense"}
            assert told_weights == pytest.approx(used)

    def test_a_script_the_model_does_not_read_leans_on_words(self, open_store: Any) -> None:
        with open_store(embedder="builtin") as memory:
            memory.add(
                [{"id": "zh", "text": "金融科技精英论坛在深圳举行。"}, {"id": "en", "text": "the forum in Shenzhen"}]
            )
            found = memory.search("金融科技论坛", profile="default", graph_weight=0)
            assert found[0].id == "zh"
            assert {item.leg: round(item.weight, 3) for item in found[0].contributions} == {
                "lexical": 0.9,
                "dense": 0.1,
            }
            dense = next(stage.detail for stage in found.trace if stage.name == "dense")
            assert "does not read this script" in dense
            given = memory.search("金融科技论坛", profile="default", graph_weight=0, weighing="fixed")
            assert {item.leg: item.weight for item in given[0].contributions} == {"lexical": 0.5, "dense": 0.5}

    def test_a_language_the_model_does_not_read_is_noted(self, open_store: Any) -> None:
        with open_store(embedder="builtin") as memory:
            memory.add("the key is next to the door")
            for query, noted in (("Wo ist der Schlüssel für die Tür?", True), ("where is the key of the door", False)):
                dense = next(stage.detail for stage in memory.search(query).trace if stage.name == "dense")
                assert ("the model does not read the language of the query" in dense) is noted


NOTES_WITH_NAMES = (
    "GatewaySession.reconnect waits two seconds, then doubles the pause.",
    "The session of the gateway was lost twice on Monday; reconnecting by hand helped.",
    "ERR_QUOTA_27 means that the project has used up its storage.",
    "When storage runs out, ask the platform team for a larger quota.",
    "parse_manifest reads the list of files and refuses paths with two dots.",
    "The manifest lists every file of a release with its checksum.",
)
NOTES_TO_WEIGH = [
    "The kettle is on the shelf beside the stove.",
    "Tea is made with water just off the boil.",
    "The van needs new tyres before winter.",
    "Where the keys are: on the hook behind the door.",
    "The greenhouse heater broke in March.",
]
