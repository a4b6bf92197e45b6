"""A search with each profile that ships gives the numbers of the seed system it is named after.

``test_seed_fusion`` holds the arithmetic to the seeds on hand-made lists. Here the lists come out of a real search:
vectors are given, texts are made, each leg is asked alone for its list, and the seed's own function, written out again
from its text, says what the answer must be. Where a seed is known to be wrong the test says what we do instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from trivet import PROFILES
from trivet.engine import Engine
from trivet.errors import InputError
from trivet.profile import BUILT_IN_LEGS as LEGS
from trivet.text.trigrams import word_similarity
from trivet.types import Results

Open = Callable[..., Engine]
Scores = list[tuple[str, float]]

QUERY, EAST = "apple orchard", [1.0, 0.0]
NOW = datetime(2026, 6, 1, tzinfo=UTC)


def vector(degrees: float) -> list[float]:
    return [math.cos(math.radians(degrees)), math.sin(math.radians(degrees))]


def orchard(count: int = 40) -> list[dict[str, Any]]:
    """Documents that words and meaning rank in unlike orders; a third has none of the words."""
    made = []
    for n in range(count):
        words = ["apple"] * (n * 7 % 5 + 1) + ["orchard"] * (n % 2) if n % 3 else []
        filler = [f"filler{n}x{m}" for m in range(n * 5 % 9 + 1)]
        meta = {
            "session": n % 4,
            "repository": f"r{n % 2}",
            "version": f"v{n % 3}",
            "type": "code" if n % 5 else "info",
        }
        made.append(
            {
                "id": f"n{n:02}",
                "text": " ".join([*words, *filler]),
                "vector": vector(n * 37 % count * 90 / count),
                "meta": meta,
                "importance": n * 13 % 11 / 10,
                "accessed": NOW - timedelta(days=n * 17 % 90),
            }
        )
    return made


@pytest.fixture
def trees(open_store: Open) -> Engine:
    memory = open_store(embedder="vectors:2")
    memory.add(orchard())
    return memory


def ids(results: Results) -> list[str]:
    return [hit.id for hit in results]


def scores(results: Results) -> Scores:
    return [(hit.id, pytest.approx(hit.score, rel=1e-9)) for hit in results]  # type: ignore[misc]


def listed(memory: Engine, leg: str, depth: int, **how: Any) -> list[str]:
    """One leg's list, ``depth`` long, by asking it alone."""
    weights = {other: float(other == leg) for other in LEGS}
    depths = dict.fromkeys(weights, "1k")
    alone = {"weights": weights, "depths": depths, "rerankers": [], "fusion": "rrf", "context": 0.0}
    return ids(memory.search(QUERY, k=depth, vector=EAST, **{**alone, **how}))


