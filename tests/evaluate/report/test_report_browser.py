"""A real browser shows the report, and its switches, tips and tables work.

The page is opened from disk; nothing listens anywhere. Without an installed browser these tests are skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page
from report_material import GARDEN, KITCHEN, four, headroom, sweep
from report_material import Page as Parsed

from trivet.evaluate import compare
from trivet.evaluate.report import Material, render

LIGHT, DARK = "rgb(244, 245, 247)", "rgb(16, 19, 23)"  # backgrounds
Show = Callable[..., tuple[Page, list[str]]]

pytestmark = pytest.mark.web


@pytest.fixture(scope="module")
def html() -> str:
    first, second = four(), four(GARDEN)
    axes = {"alpha": (0.0, 0.5, 1.0)}
    return render(
        Material(
            "A page </title><script>document.title = 'taken over'</script>",
            [*first, *second],
            [compare(first), compare(second)],
            [sweep(axes), sweep(axes, dataset=GARDEN), sweep({**axes, "rrf_k": (5, 60)})],
            {KITCHEN: headroom()},
        )
    )


@pytest.fixture
def show(chromium: Browser, tmp_path: Path) -> Iterator[Show]:
    """Open a page from a file; returns it and the list of what its console says."""
    contexts = []

    def open_(html: str, width: int = 1280, **options: Any) -> tuple[Page, list[str]]:
        file = tmp_path / "report.html"
        file.write_text(html, encoding="utf-8")
        context = chromium.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page, console = context.new_page(), list[str]()
        page.on("console", lambda message: console.append(message.text))
        page.on("pageerror", lambda error: console.append(str(error)))
        page.goto(file.as_uri())
        return page, console

    yield open_
    for context in contexts:
        context.close()


def test_it_renders_without_complaint(show: Show, html: str) -> None:
    page, console = show(html)
    assert console == []
    assert page.evaluate("document.documentElement.classList.contains('js')"), "the script did not run"
    for marks in ("circle.dot.default", "path.band", "path.curve", "circle.point", "rect.bar"):
        assert page.locator(marks).count(), f"there is no {marks}"
    written = Parsed(html)
    for tag in ("svg", "circle", "line", "path", "rect", "table", "section", "script"):
        assert page.locator(tag).count() == len(written.all(tag))
    panes = page.locator("[data-pane=measure]")
    hidden = panes.evaluate_all("panes => panes.map(pane => [pane.dataset.value, pane.hidden])")
    assert {(value, value != "nDCG@10") for value, _ in hidden} == {tuple(pane) for pane in hidden}
    assert page.title() != "taken over"


def test_without_script_everything_is_shown(show: Show, html: str) -> None:
    page, _ = show(html, java_script_enabled=False)
    assert page.locator("[data-pane]").count() == page.locator("[data-pane]:visible").count() > 0
    assert page.locator(".switch:visible").count() == 0


def test_no_other_script_runs(show: Show, html: str) -> None:
    page, console = show(html.replace("</body>", "<script>document.body.id = 'foreign'</script></body>"))
    assert page.locator("#foreign").count() == 0
    assert any("Content Security Policy" in text for text in console)


@pytest.mark.parametrize(("scheme", "background"), [("light", LIGHT), ("dark", DARK)])
def test_axe_finds_nothing(show: Show, html: str, scheme: str, background: str) -> None:
    page, _ = show(html, color_scheme=scheme, bypass_csp=True)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == background
    found = Axe().run(page).response["violations"]
    assert [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found] == []


def test_print_is_light(show: Show, html: str) -> None:
    page, _ = show(html, color_scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.querySelector('.panel')).backgroundColor") == "rgb(255, 255, 255)"


@pytest.mark.parametrize("width", [1280, 390])
def test_switches_tips_and_tables_work(show: Show, html: str, width: int) -> None:
    page, console = show(html, width)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the screen"
    page.locator("[data-switch=measure]").select_option("R@5")
    shown = page.locator("[data-pane=measure]:not([hidden])")
    assert set(shown.evaluate_all("panes => panes.map(pane => pane.dataset.value)")) == {"R@5"}
    tip, dot = page.locator("#tip"), page.locator("#quality [data-value='R@5'] .dot.tip").first
    dot.hover()
    assert "R@5 0." in tip.inner_text()
    page.keyboard.press("Escape")
    assert tip.is_hidden()
    page.locator("#quality [data-value='R@5'] svg").first.focus()
    page.keyboard.press("ArrowRight")
    assert "R@5" in tip.inner_text()
    column = "rows => rows.map(row => Number(row.cells[1].dataset.v))"
    rows, button = page.locator("#tables table").first.locator("tbody tr"), page.locator("#tables thead button").nth(1)
    button.click()
    falling = rows.evaluate_all(column)
    button.click()
    assert rows.evaluate_all(column) == sorted(falling)
    assert falling == sorted(falling, reverse=True)
    assert page.locator("#tables th[aria-sort=ascending]").count() == 1
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open], .topic)").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details:not([open])").count() > 0
    assert console == []
