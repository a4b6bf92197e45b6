"""Does text stay text?"""

from __future__ import annotations

import re
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st
from report_material import Page

from trivet.evaluate.report.markup import Cell, Html, Row, Table, joined, switch, tag, text

any_text = st.text(st.characters(), max_size=80)


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.said = ""
        self.attributes: dict[str, str | None] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.update(attrs)

    def handle_data(self, data: str) -> None:
        self.said += data


def cleaned(said: str) -> str:
    return re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff]", "\ufffd", said)


@given(any_text)
def test_any_text_is_shown_as_it_is(said: str) -> None:
    reader = Reader()
    reader.feed(tag("p", said, title=said))
    reader.close()
    assert reader.tags == ["p"]
    assert reader.said == cleaned(said)
    assert reader.attributes["title"] == cleaned(said)


@given(any_text)
def test_any_text_can_be_written_to_a_file(said: str) -> None:
    tag("p", said).encode("utf-8")


def test_markup_of_ours_is_not_escaped_again() -> None:
    assert tag("p", tag("b", "<i>")) == "<p><b>&lt;i&gt;</b></p>"
    assert joined((tag("b", "x"), "<")) == "<b>x</b>&lt;"


def test_markup_pasted_into_a_string_is_text_again() -> None:
    assert tag("p", f"{tag('b', 'x')}") == "<p>&lt;b&gt;x&lt;/b&gt;</p>"
    assert not isinstance(tag("b", "x") + "<i>", Html)


def test_attributes() -> None:
    assert (
        tag("a", class_="x", data_v=1.5, http_equiv='"', hidden=None)
        == '<a class="x" data-v="1.5" http-equiv="&quot;"></a>'
    )
    assert tag("meta", name="n") == '<meta name="n">'
    assert text("'\"<>&") == "&#x27;&quot;&lt;&gt;&amp;"


def test_a_table_sorts_by_values_and_names_its_rows() -> None:
    page = Page(Table(("who", "much"), [Row([Cell("<b>", "b"), Cell("1.50", 1.5, heat=2.0)], "chosen")], "what").html())
    assert page.all("th") == [{"scope": "col"}, {"scope": "col"}, {"scope": "row", "data-v": "b"}]
    assert page.all("td") == [{"class": "heat", "data-v": "1.5", "style": "--v:1.000"}]
    assert len(page.all("button")) == 2
    assert "<b>" in page.text
    assert page.all("div", "scroll")[0]["tabindex"] == "0"


def test_a_choice_of_one_is_no_choice() -> None:
    assert switch("measure", "Measure", ["nDCG@10"]) == ""
    assert Page(switch("measure", "Measure", ["nDCG@10", "R@5"])).all("option") == [
        {"value": "nDCG@10"},
        {"value": "R@5"},
    ]
