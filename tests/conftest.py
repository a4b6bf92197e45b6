"""Fixtures for all tests: stores that close themselves, embedders with known vectors, one browser."""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

import trivet
from trivet.engine import Engine

# The same examples on every run, so that a change is what breaks a test; HYPOTHESIS_PROFILE=explore draws new ones.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("explore", derandomize=False, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


class Taught:
    """An embedder whose vectors are known by hand: each word it was taught is one direction, a text is their count.

    ``queries`` and ``passages`` are the texts it was asked for, ``fail`` is raised when asked, ``gate`` must be open.
    """

    unrelated = 0.0

    def __init__(self, *words: str, name: str = "taught", sign: float = 1.0) -> None:
        self.words, self.sign = words, sign
        self.id = self.spec = name
        self.dim = len(words)
        self.queries: list[str] = []
        self.passages: list[str] = []
        self.fail: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()

    def embed_queries(self, texts: list[str]) -> Any:
        self.queries += texts
        return self._embed(texts)

    def embed_passages(self, texts: list[str]) -> Any:
        self.passages += texts
        return self._embed(texts)

    def _embed(self, texts: Sequence[str]) -> Any:
        assert self.gate.wait(60), "the test never opened the gate"
        if self.fail is not None:
            raise self.fail
        counts = np.array([[re.findall(r"\w+", text.lower()).count(word) for word in self.words] for text in texts])
        rows = self.sign * counts.astype(np.float32).reshape(len(texts), self.dim)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows / np.where(lengths > 0, lengths, 1)


@pytest.fixture
def taught() -> Callable[..., Taught]:
    """``taught("cat", "dog")``: an embedder with those two directions."""
    return Taught


@pytest.fixture
def open_store(tmp_path: Path) -> Iterator[Callable[..., Engine]]:
    """``trivet.open`` on a file of this test, closed when the test ends; words only unless told otherwise."""
    opened: list[Engine] = []

    def opener(name: str = "memory.db", collection: str = "default", **options: Any) -> Engine:
        path = name if name == ":memory:" else tmp_path / name
        engine = trivet.open(path, collection, **{"embedder": "none", **options})
        opened.append(engine)
        return engine

    yield opener
    for engine in opened:
        engine.close()


@pytest.fixture
def words(open_store: Callable[..., Engine]) -> Engine:
    """A new collection without an embedder."""
    return open_store()


BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One Chromium for all tests of a process: playwright cannot be started twice in it."""
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip(f"no browser is installed; looked for {', '.join(BROWSERS)} (`make browser` installs one)")
    home = str(tmp_path_factory.mktemp("home"))  # a browser writes outside its profile as well
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path,
            args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
            env={**os.environ, "HOME": home, "XDG_CONFIG_HOME": home, "XDG_CACHE_HOME": home},
        )
        yield browser
        browser.close()
