"""Our fusion and rerankers give the numbers of the five seed systems.

Each seed's formula is written out here from its text, in its own terms (0- or 1-based, its constant, its guards), and
ours is held to it on small lists. Where a seed is known to be wrong, the test says what we do instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import ClassVar

import pytest

from trivet.fusion import alpha_weights, fuse
from trivet.rerank.composite import Composite
from trivet.rerank.dedup import Dedup
from trivet.rerank.importance import Importance
from trivet.types import Candidate, Document, Hit, Passage, Query, Ranking


def listed(leg: str, *keys: str, scores: Sequence[float] = ()) -> Ranking:
    """A leg's list; where only ranks matter the scores are anything that descends."""
    return Ranking(leg, keys, tuple(scores) or tuple(float(-i) for i in range(len(keys))))


def pairs(candidates: Sequence[Candidate]) -> list[tuple[object, object]]:
    return [(c.key, pytest.approx(c.score, rel=1e-12)) for c in candidates]


def as_hit(id: str, score: float, **known: object) -> Hit:
    document = Document(id=id, text=str(known.pop("text", id)), **known)  # type: ignore[arg-type]
    return Hit(1, id, score, 0.0, document, Passage(0, 0, 0, document.text), fused=score)


class Test000Episodes:
    """fuseEpisodeResults: weight / (60 + i + 1), i from 0; a keyword-only episode enters only with a share above 0."""

    SEMANTIC, KEYWORD = listed("dense", "e1", "e2", "e3"), listed("lexical", "e3", "e4")

    @staticmethod
    def fuse_episode_results(semantic: Ranking, keyword: Ranking, ws: float, wk: float) -> list[tuple[object, float]]:
        scores: dict[object, float] = {}
        for i, id in enumerate(semantic.keys):
            if ws / (60 + i + 1) > 0:  # ours: the seed guards the keyword side only
                scores[id] = ws / (60 + i + 1)
        for i, id in enumerate(keyword.keys):
            contrib = wk / (60 + i + 1)
            if id in scores:
                scores[id] += contrib
            elif contrib > 0:
                scores[id] = contrib
        return sorted(scores.items(), key=lambda item: -item[1])

    @pytest.mark.parametrize(("ws", "wk"), [(1, 1), (1, 0), (0.5, 2), (5, 0.1), (0, 1), (0, 0)])
    def test_same_list(self, ws: float, wk: float) -> None:
        ours = fuse("rrf", [self.SEMANTIC, self.KEYWORD], {"dense": ws, "lexical": wk})
        assert pairs(ours) == self.fuse_episode_results(self.SEMANTIC, self.KEYWORD, ws, wk)

    def test_by_hand(self) -> None:
        ours = {c.key: c.score for c in fuse("rrf", [self.SEMANTIC, self.KEYWORD], {"dense": 0.5, "lexical": 2.0})}
        assert ours == pytest.approx({"e1": 0.5 / 61, "e2": 0.5 / 62, "e3": 0.5 / 63 + 2 / 61, "e4": 2 / 62})

    def test_the_default_is_the_semantic_order(self) -> None:
        ours = fuse("rrf", [self.SEMANTIC, self.KEYWORD], {"dense": 1.0, "lexical": 0.0})
        assert [c.key for c in ours] == ["e1", "e2", "e3"]

    def test_no_leg_bleeds_in_at_weight_zero(self) -> None:
        """As written, the seed lets e1 and e2 in with score 0 at semanticWeight 0."""
        ours = fuse("rrf", [self.SEMANTIC, self.KEYWORD], {"dense": 0.0, "lexical": 1.0})
        assert pairs(ours) == [("e3", 1 / 61), ("e4", 1 / 62)]


