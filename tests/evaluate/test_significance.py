from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trivet.errors import InputError, MissingExtraError
from trivet.evaluate import significance
from trivet.evaluate.significance import Paired, family, holm, interval, paired

stats = pytest.importorskip("scipy.stats")


def scores(values: Sequence[float]) -> dict[str, float]:
    return {f"q{place:04}": float(value) for place, value in enumerate(values)}


def compare(differences: Sequence[float], seed: int = 0, resamples: int = 10_000) -> Paired:
    """A comparison whose per-topic differences are exactly these: the baseline scores 0 everywhere."""
    return paired(scores([0.0] * len(differences)), scores(differences), seed=seed, resamples=resamples)


# ---- the test


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        ([0.5], 2 / 2),  # one topic: +0.5 and -0.5 are equally far
        ([0.1, 0.2], 2 / 4),  # |sum| 0.3 of 0.3, 0.1, 0.1, 0.3
        ([0.1, 0.2, 0.3], 2 / 8),  # only all plus and all minus reach 0.6
        ([-0.1, 0.2, 0.3], 4 / 8),  # 0.4 is reached by ±0.6 (all alike) and by ±0.4 (0.1 against the rest)
        ([0.1, -0.1, 0.0], 1.0),  # a sum of 0 is reached by every pattern
        ([0.1, 0.2, 0.3, 0.0, 0.0], 2 / 8),  # topics with no difference do not count
        ([0.2] * 6, 2 / 64),  # the smallest that six topics can give
        ([0.2] * 5 + [-0.2], 14 / 64),  # at most one sign off, on either side: 2 * (1 + 6)
        ([0.1] * 13, 2 / 2**13),  # the last size that is counted out
    ],
)
def test_the_exact_p_value_of_a_few_topics(differences: list[float], p: float) -> None:
    assert compare(differences).p == p


def test_equal_sums_are_equal_though_their_roundings_differ() -> None:
    """0.1 + 0.2 and 0.3 are apart in floats, but 0.3 - (0.1 + 0.2) is no more extreme than (0.1 + 0.2) - 0.3."""
    differences = [0.1, 0.2, 0.3, 0.7]
    tenths = [1, 2, 3, 7]
    for signs in product((1, -1), repeat=4):
        seen = abs(sum(sign * tenth for sign, tenth in zip(signs, tenths, strict=True)))
        sums = [abs(sum(s * t for s, t in zip(other, tenths, strict=True))) for other in product((1, -1), repeat=4)]
        expected = sum(each >= seen for each in sums) / 16
        assert compare([sign * each for sign, each in zip(signs, differences, strict=True)]).p == expected


