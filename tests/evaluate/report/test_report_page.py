"""The page as a whole: valid HTML, all sections, escaped texts, nothing loaded."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import math
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_material import (
    DEFAULT,
    GARDEN,
    KITCHEN,
    MEANING,
    RRF,
    WORDS,
    Page,
    alone,
    coordinates,
    evaluation,
    findings,
    four,
    headroom,
    profile,
    sweep,
)

from trivet.errors import InputError, MissingExtraError, StoreError
from trivet.evaluate import Evaluation, compare
from trivet.evaluate.report import Material, render, write
from trivet.evaluate.report.page import _environment

ALWAYS = ["overview", "quality", "strata", "calibration", "thresholds", "legs", "latency", "tables", "provenance"]
ALPHAS = {"alpha": (0.0, 0.5, 1.0)}
HOSTILE = "</script><script>alert(1)</script><b>bold</b> \"quoted\" 'single' &amp; \x00\u202e-->]]>"


def whole(**options: Any) -> Material:
    first, second = four(**options), four(GARDEN, **options)
    return Material(
        "Everything",
        [*first, *second],
        [compare(first), compare(second)],
        [sweep(ALPHAS), sweep(ALPHAS, dataset=GARDEN), sweep({**ALPHAS, "rrf_k": (1, 60)}), sweep({"rrf_k": (0, 60)})],
        {KITCHEN: headroom()},
        ["a note"],
    )


def check(material: Material, words_are_ours: bool = True) -> Page:
    """What holds of every page."""
    said = render(material)
    page = Page(said)
    assert all(math.isfinite(number) for number in coordinates(page))
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(set(ids)) == len(ids)
    assert [attrs["href"] for attrs in page.all("a")] == [f"#{id}" for id in page.sections]
    assert not words_are_ours or not re.search(r"\bnan\b|\binf\b|None|Html\(", page.text)
    assert not words_are_ours or "&lt;" not in said.replace("&lt; 0.001", ""), "markup was shown as text"
    assert said == render(material)
    return page


def test_every_section_where_there_is_material() -> None:
    page = check(whole())
    assert page.sections == [
        *("overview", "quality", "significance", "topics", "changes", "strata", "sweeps", "headroom", "calibration"),
        *("thresholds", "legs", "latency", "tables", "provenance"),
    ]
    assert "a note" in page.text
    assert page.text.count("Everything") == 2  # the title and the heading


def test_a_section_without_material_is_left_out() -> None:
    assert check(alone(*four())).sections == ALWAYS


@pytest.mark.parametrize(
    ("more", "added"),
    [
        ({"comparisons": [compare(four())]}, {"significance", "topics", "changes"}),
        ({"sweeps": [sweep(ALPHAS)]}, {"sweeps"}),
        ({"headrooms": {KITCHEN: headroom()}}, {"headroom"}),
        ({"notes": ["a note"]}, set()),
    ],
)
def test_each_material_brings_its_sections(more: dict[str, Any], added: set[str]) -> None:
    assert set(check(alone(*four(), **more)).sections) - set(ALWAYS) == added


def test_one_evaluation_is_enough() -> None:
    assert check(alone(evaluation())).sections == ALWAYS
    quiet = evaluation(findings=findings(cuts=(), bins=(), p50_ms=0.0, p95_ms=0.0, right=0, only={}), strata=["all"])
    assert check(alone(quiet)).sections == ["overview", "quality", "tables", "provenance"]
    unscored = dataclasses.replace(quiet, scores={})
    assert check(alone(unscored)).sections == ["provenance"]


def test_nothing_is_not_enough() -> None:
    with pytest.raises(InputError, match="at least one"):
        render(alone())


def test_two_of_the_same_name_are_refused() -> None:
    with pytest.raises(InputError, match="2 evaluations on kitchen/test#aaaaaaaaaaaa are called 'default'"):
        render(alone(evaluation(), evaluation(seed=1)))


def test_one_topic() -> None:
    pair = [evaluation(item, {"nDCG@10": {"q": value}}) for item, value in ((WORDS, 0.25), (DEFAULT, 1.0))]
    page = check(alone(*pair, comparisons=[compare(pair)]))
    assert "1 topic" in page.text
    assert "too few topics to tell" in page.text


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_all_scores_alike(value: float) -> None:
    scores = {"nDCG@10": {f"q{n}": value for n in range(35)}}
    pair = [evaluation(item, scores) for item in (WORDS, DEFAULT)]
    page = check(alone(*pair, comparisons=[compare(pair)]))
    assert "the same score on each of 35 topics" in page.text
    assert "changes" not in page.sections


def _broken(where: str) -> Material:
    nan = math.nan
    item = evaluation()
    if where == "score":
        return alone(evaluation(scores={"nDCG@10": {"q1": nan}}))
    if where == "findings":
        return alone(dataclasses.replace(item, findings=findings(p95_ms=nan)))
    if where == "cut":
        cut = dataclasses.replace(findings().cuts[0], precision=nan)
        return alone(dataclasses.replace(item, findings=findings(cuts=(cut,))))
    if where == "bin":
        bin = dataclasses.replace(findings().bins[0], told=nan)
        return alone(dataclasses.replace(item, findings=findings(bins=(bin,))))
    if where == "sweep":
        swept = sweep(ALPHAS)
        return alone(
            item, sweeps=[dataclasses.replace(swept, points=(dataclasses.replace(swept.points[0], mean=nan),))]
        )
    if where == "headroom":
        return alone(item, headrooms={KITCHEN: dataclasses.replace(headroom(), oracle_mean=math.inf)})
    comparison = compare(four())
    pairs = (dataclasses.replace(comparison.overall[0], high=nan),)
    return alone(item, comparisons=[dataclasses.replace(comparison, overall=pairs)])


@pytest.mark.parametrize(
    ("where", "named"),
    [
        ("score", "nDCG@10 of default on kitchen/test#aaaaaaaaaaaa, topic 'q1', is nan"),
        ("findings", "the findings of default on kitchen/test#aaaaaaaaaaaa: p95_ms is nan"),
        ("cut", "a cut of default on kitchen/test#aaaaaaaaaaaa: precision is nan"),
        ("bin", "a bin of default on kitchen/test#aaaaaaaaaaaa: told is nan"),
        ("sweep", "the sweep over alpha on kitchen/test#aaaaaaaaaaaa: mean is nan"),
        ("headroom", "the headroom on kitchen/test#aaaaaaaaaaaa: oracle_mean is inf"),
        ("comparison", "dense against bm25 on kitchen/test#aaaaaaaaaaaa: high is nan"),
    ],
)
def test_what_is_no_number_is_refused_by_name(where: str, named: str) -> None:
    with pytest.raises(InputError, match=re.escape(named)):
        render(_broken(where))


def test_forty_profiles() -> None:
    many = [evaluation(profile(f"p{n}"), topics=5) for n in range(40)]
    page = check(
        alone(*many, comparisons=[compare(many)], sweeps=[sweep(ALPHAS, base=item.profile or RRF) for item in many])
    )
    assert all(f"p{n}" in page.text for n in range(40))
    assert "12 of 39 pairs are drawn" in page.text
    assert "Of 40 profiles, 6 are drawn" in page.text


def test_twelve_strata() -> None:
    names = [f"stratum {n}" for n in range(12)]
    page = check(alone(*four(topics=36, strata=names)))
    assert all(f"{name} · 3 (few)" in page.text for name in names)


def test_long_names() -> None:
    name, dataset, stratum = "n" * 64, f"{'d' * 200}/test#cccccccccccc", "s" * 300
    long = evaluation(profile(name), dataset=dataset, strata=[stratum, "short"])
    other = evaluation(WORDS, dataset=dataset, strata=[stratum, "short"])
    page = check(alone(long, other, comparisons=[compare([long, other])]))
    assert name in page.text
    labels = re.findall(r"n+…", page.text)
    assert labels
    assert all(len(said) < 25 for said in labels)


def test_text_of_the_data_stays_text() -> None:
    texts = {f"q{n}": f"{HOSTILE} {n}" for n in range(40)}
    options: dict[str, Any] = {
        "dataset": f"{HOSTILE}/test#1",
        "texts": texts,
        "strata": [HOSTILE, "<i>"],
        "notes": (HOSTILE,),
    }
    pair = [evaluation(WORDS, **options), evaluation(None, name=HOSTILE, **options)]
    pair[1] = dataclasses.replace(pair[1], made={"commit": HOSTILE, "machine": HOSTILE, "at": HOSTILE}, model=HOSTILE)
    material = Material(HOSTILE, pair, [compare(pair)], [sweep(ALPHAS, dataset=f"{HOSTILE}/test#1")], {}, [HOSTILE])
    page = check(material, words_are_ours=False)
    plain = check(alone(*four()))
    assert len(page.all("script")) == 1
    assert page.script == plain.script
    assert "</script><script>alert(1)</script><b>bold</b>" in page.text
    assert "\x00" not in page.text
    assert not [attrs for _, attrs in page.tags if any(name.startswith("on") for name in attrs)]


words = st.text(st.characters(), min_size=1, max_size=30)


@settings(max_examples=20, deadline=None)
@given(
    title=words,
    names=st.lists(words, min_size=2, max_size=3, unique=True),
    question=words,
    stratum=words,
    dataset=words,
    scores=st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=3, max_size=3),
)
def test_any_words_and_any_scores_make_a_page(
    title: str, names: list[str], question: str, stratum: str, dataset: str, scores: list[list[float]]
) -> None:
    items = [
        evaluation(
            None,
            {"nDCG@10": {f"q{n}": value for n, value in enumerate(values)}},
            name=name,
            dataset=dataset,
            strata=[stratum, "other"],
            texts={"q0": question},
        )
        for name, values in zip(names, scores, strict=False)
    ]
    page = check(Material(title, items, [compare(items)]), words_are_ours=False)
    assert page.script == Page(render(alone(evaluation()))).script


def test_nothing_is_loaded_and_no_other_script_may_run() -> None:
    page = check(whole())
    assert {tag for tag, _ in page.tags} & {"link", "img", "iframe", "object", "embed", "base", "form"} == set()
    assert not [attrs for _, attrs in page.tags if {"src", "srcset", "action", "xlink:href"} & attrs.keys()]
    assert "url(" not in page.style
    assert "@import" not in page.style
    assert "@font-face" not in page.style
    policy = next(str(attrs["content"]) for attrs in page.all("meta") if attrs.get("http-equiv"))
    digest = base64.b64encode(hashlib.sha256(page.script.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    assert not re.search(r"fetch\(|XMLHttpRequest|WebSocket|https?:", page.script)


def test_dark_print_and_narrow_have_their_rules() -> None:
    style = check(alone(evaluation())).style
    for rule in (
        "(prefers-color-scheme: dark)",
        "@media print",
        "(max-width: 560px)",
        "tabular-nums",
        ":focus-visible",
    ):
        assert rule in style


def test_every_colour_a_mark_names_is_in_the_style_sheet() -> None:
    page = check(whole())
    used = {
        kind
        for tag, attrs in page.tags
        if tag in ("line", "circle", "rect", "path")
        for kind in (attrs.get("class") or "").split()
    }
    assert {kind for kind in used if f".{kind}" not in page.style} <= {"tip"}


def test_an_evaluation_without_its_answers_says_so() -> None:
    slim = [Evaluation.from_dict(json.loads(json.dumps(item.to_dict(answers=False)))) for item in four()]
    page = check(alone(*slim, comparisons=[compare(slim)]))
    assert "The queries are not in this report" in page.text
    assert "its text is not in this report" in page.text
    assert "Neither ranking is in this report" in page.text
    assert {"significance", "topics", "changes"} <= set(page.sections)


def test_a_comparison_whose_evaluations_are_not_there_says_so() -> None:
    page = check(alone(evaluation(), comparisons=[compare(four(GARDEN))]))
    assert "the scores of each topic are not in this report: dense on garden, rrf on garden" in page.text


def test_the_order_given_does_not_change_the_pictures() -> None:
    def quality(items: list[Evaluation]) -> str:
        said = render(alone(*items))
        return said[said.index('id="quality"') : said.index('id="strata"')]

    assert quality(four()) == quality(four()[::-1])


def test_it_is_written_where_it_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "new" / "report.html"
    assert write(alone(evaluation(MEANING)), str(path)) == path
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>\n<html lang=")


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"report: cannot write .*report\.html"):
        write(alone(evaluation()), tmp_path / "file" / "report.html")


def test_without_jinja2_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    _environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"jinja2: pip install 'trivet\[eval\]'"):
        render(alone(evaluation()))