class Test001Memories:
    """score = sum w / (60 + rank), w = 1, 1, 0.35; then final = fused * (0.7 + 0.3 * importance)."""

    LEGS = (listed("lexical", "m1", "m2"), listed("dense", "m3", "m2"), listed("graph", "m4", "m1"))
    WEIGHTS: ClassVar = {"lexical": 1.0, "dense": 1.0, "graph": 0.35}
    FUSED: ClassVar = {"m1": 1 / 61 + 0.35 / 62, "m2": 1 / 62 + 1 / 62, "m3": 1 / 61, "m4": 0.35 / 61}

    def test_fused(self) -> None:
        assert {c.key: c.score for c in fuse("rrf", self.LEGS, self.WEIGHTS)} == pytest.approx(self.FUSED)
        assert [c.key for c in fuse("rrf", self.LEGS, self.WEIGHTS)] == ["m2", "m1", "m3", "m4"]

    def test_then_importance(self) -> None:
        importance = {"m1": 1.0, "m2": 0.0, "m3": 0.5, "m4": 1.0}
        hits = [
            as_hit(str(c.key), c.score, importance=importance[str(c.key)]) for c in fuse("rrf", self.LEGS, self.WEIGHTS)
        ]
        final = {id: fused * (0.7 + 0.3 * importance[id]) for id, fused in self.FUSED.items()}
        ranked = Importance(floor=0.7).rerank(hits, Query("q"))
        assert [(h.id, pytest.approx(h.score)) for h in ranked] == sorted(final.items(), key=lambda item: -item[1])
        assert [h.id for h in ranked] == ["m2", "m1", "m3", "m4"]
        assert final["m2"] == pytest.approx(2 / 62 * 0.7)

    def test_alone_the_lexical_leg_keeps_its_order_without_the_prior(self) -> None:
        """The seed claims it of the whole path; once importance multiplies it is false."""
        lexical, empty = listed("lexical", "m1", "m2", "m3"), [Ranking("dense"), Ranking("graph")]
        fused = fuse("rrf", [lexical, *empty], self.WEIGHTS)
        assert [c.key for c in fused] == ["m1", "m2", "m3"]
        hits = [as_hit(str(c.key), c.score, importance=float(c.key == "m3")) for c in fused]
        assert [h.id for h in Importance().rerank(hits, Query("q"))] == ["m3", "m1", "m2"]

    def test_its_graph_leg_could_not_enter_the_top_ten(self) -> None:
        """A first place of one leg enters the top K of a full list iff w > (k + 1) / (k + K): 0.87 here, not 0.35."""
        lexical, graph = listed("lexical", *(f"m{i}" for i in range(1, 11))), listed("graph", "g")

        def rank_of_g(weight: float, rrf_k: float) -> int:
            return [c.key for c in fuse("rrf", [lexical, graph], {"graph": weight}, rrf_k=rrf_k)].index("g") + 1

        assert (rank_of_g(0.35, 60), rank_of_g(0.87, 60), rank_of_g(0.88, 60)) == (11, 11, 10)
        assert (rank_of_g(0.39, 5), rank_of_g(0.41, 5)) == (11, 10)


class Test002Chunks:
    """rrfScore += 1 / (60 + vectorRank), += 1.5 / (60 + trigramRank), ranks from 1."""

    VECTOR, TRIGRAM = listed("dense", "c1", "c2", "c3"), listed("trigram", "c3", "c4")

    def test_by_hand(self) -> None:
        ours = fuse("rrf", [self.VECTOR, self.TRIGRAM], {"dense": 1.0, "trigram": 1.5})
        assert pairs(ours) == [("c3", 1 / 63 + 1.5 / 61), ("c4", 1.5 / 62), ("c1", 1 / 61), ("c2", 1 / 62)]

    def test_its_threshold_was_out_of_reach(self) -> None:
        """similarityThreshold 0.3 on a score whose best is 2.5 / 61: fused scores are no place for a threshold."""
        best = fuse("rrf", [listed("dense", "c1"), listed("trigram", "c1")], {"trigram": 1.5})[0].score
        assert best == pytest.approx(2.5 / 61)
        assert best < 0.3


