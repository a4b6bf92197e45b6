from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import trivet


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[trivet.Engine]:
    with trivet.open(tmp_path / "memory.db", embedder="hashing:64") as opened:
        yield opened
