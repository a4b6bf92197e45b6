"""Does a number land where it belongs?"""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from trivet.errors import InputError
from trivet.evaluate.report import svg
from trivet.evaluate.report.figures import clipped, ms, probability, width

numbers = st.floats(-1e6, 1e6, allow_nan=False)
positive = st.floats(1e-3, 1e6)


@given(numbers, numbers, numbers)
def test_a_linear_scale_keeps_order_and_ends(low: float, high: float, value: float) -> None:
    assume(high - low > 1e-3)
    scale = svg.Linear(low, high, 40.0, 340.0)
    assert scale(low) == pytest.approx(40.0)
    assert scale(high) == pytest.approx(340.0)
    assert (scale(value) < scale(high)) == (value < high) or value == pytest.approx(high)


def test_a_linear_scale_may_run_down() -> None:
    assert svg.Linear(0.0, 1.0, 100.0, 0.0)(0.25) == 75.0


@given(positive, st.floats(1.1, 1e4), st.floats(1.0, 1e4))
def test_a_log_scale_makes_equal_ratios_equally_wide(low: float, ratio: float, span: float) -> None:
    scale = svg.Log(low, low * ratio * span, 0.0, 100.0)
    assert scale(low) == pytest.approx(0.0, abs=1e-6)
    assert scale(low * ratio) - scale(low) == pytest.approx(scale(low * ratio * span) - scale(low * span), abs=1e-6)


def test_a_shifted_log_scale_shows_zero() -> None:
    scale = svg.Log(0.0, 99.0, 0.0, 100.0, shift=1.0)
    assert [scale(0), scale(9), scale(99)] == pytest.approx([0.0, 50.0, 100.0])


@given(numbers, st.floats(1e-3, 1e6), st.integers(2, 10))
def test_ticks_are_round_rising_and_inside(low: float, span: float, about: int) -> None:
    high = low + span
    assume(high > low)
    found = svg.ticks(low, high, about)
    step = svg.round_step((high - low) / about)
    assert len(found) <= about + 1
    assert all(low - step * 1e-6 <= tick <= high + step * 1e-6 for tick in found)
    assert all(after - before == pytest.approx(step, rel=1e-3) for before, after in pairwise(found))
    assert all(tick / step == pytest.approx(round(tick / step), abs=1e-3) for tick in found)


@given(st.floats(1e-6, 1e6))
def test_a_step_is_one_two_or_five(raw: float) -> None:
    step = svg.round_step(raw)
    assert step >= raw * (1 - 1e-6)
    assert step <= raw * 2.5 * (1 + 1e-6)
    assert any(
        step / 10.0 ** math.floor(math.log10(step) + 1e-9) == pytest.approx(factor) for factor in (1.0, 2.0, 5.0)
    )


@pytest.mark.parametrize("raw", [0.0, -1.0, math.nan, math.inf])
def test_a_step_of_nothing_is_refused(raw: float) -> None:
    with pytest.raises(InputError, match="axis"):
        svg.round_step(raw)


def test_ticks_by_hand() -> None:
    assert svg.ticks(0.0, 1.0) == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert svg.ticks(0.43, 0.61, 4) == [0.45, 0.5, 0.55, 0.6]
    assert svg.named([0.45, 0.5]) == ["0.45", "0.50"]
    assert svg.named([0.0, 500.0, 1000.0]) == ["0", "500", "1,000"]


@given(positive, st.floats(1.2, 1e6))
def test_log_ticks_are_few_rising_and_inside(low: float, ratio: float) -> None:
    high = low * ratio
    found = svg.log_ticks(low, high)
    assert len(found) <= 7
    assert found == sorted(set(found))
    assert all(low * (1 - 1e-6) <= tick <= high * (1 + 1e-6) for tick in found)
    if ratio >= 10:
        assert found


@given(st.lists(numbers, max_size=20), st.integers(2, 8))
def test_an_axis_holds_its_values_and_has_a_width(values: list[float], about: int) -> None:
    low, high = svg.spread(values, about)
    assert low < high
    hair = 1e-8 * (high - low)  # what rounding may put outside, far below a pixel
    assert all(low - hair - 1e-6 * abs(value) <= value <= high + hair + 1e-6 * abs(value) for value in values)


