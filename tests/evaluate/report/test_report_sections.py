"""Each section shows what its numbers say."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

import pytest
from report_material import (
    DEFAULT,
    GARDEN,
    KITCHEN,
    MEANING,
    RRF,
    WORDS,
    Page,
    alone,
    evaluation,
    findings,
    four,
    headroom,
    profile,
    sweep,
)

from trivet.evaluate import Evaluation, Sweep, compare
from trivet.evaluate.findings import Bin
from trivet.evaluate.report import Material, differences, render
from trivet.evaluate.report.answers import wilson
from trivet.evaluate.report.material import View
from trivet.evaluate.report.settings import base_value, current, is_base


def part(material: Material, section: str) -> Page:
    """One section of the page, read alone."""
    said = render(material)
    found = re.search(rf'<section id="{section}".*?</section>', said, re.DOTALL)
    assert found, f"there is no section {section}"
    return Page(found[0])


def given(values: dict[str, float], item: Any = DEFAULT, **options: Any) -> Evaluation:
    return evaluation(item, {"nDCG@10": values}, **options)


def shown(page: Page, tag: str, kind: str, *names: str) -> list[tuple[float, ...]]:
    return [tuple(float(attrs[name] or "nan") for name in names) for attrs in page.all(tag, kind)]


# --- quality ----------------------------------------------------------------------------------------------------------


def test_quality_draws_every_profile_with_its_interval() -> None:
    page = part(alone(*four()), "quality")
    assert len(page.all("line", "span")) == 4 * 2  # profiles × measures
    assert len(page.all("rect", "dot lexical")) == len(page.all("rect", "dot dense")) == 2
    assert len(page.all("circle", "dot default")) == len(page.all("circle", "dot fused")) == 2
    for item in four():
        assert f"{item.mean('nDCG@10'):.3f}" in page.text


def test_the_default_is_highlighted_and_the_best_leg_marked() -> None:
    page = part(alone(*four()), "quality")
    assert len(page.all("rect", "tint")) == 2
    assert len(page.all("line", "mean-line")) == 2
    assert part(alone(evaluation(RRF)), "quality").all("rect", "tint") == []
    assert part(alone(evaluation(RRF)), "quality").all("line", "mean-line") == []


def test_a_dot_is_within_its_interval_and_further_right_when_higher() -> None:
    low, high = ({f"q{n}": base + n / 100 for n in range(20)} for base in (0.2, 0.6))
    page = part(alone(given(low, WORDS), given(high, DEFAULT)), "quality")
    (a, b), (c, d) = shown(page, "line", "span", "x1", "x2")
    square, width = shown(page, "rect", "dot", "x", "width")[0]
    (circle,) = shown(page, "circle", "dot", "cx")[0]
    assert a < square + width / 2 < b < c < circle < d


def test_several_datasets_have_a_switch_and_one_shows_every_measure() -> None:
    one, two = render(alone(*four())), render(alone(*four(), *four(GARDEN)))
    quality = part(alone(*four(), *four(GARDEN)), "quality")
    assert [attrs["data-value"] for attrs in quality.all("div") if "data-pane" in attrs] == ["nDCG@10", "R@5"]
    assert 'data-switch="measure"' in two
    assert len(part(alone(*four()), "quality").all("figure", "panel")) == 2
    assert "data-pane" not in one[one.index('id="quality"') : one.index('id="strata"')]


def test_a_tile_tells_the_test_against_the_best_leg() -> None:
    items = four()
    material = alone(*items, comparisons=[compare([items[-1], *items[:-1]])])
    legs = sorted(items[:2], key=lambda item: -item.mean("nDCG@10"))
    pair = next(pair for pair in material.comparisons[0].overall if pair.challenger == legs[0].name)
    assert f"{legs[0].name} against default: {pair.verdict}" in part(material, "overview").text


def test_measures_are_drawn_until_the_page_is_full() -> None:
    values = {"q1": 0.5, "q2": 0.25}
    many = [evaluation(profile(f"p{n}"), {"nDCG@10": values, "R@5": values, "AP@10": values}) for n in range(400)]
    view = View(alone(*many))
    assert view.pictured == ("nDCG@10", "R@5")
    page = part(alone(*many), "quality")
    assert "Only in the tables, to keep the page small: AP@10." in page.text


def test_the_main_measure_is_the_first_where_there_is_no_other() -> None:
    view = View(alone(evaluation(scores={"AP@10": {"q": 0.5}, "R@5": {"q": 0.5}})))
    assert (view.main, view.measures) == ("AP@10", ("AP@10", "R@5"))
    view = View(alone(evaluation(scores={"AP@10": {"q": 0.5}, "nDCG@10": {"q": 0.5}})))
    assert (view.main, view.measures) == ("nDCG@10", ("nDCG@10", "AP@10"))


def test_datasets_are_named_as_shortly_as_can_be() -> None:
    identities = ["a/test#1", "b/train#2", "c/test#3", "c/test#4"]
    view = View(alone(*(evaluation(dataset=identity) for identity in identities)))
    assert [group.label for group in view.groups] == ["a", "b/train", "c/test#3", "c/test#4"]


# --- tests, topic by topic --------------------------------------------------------------------------------------------


def test_every_number_of_a_test_is_told() -> None:
    comparison = compare(four())
    page = part(alone(*four(), comparisons=[comparison]), "significance")
    for pair in comparison.overall:
        for said in (
            f"{pair.difference:+.4f}",
            f"{pair.low:+.3f} to {pair.high:+.3f}",
            f"{pair.effect:+.2f}",
            f"{pair.wins} / {pair.losses} / {pair.ties}",
            pair.verdict,
        ):
            assert said in page.text
    assert len(page.all("button")) == 9 + 12  # the columns of the whole, and of the strata
    assert all(stratum in page.text for stratum in comparison.strata)


def test_only_what_was_shown_is_filled() -> None:
    base = given({f"q{n}": 0.2 for n in range(40)}, WORDS)
    better = given({f"q{n}": 0.5 + n / 1000 for n in range(40)}, MEANING)
    alike = given({f"q{n}": 0.2 + (0.1 if n % 2 else -0.1) for n in range(40)}, RRF)
    worse = given({f"q{n}": 0.1 - n / 1000 for n in range(40)}, DEFAULT)
    page = part(alone(base, better, alike, worse, comparisons=[compare([base, better, alike, worse])]), "significance")
    assert [len(page.all("circle", f"dot {kind}")) for kind in ("better", "open", "worse")] == [1, 1, 1]


def test_with_few_topics_no_verdict_is_drawn() -> None:
    pair = [
        given({f"q{n}": value + n / 100 for n in range(20)}, item) for item, value in ((WORDS, 0.1), (DEFAULT, 0.7))
    ]
    comparison = compare(pair)
    assert comparison.overall[0].significant
    page = part(alone(*pair, comparisons=[comparison]), "significance")
    assert len(page.all("circle", "dot open")) == 1
    assert page.all("circle", "dot better") == []


def test_the_scatter_counts_wins_losses_and_ties() -> None:
    before = given({"a": 0.1, "b": 0.9, "c": 0.5, "d": 0.5}, WORDS)
    after = given({"a": 0.4, "b": 0.2, "c": 0.5, "d": 0.5 + 1e-12}, DEFAULT)
    page = part(alone(before, after, comparisons=[compare([before, after])]), "topics")
    assert len(page.all("circle", "point better")) == len(page.all("circle", "point worse")) == 1
    assert str(page.all("path", "dots tie")[0]["d"]).count("M") == 2
    assert "▲ 1 better" in page.text
    assert "▼ 1 worse" in page.text
    assert "1 better, 1 worse, 2 the same" in page.text
    assert "question a\n0.100 → 0.400" in page.text


def test_the_scatter_says_its_jitter_and_keeps_to_it() -> None:
    page = part(alone(*four(), comparisons=[compare(four())]), "topics")
    assert "moved by up to 1.5% of the axis" in page.text
    assert all(math.hypot(*differences._jitter(f"topic {n}")) <= 1 + 1e-9 for n in range(500))
    assert differences._jitter("topic 1") == differences._jitter("topic 1") != differences._jitter("topic 2")
    # a win is drawn on its side of the diagonal unless it is nearer than the jitter
    before, after = given({"a": 0.0, "b": 1.0}, WORDS), given({"a": 1.0, "b": 0.0}, DEFAULT)
    page = part(alone(before, after, comparisons=[compare([before, after])]), "topics")
    (win,), (loss,) = (shown(page, "circle", f"point {kind}", "cx", "cy") for kind in ("better", "worse"))
    assert win[0] < loss[0]
    assert win[1] < loss[1]


def test_the_topics_that_moved_show_both_rankings_with_their_grades() -> None:
    before, after = given({"a": 0.0}, WORDS), given({"a": 1.0}, DEFAULT)
    graded = dataclasses.replace(before, qrels={"a": {"d1": 2, "d2": 0}})
    other = dataclasses.replace(after, qrels={"a": {"d1": 2}})
    page = part(alone(graded, other, comparisons=[compare([graded, other])]), "changes")
    assert len(page.all("ol")) == 2
    assert page.text.count("● 2") == 2
    assert page.text.count("○") == 1
    assert "+1.000" in page.text


def test_a_pair_in_two_comparisons_is_drawn_once() -> None:
    items = four()
    page = part(alone(*items, comparisons=[compare(items), compare(items[:2])]), "topics")
    assert len(page.all("figure", "panel")) == 3


# --- strata, settings, headroom ---------------------------------------------------------------------------------------


def test_strata_tell_numbers_and_counts() -> None:
    values = {"a": 0.0, "b": 0.5, "c": 1.0}
    page = part(alone(given(values, WORDS, strata=["one", "two"]), given(values, strata=["one", "two"])), "strata")
    assert "one · 2 (few)" in page.text
    assert "two · 1 (few)" in page.text
    cells = page.all("td", "heat")
    assert [attrs["data-v"] for attrs in cells] == ["0.5", "0.5"] * 2
    assert "all · 3" in page.text


def test_curves_mark_base_best_and_band() -> None:
    page = part(alone(*four(), sweeps=[sweep({"rrf_k": (1, 10, 60, 100)})]), "sweeps")
    assert len(page.all("path", "band")) == len(page.all("path", "curve")) == len(page.all("circle", "ring")) == 1
    assert len(page.all("line", "base-line")) == 1
    assert len(page.all("circle", "dot s0 tip")) == 4
    assert "logarithmic" in page.text
    xs = [x for (x,) in shown(page, "circle", "dot s0 tip", "cx")]
    assert xs[1] - xs[0] == pytest.approx(xs[3] - xs[1], abs=0.02)  # 1 to 10 is as far as 10 to 100


def test_a_logarithmic_axis_with_a_zero_says_how() -> None:
    page = part(alone(*four(), sweeps=[sweep({"rrf_k": (0, 9, 99)})]), "sweeps")
    assert "logarithmic in rrf_k + 1" in page.text
    xs = [x for (x,) in shown(page, "circle", "dot s0 tip", "cx")]
    assert xs[1] - xs[0] == pytest.approx(xs[2] - xs[1], abs=0.02)


def test_two_axes_are_a_heat_map() -> None:
    page = part(alone(*four(), sweeps=[sweep({"alpha": (0.0, 0.5, 1.0), "rrf_k": (5.0, 60.0)})]), "sweeps")
    assert len(page.all("td", "heat")) == 6
    assert len(page.all("td", "ringed")) == 1
    assert len(page.all("td", "based")) == 1
    assert {attrs["style"] for attrs in page.all("td", "heat")} >= {"--v:0.000", "--v:1.000"}


def test_values_without_an_order_are_dots() -> None:
    page = part(alone(*four(), sweeps=[sweep({"normalize": ("minmax", "zscore")}, base=DEFAULT)]), "sweeps")
    assert page.all("path", "curve") == []
    assert len(page.all("line", "span")) == 2
    assert page.text.count("zscore") >= 1


def test_three_axes_are_a_list() -> None:
    axes = {"alpha": (0.0, 0.5, 1.0), "rrf_k": (5.0, 60.0), "lexical_depth": (10, 50, 100)}
    page = part(alone(*four(), sweeps=[sweep(axes)]), "sweeps")
    assert "The 15 highest of 18 settings" in page.text


def test_one_value_of_one_axis() -> None:
    assert len(part(alone(*four(), sweeps=[sweep({"rrf_k": (60.0,)})]), "sweeps").all("circle", "ring")) == 1
    assert len(part(alone(*four(), sweeps=[sweep({"alpha": (0.5,)})]), "sweeps").all("circle", "ring")) == 1


def test_several_datasets_share_one_picture_of_losses() -> None:
    swept = [sweep({"alpha": (0.0, 0.5, 1.0)}, dataset=dataset) for dataset in (KITCHEN, GARDEN)]
    page = part(alone(*four(), *four(GARDEN), sweeps=swept), "sweeps")
    assert len(page.all("figure", "panel")) == 3
    assert len(page.all("path", "curve average")) == 1
    assert "least is lost at 0.5 (+0.0000)" in page.text
    other = [swept[0], sweep({"alpha": (0.0, 1.0)}, dataset=GARDEN)]
    assert part(alone(*four(), sweeps=other), "sweeps").all("path", "curve average") == []


def test_several_bases_are_lines_of_one_picture() -> None:
    bases = [RRF, profile("convex")]
    swept = [sweep({"alpha": (0.0, 1.0)}, base, dataset) for base in bases for dataset in (KITCHEN, GARDEN)]
    page = part(alone(*four(), *four(GARDEN), sweeps=swept), "sweeps")
    assert len(page.all("figure", "panel")) == 3  # all datasets, kitchen, garden
    assert len(page.all("path", "curve s0")) == len(page.all("path", "curve s1")) == 3
    assert "Each line is the mean over 2 datasets." in page.text


def _alpha(base: Any, values: tuple[float, ...] = (0.0, 0.5, 1.0)) -> Sweep:
    return sweep({"alpha": values}, base=base)


def test_a_base_is_marked_only_where_a_point_ranks_as_it() -> None:
    plain, weighed = profile("plain"), profile("weighed").with_changes({"weighing": "query"})
    assert base_value(_alpha(plain), "alpha") == 0.5
    assert base_value(_alpha(plain, (0.6, 1.0)), "alpha") is None  # past the end
    assert [is_base(_alpha(plain), point) for point in _alpha(plain).points] == [False, True, False]
    # a weight given by hand leaves the weighing as it is
    assert base_value(_alpha(weighed), "alpha") == 0.5
    off = _alpha(weighed, (0.6, 1.0))
    page = part(alone(given({"q": 0.75}, weighed), sweeps=[off]), "sweeps")
    assert "unchanged 0.750, not on the curve" in page.text
    ((first, second),) = shown(page, "line", "base-line", "y1", "y2")
    assert first == second


@pytest.mark.parametrize(
    ("axis", "value"),
    [
        ("alpha", 0.25),
        ("rrf_k", 60.0),
        ("lexical_depth", 100),
        ("dense_weight", 1.0),
        ("trigram_gate", None),
        ("fusion", "convex"),
        ("nonsense", None),
    ],
)
def test_a_profile_knows_its_place_on_an_axis(axis: str, value: Any) -> None:
    assert current(profile("p", lexical=3.0, dense=1.0), axis) == value


def test_without_words_and_meaning_there_is_no_alpha() -> None:
    assert current(profile("p", trigram=1.0), "alpha") is None


def test_headroom_tells_what_the_oracle_would_gain() -> None:
    page = part(alone(*four(), headrooms={KITCHEN: headroom(), GARDEN: headroom()}), "headroom")
    assert page.text.count("+0.200") == 2
    assert "they are bounds, not results" in page.text


# --- thresholds, legs, speed ------------------------------------------------------------------------------------------


def test_thresholds_draw_four_curves_and_the_profiles_own() -> None:
    item = evaluation(DEFAULT.with_changes({"min_relevance": 0.25}))
    page = part(alone(item), "thresholds")
    assert len(page.all("path", "curve")) == 4
    ((x,),) = (shown(page, "line", "base-line", "x1"),)
    assert x[0] == pytest.approx(44 + 0.25 * (380 - 44 - 14))
    assert "min_relevance 0.25" in page.text
    assert "40 topics, 4 unanswerable, 50 nonsense" in page.text
    assert len(page.all("rect", "strip")) == 26


def test_a_curve_without_questions_is_left_out() -> None:
    cuts = tuple(dataclasses.replace(cut, false_unanswerable=None) for cut in findings().cuts)
    page = part(alone(evaluation(findings=findings(cuts=cuts))), "thresholds")
    assert len(page.all("path", "curve")) == 3
    assert "No dataset here has unanswerable queries" in page.text


def test_precision_ends_where_nothing_is_returned() -> None:
    cuts = tuple(dataclasses.replace(cut, precision=0.5 if cut.threshold < 0.3 else None) for cut in findings().cuts)
    page = part(alone(evaluation(findings=findings(cuts=cuts))), "thresholds")
    (path,) = page.all("path", "curve s2")
    assert str(path["d"]).count(" ") == 15  # thresholds 0, 0.02, … 0.28
    assert "from 0.32\nprecision –\n" in page.text
    wrong = tuple(
        dataclasses.replace(cut, precision=0.0) for cut in cuts
    )  # what is returned is all wrong: that is told
    page = part(alone(evaluation(findings=findings(cuts=wrong))), "thresholds")
    assert str(page.all("path", "curve s2")[0]["d"]).count(" ") == 51


def test_reliability_draws_what_was_told_and_what_was_right() -> None:
    bins = (Bin(0.0, 90, 0.05, 0.1), Bin(0.8, 10, 0.85, 0.7))
    page = part(alone(evaluation(findings=findings(bins=bins))), "calibration")
    x, y = (lambda told: 44 + told * (380 - 44 - 14)), (lambda right: 322 - right * (322 - 12))
    dots = shown(page, "circle", "dot s6", "cx", "cy")
    assert dots == [pytest.approx((x(0.05), y(0.1)), abs=0.01), pytest.approx((x(0.85), y(0.7)), abs=0.01)]
    ((first,), (second,)) = shown(page, "rect", "bar", "height")
    assert first / second == pytest.approx(9, abs=0.02)
    ((x1, y1, x2, y2),) = shown(page, "line", "base-line", "x1", "y1", "x2", "y2")
    assert (x1, y1, x2, y2) == pytest.approx((x(0), y(0), x(1), y(1)))
    assert (
        "100 hits; relevance and the share judged relevant are 0.060 apart on average" in page.text
    )  # .9 × .05 + .1 × .15
    assert "70.0% of 10 hits relevant" in page.text
    for low, dot, high in zip(
        shown(page, "line", "span s6", "y1"), dots, shown(page, "line", "span s6", "y2"), strict=True
    ):
        assert low[0] > dot[1] > high[0]


def test_reliability_is_of_the_default() -> None:
    other = evaluation(RRF, findings=findings(bins=(Bin(0.5, 1, 0.55, 0.0),)))
    page = part(alone(other, evaluation(DEFAULT)), "calibration")
    assert len(page.all("figure", "panel")) == 1
    assert "40 hits" in page.text
    assert len(part(alone(*four(), *four(GARDEN)), "calibration").all("figure", "panel")) == 2


@pytest.mark.parametrize(
    ("share", "count", "low", "high"), [(0.5, 10, 0.2366, 0.7634), (0.0, 10, 0.0, 0.2775), (1.0, 1, 0.2065, 1.0)]
)
def test_the_interval_of_a_share(share: float, count: int, low: float, high: float) -> None:
    """Against values worked out by hand from Wilson's formula."""
    assert wilson(share, count) == pytest.approx((low, high), abs=1e-4)


