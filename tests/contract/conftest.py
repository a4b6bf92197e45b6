"""Which stores are held to the contract? Every one of them, by the same tests."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import trivet
from servers import Postgres, postgres, postgres_bm25
from trivet.engine import Engine

__all__ = ["postgres", "postgres_bm25"]

STORES = ("sqlite", "postgres", "spread", "bm25", "qdrant")
Open = Callable[..., Engine]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """What pg_textsearch changes is how words are found: the other tests need no second server."""
    if "kind" in metafunc.fixturenames:
        searching = metafunc.module.__name__.endswith("search")
        metafunc.parametrize("kind", [kind for kind in STORES if searching or kind != "bm25"])


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVET_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def address(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """``address("one")``: where a store of this test is; the same name is the same store."""
    known: dict[str, str] = {}
    server: Postgres | None = None
    if kind in ("postgres", "spread", "bm25"):
        server = request.getfixturevalue("postgres_bm25" if kind == "bm25" else "postgres")
    if kind == "qdrant":
        pytest.importorskip("qdrant_client")

    def named(name: str = "memory") -> str:
        if name not in known:
            # each collection dealt out to three parts; a test may open dozens of engines, each with its connections
            spread = {"spread": 3, "pool": 2} if kind == "spread" else {}
            known[name] = server.fresh(**spread) if server is not None else _file(kind, tmp_path, name)
        return known[name]

    yield named
    if server is not None:
        server.sweep()


def _file(kind: str, folder: Path, name: str) -> str:
    if kind == "sqlite":
        return str(folder / f"{name}.db")
    if url := os.environ.get("TRIVET_TEST_QDRANT"):
        return f"{url}?prefix=test-{secrets.token_hex(6)}&words={folder / name}.db"
    return f"qdrant+local:{folder / name}"


@pytest.fixture
def open_at(address: Callable[[str], str]) -> Iterator[Open]:
    """``trivet.open`` on a store of this test, closed when it ends; words only unless told otherwise."""
    opened: list[Engine] = []

    def opener(name: str = "memory", collection: str = "default", **options: Any) -> Engine:
        engine = trivet.open(address(name), collection, **{"embedder": "none", **options})
        opened.append(engine)
        return engine

    yield opener
    for engine in opened:
        engine.close()
    if os.environ.get("TRIVET_TEST_QDRANT"):
        for engine in opened:
            _forget(engine.url)


def _forget(url: str) -> None:
    with trivet.open(url, embedder="none") as engine:
        for name in engine.collections():
            engine.collection(name, embedder="none").drop()
