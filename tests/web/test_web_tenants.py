"""The page with a key bound to a filter: every view works and says what is not shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from boatyard import Site
from playwright.sync_api import Page, expect

from trivet.engine.keys import Keys


def test_every_view_works_with_a_bound_key(
    look: Callable[..., Page], start: Callable[..., Site], tmp_path: Path
) -> None:
    site = start()
    with Keys(tmp_path / "memory.db") as keys:
        _, text = keys.create("alice", "write", where="kind=note")
    page = look(site.page("search"), allowed=("401",))  # it asks for a key first
    page.get_by_label("API key").fill(text)
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_text("Only: kind = note")).to_be_visible()
    for view, told in (
        ("health", "Times of searches are not shown."),
        ("judge", "Tuning changes the settings."),
        ("browse", "note"),
        ("compare", "Type a query"),
    ):
        page.goto(site.page(view))
        expect(page.get_by_text(told).first).to_be_visible()
        expect(page.get_by_role("alert")).to_have_count(0)
