"""Web pages: the text without menus, in any encoding."""

from __future__ import annotations

import pytest

from trivet.files import formats
from trivet.files.formats import UnreadableError

PAGE = """<!doctype html><html><head><meta charset="{charset}"><title>Limits &amp; care – Pump</title>
<style>p {{ color: red }}</style><script>var tracking = 1;</script></head><body>
<nav><ul><li><a href="/a">Getting started</a></li><li><a href="/b">Downloads</a></li></ul></nav>
<div class="cookie-banner">We use cookies to improve your experience. Accept all</div>
<main><article><h1>Pump manual</h1><p>The pump moves water from the tank to the beds, quietly and without any oil.</p>
<h2>Setup</h2><p>Place the pump below the water line, so that it never runs dry, and connect the größere hose.</p>
<h3>Limits</h3><p>The pump lifts water at most four metres, and must not run hot for more than one hour.</p>
<table><tr><th>Model</th><th>Height</th></tr><tr><td>P1</td><td>4 m</td></tr></table></article></main>
<footer>Copyright 2026 Example. <a href="/imprint">Imprint</a></footer></body></html>"""


@pytest.mark.parametrize("charset", ["utf-8", "windows-1252", "utf-16"])
def test_the_text_of_a_page_is_kept_and_the_frame_is_not(charset: str) -> None:
    [part] = formats.parts(PAGE.format(charset=charset).encode(charset), "html")
    assert part.title == "Limits & care – Pump"
    lines = part.text.splitlines()
    assert [line for line in lines if line.startswith("#")] == ["# Pump manual", "## Setup", "### Limits"]
    assert "größere hose" in part.text
    assert "P1" in part.text
    assert not [word for word in ("cookies", "Downloads", "Imprint", "tracking", "color") if word in part.text]


def test_the_menu_of_a_short_page_is_not_kept() -> None:
    page = b"<html><body><nav>Home <a href='/in'>Login</a></nav><p>The fans turn at 900 rpm by day.</p></body></html>"
    assert [part.text for part in formats.parts(page, "html")] == ["The fans turn at 900 rpm by day."]


def test_a_page_with_an_xml_declaration_is_read() -> None:
    [part] = formats.parts(
        b'<?xml version="1.0" encoding="utf-8"?><html><body><p>The door sticks.</p></body></html>', "html"
    )
    assert part.text == "The door sticks."


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b" \n", "empty"),
        (b"<html><body><script>x()</script></body></html>", "no text in the page"),
        (b"\x89PNG\0\0", "binary"),
    ],
)
def test_what_cannot_be_read_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(UnreadableError, match=reason):
        formats.parts(content, "html")