class Test003Composite:
    NOW = datetime(2026, 5, 1, tzinfo=UTC)
    VECTOR = listed("dense", "a", "b", "c", scores=(0.9, 0.7, 0.5))
    KEYWORD = listed("lexical", "d", "c", scores=(8.0, 2.0))

    @staticmethod
    def minmax(ranking: Ranking) -> dict[object, float]:
        low, high = min(ranking.scores), max(ranking.scores)
        return {key: (s - low) / (high - low) for key, s in zip(ranking.keys, ranking.scores, strict=True)}

    def fuse_scores(self, lists: Sequence[Ranking], weights: Sequence[float]) -> list[tuple[object, float]]:
        scores: dict[object, float] = {}
        for i, ranking in enumerate(lists):
            for key, s in self.minmax(ranking).items():
                scores[key] = scores.get(key, 0.0) + (weights[i] if i < len(weights) else 1.0) * s
        return sorted(scores.items(), key=lambda item: -item[1])

    def test_fuse_is_rrf_at_zero_based_five(self) -> None:
        """1 / (5 + rank), rank from 0, is our rrf_k = 4."""
        ours = fuse("rrf", [self.VECTOR, self.KEYWORD], {}, rrf_k=4)
        assert pairs(ours) == [
            ("c", 1 / (5 + 2) + 1 / (5 + 1)),
            ("a", 1 / (5 + 0)),
            ("d", 1 / (5 + 0)),
            ("b", 1 / (5 + 1)),
        ]

    def test_its_reason_for_five(self) -> None:
        """2 / (60 + 20) > 1 / (60 + 0): at 60, position 20 in both lists beats first in one; at 5 it does not."""
        one = listed("dense", *(f"v{i}" for i in range(20)), "both")
        other = listed("lexical", *(f"k{i}" for i in range(20)), "both")
        assert fuse("rrf", [one, other], {}, rrf_k=60 - 1)[0].key == "both"
        assert fuse("rrf", [one, other], {}, rrf_k=5 - 1)[0].key == "v0"

    @pytest.mark.parametrize("weights", [[], [0.5], [0.5, 0.5], [0.3, 0.7], [2.0, 3.0]])
    def test_fuse_scores(self, weights: list[float]) -> None:
        """Absent weights are 1; ties keep first-seen order; undivided it is comb_sum."""
        named = dict(zip(("dense", "lexical"), weights, strict=False))
        ours = fuse("comb_sum", [self.VECTOR, self.KEYWORD], named, normalize="minmax")
        assert pairs(ours) == self.fuse_scores([self.VECTOR, self.KEYWORD], weights)
        assert [c.key for c in fuse("convex", [self.VECTOR, self.KEYWORD], named)] == [c.key for c in ours]

    @pytest.mark.parametrize("alpha", [0.25, 0.5, 0.9])
    def test_with_alpha_it_is_convex_number_for_number(self, alpha: float) -> None:
        ours = fuse("convex", [self.VECTOR, self.KEYWORD], alpha_weights(alpha))
        assert pairs(ours) == self.fuse_scores([self.VECTOR, self.KEYWORD], [alpha, 1 - alpha])

    def test_a_standout_of_one_leg_beats_one_that_is_middling_in_both(self) -> None:
        ours = fuse("convex", [self.VECTOR, self.KEYWORD], alpha_weights(0.5))
        assert pairs(ours) == [("a", 0.5 * 1), ("d", 0.5 * 1), ("b", 0.5 * 0.5), ("c", 0.0)]

    @pytest.mark.parametrize(
        ("limit", "kept"), [(0, ["1", "3", "4"]), (-1, ["1", "3", "4"]), (2, ["1", "3"]), (9, ["1", "3", "4"])]
    )
    def test_dedup(self, limit: int, kept: list[str]) -> None:
        texts = {"1": "User prefers tabs", "2": " user  PREFERS tabs", "3": "Deploys on Friday", "4": "Uses uv"}
        hits = [as_hit(id, 1.0 / int(id), text=text) for id, text in texts.items()]
        assert [h.id for h in Dedup(limit=limit).rerank(hits, Query("q"))] == kept

    def test_rerank_with(self) -> None:
        """0.80 * score / max + 0.05 * 0.5 ** (days / 30) + 0.15 * importance."""
        made = {"a": (0.040, 0.1, 90), "b": (0.036, 0.9, 0), "c": (0.020, 1.0, 30), "d": (0.020, 1.0, 30)}
        hits = [
            as_hit(id, score, importance=importance, accessed=self.NOW - timedelta(days=days))
            for id, (score, importance, days) in made.items()
        ]
        ranked = Composite().rerank(hits, Query("q", at=self.NOW))
        assert [(h.id, pytest.approx(h.score)) for h in ranked] == [
            ("b", 0.80 * 0.036 / 0.040 + 0.05 * 1.0 + 0.15 * 0.9),
            ("a", 0.80 * 1.0 + 0.05 * 0.125 + 0.15 * 0.1),
            ("c", 0.80 * 0.5 + 0.05 * 0.5 + 0.15 * 1.0),
            ("d", 0.80 * 0.5 + 0.05 * 0.5 + 0.15 * 1.0),
        ]


class Test004Snippets:
    """reciprocalRankFusion: 1 / (60 + rank + 1), rank from 0; alpha 0 is FTS5 alone, 1 is vectors alone."""

    FTS, VECTOR = listed("lexical", "s1", "s2", "s3"), listed("dense", "s4", "s3")

    @staticmethod
    def reciprocal_rank_fusion(*rankings: Ranking) -> list[tuple[object, float]]:
        scores: dict[object, float] = {}
        for ranking in rankings:
            for rank, id in enumerate(ranking.keys):
                scores[id] = scores.get(id, 0.0) + 1 / (60 + rank + 1)
        return sorted(scores.items(), key=lambda item: -item[1])

    def test_same_list(self) -> None:
        ours = fuse("rrf", [self.FTS, self.VECTOR], {})
        assert pairs(ours) == self.reciprocal_rank_fusion(self.FTS, self.VECTOR)
        assert pairs(ours) == [("s3", 1 / 63 + 1 / 62), ("s1", 1 / 61), ("s4", 1 / 61), ("s2", 1 / 62)]

    def test_balanced_is_its_order_at_half_the_score(self) -> None:
        balanced = fuse("rrf", [self.FTS, self.VECTOR], alpha_weights(0.5))
        assert pairs(balanced) == [(id, s / 2) for id, s in self.reciprocal_rank_fusion(self.FTS, self.VECTOR)]

    def test_alpha_reaches_the_fusion(self) -> None:
        """The seed's listing reads alpha and never hands it on; here 0.9 moves the vector leg's first place up."""
        assert [c.key for c in fuse("rrf", [self.FTS, self.VECTOR], alpha_weights(0.0))] == ["s1", "s2", "s3"]
        assert [c.key for c in fuse("rrf", [self.FTS, self.VECTOR], alpha_weights(1.0))] == ["s4", "s3"]
        mostly_meaning = fuse("rrf", [self.FTS, self.VECTOR], alpha_weights(0.9))
        assert pairs(mostly_meaning)[:3] == [
            ("s3", 0.1 / 63 + 0.9 / 62),
            ("s4", 0.9 / 61),
            ("s1", 0.1 / 61),
        ]

    def test_without_embeddings_the_words_answer_alone(self) -> None:
        assert [c.key for c in fuse("rrf", [self.FTS], {})] == ["s1", "s2", "s3"]
