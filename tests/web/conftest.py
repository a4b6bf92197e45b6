"""Fixtures that open the page in a browser.

A real Chromium, driven by playwright, looks at a real server on a free port of this machine. Where no browser is
installed there is nothing to look with: `make browser` installs Debian's. Whatever a page's script throws, or its
policy blocks, fails the test that was looking.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from boatyard import Site, fill, serve
from playwright.sync_api import Browser, Page, expect

from command_line import beir, clean_place, cli, command, notes, process, trec, trees, vectors  # noqa: F401

HERE = Path(__file__).parent
PATIENCE = 20_000  # milliseconds: the machine may be busy, and no test is about time
expect.set_options(timeout=PATIENCE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here needs a browser: `make test-web` runs it, `make test` does not."""
    for item in items:
        if item.path.parent == HERE:
            item.add_marker("web")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Site]]:
    """``start("--workers", "2")``: a site with the notes, ended with the test."""
    started: list[Site] = []

    def begin(*flags: str, filled: bool = True, port: int | None = None) -> Site:
        store = tmp_path / "memory.db"
        if filled and not store.exists():
            fill(store)
        started.append(serve(store, *flags, port=port))
        return started[-1]

    yield begin
    for site in started:
        site.end()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site shared by the tests of a file that change nothing."""
    store = tmp_path_factory.mktemp("site") / "memory.db"
    fill(store)
    found = serve(store)
    yield found
    found.end()


@pytest.fixture
def yard(site: Site) -> Site:
    """A new collection with the notes, for a test that changes something."""
    return site.fresh()


@pytest.fixture
def bare(site: Site) -> Site:
    """An empty collection."""
    return site.fresh(filled=False)


@pytest.fixture
def look(chromium: Browser, start: Callable[..., Site]) -> Iterator[Callable[..., Page]]:
    """``look(url, color_scheme="dark")``: a page of its own, on which nothing may go wrong unseen.

    It asks for ``start`` so that pages are closed before the sites they look at.
    """
    contexts, wrong = [], []

    def open_(url: str, allowed: tuple[str, ...] = (), **options: Any) -> Page:
        viewport = options.pop("viewport", {"width": 1280, "height": 900})
        context = chromium.new_context(viewport=viewport, **options)
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "console",
            lambda said: (
                wrong.append(said.text)
                if said.type == "error" and not any(known in said.text for known in allowed)
                else None
            ),
        )
        page.goto(url)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert wrong == []
