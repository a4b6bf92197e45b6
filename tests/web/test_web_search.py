"""The Search view: hits with marks, score bars and explanations while typing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from trivet.types import LIKELY, STRONG

Look = Callable[..., Page]


def test_typing_shows_hits_with_their_words_marked(look: Look, site: Any) -> None:
    page = look(site.url)
    expect(page.get_by_text("14 documents, searched by words and by meaning")).to_be_visible()
    page.keyboard.type("varnish coats")
    first = page.locator(".hit").first
    expect(first).to_have_attribute("data-id", "varnish")
    expect(first.locator("mark")).to_have_text(["coats", "varnish"])
    expect(first.locator(".kind")).to_have_text("note")
    expect(first.locator(".from")).to_contain_text("10 Mar 2025")
    expect(first.locator(".from")).to_contain_text("log-0.md")
    assert "q=varnish+coats" in page.url


def test_the_query_has_the_focus_at_load_unless_a_keyboard_would_cover_the_page(look: Look, site: Any) -> None:
    page = look(site.url)
    expect(page.get_by_role("searchbox")).to_be_focused()
    answered = look(f"{site.url}/?q=mast")
    expect(answered.locator(".hit").first).to_be_visible()
    expect(answered.locator("body")).to_be_focused()
    phone = look(site.url, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    expect(phone.get_by_text("14 documents, searched by words and by meaning")).to_be_visible()
    expect(phone.get_by_role("searchbox")).not_to_be_focused()


@pytest.mark.parametrize("view", ["search", "browse"])
def test_the_filter_looks_like_a_box(look: Look, site: Any, view: str) -> None:
    box = look(f"{site.url}/?view={view}").get_by_label("Add a filter")
    expect(box).to_have_attribute("placeholder", "Filter: kind=note, year>=2020")
    for side in ("Top", "Bottom", "Left", "Right"):
        assert box.evaluate(f"(box) => getComputedStyle(box).border{side}Style") == "solid"
    icon = box.locator("xpath=..").locator("svg")
    expect(icon).to_be_visible()
    icon.click(force=True)
    expect(box).to_be_focused()


def weakened(page: Page, words: list[str]) -> None:
    """Answer each search with this confidence of its hits."""

    def answer(route: Route) -> None:
        said = route.fetch()
        found = said.json()
        for hit, word in zip(found["hits"], words, strict=False):
            hit["confidence"] = word
        route.fulfill(response=said, json={**found, "hits": found["hits"][: len(words)]})

    page.route("**/search", answer)


def test_weak_hits_are_apart_and_a_list_of_them_says_so(look: Look, site: Any) -> None:
    page = look(site.url)
    weakened(page, ["strong", "likely", "weak", "weak"])
    page.get_by_role("searchbox").fill("mast")
    expect(page.locator(".hits > li")).to_have_count(5)
    expect(page.locator(".hits > li").nth(2)).to_have_text(re.compile("^Weak matches"))
    colours = [title.evaluate("(one) => getComputedStyle(one).color") for title in page.locator(".hit .open").all()]
    assert colours[0] == colours[1] != colours[2] == colours[3]
    expect(page.locator(".weak-note")).to_have_count(0)
    page.unroute("**/search")
    weakened(page, ["weak"])
    page.get_by_role("searchbox").fill("anchor")
    expect(page.locator(".weak-note")).to_contain_text("Only weak matches. None of these is likely")
    expect(page.locator(".weak-line")).to_have_count(0)


def test_the_numbers_are_explained(look: Look, site: Any) -> None:
    page = look(f"{site.url}/?q=mast", bypass_csp=True)
    page.get_by_role("button", name="What the numbers mean").click()
    told = page.get_by_role("dialog", name="What the numbers mean")
    for leg, meaning in {"lexical": "words", "dense": "meaning", "trigram": "spelling", "graph": "links"}.items():
        expect(told.locator(".swatch", has_text=leg)).to_have_text(f"{leg}: finds by {meaning}")
    expect(told.locator("dt")).to_contain_text(["bar", "relevance", "score", "share"])
    for word, least in {"strong": STRONG, "likely": LIKELY}.items():
        expect(told).to_contain_text(f"{word} from {least * 100:.0f}\u00a0%")
    page.keyboard.press("Escape")
    expect(told).to_have_count(0)
    page.locator(".hit .open").first.click()
    expect(page.locator("#drawer").get_by_role("button", name="What the numbers mean")).to_be_visible()


def raised(hit: dict[str, Any]) -> list[tuple[str, float]]:
    """Return the share of each leg, then the change by each reranker."""
    given = [(part["leg"], part["share"]) for part in hit["contributions"]]
    changes = [(change["reranker"], change["after"] - change["before"]) for change in hit["adjustments"]]
    return [(name, size) for name, size in (*given, *changes) if size > 0]


def test_the_bar_is_what_the_service_says(look: Look, site: Any) -> None:
    page = look(f"{site.url}/?q=winch+slipway&where=place%3Dyard")
    said = site.search("winch slipway", where=["place=yard"])
    rows = page.locator(".hit")
    expect(rows).to_have_count(len(said["hits"]))
    assert [row.get_attribute("data-id") for row in rows.all()] == [hit["id"] for hit in said["hits"]]
    full = max(sum(size for _, size in raised(hit)) for hit in said["hits"])
    for row, hit in zip(rows.all(), said["hits"], strict=True):
        parts = row.locator(".bar i[data-part]").all()
        assert [part.get_attribute("data-part") for part in parts] == [name for name, _ in raised(hit)]
        for part, (_, size) in zip(parts, raised(hit), strict=True):
            width = part.evaluate("(part) => parseFloat(part.style.width)")
            assert abs(width - size / full * 100) < 0.1
    only = [hit["id"] for hit in said["hits"] if len(hit["contributions"]) == 1]
    assert only, "the question must have hits of one leg alone, or nothing is shown"
    marked = page.locator(".hit:has(.only)")
    assert [row.get_attribute("data-id") for row in marked.all()] == only


def test_a_hit_opens_to_its_account(look: Look, site: Any) -> None:
    page = look(f"{site.url}/?q=winch")
    page.locator(".hit .open").first.click()
    drawer = page.get_by_label("Details", exact=True)
    hit = site.search("winch")["hits"][0]
    for part in hit["contributions"]:
        row = drawer.locator(f"tr[data-leg={part['leg']}]")
        expect(row).to_contain_text(str(part["rank"]))
        shown = [float(text) for text in row.locator("td.n").all_inner_texts()]
        assert abs(shown[4] - part["share"]) < 0.002
        assert abs(shown[1] - part["raw"]) < 0.05
    expect(drawer.locator(".identity")).to_contain_text("default#")
    expect(drawer.locator(".stages")).to_contain_text("fusion")
    expect(drawer).to_contain_text("candidates; the legs run in parallel")
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    assert page.evaluate("document.activeElement.className") == "open", "the focus is back where it was"


def test_what_a_superseded_note_would_have_shown(look: Look, site: Any) -> None:
    page = look(f"{site.url}/?q=winch+slips+under+load+grease")
    expect(page.locator(".hit").first).to_have_attribute("data-id", "winch-new")
    expect(page.locator(".hit .replaced").first).to_have_text("replaces winch")
    page.get_by_text("Is a document missing?").click()
    page.get_by_label("Explain why a document is not in the list").fill("winch")
    page.get_by_role("button", name="Explain").click()
    expect(page.get_by_text("superseded: 'winch-new' is shown in its place, at rank 1")).to_be_visible()


def test_the_way_of_the_links_is_told(look: Look, yard: Any) -> None:
    with yard.http as client:
        weights = {"lexical": 1.0, "dense": 0.0, "graph": 1.0}
        client.patch(f"{yard.home}/settings", json={"weights": weights}).raise_for_status()
    page = look(yard.page(q="oak rot"))
    found = page.locator(".hit[data-id=varnish]")
    expect(found.locator(".bar i[data-part=graph]")).to_be_visible()
    expect(found.locator(".only")).to_have_text("only graph")
    expect(found.locator(".way > *")).to_have_text(["Mast step", "see-also", "Varnish"])
    found.locator(".open").click()
    expect(page.locator("#drawer .way > *")).to_have_text(["Mast step", "see-also", "Varnish"])


def test_degraded_is_said_above_the_hits(look: Look, site: Any) -> None:
    def fail(route: Route) -> None:
        answer = route.fetch()
        told = {**answer.json(), "degraded": [{"part": "dense", "reason": "no answer within 5 ms"}]}
        route.fulfill(response=answer, body=json.dumps(told))

    page = look(site.url)
    page.route("**/search", fail)
    page.get_by_role("searchbox").fill("anchor")
    expect(page.locator(".degraded")).to_contain_text("dense no answer within 5 ms")


def test_an_answer_that_was_overtaken_is_dropped(look: Look, site: Any) -> None:
    """The response to the first query arrives after the second one and must not be shown."""
    page = look(site.url)
    held: list[Route] = []

    def slow(route: Route) -> None:
        if json.loads(route.request.post_data or "{}")["query"] == "anchor":
            held.append(route)
        else:
            route.continue_()

    page.route("**/search", slow)
    box = page.get_by_role("searchbox")
    box.fill("anchor")
    while not held:
        page.wait_for_timeout(20)
    box.fill("diesel")
    expect(page.locator(".hit").first).to_have_attribute("data-id", "engine")
    for route in held:
        route.continue_()
    page.wait_for_timeout(300)
    expect(page.locator(".hit").first).to_have_attribute("data-id", "engine")


def test_a_filter_is_a_chip_and_part_of_the_address(look: Look, site: Any) -> None:
    page = look(f"{site.url}/?q=the")
    box = page.get_by_label("Add a filter")
    box.fill("kind=chore")
    box.press("Enter")
    expect(page.locator(".chip")).to_have_text(re.compile("kind=chore"))
    expect(page.locator(".hit .kind").first).to_have_text("chore")
    expect(page.locator(".hit .kind").filter(has_not_text="chore")).to_have_count(0)
    page.reload()
    expect(page.locator(".chip")).to_have_text(re.compile("kind=chore"))
    assert set(page.locator(".hit .kind").all_inner_texts()) <= {"chore"}
    page.get_by_label("Remove the filter kind=chore").click()
    expect(page.locator(".chip")).to_have_count(0)


def test_what_is_wrong_with_a_filter_is_said(look: Look, site: Any) -> None:
    page = look(f"{site.url}/?q=mast&where=plaice%3Dyard", allowed=("422",))
    expect(page.get_by_role("alert").filter(has_text="did you mean 'place'?")).to_be_visible()


def test_more_hits_follow_the_first_ten(look: Look, site: Any) -> None:
    page = look(f"{site.url}/?q=the")
    expect(page.locator(".hit")).to_have_count(10)
    page.get_by_role("button", name="More", exact=True).click()
    expect(page.locator(".hit")).not_to_have_count(10)
    ids = [row.get_attribute("data-id") for row in page.locator(".hit").all()]
    assert len(set(ids)) == len(ids)
    ranks = page.locator(".hit .rank").all_inner_texts()
    assert ranks == [str(at + 1) for at in range(len(ranks))]
