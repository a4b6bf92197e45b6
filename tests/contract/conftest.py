"""The contract suite: the same tests over every store."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import toy_store

import trivet
from servers import Postgres, postgres, postgres_bm25
from trivet.engine import Engine

__all__ = ["postgres", "postgres_bm25"]

STORES = ("toy", "sqlite", "postgres", "distributed", "bm25", "qdrant")
Open = Callable[..., Engine]

#: What a store may leave out, and why it does: a test marked ``needs(name)`` is skipped for it.
LACKS = {
    "toy": {
        "graph": "it has no graph index",
        "processes": "it is in the memory of one process",
    },
    "qdrant": {} if os.environ.get("TRIVET_TEST_QDRANT") else {"processes": "local mode allows one process"},
}
#: What removes expired documents, by store; a test replaces it to see that the readers hide them.
SWEEPS = {
    "toy": "toy_store.Data.sweep",
    "sqlite": "trivet.stores.sqlite.documents.SqliteDocuments.sweep",
    "postgres": "trivet.stores.postgres.expiry.Expiry.sweep",
    "distributed": "trivet.stores.postgres.expiry.Expiry.sweep",
    "qdrant": "trivet.stores.sqlite.documents.SqliteDocuments.sweep",
}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(name): a part that a store may leave out")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test over every store; over pg_textsearch only those of searches, since it changes nothing else."""
    if "kind" not in metafunc.fixturenames:
        return
    searching = metafunc.module.__name__.endswith("search")
    needed = [mark.args[0] for mark in metafunc.definition.iter_markers("needs")]
    kinds = []
    for kind in STORES:
        if kind == "bm25" and not searching:
            continue
        reasons = [LACKS[kind][name] for name in needed if name in LACKS.get(kind, {})]
        kinds.append(pytest.param(kind, marks=[pytest.mark.skip(reason=reason) for reason in reasons]))
    metafunc.parametrize("kind", kinds)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVET_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def address(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Return a function that gives the address of a store of this test; one name is one store."""
    known: dict[str, str] = {}
    server: Postgres | None = None
    if kind in ("postgres", "distributed", "bm25"):
        server = request.getfixturevalue("postgres_bm25" if kind == "bm25" else "postgres")
    if kind == "qdrant":
        pytest.importorskip("qdrant_client")

    def named(name: str = "memory") -> str:
        if name not in known:
            # few connections, since a test may open dozens of engines
            by = {"distribute": "documents", "pool": 2} if kind == "distributed" else {}
            known[name] = server.fresh(**by) if server is not None else _file(kind, tmp_path, name)
        return known[name]

    yield named
    if server is not None:
        server.sweep()
    toy_store.PLACES.clear()


def _file(kind: str, folder: Path, name: str) -> str:
    if kind == "toy":
        return f"toy://{name}"
    if kind == "sqlite":
        return str(folder / f"{name}.db")
    if url := os.environ.get("TRIVET_TEST_QDRANT"):
        return f"{url}?prefix=test-{secrets.token_hex(6)}&words={folder / name}.db"
    return f"qdrant+local:{folder / name}"


@pytest.fixture
def open_at(address: Callable[[str], str]) -> Iterator[Open]:
    """Return ``trivet.open`` for stores of this test, without an embedder by default; they are closed at its end."""
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


@pytest.fixture
def unswept(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing remove expired documents."""
    monkeypatch.setattr(SWEEPS[kind], lambda self: [])


def _forget(url: str) -> None:
    with trivet.open(url, embedder="none") as engine:
        for name in engine.collections():
            engine.collection(name, embedder="none").drop()