def test_a_value_a_hair_past_a_round_bound_makes_no_new_step() -> None:
    assert svg.spread([6.103515625e-05, -100001.0], 2) == (-200000.0, 0.0)


def test_an_axis_of_scores_by_hand() -> None:
    assert svg.spread([0.0, 0.0], floor=0.0) == pytest.approx((0.0, 0.6))
    assert svg.spread([1.0], floor=0.0, ceiling=1.0) == pytest.approx((0.4, 1.0))
    assert svg.spread([0.43, 0.61], 4) == pytest.approx((0.4, 0.65))
    assert svg.spread([], floor=0.0)[0] == 0.0
    assert svg.spread([-0.4, 0.0], floor=0.0) == pytest.approx((-0.4, 0.0))  # a measure below 0 is shown all the same


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_refused(value: float) -> None:
    with pytest.raises(InputError, match="finite"):
        svg.at(value)
    with pytest.raises(InputError, match="finite"):
        svg.spread([0.5, value])
    with pytest.raises(InputError, match="finite"):
        svg.circle(value, 0.0, 1.0, "dot")
    with pytest.raises(InputError, match="finite"):
        svg.curve([(0.0, 0.0), (1.0, value)], "s0")


@given(numbers)
def test_a_coordinate_is_written_to_two_places(value: float) -> None:
    said = svg.at(value)
    assert float(said) == pytest.approx(value, abs=0.0051)
    assert "e" not in said
    assert said != "-0"


def test_coordinates_by_hand() -> None:
    assert [svg.at(value) for value in (0.0, -0.001, 10.0, 100, 1.5, 2.345)] == ["0", "0", "10", "100", "1.5", "2.35"]


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=30, unique=True), st.floats(1, 60))
def test_labels_do_not_run_into_each_other(values: list[float], gap: float) -> None:
    scale = svg.Linear(-1.0, 1001.0, 0.0, 300.0)
    kept = svg.spaced(values, scale, gap)
    assert kept[0] == min(values)
    assert kept[-1] == max(values)
    if len(kept) > 2:  # the first and the last stay, however near they are
        assert all(scale(after) - scale(before) >= gap for before, after in pairwise(kept))


def test_a_mark_with_a_tip_tells_it() -> None:
    assert svg.circle(1, 2, 3, "dot", "a < b") == (
        '<circle class="dot tip" cx="1" cy="2" r="3"><title>a &lt; b</title></circle>'
    )
    assert svg.line(0, 0, 1.5, 2, "grid") == '<line class="grid" x1="0" y1="0" x2="1.5" y2="2"/>'


def test_paths_by_hand() -> None:
    assert 'd="M0 1L2 3"' in svg.curve([(0, 1), (2, 3)], "s0")
    assert 'd="M0 9L5 8L5 2L0 1Z"' in svg.band([(0, 1), (5, 2)], [(0, 9), (5, 8)], "s0")
    assert 'd="M1 2h0M3 4h0"' in svg.dots([(1, 2), (3, 4)], "tie")
    assert 'd="M5 3L7 5L5 7L3 5Z"' in svg.diamond(5, 5, 2, "dot")


def test_a_long_name_is_cut_and_told_on_hover() -> None:
    said = svg.label(0, 0, "a-very-long-name-indeed", columns=10)
    assert said == '<text x="0" y="0" text-anchor="start">a-very-lo…<title>a-very-long-name-indeed</title></text>'
    assert "<title>" not in svg.label(0, 0, "short", columns=10)


@given(st.text(max_size=60), st.integers(2, 20))
def test_a_cut_text_is_no_wider_than_asked(said: str, columns: int) -> None:
    assert width(clipped(said, columns)) <= columns


def test_wide_characters_take_two_columns() -> None:
    assert width("日本") == 4
    assert width("e\u0301") == 1
    assert clipped("日本語日本語", 6) == "日本…"


def test_numbers_in_words() -> None:
    assert [ms(time) for time in (0.0123, 1.234, 12.34, 123.4, 1234.5)] == ["0.01", "1.23", "12.3", "123", "1,234"]
    assert [probability(p) for p in (0.0001, 0.0496, 0.5)] == ["< 0.001", "0.0496", "0.50"]
