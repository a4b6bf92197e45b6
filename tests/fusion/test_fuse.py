"""Rules that hold for every fusion.

The first tests are faults that other libraries had to fix: zero-sum weights, a score of 0.0 taken for a missing one,
empty lists, weights that do nothing, an inverted list.
"""

from __future__ import annotations

from math import inf, nan

import pytest

from trivet.errors import InputError
from trivet.fusion import FUSIONS, NORMALIZERS, alpha_weights, fuse, settings_of
from trivet.types import Ranking

LEXICAL = Ranking("lexical", ("a", "b", "c"), (3.0, 2.0, 1.0))
DENSE = Ranking("dense", ("c", "d"), (0.9, 0.8), floor=-1.0)
METHODS = sorted(FUSIONS)


@pytest.mark.parametrize("method", METHODS)
class TestFaultsOfOthers:
    def test_weights_that_sum_to_zero_give_nothing(self, method: str) -> None:
        assert fuse(method, [LEXICAL, DENSE], {"lexical": 0.0, "dense": 0.0}) == []

    @pytest.mark.parametrize("normalize", sorted(NORMALIZERS))
    def test_a_score_of_zero_is_not_missing(self, method: str, normalize: str) -> None:
        zeros = Ranking("lexical", ("a", "b"), (0.0, 0.0))
        fused = fuse(method, [zeros, DENSE], {}, normalize=normalize)
        assert {c.key for c in fused} == {"a", "b", "c", "d"}
        account = next(c for c in fused if c.key == "b").contributions
        assert [(c.leg, c.rank, c.raw) for c in account] == [("lexical", 2, 0.0)]

    def test_no_rankings_and_empty_rankings_are_empty(self, method: str) -> None:
        assert fuse(method, [], {}) == []
        assert fuse(method, [Ranking("lexical"), Ranking("dense")], {}) == []

    @pytest.mark.parametrize("normalize", sorted(NORMALIZERS))
    def test_an_empty_leg_adds_no_one_and_moves_no_one(self, method: str, normalize: str) -> None:
        alone = fuse(method, [LEXICAL], {}, normalize=normalize)
        beside = fuse(method, [LEXICAL, Ranking("dense")], {}, normalize=normalize)
        assert [c.key for c in beside] == [c.key for c in alone] == ["a", "b", "c"]

    def test_a_keyword_only_hit_is_in_the_pool(self, method: str) -> None:
        assert {c.key for c in fuse(method, [LEXICAL, DENSE], {})} == {"a", "b", "c", "d"}

    def test_weights_are_applied(self, method: str) -> None:
        left, right = Ranking("lexical", ("a",), (1.0,)), Ranking("dense", ("b",), (1.0,))
        assert fuse(method, [left, right], {"lexical": 1, "dense": 2})[0].key == "b"
        assert fuse(method, [left, right], {"lexical": 2, "dense": 1})[0].key == "a"

    def test_higher_is_better_and_the_best_is_first(self, method: str) -> None:
        fused = fuse(method, [LEXICAL, DENSE], {})
        assert [c.score for c in fused] == sorted((c.score for c in fused), reverse=True)
        assert [c.key for c in fuse(method, [LEXICAL], {})] == ["a", "b", "c"]

    def test_an_inverted_ranking_is_refused(self, method: str) -> None:
        distances = Ranking("dense", ("near", "far"), (0.1, 0.9))
        with pytest.raises(InputError, match=r"'dense' is not best first: rank 2 has 0\.9, above 0\.1"):
            fuse(method, [distances], {})


