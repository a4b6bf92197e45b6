"""``redistribute`` is for PostgreSQL; ``tests/stores/postgres/test_postgres_redistribute.py`` tests what it moves."""

from __future__ import annotations

from pathlib import Path

import pytest

import trivet
from servers import Postgres, postgres
from trivet.engine.redistribute import BY, Redistributed, redistribute
from trivet.errors import InputError, NotFoundError

__all__ = ["postgres"]


def test_a_collection_is_moved_once(postgres: Postgres) -> None:
    url = postgres.fresh()
    with trivet.open(url, "notes", embedder="none") as memory:
        memory.add([{"id": f"d{n}", "text": f"heron {n}"} for n in range(9)])
    reported: list[tuple[int, int]] = []
    done = redistribute(url, "notes", progress=lambda *at: reported.append(at))
    assert done == Redistributed("notes", "documents", True, 9, 9) and done.by in BY
    assert redistribute(url, "notes") == Redistributed("notes", "documents", False, 9, 9)
    with trivet.open(url, "notes", embedder="none") as memory:
        assert memory.search("heron 7")[0].id == "d7"
    postgres.sweep()


def test_a_file_is_not_divided(tmp_path: Path) -> None:
    with trivet.open(tmp_path / "memory.db", embedder="none") as memory:
        memory.add("heron", id="a")
    with pytest.raises(InputError, match="redistribute: a file is not divided"):
        redistribute(tmp_path / "memory.db", "default")
    with pytest.raises(InputError, match="by: 'shards' is unknown; known: documents, collections"):
        redistribute(tmp_path / "memory.db", "default", "shards")
    with pytest.raises(NotFoundError, match="there is no store"):
        redistribute(tmp_path / "other.db", "default")