@pytest.mark.parametrize("n", [4, 9, 12])
def test_exact_values_agree_with_scipy(n: int) -> None:
    differences = np.random.default_rng(n).normal(0.2, 0.4, n)
    other = stats.permutation_test((differences,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert compare(list(differences)).p == pytest.approx(other.pvalue, abs=1e-12)


@pytest.mark.parametrize(("shift", "n"), [(0.0, 40), (0.03, 40), (0.05, 200), (0.02, 100)])
def test_sampled_values_agree_with_scipy_and_with_each_other(shift: float, n: int) -> None:
    differences = np.random.default_rng(n).normal(shift, 0.3, n)
    other = stats.permutation_test(
        (differences,),
        lambda x, axis: np.mean(x, axis=axis),
        permutation_type="samples",
        n_resamples=20_000,
        vectorized=True,
        rng=np.random.default_rng(1),
    )
    ours = [compare(list(differences), seed=seed).p for seed in (0, 1)]
    # Five standard errors of a share found by 10,000 draws; scipy's doubles a one-sided share, so twice that for it.
    error = 5 * sqrt(other.pvalue * (1 - other.pvalue) / 10_000) + 1e-3
    assert ours[0] == pytest.approx(other.pvalue, abs=2 * error)
    assert ours[0] == pytest.approx(ours[1], abs=2 * error)


def test_sampling_goes_on_where_counting_ends() -> None:
    """At the border both ways answer the same question: 14 differences by sampling, and by counting them here."""
    differences = [0.31, -0.12, 0.22, 0.05, -0.27, 0.4, 0.13, -0.02, 0.18, 0.09, -0.33, 0.21, 0.11, 0.16]
    patterns = np.array(list(product((1, -1), repeat=14)))
    counted = (np.abs(patterns @ differences) >= sum(differences) - 1e-9).mean()
    sampled = compare(differences).p
    assert sampled == pytest.approx(counted, abs=5 * sqrt(counted * (1 - counted) / 10_000))
    assert sampled * 10_001 == pytest.approx(round(sampled * 10_001)), "a sampled p is (1 + hits) / (1 + resamples)"


def test_a_sampled_p_is_never_zero() -> None:
    assert compare([0.2] * 100, resamples=999).p == 1 / 1000


def test_chunks_count_every_resample_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """All differences alike but for one half each way: every pattern reaches a sum of 0, whatever the chunk."""
    for chunk in (1, 1000, 1 << 20):
        monkeypatch.setattr(significance, "CHUNK", chunk)
        assert compare([0.1, -0.1] * 20, resamples=100).p == 1.0


def test_false_alarms_come_as_often_as_agreed() -> None:
    """600 comparisons of alike runs: 30 expected under 0.05, standard deviation 5.3; four of those either way."""
    rng = np.random.default_rng(7)
    alarms = sum(compare(list(rng.laplace(0, 0.2, 50)), resamples=500).significant for _ in range(600))
    assert 9 <= alarms <= 52


def test_a_real_shift_is_found() -> None:
    """A shift of half a standard deviation over 60 topics is found about 97 times in 100, and its sign is right."""
    rng = np.random.default_rng(8)
    found = [compare(list(rng.normal(-0.1, 0.2, 60)), resamples=500) for _ in range(100)]
    assert sum(each.significant and each.verdict.startswith("worse") for each in found) >= 88


def test_the_pairing_counts() -> None:
    """Topics differ far more than the runs do; only the differences within topics show it."""
    rng = np.random.default_rng(9)
    hard = rng.random(80)
    gain = rng.normal(0.01, 0.01, 80)
    assert paired(scores(hard), scores(hard + gain)).significant
    assert not paired(scores(hard), scores(rng.permutation(hard + gain))).significant


# ---- what is told of a comparison


def test_the_numbers_of_a_comparison() -> None:
    told = paired(
        {"a": 0.2, "b": 0.5, "c": 0.5, "d": 1.0},
        {"d": 0.9, "c": 0.5, "b": 0.8, "a": 0.6},
        names=("bm25", "hybrid"),
        measure="nDCG@10",
    )
    assert (told.baseline, told.challenger, told.measure, told.n) == ("bm25", "hybrid", "nDCG@10", 4)
    assert told.mean_baseline == pytest.approx(2.2 / 4)
    assert told.mean_challenger == pytest.approx(2.8 / 4)
    assert told.difference == pytest.approx(0.15)
    assert (told.wins, told.losses, told.ties) == (2, 1, 1)
    # 0.4, 0.3, 0, -0.1 around 0.15: squares 0.0625, 0.0225, 0.0225, 0.0625 over 3
    assert told.effect == pytest.approx(0.15 / sqrt(0.17 / 3))
    assert told.p == 4 / 8  # 0.6 is reached by ±0.8 and ±0.6 of the three that moved
    assert told.p_holm == told.p


def test_identical_runs() -> None:
    run = scores(np.random.default_rng(0).random(50))
    told = paired(run, dict(run))
    assert (told.difference, told.low, told.high, told.p, told.p_holm, told.effect) == (0.0, 0.0, 0.0, 1.0, 1.0, 0.0)
    assert (told.wins, told.losses, told.ties) == (0, 0, 50)


def test_a_rounding_is_a_tie_and_a_small_difference_is_not() -> None:
    told = paired({"a": 0.3, "b": 0.3}, {"a": 0.1 + 0.2, "b": 0.3001})
    assert (told.wins, told.losses, told.ties) == (1, 0, 1)


def test_the_effect_is_finite_where_nothing_varies() -> None:
    assert compare([0.25] * 40).effect == significance.LARGEST_EFFECT
    assert compare([-0.25] * 40).effect == -significance.LARGEST_EFFECT
    # 0.1 more on every topic, apart by roundings only: sd about 1e-17
    run = np.random.default_rng(0).random(40)
    assert paired(scores(run), scores(run + 0.1)).effect == significance.LARGEST_EFFECT
    assert compare([0.25]).effect == 0.0


def test_topic_order_and_repetition_change_nothing_and_the_seed_does() -> None:
    rng = np.random.default_rng(3)
    before, after = scores(rng.random(60)), scores(rng.random(60))
    first = paired(before, after)
    assert paired(before, after) == first
    assert paired(dict(reversed(before.items())), after) == first
    other = paired(before, after, seed=1)
    assert other.low != first.low
    assert other.p != first.p
    assert other.difference == first.difference


# ---- the verdict

SHOWN = replace(compare([0.1] * 20 + [0.2] * 20), p=0.0123, p_holm=0.0123)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "better (p = 0.0123)"),
        ({"p": 0.0001, "p_holm": 0.0001}, "better (p < 0.001)"),
        ({"p_holm": 0.0496}, "better (p = 0.0496 corrected for the family, alone p = 0.0123)"),
        ({"difference": -0.1}, "worse (p = 0.0123)"),
        (
            {"p": 0.3119, "p_holm": 0.3119, "low": -0.0121, "high": 0.0199},
            "no difference shown (p = 0.31; the interval allows -0.012 to +0.020)",
        ),
        (
            {"p": 0.03, "p_holm": 0.09, "low": 0.001, "high": 0.02},
            "no difference shown (p = 0.0900 corrected for the family, alone p = 0.0300; "
            "the interval allows +0.001 to +0.020)",
        ),
        ({"p": 0.05, "p_holm": 0.05, "low": 0.0}, None),
        (
            {"n": 29, "low": 0.1, "high": 0.2},
            "too few topics to tell (n = 29, p = 0.0123; the interval allows +0.100 to +0.200)",
        ),
    ],
)
def test_the_verdict_says_what_was_shown(changes: dict[str, float], words: str | None) -> None:
    told = replace(SHOWN, **changes)  # type: ignore[arg-type]
    assert told.significant == (told.p_holm < 0.05)
    if words is None:
        assert told.verdict.startswith("no difference shown"), "0.05 itself is not under 0.05"
    else:
        assert told.verdict == words