def depths_asked(memory: Engine, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Filled by the next search: how deep each leg was asked to look."""
    seen: dict[str, int] = {}
    for name in ("lexical", "vectors", "trigrams"):
        index = getattr(memory._collection, name)

        def spy(*asked: Any, _real: Any = index.search, _name: str = name) -> Any:
            seen[_name] = asked[2]
            return _real(*asked)

        monkeypatch.setattr(index, "search", spy)
    return seen


def trap(memory: Engine, monkeypatch: pytest.MonkeyPatch, index: str) -> None:
    def sprung(*_: Any) -> None:
        raise AssertionError(f"{index} was called")

    monkeypatch.setattr(getattr(memory._collection, index), "search", sprung)


# --- seed 000 ---------------------------------------------------------------------------------------------------------


def fuse_episode_results(semantic: Sequence[str], keyword: Sequence[str], ws: float, wk: float, limit: int) -> Scores:
    """As in the seed, but guarded on both sides: it lets semantic hits in with score 0 at semanticWeight 0."""
    found: dict[str, float] = {}
    for i, id in enumerate(semantic):
        if ws / (60 + i + 1) > 0:
            found[id] = ws / (60 + i + 1)
    for i, id in enumerate(keyword):
        contrib = wk / (60 + i + 1)
        if id in found:
            found[id] += contrib
        elif contrib > 0:
            found[id] = contrib
    return sorted(found.items(), key=lambda item: -item[1])[:limit]


class Test000Episodes:
    LIMIT = 6

    def test_by_default_words_are_off(self, trees: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        semantic = listed(trees, "dense", self.LIMIT)
        trap(trees, monkeypatch, "lexical")
        found = trees.search(QUERY, k=self.LIMIT, vector=EAST, profile="episodes")
        assert scores(found) == [(id, 1.0 / (60 + i + 1)) for i, id in enumerate(semantic)]
        assert found.degraded == ()  # not called, which is not the same as failed

    @pytest.mark.parametrize(("ws", "wk"), [(1.0, 1.0), (0.5, 2.0), (1.0, 0.3), (5.0, 5.0), (0.01, 5.0)])
    def test_with_words(self, trees: Engine, ws: float, wk: float) -> None:
        semantic, keyword = listed(trees, "dense", self.LIMIT), listed(trees, "lexical", 2 * self.LIMIT)
        found = trees.search(QUERY, k=self.LIMIT, vector=EAST, profile="episodes", dense_weight=ws, lexical_weight=wk)
        assert [score for _, score in scores(found)] == [
            score for _, score in fuse_episode_results(semantic, keyword, ws, wk, self.LIMIT)
        ]
        # equal scores may stand in either order at the cut, so each hit is held to its own score
        unlimited = dict(fuse_episode_results(semantic, keyword, ws, wk, 100))
        assert dict(scores(found)) == {hit.id: unlimited[hit.id] for hit in found}

    def test_the_share_of_each_strategy(self, trees: Engine) -> None:
        found = trees.search(QUERY, k=self.LIMIT, vector=EAST, profile="episodes", lexical_weight=2, dense_weight=0.5)
        assert {part.leg for hit in found for part in hit.contributions} == {"lexical", "dense"}
        for hit in found:
            by_hand = sum({"dense": 0.5, "lexical": 2.0}[part.leg] / (60 + part.rank) for part in hit.contributions)
            assert hit.score == pytest.approx(by_hand)

    def test_the_guard_on_the_semantic_side(self, trees: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        keyword = listed(trees, "lexical", 2 * self.LIMIT)
        trap(trees, monkeypatch, "vectors")
        found = trees.search(QUERY, k=self.LIMIT, profile="episodes", dense_weight=0, lexical_weight=1)
        assert scores(found) == fuse_episode_results([], keyword, 0, 1, self.LIMIT)
        assert found.degraded == ()
        assert all(hit.score > 0 for hit in found)

    @pytest.mark.parametrize("weight", [-0.01, 5.01, 100])
    @pytest.mark.parametrize("setting", ["lexical_weight", "dense_weight"])
    def test_weights_are_0_to_5(self, trees: Engine, setting: str, weight: float) -> None:
        with pytest.raises(InputError, match=r"out of range; allowed: 0 to 5"):
            trees.search(QUERY, profile="episodes", **{setting: weight})
        with pytest.raises(InputError, match=r"out of range; allowed: 0 to 5"):
            trees.update_settings("episodes", **{setting: weight})
        trees.update_settings("episodes", **{setting: 5})

    def test_words_are_asked_for_twice_the_limit(self, trees: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        asked = depths_asked(trees, monkeypatch)
        trees.search(QUERY, k=self.LIMIT, vector=EAST, profile="episodes", lexical_weight=1)
        assert asked == {"lexical": 2 * self.LIMIT, "vectors": self.LIMIT}

    @pytest.mark.parametrize("sessions", [[1], [0, 2], [3, 99], [99]])
    def test_session_scope_on_both_sides(self, trees: Engine, sessions: list[int]) -> None:
        scope = {"session": sessions}
        found = trees.search(QUERY, k=40, where=scope, vector=EAST, profile="episodes", lexical_weight=1)
        semantic, keyword = listed(trees, "dense", 40, where=scope), listed(trees, "lexical", 80, where=scope)
        inside = {item["id"] for item in orchard() if item["meta"]["session"] in sessions}
        assert set(semantic) == inside
        assert set(keyword) <= inside
        assert dict(scores(found)) == dict(fuse_episode_results(semantic, keyword, 1, 1, 40))

    def test_recent_ids_are_left_out_on_both_sides_and_the_limit_is_filled(self, trees: Engine) -> None:
        how: dict[str, Any] = {"k": self.LIMIT, "vector": EAST, "profile": "episodes", "lexical_weight": 1}
        recent = ids(trees.search(QUERY, **how))
        found = trees.search(QUERY, exclude=recent, **how)
        assert len(found) == self.LIMIT
        assert not set(recent) & set(ids(found))
        semantic = listed(trees, "dense", self.LIMIT, exclude=recent)
        keyword = listed(trees, "lexical", 2 * self.LIMIT, exclude=recent)
        expected = fuse_episode_results(semantic, keyword, 1, 1, self.LIMIT)
        assert [score for _, score in scores(found)] == [score for _, score in expected]

    def test_patching_the_settings_takes_effect_at_the_next_request(self, trees: Engine, open_store: Open) -> None:
        other = open_store(embedder=None)
        trees.update_settings("episodes")
        assert {part.leg for hit in other.search(QUERY, vector=EAST) for part in hit.contributions} == {"dense"}
        trees.update_settings(lexical_weight=1.0)
        assert {part.leg for hit in other.search(QUERY, vector=EAST) for part in hit.contributions} == {
            "dense",
            "lexical",
        }

    @pytest.mark.parametrize("text", ["user-facing", "don't", "and/or", "f(x", '"open', "NOT apple", "a:b", "apple*"])
    def test_user_text_is_no_match_expression(self, trees: Engine, text: str) -> None:
        assert trees.search(text, vector=EAST, profile="episodes", lexical_weight=1).degraded == ()


# --- seed 001 ---------------------------------------------------------------------------------------------------------


def memories(lexical: Sequence[str], dense: Sequence[str], importance: dict[str, float]) -> Scores:
    """score = sum of w / (60 + rank), ranks from 1, w = 1 each; final = fused * (0.7 + 0.3 * importance)."""
    fused: dict[str, float] = {}
    for ranking in (lexical, dense):
        for rank, id in enumerate(ranking, start=1):
            fused[id] = fused.get(id, 0.0) + 1.0 / (60 + rank)
    final = [
        (id, score * (0.7 + 0.3 * importance[id])) for id, score in sorted(fused.items(), key=lambda item: -item[1])
    ]
    return sorted(final, key=lambda item: -item[1])


class Test001Memories:
    IMPORTANCE = {item["id"]: item["importance"] for item in orchard()}  # noqa: RUF012

    def test_fused_then_the_prior(self, trees: Engine) -> None:
        lexical, dense = listed(trees, "lexical", 50), listed(trees, "dense", 50)
        expected = memories(lexical, dense, self.IMPORTANCE)
        found = trees.search(QUERY, k=40, vector=EAST, profile="memories")
        assert dict(scores(found)) == dict(expected)
        assert [score for _, score in scores(found)] == [score for _, score in expected]
        assert ids(found)[:5] == [id for id, _ in expected][:5]

    def test_the_prior_is_told(self, trees: Engine) -> None:
        for hit in trees.search(QUERY, vector=EAST, profile="memories"):
            factor = 0.7 + 0.3 * hit.document.importance
            assert hit.score == pytest.approx(hit.fused * factor)
            if factor != 1.0:
                (adjustment,) = hit.adjustments
                assert (adjustment.reranker, adjustment.before) == ("importance", hit.fused)

    def test_without_a_model_the_lexical_order_times_the_prior(self, open_store: Open) -> None:
        memory = open_store()
        memory.add([{key: value for key, value in item.items() if key != "vector"} for item in orchard()])
        lexical = ids(memory.search(QUERY, k=40, alpha=0, graph_weight=0, context=0.0, rerankers=[]))
        found = memory.search(QUERY, k=40, profile="memories")
        assert dict(scores(found)) == dict(memories(lexical, [], self.IMPORTANCE))
        assert found.degraded[0].part == "dense"
        # the seed says the order "collapses to today's exact lexical ordering": with the prior it does not …
        assert ids(found) != lexical
        # … and without it, it does
        assert ids(memory.search(QUERY, k=40, profile="memories", rerankers=[])) == lexical

    def test_fifty_of_each(self, trees: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        asked = depths_asked(trees, monkeypatch)
        trees.search(QUERY, vector=EAST, profile="memories")
        assert asked == {"lexical": 50, "vectors": 50}

    def test_all_words_then_any(self, open_store: Open) -> None:
        """plainto_tsquery asks for every word; the fallback broadens to any."""
        memory = open_store()
        memory.add([{"id": "both", "text": "apple orchard"}, {"id": "one", "text": "apple"}])
        assert set(ids(memory.search(QUERY, profile="memories"))) == {"both", "one"}
        assert ids(memory.search(QUERY, profile="memories", match="all")) == ["both"]


# --- seed 002 ---------------------------------------------------------------------------------------------------------


class Test002Chunks:
    QUESTION = "When was Stargate Atlantis cancelled?"
    KEYWORDS = "stargate atlantis cancelled"
    TEXTS = (
        "Stargate Atlantis was cancelled in 2008 after five seasons.",
        "Atlantis aired on the Sci Fi Channel.",
        "The show Stargate Universe followed.",
        "Stargate SG-1 ran for ten seasons and was canceled in 2007.",
        "Cooking pasta takes eleven minutes.",
        "A star gate is a kind of portal.",
        "The cancellation of Stargate Atlantis surprised its fans.",
        "Atlantis is a legendary island.",
        "Stargazing needs a dark sky.",
        "Concert cancelled due to rain.",
        "stargate atlantis stargate atlantis",
        "The Atlantic is an ocean.",
        "STARGATE: ATLANTIS, cancelled!",
        "Nothing to see here.",
        "Stargat Atlants cancelld",
        "atlantis cancelled",
    )

    @pytest.fixture
    def chunks(self, open_store: Open) -> Engine:
        memory = open_store(embedder="vectors:2")
        count = len(self.TEXTS)
        memory.add(
            [
                {"id": f"c{n}", "text": text, "vector": vector(n * 7 % count * 5 + 1)}
                for n, text in enumerate(self.TEXTS)
            ]
        )
        return memory

    def merge(self) -> dict[str, float]:
        """Top 10 of each; 1 / (60 + vectorRank) and 1.5 / (60 + trigramRank), ranks from 1."""
        count = len(self.TEXTS)
        nearest = sorted(range(count), key=lambda n: n * 7 % count)[:10]
        similar = [(word_similarity(self.KEYWORDS, text), n) for n, text in enumerate(self.TEXTS)]
        alike = [n for score, n in sorted(similar, key=lambda item: (-item[0], item[1])) if score >= 0.3][:10]
        assert 0 < len(alike) <= 10 < count
        rrf: dict[str, float] = {}
        for rank, n in enumerate(nearest, start=1):
            rrf[f"c{n}"] = rrf.get(f"c{n}", 0.0) + 1 / (60 + rank)
        for rank, n in enumerate(alike, start=1):
            rrf[f"c{n}"] = rrf.get(f"c{n}", 0.0) + 1.5 / (60 + rank)
        return rrf

    def test_the_seeds_question(self, chunks: Engine) -> None:
        found = chunks.search(self.QUESTION, k=10, vector=EAST, profile="chunks")
        expected = self.merge()
        assert len(found) == 10
        assert [hit.score for hit in found] == pytest.approx(sorted(expected.values(), reverse=True)[:10])
        assert {hit.id: hit.score for hit in found} == pytest.approx({hit.id: expected[hit.id] for hit in found})
        assert (
            found[0].text in self.TEXTS[:1] + self.TEXTS[12:13]
        )  # it says when it was cancelled, or spells the keywords

    def test_no_leg_is_asked_for_the_words(self, chunks: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        trap(chunks, monkeypatch, "lexical")
        assert chunks.search(self.QUESTION, vector=EAST, profile="chunks").degraded == ()

    def test_top_ten_of_each(self, chunks: Engine) -> None:
        found = chunks.search(self.QUESTION, vector=EAST, profile="chunks")
        told = {
            stage.name: int(stage.detail.split(" ")[0]) for stage in found.trace if stage.name in ("trigram", "dense")
        }
        assert told["dense"] == 10
        assert told["trigram"] <= 10
        assert max(part.rank for hit in found for part in hit.contributions) <= 10

    def test_the_gate_is_on_word_similarity(self, chunks: Engine) -> None:
        """The seed puts 0.3 on the merged score, whose best is 2.5 / 61: there it would leave nothing."""
        found = chunks.search(self.QUESTION, k=20, vector=EAST, profile="chunks", trigram_depth=20)
        raws = {hit.id: part.raw for hit in found for part in hit.contributions if part.leg == "trigram"}
        similar = {f"c{n}": word_similarity(self.KEYWORDS, text) for n, text in enumerate(self.TEXTS)}
        assert raws == {id: score for id, score in similar.items() if score >= 0.3}
        assert any(score < 0.3 for score in similar.values())
        assert max(hit.score for hit in found) < 0.3

    def test_the_stop_words_are_not_compared(self, chunks: Engine) -> None:
        """The question as it stands is less like every chunk than its keywords are."""
        bare = chunks.search(self.KEYWORDS, vector=EAST, profile="chunks")
        assert chunks.search(self.QUESTION, vector=EAST, profile="chunks").hits == bare.hits


# --- seed 003 ---------------------------------------------------------------------------------------------------------


def fuse(lists: Sequence[Sequence[str]], k: int, rrf_k: float) -> Scores:
    """1 / (rrfK + rank), rank from 0; the top k."""
    found: dict[str, float] = {}
    for ranking in lists:
        for rank, id in enumerate(ranking):
            found[id] = found.get(id, 0.0) + 1 / (rrf_k + rank)
    return sorted(found.items(), key=lambda item: -item[1])[:k]


def rerank_with(results: Scores, documents: dict[str, dict[str, Any]]) -> Scores:
    """0.80 * score / max + 0.05 * recency + 0.15 * importance, stable; recency's curve is ours: half in 30 days."""
    top = max(score for _, score in results)

    def composite(id: str, score: float) -> float:
        days = (NOW - documents[id]["accessed"]) / timedelta(days=1)
        return 0.80 * score / top + 0.05 * 0.5 ** (days / 30) + 0.15 * documents[id]["importance"]

    return sorted(((id, composite(id, score)) for id, score in results), key=lambda item: -item[1])


class Test003Composite:
    DOCUMENTS = {item["id"]: item for item in orchard()}  # noqa: RUF012

    def test_fuse_with_its_constant(self, trees: Engine) -> None:
        lists = [listed(trees, "lexical", 50), listed(trees, "dense", 50)]
        found = trees.search(QUERY, k=40, vector=EAST, profile="composite", rerankers=[])
        assert scores(found) == fuse(lists, 40, 5.0)
        assert PROFILES["composite"].rrf_k == 4.0  # 1/(5 + r), r from 0, is 1/(4 + r), r from 1

    def test_the_whole_of_it(self, trees: Engine) -> None:
        lists = [listed(trees, "lexical", 50), listed(trees, "dense", 50)]
        expected = rerank_with(fuse(lists, 50, 5.0), self.DOCUMENTS)
        found = trees.search(QUERY, k=40, vector=EAST, profile="composite", at=NOW)
        assert scores(found) == expected[:40]

    def test_dedup_keeps_the_first_of_each_content(self, trees: Engine) -> None:
        best = ids(trees.search(QUERY, k=3, vector=EAST, profile="composite", rerankers=[]))
        text = self.DOCUMENTS[best[0]]["text"]
        trees.add(
            {"id": "copy", "text": f"  {text.upper()}\n", "vector": vector(89.9), "importance": 1, "accessed": NOW}
        )
        plain = trees.search(QUERY, k=50, vector=EAST, profile="composite", rerankers=[])
        assert "copy" in ids(plain)
        assert ids(plain).index("copy") > 0
        found = trees.search(QUERY, k=50, vector=EAST, profile="composite", at=NOW)
        assert "copy" not in ids(found)  # though important and fresh: it goes before the composite is made
        assert best[0] in ids(found)

    def test_equal_composites_keep_their_order(self, open_store: Open) -> None:
        memory = open_store(embedder="vectors:2")
        same = {"importance": 0.5, "accessed": NOW}
        memory.add(
            [
                {"id": "w", "text": "apple", "vector": [0, 0], **same},  # first by words, not found by meaning
                {"id": "m", "text": "pear", "vector": [1, 0], **same},  # the other way round
            ]
        )
        found = memory.search("apple", vector=EAST, profile="composite", at=NOW)
        assert [(hit.id, hit.score) for hit in found] == [("w", pytest.approx(0.925)), ("m", pytest.approx(0.925))]
        assert found[0].score == found[1].score == pytest.approx(0.80 * 1 + 0.05 * 1 + 0.15 * 0.5)

    def test_fuse_scores(self, trees: Engine) -> None:
        """Min-max within each list, then alpha 0.5 for the vectors and 1 - alpha for the words."""
        how: dict[str, Any] = {"k": 40, "vector": EAST, "profile": "composite", "rerankers": [], "fusion": "convex"}
        found = trees.search(QUERY, alpha=0.5, **how)
        raws = {
            leg: {h.id: p.raw for h in found for p in h.contributions if p.leg == leg} for leg in ("lexical", "dense")
        }
        expected: dict[str, float] = {}
        for raw in raws.values():
            low, high = min(raw.values()), max(raw.values())
            for id, score in raw.items():
                expected[id] = expected.get(id, 0.0) + 0.5 * (score - low) / (high - low)
        assert {hit.id: hit.score for hit in found} == pytest.approx(expected)
        assert len(raws["lexical"]) > 20
        assert len(raws["dense"]) == 40


# --- seed 004 ---------------------------------------------------------------------------------------------------------


def reciprocal_rank_fusion(*rankings: Sequence[str]) -> Scores:
    """1 / (60 + rank + 1), rank from 0."""
    found: dict[str, float] = {}
    for ranking in rankings:
        for rank, id in enumerate(ranking):
            found[id] = found.get(id, 0.0) + 1 / (60 + rank + 1)
    return sorted(found.items(), key=lambda item: -item[1])


class Test004Snippets:
    LIMIT = 5

    def test_balanced_is_its_order_at_half_the_score(self, trees: Engine) -> None:
        """A documented difference: alpha 0.5 weighs each leg 0.5, the seed's sum is unweighted: same order."""
        fts, vectors = listed(trees, "lexical", 3 * self.LIMIT), listed(trees, "dense", 3 * self.LIMIT)
        expected = reciprocal_rank_fusion(fts, vectors)[: self.LIMIT]
        found = trees.search(QUERY, k=self.LIMIT, vector=EAST, profile="snippets")
        assert scores(found) == [(id, score / 2) for id, score in expected]
        whole = trees.search(QUERY, k=self.LIMIT, vector=EAST, profile="snippets", weights={"lexical": 1, "dense": 1})
        assert scores(whole) == expected

    def test_three_times_the_limit_from_each(self, trees: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        asked = depths_asked(trees, monkeypatch)
        trees.search(QUERY, k=self.LIMIT, vector=EAST, profile="snippets")
        assert asked == {"lexical": 15, "vectors": 15}

    def test_twenty_results(self, trees: Engine) -> None:
        assert len(trees.search(QUERY, vector=EAST, profile="snippets")) == PROFILES["snippets"].k == 20

    def test_alpha_0_is_words_alone(self, trees: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        fts = listed(trees, "lexical", 3 * self.LIMIT)
        trap(trees, monkeypatch, "vectors")
        found = trees.search(QUERY, k=self.LIMIT, vector=EAST, profile="snippets", alpha=0)
        assert ids(found) == fts[: self.LIMIT]
        assert found.degraded == ()

    def test_alpha_1_is_vectors_alone(self, trees: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        vectors = listed(trees, "dense", 3 * self.LIMIT)
        trap(trees, monkeypatch, "lexical")
        found = trees.search(QUERY, k=self.LIMIT, vector=EAST, profile="snippets", alpha=1)
        assert ids(found) == vectors[: self.LIMIT]
        assert found.degraded == ()

    @pytest.mark.parametrize("alpha", [0.1, 0.3, 0.7, 0.95])
    def test_alpha_reaches_the_fusion(self, trees: Engine, alpha: float) -> None:
        """The seed reads alpha and never hands it on."""
        fts, vectors = listed(trees, "lexical", 3 * self.LIMIT), listed(trees, "dense", 3 * self.LIMIT)
        expected: dict[str, float] = {}
        for weight, ranking in ((1 - alpha, fts), (alpha, vectors)):
            for rank, id in enumerate(ranking):
                expected[id] = expected.get(id, 0.0) + weight / (60 + rank + 1)
        found = trees.search(QUERY, k=self.LIMIT, vector=EAST, profile="snippets", alpha=alpha)
        assert [hit.score for hit in found] == pytest.approx(sorted(expected.values(), reverse=True)[: self.LIMIT])
        assert {hit.id: hit.score for hit in found} == pytest.approx({hit.id: expected[hit.id] for hit in found})

    @pytest.mark.parametrize(
        "scope",
        [
            {"repository": "r1"},
            {"repository": "r0", "version": "v2"},
            {"repository": "r1", "version": "v1", "type": "code"},
            {"type": "info"},
        ],
    )
    def test_the_scope_holds_on_the_vector_leg_too(self, trees: Engine, scope: dict[str, str]) -> None:
        """The seed's vector search knows the repository only: other versions and types come in by meaning."""
        inside = {item["id"] for item in orchard() if all(item["meta"][key] == value for key, value in scope.items())}
        for alpha in (0, 0.5, 1):
            found = trees.search(QUERY, k=40, where=scope, vector=EAST, profile="snippets", alpha=alpha)
            assert set(ids(found)) <= inside
        assert set(ids(trees.search(QUERY, k=40, where=scope, vector=EAST, profile="snippets", alpha=1))) == inside

    def test_without_embeddings_the_words_answer(self, open_store: Open) -> None:
        memory = open_store()
        memory.add([{key: value for key, value in item.items() if key != "vector"} for item in orchard()])
        found = memory.search(QUERY, k=self.LIMIT, profile="snippets")
        assert ids(found) == ids(memory.search(QUERY, k=self.LIMIT, profile="snippets", alpha=0))
        assert len(found) == self.LIMIT
        assert [item.part for item in found.degraded] == ["dense"]

    def test_while_some_are_not_embedded_they_are_found_by_their_words(self, trees: Engine) -> None:
        trees.add({"id": "fresh", "text": "apple orchard"})
        found = trees.search(QUERY, k=41, vector=EAST, profile="snippets")
        assert "fresh" in ids(found)
        assert next(hit for hit in found if hit.id == "fresh").only_leg == "lexical"
        assert found.degraded[0].reason == "1 of 41 passages are not embedded yet"

    def test_no_snippet_twice(self, trees: Engine) -> None:
        found = trees.search(QUERY, vector=EAST, profile="snippets")
        assert len(set(ids(found))) == len(found)
        assert any(len(hit.contributions) == 2 for hit in found)

    def test_the_settings_row(self, trees: Engine) -> None:
        """search_config: alpha and maxResults, for every request until changed."""
        trees.update_settings("snippets", alpha=0.0, k=7)
        assert ids(trees.search(QUERY, vector=EAST)) == listed(trees, "lexical", 21)[:7]
        assert len(trees.search(QUERY, vector=EAST, k=3)) == 3
