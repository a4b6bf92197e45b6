"""Keyboard, API keys, hostile text, empty and offline states, small screens, accessibility in light and dark."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

import trivet

Look = Callable[..., Page]
VIEWS = ("search", "compare", "browse", "judge", "health")
HOSTILE = {
    "script": "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\"> sextant",
    "svg": "<svg onload=\"document.title='taken'\"></svg> sextant {{constructor.constructor('alert(1)')()}}",
    "link": "[sextant](javascript:document.title='taken') <a href=\"javascript:document.title='taken'\">sextant</a>",
    "rtl": "\u202esextant desrever\u202c שלום עולם sextant مرحبا بالعالم \u2067sextant",
    "line": "sextant " + "x" * 1_000_000,
    "control": "sextant \u0000\u0007\u001b[31m \ufffe lone \U0001f9ed\u200d",
}


def settled(page: Page, view: str) -> None:
    ready = {
        "search": ".hit",
        "compare": ".side.right .ranked li",
        "browse": ".documents li",
        "judge": ".hit",
        "health": ".figures",
    }
    expect(page.locator(ready[view]).first).to_be_visible()


# --- accessible -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing(look: Look, site: Any, view: str, scheme: str) -> None:
    site.search("mast")  # something to draw in Health
    page = look(f"{site.url}/?view={view}&q=mast+winch&where=crew%3C9", color_scheme=scheme, bypass_csp=True)
    settled(page, view)
    assert findings(page) == []
    if view in ("search", "browse", "compare"):
        page.locator(".open").first.click()
        expect(page.get_by_label("Details", exact=True)).to_be_visible()
        assert findings(page) == []
    if view == "search":
        page.keyboard.press("Escape")
        page.keyboard.press("?")
        expect(page.get_by_role("dialog")).to_be_visible()
        assert findings(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_texts_imports_and_the_explanation_of_numbers(look: Look, bare: Any, scheme: str) -> None:
    texts = {
        "markdown": "# Oak\n\n- an [oak](https://example.org) `plank`\n\n> dry\n\n| oak | ash |\n|---|---|\n| 1 | 2 |",
        "code": "def oak():\n    return 'plank'",
        "note": "oak plank",
    }
    with bare.http as client:
        for kind, text in texts.items():
            client.put(f"{bare.home}/documents/{kind}", json={"text": text, "kind": kind}).raise_for_status()
    page = look(bare.page(q="oak plank"), color_scheme=scheme, bypass_csp=True)
    expect(page.locator(".hit")).to_have_count(3)
    page.locator(".hit").evaluate_all("(hits) => hits.forEach((hit) => (hit.className = 'hit is-weak'))")
    page.locator(".hit[data-id=markdown] .open").click()
    expect(page.locator("#drawer h4")).to_have_text("Oak")
    assert findings(page) == []
    page.keyboard.press("Escape")
    page.get_by_role("button", name="What the numbers mean").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert findings(page) == []
    page.keyboard.press("Escape")
    page.goto(bare.page("browse"))
    good = {"name": "a.md", "mimeType": "", "buffer": b"ash"}
    page.locator("input[type=file]").set_input_files([good, {"name": "b.png", "mimeType": "", "buffer": b"\x89PNG\0"}])
    expect(page.locator("#imports")).to_contain_text("1 file refused")
    assert findings(page) == []


def findings(page: Page) -> list[str]:
    page.wait_for_timeout(350)  # a fade is under way: half a colour has half the contrast
    found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]})
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found.response["violations"]]


def test_axe_sees_what_is_wrong(look: Look, site: Any) -> None:
    page = look(f"{site.url}/?q=mast", bypass_csp=True)
    settled(page, "search")
    page.evaluate("document.querySelector('.text').style.color = '#ccc'")
    assert any(text.startswith("color-contrast") for text in findings(page))


def test_everything_is_done_by_keyboard(look: Look, site: Any) -> None:
    page = look(site.url)
    expect(page.get_by_text("documents, searched by words")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("searchbox").blur()
    page.keyboard.press("/")
    page.keyboard.type("mast")
    expect(page.locator(".hit").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".hit").nth(1).locator(".open")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Details", exact=True)).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".hit").nth(1).locator(".open")).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("searchbox")).to_have_value("")
    page.get_by_role("searchbox").blur()
    for number, view in enumerate(VIEWS, start=1):
        page.keyboard.press(str(number))
        expect(page.locator("body")).to_have_attribute("data-view", view)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("light or dark")
    page.keyboard.press("Escape")
    page.keyboard.press("t")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


@pytest.mark.parametrize("view", VIEWS)
def test_nothing_is_wider_than_a_phone(look: Look, site: Any, view: str) -> None:
    page = look(f"{site.url}/?view={view}&q=mast", viewport={"width": 360, "height": 740}, has_touch=True)
    settled(page, view)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    if view in ("search", "browse"):
        page.locator(".open").first.click()
        expect(page.get_by_label("Details", exact=True)).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_phone_shows_whole_numbers_and_reaches_every_control(look: Look, site: Any) -> None:
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    page = look(f"{site.url}/?q=mast", **phone)
    settled(page, "search")
    for control in (*page.locator("nav a").all(), page.get_by_label("Add a filter"), page.get_by_label("Help")):
        box = control.bounding_box()
        assert box is not None
        assert 0 <= box["x"] <= box["x"] + box["width"] <= 390
        assert box["height"] >= 24
    page.locator(".open").first.click()
    drawer = page.get_by_label("Details", exact=True)
    for cell in drawer.locator(".account td.n, .account th").all():
        assert cell.evaluate("(cell) => cell.getBoundingClientRect().height") < 36, "a number stays on one line"
    assert drawer.locator(".scroll").first.evaluate("(box) => box.scrollWidth <= box.clientWidth")
    drawer.evaluate("(one) => one.scrollTo(0, 9999)")
    expect(page.get_by_label("Close the details")).to_be_in_viewport()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_motion_is_left_out_where_it_is_not_wanted(look: Look, site: Any) -> None:
    page = look(f"{site.url}/?q=mast", reduced_motion="reduce")
    settled(page, "search")
    moving = """[...document.querySelectorAll("*")].filter((one) => {
      const style = getComputedStyle(one);
      return parseFloat(style.transitionDuration) > 0 || style.animationName !== "none";
    }).length"""
    assert page.evaluate(moving) == 0


# --- hostile text -----------------------------------------------------------------------------------------------------


def test_hostile_text_is_inert_everywhere(look: Look, bare: Any) -> None:
    with bare.http as client:
        for id, text in HOSTILE.items():
            body = {
                "text": text,
                "title": text[:60],
                "kind": "<b>kind</b>",
                "meta": {"<i>": "<img src=x>", "source": text[:40]},
            }
            client.put(f"{bare.home}/documents/{id}", json=body).raise_for_status()
        client.put(f'{bare.home}/documents/"><script>x', json={"text": "sextant in the id"}).raise_for_status()
        client.post(f"{bare.home}/links", json={"source": "script", "target": "svg", "type": "<u>"}).raise_for_status()
        client.post(f"{bare.home}/feedback", json={"query": "<img src=x> sextant", "id": "script"}).raise_for_status()
    for view in VIEWS:
        page = look(bare.page(view, q="<img src=x> sextant"))
        settled(page, view)
        if view == "search":
            expect(page.locator(".hit")).to_have_count(len(HOSTILE) + 1)
            for at in range(page.locator(".hit").count()):
                page.locator(".hit .open").nth(at).click()
                expect(page.get_by_label("Details", exact=True)).to_be_visible()
        if view == "browse":
            page.goto(bare.page("browse", id="script"))
            expect(page.get_by_role("link", name="<u> →")).to_be_visible()
            assert page.get_by_label("Text", exact=True).input_value() == HOSTILE["script"]
        assert page.title().endswith("trivet")
        assert page.evaluate("document.querySelectorAll('main img, main script, aside img, aside script').length") == 0
        assert page.evaluate("document.querySelectorAll('[onerror], [onload], a[href^=javascript]').length") == 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_line_of_a_megabyte_is_shown_in_portions(look: Look, bare: Any) -> None:
    with bare.http as client:
        client.put(f"{bare.home}/documents/line", json={"text": HOSTILE["line"]}).raise_for_status()
    page = look(bare.page(q="sextant"))
    page.locator(".open").first.click()
    page.get_by_text("The whole document").click()
    more = page.get_by_role("button", name="Show more")
    expect(more).to_contain_text("980,008 characters left")
    more.click()
    expect(more).to_contain_text("960,008 characters left")


def test_the_policy_keeps_a_script_from_making_markup_of_text(look: Look, site: Any) -> None:
    page = look(site.url, allowed=("TrustedHTML", "Content Security Policy"))
    told = page.evaluate("""() => {
      try { document.body.innerHTML = "<b>x</b>"; } catch (error) { return error.name; }
    }""")
    assert told == "TypeError"


# --- keys -------------------------------------------------------------------------------------------------------------


def made_key(site: Any, scope: str) -> str:
    command = [sys.executable, "-c", "from trivet.cli import main; main()", "keys", "create", f"{scope}er"]
    done = subprocess.run(
        [*command, "--scope", scope, "--store", str(site.store)], capture_output=True, text=True, check=True
    )
    return next(word for word in done.stdout.split() if word.startswith("tvt_"))


def test_a_key_is_asked_for_and_kept_in_the_tab(look: Look, start: Callable[..., Any]) -> None:
    site = start()
    key = made_key(site, "write")
    page = look(f"{site.url}/?q=mast", allowed=("401",), bypass_csp=True)
    expect(page.get_by_role("heading", name="An API key is required")).to_be_visible()
    assert findings(page) == []
    page.get_by_label("API key").fill("tvt_wrong")
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_role("alert").filter(has_text="unknown")).to_be_visible()
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Open").click()
    settled(page, "search")
    page.reload()
    settled(page, "search")
    assert page.evaluate("localStorage.getItem('trivet-key')") is None
    assert key not in page.url
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("API key")).to_be_visible()


def test_with_a_key_that_reads_what_changes_things_is_disabled_and_says_why(
    look: Look, start: Callable[..., Any]
) -> None:
    site = start()
    key = made_key(site, "read")
    page = look(f"{site.url}/?view=browse&id=mast", allowed=("401",), bypass_csp=True)
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Open").click()
    expect(page.locator(".readonly")).to_have_text("read only")
    for name in ("Save", "Delete", "Link", "Add files"):
        one = page.get_by_role("button", name=name, exact=True)
        expect(one).to_be_disabled()
        assert "can only read" in str(one.get_attribute("title"))
    expect(page.get_by_label("Text", exact=True)).to_be_disabled()
    assert findings(page) == []
    page.keyboard.press("Escape")
    page.keyboard.press("2")
    expect(page.get_by_role("button", name="Save B as settings")).to_be_disabled()
    page.keyboard.press("4")
    page.keyboard.press("/")
    page.keyboard.type("mast")
    expect(page.get_by_role("button", name="Good", exact=True).first).to_be_disabled()


# --- when something is missing ----------------------------------------------------------------------------------------


def test_an_empty_store_says_what_to_do(look: Look, bare: Any) -> None:
    page = look(bare.page())
    expect(page.get_by_text("This collection is empty")).to_be_visible()
    page.get_by_role("searchbox").fill("anything")
    expect(page.get_by_text("No hits")).to_be_visible()


def test_a_service_that_goes_away_and_comes_back(look: Look, start: Callable[..., Any]) -> None:
    site = start()
    page = look(f"{site.url}/?q=mast", allowed=("ERR_CONNECTION_REFUSED", "ERR_EMPTY_RESPONSE", "ERR_CONNECTION_RESET"))
    settled(page, "search")
    port = int(site.url.rpartition(":")[2])
    site.end()
    page.get_by_role("searchbox").fill("anchor")
    expect(page.get_by_role("alert").filter(has_text="The service does not respond.")).to_be_visible()
    start(port=port)
    expect(page.locator(".hit").first).to_have_attribute("data-id", "anchor", timeout=60_000)
    expect(page.get_by_role("alert").filter(has_text="The service does not respond.")).to_have_count(0)


def test_a_link_shows_the_same_to_somebody_else(look: Look, start: Callable[..., Any]) -> None:
    site = start()
    with trivet.open(site.store, embedder="hashing") as memory:
        memory.collection("second").add("an oar of spruce", id="oar", kind="note")
    page = look(f"{site.url}/?c=second&q=oar&where=kind%3Dnote")
    expect(page.locator(".hit")).to_have_attribute("data-id", "oar")
    expect(page.locator(".chip")).to_contain_text("kind=note")
    expect(page.get_by_label("Collection", exact=True)).to_have_value("second")
    page.keyboard.press("2")
    assert "view=compare" in page.url
    assert "q=oar" in page.url
    page.go_back()
    expect(page.locator("body")).to_have_attribute("data-view", "search")
