"""The text of a document on the page: Markdown as a safe subset, code with its lines, plain text with its breaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Locator, Page, expect

Look = Callable[..., Page]
MARKDOWN = """# Sextant care

A *soft* cloth and **no** spirit; see [the maker](https://example.org/a_(b)?c=1 "Maker") or <https://example.org/x>.
Call `clean_mirror(arc)` twice.

1. Wipe the sextant
   - first the frame
   - then the mirrors
2. Wait

> Salt is the sextant's enemy.

| part | oil |
|---|---|
| arc \\| limb | one **drop** |

```python
def sextant():
    return "arc"  # **not bold**
```
"""
HOSTILE = """# sextant <script>document.title='taken'</script>

<img src=x onerror="document.title='taken'"> ![sextant](https://example.org/pixel.png)
[one](javascript:document.title='taken') [two](JaVaScRiPt:alert(1)) [three](data:text/html,<script>x</script>)
[four](vbscript:x) [five](java\tscript:alert(1)) <javascript:alert(1)> [six](javascript&colon;alert(1)) [seven](//[)
[eight](https://example.org/"onmouseover="alert(1)) <https://example.org/'><svg/onload=alert(1)>

| <iframe srcdoc="x"> | [nine](javascript:alert(1)) |
|---|---|

> <a href="javascript:document.title='taken'">sextant</a>
"""


def shown(look: Look, bare: Any, text: str, query: str = "sextant", **fields: Any) -> tuple[Page, Locator]:
    """Store a document, search it, open it; return the page and its text in the details."""
    with bare.http as client:
        client.put(f"{bare.home}/documents/one", json={"text": text, **fields}).raise_for_status()
    page = look(bare.page(q=query))
    page.locator(".hit .open").first.click()
    return page, page.locator("#drawer .prose").first


def test_markdown_is_shown_as_elements_with_marks(look: Look, bare: Any) -> None:
    page, prose = shown(look, bare, MARKDOWN, kind="markdown", title="Care")
    expect(prose.locator("h4")).to_have_text("Sextant care")
    expect(prose.locator("em")).to_have_text("soft")
    expect(prose.locator("p strong")).to_have_text("no")
    expect(prose.locator("p code")).to_have_text("clean_mirror(arc)")
    links = prose.locator("a")
    assert [link.get_attribute("href") for link in links.all()] == [
        "https://example.org/a_(b)?c=1",
        "https://example.org/x",
    ]
    assert "noopener" in str(links.first.get_attribute("rel"))
    expect(prose.locator("ol > li")).to_have_count(2)
    expect(prose.locator("ol > li > ul > li")).to_have_text(["first the frame", "then the mirrors"])
    expect(prose.locator("blockquote")).to_have_text("Salt is the sextant's enemy.")
    expect(prose.locator("th")).to_have_text(["part", "oil"])
    expect(prose.locator("td")).to_have_text(["arc | limb", "one drop"])
    assert prose.locator("pre").text_content() == 'def sextant():\n    return "arc"  # **not bold**'
    # the marks are where the words are, in a heading, a list, a quote and code
    expect(prose.locator("mark")).to_have_text(["Sextant", "sextant", "sextant", "sextant"])
    expect(page.locator(".hit .text mark").first).to_have_text("Sextant")


def test_markdown_of_a_stranger_is_inert(look: Look, bare: Any) -> None:
    requested: list[str] = []
    page, prose = shown(look, bare, HOSTILE, kind="markdown", title="Sextant")
    page.on("request", lambda request: requested.append(request.url))
    page.keyboard.press("Escape")
    page.locator(".hit .open").first.click()
    for place in (prose, page.locator(".hit .text")):
        expect(place).to_contain_text("document.title='taken'")
        assert place.locator("img, script, svg, iframe, [onerror], [onload], [onmouseover], [srcdoc]").count() == 0
        protocols = place.locator("a").evaluate_all("(links) => links.map((link) => link.protocol)")
        assert set(protocols) <= {"http:", "https:"}
    assert (
        prose.locator("a", has_text="eight").get_attribute("href") == "https://example.org/%22onmouseover=%22alert(1)"
    )
    expect(prose).to_contain_text("[one](javascript:document.title='taken')")
    expect(prose.locator("td, th").last).to_have_text("[nine](javascript:alert(1))")
    assert page.title() == "Search · " + bare.collection + " · trivet"
    assert not [url for url in requested if "example.org" in url]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_markdown_without_end_is_shown_in_portions(look: Look, bare: Any) -> None:
    """Deep nesting and unclosed marks take neither the stack nor much time."""
    parts = [">" * 3000, "- " * 3000, "*_" * 3000, "**a " * 1500, "[" * 3000, "`" * 2999, "|" + "-" * 3000 + "x|"]
    page, prose = shown(look, bare, "sextant\n\n" + "\n\n".join(parts), kind="markdown")
    expect(prose.locator("mark")).to_have_text("sextant")
    page.get_by_text("The whole document").click()
    page.get_by_role("button", name="Show more").click()
    expect(page.locator("#drawer .prose").last).to_contain_text("-" * 3000 + "x")


def test_code_and_plain_text_keep_their_lines(look: Look, bare: Any) -> None:
    code = "def sextant(arc):\n    if arc:\n\treturn '*not* bold'\n"
    page, prose = shown(look, bare, code, kind="code", title="sextant.py", meta={"extension": "py"})
    assert prose.text_content() == code
    for place in (prose, page.locator(".hit .text")):
        assert place.evaluate("(pre) => pre.localName") == "pre"
        assert "pre" in place.evaluate("(pre) => getComputedStyle(pre).whiteSpace")
        assert "mono" in place.evaluate("(pre) => getComputedStyle(pre).fontFamily").lower()
        expect(place.locator("mark")).to_have_text("sextant")
    page, prose = shown(look, bare, "User: a sextant?\nAssistant: *no* # comment", title="Talk \U0001f9ed")
    assert prose.inner_text() == "User: a sextant?\nAssistant: *no* # comment"
    assert page.locator(".hit .text").inner_text() == "User: a sextant?\nAssistant: *no* # comment"


def test_marks_are_right_behind_an_emoji(look: Look, bare: Any) -> None:
    _, prose = shown(look, bare, "# \U0001f9ed\U0001f9ed sextant\n\nthe sextant \U0001f9ed", kind="markdown", title="x")
    expect(prose.locator("mark")).to_have_text(["sextant", "sextant"])
