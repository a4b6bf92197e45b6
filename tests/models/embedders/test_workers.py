"""Several processes embed what one would, and a killed one loses nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trivet
from trivet.errors import EmbedderError, InputError
from trivet.models.embedders import load_embedder
from trivet.models.embedders.workers import Workers

TEXTS = [f"heron number {n} stands in the river" for n in range(150)]


@pytest.fixture
def hashing() -> Any:
    return load_embedder("hashing:32")


def test_the_same_vectors_in_the_same_order(hashing: Any) -> None:
    with Workers(hashing, 2) as pool:
        assert (pool.id, pool.dim, pool.batch) == (hashing.id, 32, 128)
        assert np.array_equal(pool.embed_passages(TEXTS), hashing.embed_passages(TEXTS))
        assert np.array_equal(pool.embed_queries(TEXTS[:2]), hashing.embed_queries(TEXTS[:2]))


def test_a_killed_worker_costs_its_share_and_that_is_done_again(hashing: Any) -> None:
    with Workers(hashing, 2) as pool:
        pool.embed_passages(TEXTS)
        for pid in list(pool._pool._processes):
            os.kill(pid, signal.SIGKILL)
        assert np.array_equal(pool.embed_passages(TEXTS), hashing.embed_passages(TEXTS))


def test_a_bulk_load_with_workers(tmp_path: Path) -> None:
    with trivet.open(tmp_path / "m.db", embedder="hashing:32") as memory:
        memory.add([{"id": str(n), "text": text} for n, text in enumerate(TEXTS)])
        seen: list[tuple[int, int]] = []
        memory.wait(progress=lambda done, total: seen.append((done, total)), workers=2)
        assert memory.stats().pending == 0 and memory.verify().ok
        memory.add("one more, by itself", id="later")
        assert memory.stats().pending == 0, "the background goes on as before"


def test_a_model_that_only_this_process_has_is_refused_by_name(
    tmp_path: Path, taught: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = taught("heron")
    model.gate.clear()
    with trivet.open(tmp_path / "m.db", embedder=model) as memory:
        monkeypatch.setattr(memory._models, "embed_in_background", lambda: None)
        memory.add([{"id": str(n), "text": text} for n, text in enumerate(TEXTS)])
        with pytest.raises(EmbedderError, match="taught"):
            memory.wait(workers=2)


@pytest.mark.parametrize("count", [0, -1, 65, True, 1.5])
def test_a_number_that_is_none(hashing: Any, count: Any) -> None:
    with pytest.raises(InputError, match="workers"):
        Workers(hashing, count)


def test_the_command(tmp_path: Path) -> None:
    notes = tmp_path / "notes.jsonl"
    notes.write_text("".join(f'{{"text": "{text}"}}\n' for text in TEXTS))
    command = [sys.executable, "-m", "trivet", "import", str(notes), "--workers", "2", "--embedder", "hashing:32"]
    done = subprocess.run([*command, "-s", str(tmp_path / "m.db")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with trivet.open(tmp_path / "m.db", embedder="none") as memory:
        assert (memory.stats().embedded, memory.stats().pending) == (150, 0)
