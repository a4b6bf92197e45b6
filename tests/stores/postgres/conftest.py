from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import trivet
from servers import Postgres, Statement, listening, postgres, postgres_bm25
from trivet.engine import Engine

__all__ = ["Statement", "listening", "postgres", "postgres_bm25"]


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRIVET_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def memory(postgres: Postgres) -> Iterator[Engine]:
    with trivet.open(postgres.fresh(), embedder="hashing:32") as engine:
        yield engine
    postgres.sweep()


@pytest.fixture
def one_server(postgres: Postgres) -> None:
    """Skip a test that looks at plans or locks, or changes rows, as only a server without workers lets it."""
    if postgres.is_cluster:
        pytest.skip("not on a cluster: its plans, locks and rows are on the workers")


def rows(engine: Engine, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = engine._store.database.all(sql, values)  # type: ignore[attr-defined]
    return found
