"""Markdown from HTML."""

from __future__ import annotations

from trivet.files import markup


def test_headings_lists_tables_and_code() -> None:
    html = (
        "<h2>A  <b>head</b></h2>tail<ul><li>one</li><li>two</li></ul><pre>if x:\n    y</pre>"
        "<table><tr><td>a</td><th>b c</th></tr><tr><td></td></tr></table><p>in <i>a</i> line</p>"
        "<!-- no --><nav>menu</nav>"
    )
    assert markup.of_html(html).split("\n\n") == [
        "## A head",
        "tail",
        "- one",
        "- two",
        "```\nif x:\n    y\n```",
        "| a | b c |",
        "in a line",
    ]


def test_a_table_for_the_layout_is_read_as_text() -> None:
    assert markup.of_html("<table><tr><td><table><tr><td>in</td></tr></table></td></tr></table>") == "| in |"


def test_deep_nesting_is_read_and_nothing_is_an_empty_text() -> None:
    assert markup.of_html("<div>" * 1_000 + "deep" + "</div>" * 1_000) == "deep"
    assert markup.of_html("") == markup.of_html("   ") == markup.of_html("<!-- -->") == ""


def test_a_heading_is_one_line() -> None:
    assert markup.heading(9, " a\n b ") == "###### a b"
    assert markup.heading(1, " ") == ""
