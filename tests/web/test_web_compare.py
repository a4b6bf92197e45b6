"""The Compare view: two rankings side by side, controls that change one, saving and reverting settings."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, expect

import trivet

Look = Callable[..., Page]
QUESTION = "mast rot varnish dry winch"


def order(page: Page, side: str) -> list[str | None]:
    return [row.get_attribute("data-id") for row in page.locator(f".side.{side} .ranked li").all()]


def answers(page: Page) -> Any:
    return page.expect_response(lambda answer: answer.url.endswith("/search") and answer.status == 200)


def slide(page: Page, label: str, value: float) -> None:
    page.get_by_role("slider", name=label, exact=True).evaluate(
        "(slider, value) => { slider.value = value; slider.dispatchEvent(new Event('input', { bubbles: true })); }",
        value,
    )


def open_(look: Look, site: Any, right: str = "memories") -> Page:
    page = look(site.page("compare", q=QUESTION, right=right))
    expect(page.locator(".side.right .ranked li").first).to_be_visible()
    return page


def test_lines_join_the_same_document(look: Look, site: Any) -> None:
    page = open_(look, site)
    left, right = order(page, "left"), order(page, "right")
    said = site.search(QUESTION, profile="memories")
    assert right == [hit["id"] for hit in said["hits"]]
    joined = {line.get_attribute("data-id") for line in page.locator(".ribbon path").all()}
    assert joined == set(left) & set(right)
    for line in page.locator(".ribbon path").all():
        id = line.get_attribute("data-id")
        moved = left.index(id) - right.index(id)
        assert line.get_attribute("class") == ("up" if moved > 0 else "down" if moved < 0 else "same")
    page.locator(".side.right .ranked li").first.hover()
    expect(page.locator(".ribbon .lit")).to_have_count(1)


def test_a_slider_changes_the_order_and_the_shares(look: Look, site: Any) -> None:
    page = open_(look, site)
    before, bar = order(page, "right"), page.locator(".side.right .bar").first
    shares = bar.get_attribute("aria-label")
    with answers(page) as answer:
        slide(page, "words ↔ meaning", 0)
    said = answer.value.request.post_data_json
    assert said["overrides"]["weights"] == {"dense": 0}
    assert "weighing" not in said["overrides"]
    expect(page.locator(".side.right h2")).to_contain_text("changed")
    expect(page.locator(".side.right .bar i[data-part=dense]")).to_have_count(0)
    after = order(page, "right")
    assert after != before
    assert after == [hit["id"] for hit in answer.value.json()["hits"]]
    assert bar.get_attribute("aria-label") != shares
    page.reload()
    expect(page.locator(".side.right .ranked li")).to_have_count(len(after))
    assert order(page, "right") == after, "the address carries the changes"
    page.get_by_role("button", name="Reset B").click()
    expect(page.locator(".side.right .bar i[data-part=dense]").first).to_be_visible()
    assert order(page, "right") == before


def test_fusion_threshold_and_rerankers_turn_it_too(look: Look, site: Any) -> None:
    page = open_(look, site)
    identity = page.locator(".side.right .identity")
    page.get_by_label("method").select_option("isr")
    expect(identity).to_contain_text(" isr ")
    page.get_by_label("method").select_option("rrf")
    slide(page, "rrf_k", 3)
    expect(identity).to_contain_text("rrf k=3")
    page.get_by_role("checkbox", name="importance").uncheck()
    expect(identity).not_to_contain_text("importance")
    page.get_by_role("checkbox", name="exact").check()
    expect(identity).to_contain_text("→ exact")
    slide(page, "threshold", 1)
    expect(page.locator(".side.right")).to_contain_text("above the relevance threshold")


def test_a_saved_setting_is_in_force_and_can_be_taken_back(look: Look, yard: Any) -> None:
    old = yard.get(f"{yard.home}/settings")
    page = open_(look, yard, "settings")
    page.get_by_label("method").select_option("rrf")
    slide(page, "rrf_k", 7)
    expect(page.locator(".side.right .identity")).to_contain_text("rrf k=7")
    page.get_by_role("button", name="Save B as settings").click()
    expect(page.locator("#notices")).to_contain_text("The settings are now")
    now = yard.get(f"{yard.home}/settings")
    assert (now["fusion"], now["rrf_k"]) == ("rrf", 7.0)
    assert "rrf k=7" in yard.search("mast")["profile"], "in force for whoever asks"
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#notices")).to_contain_text("again")
    assert yard.get(f"{yard.home}/settings")["identity"] == old["identity"]
    page.get_by_text("History of the settings").click()
    expect(page.locator(".past li")).to_have_count(2)
    page.get_by_role("button", name="Revert to this").click()
    expect(page.locator(".past li")).to_have_count(3)
    assert yard.get(f"{yard.home}/settings")["identity"] == now["identity"]


def test_copied_as_toml_curl_and_python_it_is_the_same(look: Look, site: Any) -> None:
    page = open_(look, site)
    slide(page, "rrf_k", 11)
    slide(page, "lexical", 0.3)
    identity = page.locator(".side.right .identity")
    expect(identity).to_contain_text(re.compile("rrf k=11 lexical=0.3"))
    told = identity.inner_text()
    ids = order(page, "right")

    def copied(kind: str) -> str:
        page.get_by_role("button", name=kind, exact=True).click()
        text = page.get_by_role("textbox", name=f"B as {kind}").input_value()
        page.get_by_role("button", name="Close").click()
        return text

    profile = trivet.Profile.from_toml(copied("TOML"))
    assert str(profile) == told
    words = shlex.split(copied("curl").replace("\\\n", " "))
    done = subprocess.run(["curl", "-s", *words[1:]], capture_output=True, text=True, check=True)
    assert [hit["id"] for hit in json.loads(done.stdout)["hits"]] == ids
    code = copied("Python").replace('"memory.db"', repr(str(site.store)))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [line.split()[1] for line in done.stdout.splitlines()] == ids


def test_an_unknown_reranker_of_the_service_has_its_knobs(look: Look, site: Any) -> None:
    """The controls come from the service, never from a list in the page."""
    page = look("about:blank")

    def more(route: Any) -> None:
        answer = route.fetch()
        told = answer.json()
        told["rerankers"]["mirror"] = {
            "polish": {"default": 0.5, "about": "how much", "low": 0, "high": 1, "choices": [], "allowed": "a number"}
        }
        route.fulfill(response=answer, body=json.dumps(told))

    page.route("**/v1/choices", more)
    page.goto(site.page("compare", q="mast"))
    expect(page.get_by_role("checkbox", name="mirror")).to_be_visible()