@pytest.mark.parametrize("method", METHODS)
class TestWeights:
    def test_a_leg_without_a_weight_has_weight_one(self, method: str) -> None:
        assert fuse(method, [LEXICAL, DENSE], {"dense": 2.0}) == fuse(
            method, [LEXICAL, DENSE], {"lexical": 1.0, "dense": 2.0}
        )

    def test_weight_zero_is_the_leg_left_out(self, method: str) -> None:
        """Seed 000 guarded its keyword leg only, and semantic hits came in with score 0."""
        for off, on in (("dense", LEXICAL), ("lexical", DENSE)):
            assert fuse(method, [LEXICAL, DENSE], {off: 0.0}) == fuse(method, [on], {})

    def test_a_weight_for_a_leg_that_did_not_answer_is_no_error(self, method: str) -> None:
        assert fuse(method, [LEXICAL], {"dense": 3.0}) == fuse(method, [LEXICAL], {})

    @pytest.mark.parametrize("weight", [-0.1, -inf, inf, nan, "1", None, True])
    def test_a_bad_weight_is_refused_by_leg_and_value(self, method: str, weight: float) -> None:
        with pytest.raises(InputError, match=rf"weight of leg 'dense' is {weight!r}"):
            fuse(method, [LEXICAL], {"dense": weight})


class TestTies:
    def test_equal_scores_keep_the_order_they_were_first_seen_in(self) -> None:
        left, right = Ranking("lexical", ("a", "b"), (2.0, 1.0)), Ranking("dense", ("c", "d"), (2.0, 1.0))
        assert [c.key for c in fuse("rrf", [left, right], {})] == ["a", "c", "b", "d"]
        assert [c.key for c in fuse("rrf", [right, left], {})] == ["c", "a", "d", "b"]

    def test_a_tie_on_paper_is_a_tie_in_floats(self) -> None:
        """0.1 + 0.2 + 0.3 in another order is another float; the legs' order must not break the tie."""
        legs = [
            Ranking("one", ("x", "-1", "y"), (3.0, 2.0, 1.0)),
            Ranking("two", ("-2", "x", "-3", "y"), (4.0, 3.0, 2.0, 1.0)),
            Ranking("three", ("y", "-4", "x"), (3.0, 2.0, 1.0)),
            Ranking("four", ("-5", "y", "-6", "x"), (4.0, 3.0, 2.0, 1.0)),
        ]
        scores = {c.key: c.score for c in fuse("rrf", legs, {}, rrf_k=2)}
        assert scores["x"] == scores["y"]


class TestRefusals:
    def test_unknown_names_come_back_with_the_known_ones(self) -> None:
        with pytest.raises(InputError, match="fusion: 'rff' is unknown; known: rrf, convex, comb_sum, comb_mnz, isr"):
            fuse("rff", [], {})
        with pytest.raises(InputError, match="normalize: 'l2' is unknown; known: minmax, tm2c2, zscore, dbsf, max"):
            fuse("rrf", [], {}, normalize="l2")

    def test_two_rankings_of_one_leg(self) -> None:
        with pytest.raises(InputError, match="leg 'lexical' has two rankings"):
            fuse("rrf", [LEXICAL, LEXICAL], {})

    def test_a_zero_weight_does_not_hide_a_broken_ranking(self) -> None:
        with pytest.raises(InputError, match="holds the key 'a' twice"):
            fuse("rrf", [Ranking("lexical", ("a", "a"), (2.0, 1.0))], {"lexical": 0})


def test_a_fusion_reads_the_settings_that_it_takes_as_arguments() -> None:
    read = {"rrf": ("rrf_k",), "isr": ()} | dict.fromkeys(("convex", "comb_sum", "comb_mnz"), ("normalize",))
    assert {name: settings_of(name) for name in FUSIONS} == read


class TestAlpha:
    def test_from_words_to_meaning(self) -> None:
        assert alpha_weights(0) == {"lexical": 1.0, "dense": 0.0}
        assert alpha_weights(0.25) == {"lexical": 0.75, "dense": 0.25}
        assert alpha_weights(1) == {"lexical": 0.0, "dense": 1.0}

    @pytest.mark.parametrize("alpha", [-0.01, 1.01, nan, inf])
    def test_outside_is_refused(self, alpha: float) -> None:
        with pytest.raises(InputError, match="alpha is"):
            alpha_weights(alpha)

    def test_at_its_ends_one_leg_is_alone(self) -> None:
        assert [c.key for c in fuse("rrf", [LEXICAL, DENSE], alpha_weights(0))] == ["a", "b", "c"]
        assert [c.key for c in fuse("rrf", [LEXICAL, DENSE], alpha_weights(1))] == ["c", "d"]
