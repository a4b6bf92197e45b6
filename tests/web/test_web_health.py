"""The Health view: size, backlog, times by stage, degraded searches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from boatyard import notes
from playwright.sync_api import Page, expect

Look = Callable[..., Page]


def test_size_and_times_are_shown(look: Look, yard: Any) -> None:
    page = look(yard.page("health"))
    expect(page.locator(".figures")).to_contain_text(str(len(notes())))
    expect(page.get_by_text("No searches since this worker started")).to_be_visible()
    for question in ("mast", "tide", "anchor chain"):
        yard.search(question)
    expect(page.locator(".plot .column")).to_have_count(3)
    table = page.get_by_label("Time of each stage")
    for stage in ("lexical", "dense", "fusion"):
        expect(table.get_by_role("row", name=stage)).to_contain_text("3")
    expect(page.get_by_text("None: no part failed in any search.")).to_be_visible()
    told = yard.get(f"{yard.home}/recent")
    assert len(told["searches"]) == 3
    assert "anchor" not in str(told), "a question is not among it"


def test_what_was_degraded_is_listed_with_its_moment(look: Look, yard: Any) -> None:
    with yard.http as client:
        client.put("/v1/collections/words", json={"words_only": True}).raise_for_status()
        client.put("/v1/collections/words/documents/a", json={"text": "mast"}).raise_for_status()
        client.post("/v1/collections/words/search", json={"query": "mast"}).raise_for_status()
    told = yard.get("/v1/collections/words/recent")["searches"]
    assert told[0]["degraded"], "words alone: meaning should have answered, and says so"
    page = look(yard.page("health", c="words"))
    expect(page.locator(".faults li").first).to_contain_text(told[0]["degraded"][0]["reason"])
    expect(page.locator(".plot .fault")).to_have_count(1)
    expect(page.get_by_text("This collection has no embedding model.")).to_be_visible()


def test_several_workers_are_said_to_answer_apart(look: Look, start: Callable[..., Any]) -> None:
    site = start("--workers", "2")
    page = look(f"{site.url}/?view=health")
    expect(page.get_by_text("2 workers; each keeps the times of its own searches")).to_be_visible()
