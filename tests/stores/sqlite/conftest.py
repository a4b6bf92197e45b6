from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import trivet
from trivet.stores.sqlite.collection import SqliteCollection

Sealed = Callable[[Path], Path]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[trivet.Engine]:
    with trivet.open(tmp_path / "memory.db", embedder="hashing:64") as opened:
        yield opened


@pytest.fixture
def collection(engine: trivet.Engine) -> SqliteCollection:
    return engine._collection


@pytest.fixture
def sealed(tmp_path: Path) -> Iterator[Sealed]:
    """A folder seen through a read-only mount: permission bits do not bind root."""
    mounted: list[Path] = []

    def seal(folder: Path) -> Path:
        if sys.platform != "linux" or os.geteuid() != 0:
            pytest.skip("a read-only mount needs root on Linux")
        place = tmp_path / f"sealed-{len(mounted)}"
        place.mkdir()
        ran = subprocess.run(["mount", "--bind", folder, place], capture_output=True, text=True, check=False)
        if ran.returncode:
            pytest.skip(f"cannot mount here: {ran.stderr.strip()}")
        mounted.append(place)
        subprocess.run(["mount", "-o", "remount,ro,bind", place], check=True)
        return place

    yield seal
    for place in mounted:
        subprocess.run(["umount", "--lazy", place], check=True)
