"""The Judge view: feedback reaches the qrels, and tuned settings are proved before they are applied."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from boatyard import NOTES
from playwright.sync_api import Page, expect

pytest.importorskip("ir_measures")
Look = Callable[..., Page]


def judge(site: Any, questions: int) -> None:
    with site.http as client:
        for note in NOTES[:questions]:
            if note["id"] in ("winch", "key-copy"):
                continue
            body = {"query": f"where is the {note['title'].lower()}", "id": note["id"]}
            client.post(f"{site.home}/feedback", json=body).raise_for_status()


def test_a_question_judged_by_keyboard_reaches_the_qrels(look: Look, yard: Any) -> None:
    page = look(yard.page("judge"))
    expect(page.get_by_text("Type a query that users would type")).to_be_visible()
    page.keyboard.type("mast varnish")
    expect(page.locator(".hit").first).to_be_visible()
    first, second, third = (page.locator(".hit").nth(at).get_attribute("data-id") for at in range(3))
    page.keyboard.press("ArrowDown")
    page.keyboard.press("g")
    expect(page.locator(".hit.is-good")).to_have_attribute("data-id", str(first))
    expect(page.locator(".hit").nth(1).locator(".open")).to_be_focused()
    page.keyboard.press("b")
    expect(page.locator(".hit.is-bad")).to_have_attribute("data-id", str(second))
    expect(page.locator(".hit").nth(2).locator(".open")).to_be_focused()
    page.keyboard.press("g")
    expect(page.locator(".hit.is-good")).to_have_count(2)
    page.keyboard.press("ArrowUp")
    (topic,) = yard.get(f"{yard.home}/qrels")["topics"]
    assert topic["text"] == "mast varnish"
    assert topic["grades"] == {first: 1, second: 0, third: 1}
    page.locator(".hit").nth(2).locator(".open").focus()
    page.keyboard.press("u")
    expect(page.locator(".hit.is-good")).to_have_count(1)
    expect(page.locator(".questions li")).to_contain_text("mast varnish")
    with yard.http as client:
        lines = client.get(f"{yard.home}/qrels?format=trec").text.splitlines()
    assert sorted(lines) == sorted([f"{topic['id']} 0 {first} 1", f"{topic['id']} 0 {second} 0"])
    page.get_by_role("button", name="Good", exact=True).first.click()
    expect(page.locator(".hit.is-good")).to_have_count(0)


def test_too_few_questions_are_not_learnt_from(look: Look, yard: Any) -> None:
    judge(yard, 3)
    page = look(yard.page("judge"))
    expect(page.get_by_text("5 are needed for tuning")).to_be_visible()
    expect(page.get_by_role("button", name="Tune")).to_be_disabled()


def test_what_was_tuned_is_shown_with_its_evidence(look: Look, yard: Any) -> None:
    judge(yard, 14)
    page = look(yard.page("judge"))
    page.get_by_role("button", name="Tune").click()
    card = page.locator(".job[data-kind=tune]")
    expect(card).to_be_visible(timeout=120_000)
    (job,) = yard.get(f"{yard.home}/jobs")["jobs"]
    expect(card).to_contain_text(job["result"]["reason"].split(":")[0])
    expect(card).to_contain_text("5-fold cross-validated")
    expect(card.locator("svg")).to_have_attribute("aria-label", f"Gain out of sample {gain(job['result']['pair'])}")
    expect(card.get_by_role("button", name="Apply")).to_be_disabled()
    assert not job["result"]["changed"], "twelve questions never change the settings"
    with yard.http as client:
        assert client.post(f"{yard.home}/jobs/tune/apply").status_code == 409


def gain(pair: dict[str, float]) -> str:
    told = [f"{'−' if pair[name] < 0 else '+'}{abs(pair[name]):.4f}" for name in ("difference", "low", "high")]
    return f"{told[0]}, 95 % interval {told[1]} to {told[2]}"


def test_a_gain_that_held_can_be_applied_and_undone(look: Look, yard: Any) -> None:
    """Forty queries that need the dense leg, with settings that leave it out."""
    with yard.http as client:
        for at in range(40):
            client.put(f"{yard.home}/documents/t{at}", json={"text": f"lantern{at} " + "harbour light " * (at % 3 + 1)})
            client.post(
                f"{yard.home}/feedback", json={"query": f"lantern{at} harbour", "id": f"t{at}"}
            ).raise_for_status()
        changed = {"weights": {"lexical": 0.0, "dense": 1.0}, "weighing": "fixed", "fusion": "convex"}
        client.patch(f"{yard.home}/settings", json=changed).raise_for_status()
        old = client.get(f"{yard.home}/settings").json()["identity"]
        client.post(f"{yard.home}/jobs", json={"kind": "tune"}).raise_for_status()
    page = look(yard.page("judge"))
    card = page.locator(".job[data-kind=tune]")
    expect(card).to_be_visible(timeout=180_000)
    (job,) = yard.get(f"{yard.home}/jobs")["jobs"]
    if not job["result"]["changed"]:
        pytest.fail(job["result"]["reason"])
    card.get_by_role("button", name="Apply").click()
    expect(page.locator("#notices")).to_contain_text("The settings are now tuned#")
    assert yard.get(f"{yard.home}/settings")["identity"] == job["result"]["identity"]
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#notices")).to_contain_text(f"The settings are {old} again")
    assert yard.get(f"{yard.home}/settings")["identity"] == old


def test_profiles_are_evaluated_and_their_report_opens(look: Look, start: Callable[..., Any], tmp_path: Path) -> None:
    site = start("--evaluations", str(tmp_path / "kept"))
    judge(site, 14)
    page = look(f"{site.url}/?view=judge")
    page.get_by_role("button", name="Evaluate all profiles").click()
    expect(page.locator(".job[data-kind=evaluate] .bars li")).not_to_have_count(0, timeout=120_000)
    page.reload()
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Open the report with its plots").click()
    report = opened.value
    expect(report.locator("svg circle.dot").first).to_be_visible()
    assert report.evaluate("document.documentElement.className").find("js") >= 0, "its own script runs, in a sandbox"
    assert report.evaluate("window.origin") == "null"