def test_the_verdict_on_identical_runs() -> None:
    run = scores([0.5] * 30)
    assert paired(run, run).verdict == "no difference shown (the same score on each of 30 topics)"
    assert compare([0.0] * 29).verdict.startswith("too few topics to tell")


# ---- families


def test_holm_by_hand() -> None:
    # sorted 0.005 0.01 0.03 0.04 → 4·0.005, 3·0.01, 2·0.03, 1·0.04 → 0.02 0.03 0.06 and 0.04 raised to 0.06
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.02, 0.02, 0.02]) == pytest.approx([0.06, 0.06, 0.06])
    assert holm([0.6, 0.4]) == [0.8, 0.8]
    assert holm([0.9, 0.7]) == [1.0, 1.0]
    assert holm([0.04]) == [0.04]
    assert holm([]) == []


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan")])
def test_holm_refuses_what_is_no_p_value(wrong: float) -> None:
    with pytest.raises(InputError, match="p-value 1 is"):
        holm([0.5, wrong])


def test_a_family_is_corrected_together_and_kept_in_order() -> None:
    rng = np.random.default_rng(4)
    base = rng.random(60)
    runs = {name: scores(base + rng.normal(shift, 0.2, 60)) for name, shift in (("c", 0.0), ("a", 0.1), ("b", 0.05))}
    told = family(scores(base), runs, name="bm25", measure="RR", seed=5, resamples=2000)
    assert [(each.baseline, each.challenger, each.measure) for each in told] == [
        ("bm25", "c", "RR"),
        ("bm25", "a", "RR"),
        ("bm25", "b", "RR"),
    ]
    assert [each.p_holm for each in told] == holm([each.p for each in told])
    assert any(each.p_holm > each.p for each in told)
    for each in told:
        alone = paired(
            scores(base), runs[each.challenger], names=("bm25", each.challenger), measure="RR", seed=5, resamples=2000
        )
        assert replace(each, p_holm=each.p) == alone


def test_a_family_of_one_and_of_none() -> None:
    (only,) = family(scores([0.1] * 8), {"x": scores([0.2] * 8)}, name="base")
    assert only.p_holm == only.p == 2 / 256
    assert family(scores([0.1]), {}, name="base") == []


# ---- the interval


def test_the_interval_of_a_mean_agrees_with_theory() -> None:
    """400 normal values: the mean ± 1.96 standard errors, to within a tenth of the width."""
    values = np.random.default_rng(2).normal(0.3, 0.2, 400)
    error = values.std(ddof=1) / 20
    low, high = interval(list(values))
    assert low == pytest.approx(values.mean() - 1.96 * error, abs=0.2 * error)
    assert high == pytest.approx(values.mean() + 1.96 * error, abs=0.2 * error)


def test_the_interval_covers_the_true_mean_about_as_often_as_it_says() -> None:
    """95 of 100 expected; 300 trials, standard deviation 3.8, and a bootstrap is a little narrow at n = 60."""
    rng = np.random.default_rng(11)
    bounds = [interval(list(rng.normal(0.1, 0.3, 60)), resamples=500) for _ in range(300)]
    assert 265 <= sum(low <= 0.1 <= high for low, high in bounds) <= 298


def test_the_interval_of_two_values_by_hand() -> None:
    """Means of two draws from 0 and 1 are 0, ½, 1 with ¼, ½, ¼: 2.5 % and 97.5 % lie in the outer quarters."""
    assert interval([0.0, 1.0]) == (0.0, 1.0)


def test_the_interval_of_few_or_equal_values() -> None:
    assert interval([]) == (0.0, 0.0)
    assert interval([0.7]) == (0.7, 0.7)
    assert interval([0.1] * 7) == (0.1, 0.1)


