"""The place of a hit in its document, and how hits and results are shown."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import pytest

from trivet.types import Contribution, Degraded, Document, Hit, Passage, Results

TEXT = "# Pump\nintro\n## Setup\nlevel\n```sh\n# no heading\n```\n### Limits ###\nfour metres\n## Care\nrinse\n"


def hit(text: str, at: str, *, end: str = "", kind: str = "document", title: str = "", **meta: object) -> Hit:
    start = text.index(at)
    stop = text.index(end) + len(end) if end else len(text)
    document = Document(id="a", text=text, kind=kind, title=title, meta=meta)
    return Hit(1, "a", 1.0, 0.5, document, Passage(0, start, stop, text[start:stop]))


@pytest.mark.parametrize(
    ("at", "place"),
    [
        ("intro", "Pump"),
        ("## Setup", "Pump > Setup"),
        ("# no heading", "Pump > Setup"),
        ("four", "Pump > Setup > Limits"),
        ("rinse", "Pump > Care"),
    ],
)
def test_the_headings_above(at: str, place: str) -> None:
    assert hit(TEXT, at).location == place
    assert hit(TEXT, at, title="Pump").location == (place if place != "Pump" else ""), "the title is shown already"


def test_code_and_plain_text_have_no_headings() -> None:
    assert hit("# a comment\nx = 1\n", "x", kind="code").location == ""
    assert hit("no heading\nat all", "at").location == ""


def test_pages_slides_and_rows() -> None:
    text = "one\n\f\n\ntwo\n\f\n\n# Three\nfour"
    first = hit(text, "one", end="one\n\f\n\n", pages=3)
    assert (first.location, first.text) == ("page 1", "one")
    assert hit(text, "\f\n\ntwo", end="two", pages=3).location == "page 2"
    assert hit(text, "two", end="Three", pages=3).location == "pages 2–3"
    assert hit(text, "four", slides=3).location == "slide 3, Three"
    assert hit(text, "two", end="two").location == "", "a form feed alone is no page"
    assert hit("a: 1", "a", kind="row", row=12).location == "row 12"


LONG = "The pump is <loud> &\n" + "very loud " * 40


def results(*hits: Hit) -> Results:
    return Results("is the pump loud", hits, "default#1", degraded=(Degraded("dense", "<no model>"),))


def found(rank: int, text: str = LONG, **fields: object) -> Hit:
    document = Document(f"p{rank}", text, meta={"place": "quay"}, created=datetime(2026, 3, 1, tzinfo=UTC), **fields)  # type: ignore[arg-type]
    shares = (Contribution("lexical", 1, 3.0, 1.0, 1.0, 0.6), Contribution("mine", 2, 0.5, 0.5, 1.0, 0.2))
    return Hit(rank, document.id, 0.8, 0.619, document, Passage(0, 0, len(text), text), 0.8, shares)


def test_a_repr_is_short() -> None:
    assert repr(found(1)) == f"<Hit 1 'p1' relevance=0.62 {START}>"
    assert repr(Document("p1", LONG)) == f"<Document 'p1' {START}>"
    assert repr(Document("p1", LONG, title="Pump")) == "<Document 'p1' 'Pump'>"
    shown = repr(results(*(found(rank) for rank in range(1, 13)))).splitlines()
    assert shown[:2] == ["<Results 'is the pump loud': 12 hits", f"  1 0.62 'p1' {START}"]
    assert (len(shown), shown[-1]) == (12, "  … 2 more>")
    assert repr(results()) == "<Results 'is the pump loud': 0 hits>"
    assert repr(results(found(1))).startswith("<Results 'is the pump loud': 1 hit\n")


START = repr("The pump is <loud> & very loud very loud very loud very loud very loud"[:59] + "…")


def test_a_table_for_notebooks_has_bars_and_no_markup_of_a_document() -> None:
    html = results(found(1, title="<b>Pump</b>"))._repr_html_()
    assert "&lt;b&gt;Pump&lt;/b&gt;" in html and "The pump is &lt;loud&gt; &amp;" in html
    assert html.count("<tr>") == 1 and "0.62 strong" in html
    assert 'title="lexical 0.600" style="display:inline-block;height:0.8em;width:90.0px;background:#5fafff"' in html
    assert 'title="mine 0.200"' in html and "width:30.0px;background:#9e9e9e" in html
    assert "degraded: dense: &lt;no model&gt;" in html
    assert "no hits" in results()._repr_html_() and "<div> ·" not in results()._repr_html_()


def test_a_data_frame_has_a_row_for_each_hit() -> None:
    frame = results(found(1), found(2)).to_pandas()
    assert list(frame.id) == ["p1", "p2"]
    assert frame.loc[0, ["rank", "confidence", "text", "share.lexical", "meta.place"]].tolist() == [
        1, "strong", LONG, 0.6, "quay"
    ]  # fmt: skip
    assert list(results().to_pandas().columns)[:3] == ["rank", "id", "relevance"]


def test_without_pandas_the_error_has_the_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="run `pip install pandas`"):
        results().to_pandas()
