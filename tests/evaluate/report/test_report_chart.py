"""Axes and marks: a number lands where it belongs."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from report_material import Page
from rich.cells import cell_len

from trivet.evaluate.report import chart
from trivet.evaluate.report.chart import Axis, Mark, Plot, Row, row_plot
from trivet.evaluate.report.formatting import clipped, ms, probability
from trivet.evaluate.report.page import svg_file

numbers = st.floats(-1e6, 1e6, allow_nan=False)
positive = st.floats(1e-3, 1e6)


def plain(low: float, high: float, shift: float | None = None) -> Axis:
    return Axis(low, high, (), (), shift=shift)


def square(*marks: Mark, **options: Any) -> Plot:
    """A plot whose axes go from 0 to 100, at one unit each."""
    margins = {"height": 100.0, "width": 100.0, "left": 0.0, "right": 0.0, "top": 0.0, "bottom": 0.0}
    return Plot("a plot", plain(0, 100), plain(100, 0), marks, **{**margins, **options})


@given(numbers, numbers, numbers)
def test_a_linear_axis_keeps_order_and_ends(low: float, high: float, value: float) -> None:
    assume(high - low > 1e-3)
    axis = plain(low, high)
    assert (axis.share(low), axis.share(high)) == (pytest.approx(0.0), pytest.approx(1.0))
    assert (axis.share(value) < axis.share(high)) == (value < high) or value == pytest.approx(high)


@given(positive, st.floats(1.1, 1e4), st.floats(1.0, 1e4))
def test_a_logarithmic_axis_makes_equal_ratios_equally_wide(low: float, ratio: float, span: float) -> None:
    axis = plain(low, low * ratio * span, shift=0.0)
    assert axis.share(low) == pytest.approx(0.0, abs=1e-6)
    upper = axis.share(low * ratio * span) - axis.share(low * span)
    assert axis.share(low * ratio) - axis.share(low) == pytest.approx(upper, abs=1e-6)


def test_a_shifted_logarithmic_axis_shows_zero() -> None:
    axis = plain(0.0, 99.0, shift=1.0)
    assert [axis.share(value) for value in (0, 9, 99)] == pytest.approx([0.0, 0.5, 1.0])


@given(numbers, st.floats(1e-3, 1e6), st.integers(2, 10))
def test_ticks_are_round_rising_and_inside(low: float, span: float, about: int) -> None:
    high = low + span
    assume(high > low)
    found = chart.round_ticks(low, high, about)
    step = chart.round_step((high - low) / about)
    assert len(found) <= about + 1
    assert all(low - step * 1e-6 <= tick <= high + step * 1e-6 for tick in found)
    assert all(after - before == pytest.approx(step, rel=1e-3) for before, after in pairwise(found))
    assert all(tick / step == pytest.approx(round(tick / step), abs=1e-3) for tick in found)


@given(st.floats(1e-6, 1e6))
def test_a_step_is_one_two_or_five(raw: float) -> None:
    step = chart.round_step(raw)
    assert raw * (1 - 1e-6) <= step <= raw * 2.5 * (1 + 1e-6)
    leading = step / 10.0 ** math.floor(math.log10(step) + 1e-9)
    assert any(leading == pytest.approx(factor) for factor in (1.0, 2.0, 5.0))


def test_ticks_by_hand() -> None:
    assert chart.round_ticks(0.0, 1.0) == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert chart.round_ticks(0.43, 0.61, 4) == [0.45, 0.5, 0.55, 0.6]
    assert chart.decimals([0.45, 0.5]) == ["0.45", "0.50"]
    assert chart.decimals([0.0, 500.0, 1000.0]) == ["0", "500", "1,000"]
    assert Axis.unit(percent=True).labels == ["0%", "20%", "40%", "60%", "80%", "100%"]


@given(positive, st.floats(1.2, 1e6))
def test_log_ticks_are_few_rising_and_inside(low: float, ratio: float) -> None:
    high = low * ratio
    found = chart.log_ticks(low, high)
    assert len(found) <= 7
    assert found == sorted(set(found))
    assert all(low * (1 - 1e-6) <= tick <= high * (1 + 1e-6) for tick in found)
    assert found or ratio < 10


@given(st.lists(numbers, max_size=20), st.integers(2, 8))
def test_an_axis_holds_its_values_and_has_a_width(values: list[float], about: int) -> None:
    axis = Axis.fit(values, about=about)
    assert axis.low < axis.high
    slack = 1e-8 * (axis.high - axis.low)  # what rounding may put outside, far below a pixel
    for value in values:
        assert axis.low - slack - 1e-6 * abs(value) <= value <= axis.high + slack + 1e-6 * abs(value)


def test_bounds_by_hand() -> None:
    assert chart.bounds([6.103515625e-05, -100001.0], 2) == (-200000.0, 0.0)  # rounding adds no step
    assert chart.bounds([0.0, 0.0], floor=0.0) == pytest.approx((0.0, 0.6))
    assert chart.bounds([0.43, 0.61], 4) == pytest.approx((0.4, 0.65))
    assert chart.bounds([], floor=0.0)[0] == 0.0
    assert chart.bounds([-0.4, 0.0], floor=0.0) == pytest.approx((-0.4, 0.0))  # a measure below 0 is shown too


@given(numbers)
def test_a_coordinate_has_two_decimals(value: float) -> None:
    written = chart.px(value)
    assert float(written) == pytest.approx(value, abs=0.0051)
    assert "e" not in written
    assert written != "-0"


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=30, unique=True))
def test_tick_labels_do_not_run_into_each_other(values: list[float]) -> None:
    ticks = sorted(values)
    axis = Axis(-1.0, 1001.0, ticks, [str(tick) for tick in ticks])
    kept = Plot("a plot", axis, None, ()).across
    assert (kept[0][1], kept[-1][1]) == (str(ticks[0]), str(ticks[-1]))
    if len(kept) > 2:  # the first and the last stay, however near they are
        assert all(after[0] - before[0] >= chart.GAP for before, after in pairwise(kept))


@pytest.mark.parametrize(
    ("mark", "tag", "attributes"),
    [
        (Mark("circle", "", ((1, 2),), size=3.0), "circle", {"cx": "1", "cy": "2", "r": "3"}),
        (Mark("line", "", ((0, 0), (1.5, 2))), "line", {"x1": "0", "y1": "0", "x2": "1.5", "y2": "2"}),
        (Mark("bar", "", ((3, 9), (1, 4))), "rect", {"x": "1", "y": "4", "width": "2", "height": "5"}),
        (Mark("square", "", ((5, 5),), size=2.0), "rect", {"x": "3", "y": "3", "width": "4", "height": "4"}),
        (Mark("diamond", "", ((5, 5),), size=2.0), "path", {"d": "M5 3L7 5L5 7L3 5Z"}),
        (Mark("curve", "", ((0, 1), (2, 3))), "path", {"d": "M0 1L2 3"}),
        (Mark("area", "", ((0, 9), (5, 8), (5, 2))), "path", {"d": "M0 9L5 8L5 2Z"}),
        (Mark("dots", "", ((1, 2), (3, 4))), "path", {"d": "M1 2h0M3 4h0"}),
        (
            Mark("text", "", ((1, 2),), text="a", anchor="end", offset=(7.0, 4.0)),
            "text",
            {"x": "8", "y": "6", "text-anchor": "end"},
        ),
    ],
)
def test_each_shape_by_hand(mark: Mark, tag: str, attributes: dict[str, str]) -> None:
    (element,) = square(mark).elements
    assert (element.tag, element.attributes) == (tag, attributes)


def test_an_svg_file_holds_its_style_and_escapes_its_texts() -> None:
    drawn = svg_file(square(Mark("circle", "dot", ((1, 2),), "a < b")), "circle{fill:red}", [])
    assert drawn.startswith('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 100"')
    assert "<style>circle{fill:red}</style>" in drawn
    assert '<circle class="dot tip" cx="1" cy="2" r="4.5"><title>a &lt; b</title></circle>' in drawn


def test_rows_are_placed_under_their_headings() -> None:
    dot = Mark("circle", "dot", ((0.5, 0.0),))
    rows = [Row("a", "1", [dot], "legs"), Row("a-name-far-too-long-for-its-room", "2", [dot], "fused", chosen=True)]
    plot = row_plot("rows", Axis.unit(), rows, lines=[(0.5, "zero")])
    assert [(text, y) for text, y in plot.headings] == [("legs", 19.0), ("fused", 65.0)]
    assert [row.y for row in plot.rows] == [38.0, 84.0]
    assert [element.attributes.get("cy") for element in plot.elements] == [None, "38", "84"]
    assert row_plot("rows", Axis.unit(), [replace(row, heading="") for row in rows]).headings == []
    page = Page(svg_file(plot, "*{}"))
    assert len(page.all("rect", "tint")) == 1
    assert "a-name-far-too-l…a-name-far-too-long-for-its-room" in page.text  # shortened, whole on hover


@given(st.text(max_size=60), st.integers(2, 20))
def test_a_clipped_text_is_no_wider_than_asked(text: str, columns: int) -> None:
    assert cell_len(clipped(text, columns)) <= columns


def test_texts_and_numbers_by_hand() -> None:
    assert clipped("日本語日本語", 6) == "日本…"
    assert clipped("short", math.inf) == "short"
    assert [ms(time) for time in (0.0123, 1.234, 12.34, 123.4, 1234.5)] == ["0.01", "1.23", "12.3", "123", "1,234"]
    assert [probability(p) for p in (0.0001, 0.0496, 0.5)] == ["< 0.001", "0.0496", "0.50"]
