"""Faults that first users found by hand."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trivet
from trivet.errors import EmbedderError, InputError, StoreError


def test_an_export_never_takes_the_place_of_a_store(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with trivet.open(path, embedder="none") as memory, trivet.open(tmp_path / "other.db", embedder="none"):
        memory.add("kept", id="a")
        for target in (path, tmp_path / "m.db-wal", tmp_path / "other.db", tmp_path / "m.db.index" / "x.jsonl"):
            with pytest.raises(InputError, match="export"):
                memory.export(target)
        assert memory.get("a") is not None
    with trivet.open(path, embedder="none") as memory:
        assert memory.verify().ok


def test_an_export_writes_through_a_link_and_into_a_device(tmp_path: Path) -> None:
    real, link = tmp_path / "real.jsonl", tmp_path / "link.jsonl"
    real.write_text("old")
    link.symlink_to(real)
    with trivet.open(":memory:", embedder="none") as memory:
        memory.add("kept", id="a")
        assert memory.export(link) == 1
        assert link.is_symlink()
        assert "kept" in real.read_text()
        assert memory.export("/dev/null") == 1
        assert not Path("/dev/null").is_file()


def test_a_generator_that_fails_says_what_is_stored_and_has_it_embedded(tmp_path: Path) -> None:
    def documents() -> Iterator[dict[str, Any]]:
        for number in range(1_100):
            yield {"id": f"d{number}", "text": f"word{number}"}
        yield {"id": "bad", "text": " "}

    with trivet.open(tmp_path / "m.db", embedder="hashing:32") as memory:
        with pytest.raises(InputError, match=r"'bad'.*the 1,000 documents before it are stored"):
            memory.add(documents())
        memory.wait(timeout=60)
        assert memory.stats().embedded == memory.stats().documents == 1_000


def test_waiting_for_nobody_is_told(tmp_path: Path) -> None:
    with trivet.open(tmp_path / "m.db", embedder="hashing:32") as memory:
        memory.add("one", id="a")
    with trivet.open(tmp_path / "m.db", embedder="none") as memory:
        memory.add("two", id="b")
        told: list[tuple[int, int]] = []
        with pytest.raises(EmbedderError, match="1 passages are not embedded, and there is no embedder"):
            memory.wait(lambda done, total: told.append((done, total)))
        assert (1, 1) not in told


class Late:
    """An embedder whose endpoint times out by itself."""

    id = spec = "late"
    dim, unrelated = 2, 0.0

    def embed_passages(self, texts: list[str]) -> Any:
        return np.ones((len(texts), 2), dtype=np.float32)

    def embed_queries(self, texts: list[str]) -> Any:
        raise TimeoutError("gateway said 504")


def test_an_embedders_own_timeout_is_told_in_its_words() -> None:
    with trivet.open(":memory:", embedder=Late()) as memory:
        memory.add("one", id="a")
        (degraded,) = memory.search("one").degraded
        assert degraded.reason == "gateway said 504"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_is_told_to_open_its_own(tmp_path: Path) -> None:
    code = (
        "import os, sys, trivet\n"
        "memory = trivet.open(sys.argv[1], embedder='none'); memory.add('pump', id='a'); memory.search('pump')\n"
        "child = os.fork()\n"
        "try:\n"
        "    memory.search('pump')\n"
        "except trivet.TrivetError as error:\n"
        "    print('told' if 'forked' in str(error) else error, flush=True); os._exit(7)\n"
        "_, status = os.waitpid(child, 0)\n"
        "print(os.waitstatus_to_exitcode(status), [hit.id for hit in memory.search('pump')])\n"
    )
    import subprocess

    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "m.db")], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.splitlines() == ["told", "7 ['a']"], done.stderr


def test_bytes_are_told_to_be_decoded() -> None:
    with trivet.open(":memory:", embedder="none") as memory, pytest.raises(InputError, match="decode"):
        memory.add(b"bytes")  # type: ignore[arg-type]


def test_a_closed_store_stays_closed(tmp_path: Path) -> None:
    memory = trivet.open(tmp_path / "m.db", embedder="none")
    memory.add("one", id="a")
    memory.search("one")
    memory.close()
    with pytest.raises(StoreError, match="closed"):
        memory.search("one")
