"""``/docs`` in a browser: it is drawn under its policy, asks no other host, and its requests work."""

from __future__ import annotations

from collections.abc import Callable

from boatyard import Site
from playwright.sync_api import Page, expect


def test_a_route_can_be_tried(site: Site, look: Callable[..., Page]) -> None:
    asked: list[str] = []
    page = look("about:blank")
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{site.url}/docs")
    search = page.locator("#operations-search-search_by_query_string")
    search.locator(".opblock-summary").click()
    search.get_by_role("button", name="Try it out").click()
    search.get_by_placeholder("q").fill("boat")
    search.get_by_role("button", name="Execute").click()
    expect(search.locator(".live-responses-table .response-col_status").last).to_contain_text("200")
    assert [url for url in asked if not url.startswith((site.url, "data:"))] == []
    assert any("/v1/collections/default/search?q=boat" in url for url in asked)