def test_the_interval_of_a_comparison_is_that_of_its_differences() -> None:
    differences = list(np.random.default_rng(6).normal(0, 1, 50))
    told = compare(differences, seed=3)
    assert (told.low, told.high) == interval(differences, seed=3)
    assert (told.low, told.high) != interval(differences, seed=4)


# ---- what is refused


def test_topics_on_one_side_only_are_named() -> None:
    before = {"same": 0.1} | {f"old{place}": 0.2 for place in range(5)}
    after = {"same": 0.1, "new": 0.3}
    with pytest.raises(InputError) as caught:
        paired(before, after, names=("bm25", "dense"))
    message = str(caught.value)
    assert "5 only in 'bm25' ('old0', 'old1', 'old2', …)" in message
    assert "1 only in 'dense' ('new')" in message
    assert "score both on the same topics" in message
    assert "old3" not in message


def test_nothing_to_compare() -> None:
    with pytest.raises(InputError, match="'baseline' and 'challenger' have no scored topics"):
        paired({}, {})
    with pytest.raises(InputError, match="1 only in 'challenger'"):
        paired({}, {"a": 1.0})


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), None, "high", 10**400])
def test_a_score_that_is_no_number_is_named(wrong: float) -> None:
    with pytest.raises(InputError, match=r"'dense': topic 'b' has the score .*must be finite"):
        paired({"a": 0.1, "b": 0.2}, {"a": 0.1, "b": wrong}, names=("bm25", "dense"))
    with pytest.raises(InputError, match=r"'bm25': topic 'b'"):
        family({"a": 0.1, "b": wrong}, {"x": {"a": 0.1, "b": 0.2}}, name="bm25")
    with pytest.raises(InputError, match="value 1 has the score"):
        interval([0.1, wrong])


def test_resampling_that_could_show_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="resamples is 99"):
        compare([0.1, 0.2], resamples=99)
    with pytest.raises(InputError, match="resamples is 0"):
        interval([0.1, 0.2], resamples=0)
    with pytest.raises(InputError, match="seed is -1"):
        interval([0.1, 0.2], seed=-1)


def test_without_scipy_the_pip_line_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'trivet\[eval\]'"):
        compare([0.1, 0.2, 0.3])


def test_importing_this_loads_neither_numpy_nor_scipy() -> None:
    script = "import sys, trivet.evaluate.significance; print([m for m in ('numpy', 'scipy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


# ---- true of every input

SCORE = st.one_of(st.sampled_from([0.0, 0.1, 1 / 3, 0.5, 1.0]), st.floats(0, 1, width=32, allow_subnormal=False))
PAIRS = st.lists(st.tuples(SCORE, SCORE), min_size=1, max_size=30)


@settings(max_examples=60, deadline=None)
@given(PAIRS)
def test_every_comparison(pairs: list[tuple[float, float]]) -> None:
    before, after = (scores(side) for side in zip(*pairs, strict=True))
    there = paired(before, after, resamples=200)
    back = paired(after, before, resamples=200)
    assert 0 < there.p <= 1
    assert there.wins + there.losses + there.ties == there.n == len(pairs)
    assert abs(there.effect) <= significance.LARGEST_EFFECT
    assert there.difference == pytest.approx(there.mean_challenger - there.mean_baseline, abs=1e-8)
    steps = [after[topic] - before[topic] for topic in before]
    assert min(steps) - 1e-8 <= there.low <= there.high <= max(steps) + 1e-8
    # swapped: the same test, everything else mirrored
    assert back.p == there.p
    assert (back.wins, back.losses, back.ties) == (there.losses, there.wins, there.ties)
    assert back.difference == -there.difference
    assert back.effect == -there.effect
    assert (back.low, back.high) == pytest.approx((-there.high, -there.low), abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(PAIRS, st.sampled_from([2.0**-40, 0.25, 2.0**20]))
def test_the_unit_of_the_measure_does_not_matter(pairs: list[tuple[float, float]], unit: float) -> None:
    """Powers of two: they scale a float without rounding it, so the answers are equal and not only close."""
    before, after = zip(*pairs, strict=True)
    told = paired(scores(before), scores(after), resamples=200)
    scaled = paired(scores([unit * x for x in before]), scores([unit * x for x in after]), resamples=200)
    assert scaled.p == told.p
    assert scaled.effect == told.effect
    assert scaled.difference == unit * told.difference


@given(st.lists(st.floats(0, 1), max_size=12))
def test_every_holm_correction(ps: list[float]) -> None:
    adjusted = holm(ps)
    assert all(p <= corrected <= min(1.0, len(ps) * p) for p, corrected in zip(ps, adjusted, strict=True))
    in_order = [corrected for _, corrected in sorted(zip(ps, adjusted, strict=True))]
    assert in_order == sorted(in_order)
    assert holm(ps[::-1]) == adjusted[::-1]
    if ps:
        assert min(adjusted) == min(1.0, len(ps) * min(ps))
