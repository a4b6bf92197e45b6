from __future__ import annotations

from collections.abc import Callable

import pytest

from trivet.rerank.exact import Exact
from trivet.types import Adjustment, Hit, Query

MakeHit = Callable[..., Hit]


def gets_the_bonus(hit: MakeHit, query: str, **document: str) -> bool:
    (one,) = Exact().rerank([hit(document.pop("id", "some-id"), 1.0, **document)], Query(query))
    assert one.score in (1.0, pytest.approx(1.1))
    return one.score > 1.0


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("red build", "Why is it a RED  build?"),
        ("Red build?", "the red\nbuild"),
        ("read_file", "call read_file() first"),
        ("readFile", "call readFile() first"),
        ("E1234", "failed with e1234."),
        ("src/main.py", "see src/main.py:12"),
        ("C++", "written in C++, mostly"),
        ("C#", "written in C# mostly"),
        (".net", "the .NET runtime"),
        ("--force", "push with --force once"),
        ('"deploy"', "we deploy on Friday"),
        ("“deploy”", "we deploy on Friday"),
        ('how do we "deploy" on "friday"', "Friday is when we deploy"),
        ("ﬁle format", "the file format"),
        ("検索エンジン", "日本語検索エンジン入門"),
    ],
)
def test_the_very_words(hit: MakeHit, query: str, text: str) -> None:
    assert gets_the_bonus(hit, query, text=text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("deploy", "we deploy on Friday"),  # one common word proves nothing
        ("deploy!", "we deploy on Friday"),
        ("the", "the end"),
        ("red build", "a tired builder, a rebuild"),
        ("red build", "sacred building"),  # only inside other words
        ("red build", "the red builds"),
        ("red build", "build it red"),
        ("read_file", "thread_files"),
        ("C++", "Objective-C"),
        ('"deploy" on "monday"', "Friday is when we deploy"),
        ("", "anything"),
        ("  ?! ", "?!"),
        ('""', "anything"),
        ("検索", "日本語検索エンジン"),
    ],
)
def test_not_the_very_words(hit: MakeHit, query: str, text: str) -> None:
    assert not gets_the_bonus(hit, query, text=text)


def test_by_title_or_id(hit: MakeHit) -> None:
    assert gets_the_bonus(hit, "red build", title="The red build")
    assert gets_the_bonus(hit, "Deployment?", title="deployment")
    assert gets_the_bonus(hit, "ADR", id="adr")
    assert not gets_the_bonus(hit, "deployment", title="Deployment notes")


def test_phrases_may_be_shared_between_title_and_passage(hit: MakeHit) -> None:
    assert gets_the_bonus(hit, '"red build" "on friday"', title="Red build", text="It was on Friday.")


def test_only_the_passage_shown_counts(hit: MakeHit) -> None:
    assert not gets_the_bonus(hit, "red build", text="The red build. Far below.", passage="Far below.")


def test_the_bonus_is_once_bounded_and_written_down(hit: MakeHit) -> None:
    hits = [hit("near", 1.0), hit("exact", 0.95, title="red build", text="red build, red build")]
    first, second = Exact(bonus=0.1).rerank(hits, Query("red build"))
    assert (first.id, first.rank, second.id, second.rank) == ("exact", 1, "near", 2)
    assert first.adjustments == (Adjustment("exact", 0.95, 0.95 * 1.1, "the query is the title"),)
    assert first.relevance == 0.5
    assert second.adjustments == ()


def test_it_does_not_lift_over_a_clear_lead(hit: MakeHit) -> None:
    hits = [hit("far ahead", 1.0), hit("exact", 0.9, text="red build")]
    assert [h.id for h in Exact().rerank(hits, Query("red build"))] == ["far ahead", "exact"]


def test_below_zero_it_is_still_a_bonus(hit: MakeHit) -> None:
    (one,) = Exact().rerank([hit("a", -1.0, text="red build")], Query("red build"))
    assert one.score == pytest.approx(-0.9)