def test_shares_add_up_to_the_right_hits() -> None:
    page = part(alone(evaluation(findings=findings(right=20, only={"lexical": 5, "dense": 2}))), "legs")
    widths = [width for (width,) in shown(page, "rect", "bar", "width")]
    assert [width / sum(widths) for width in widths] == pytest.approx([0.25, 0.1, 0.65], abs=1e-3)
    assert "7/20" in page.text
    assert "legs" not in render(alone(evaluation(WORDS))).split('class="links"')[1].split("</div>")[0].lower()


def test_speed_shows_both_percentiles_and_embedding() -> None:
    page = part(alone(*four()), "latency")
    assert page.text.count("1.50 / 4.00") == 4
    assert len(page.all("line", "end")) == 4
    assert len(page.all("path", "dot embed")) == 4
    assert "milliseconds, logarithmic" not in page.text


def test_a_slow_one_makes_the_axis_logarithmic() -> None:
    page = part(alone(evaluation(WORDS), evaluation(findings=findings(p95_ms=900.0))), "latency")
    assert "milliseconds, logarithmic" in page.text


def test_what_has_no_times_is_named() -> None:
    untimed = evaluation(None, findings=findings(p50_ms=0.0, p95_ms=0.0, embed_ms=None))
    page = part(alone(evaluation(), untimed), "latency")
    assert "Without times, because another system or the fast path made them: other." in page.text
    assert len(page.all("line", "end")) == 1


# --- tables, origin ---------------------------------------------------------------------------------------------------


def test_mean_ranks_by_hand() -> None:
    first = {"bm25": 0.2, "dense": 0.4, "default": 0.4}
    second = {"bm25": 0.9, "dense": 0.3, "default": 0.5}
    items = [
        given({"q": means[item.name]}, item, dataset=dataset)
        for dataset, means in ((KITCHEN, first), (GARDEN, second))
        for item in (WORDS, MEANING, DEFAULT)
    ]
    page = part(alone(*items, given({"q": 1.0}, RRF)), "quality")
    totals = [attrs.get("data-v") for attrs in page.all("td", "total")]
    assert [float(value) if value else None for value in totals] == pytest.approx(
        [0.55, 2.0, 0.35, 2.25, None, None, 0.45, 1.75]
    )  # bm25: ranks 3 and 1; dense: 1.5 and 3; rrf is not on both; default: 1.5 and 2


def test_tables_hold_every_measure_with_four_places() -> None:
    page = part(alone(*four()), "tables")
    for item in four():
        for measure in item.scores:
            assert f"{item.mean(measure):.4f}" in page.text
    assert "50.0%" in page.text
    assert "25.0%" in page.text


def test_the_origin_tells_where_each_number_comes_from() -> None:
    page = part(alone(*four(), notes=["mine"]), "provenance")
    for said in (
        "abc1234",
        "9.9",
        "3.11.0",
        "x86_64, 2 cores",
        "2026-01-02T03:04",
        "model/1",
        KITCHEN,
        DEFAULT.identity,
        "mine",
    ):
        assert said in page.text


def test_the_origin_warns_of_what_is_less_alike_than_it_looks() -> None:
    changed = DEFAULT.with_changes({"rrf_k": 5})
    items = [evaluation(), evaluation(changed, dataset=GARDEN), evaluation(WORDS, made={"commit": "other"})]
    text = part(alone(*items), "provenance").text
    assert (
        f"default is not the same profile everywhere: {', '.join(sorted((DEFAULT.identity, changed.identity)))}" in text
    )
    assert "kitchen: the evaluations are of 2 commits: abc1234, other" in text


def test_a_run_from_elsewhere_has_its_own_kind() -> None:
    items = [*four(), evaluation(None, name="lucene")]
    page = part(alone(*items), "quality")
    assert len(page.all("path", "dot elsewhere")) == 2
    assert "from elsewhere" in page.text
    assert "a run from elsewhere" in part(alone(*items), "provenance").text
