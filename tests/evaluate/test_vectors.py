from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filelock import FileLock

from trivet.errors import EmbedderError, StoreError
from trivet.evaluate import Dataset, Lab
from trivet.evaluate.vectors import CachedEmbedder
from trivet.models.embedders.hashing import Hashing
from trivet.profile import Profile

_DENSE = Profile(name="dense", weights={"dense": 1.0})
TEXTS = ["the kettle", "the heron", "the kettle", ""]


class Counting(Hashing):
    """Counts what it is asked; ``rows`` is given in place of its own answer."""

    def __init__(self, dim: int = 16, name: str = "") -> None:
        super().__init__(dim)
        self.id += name
        self.asked: list[str] = []
        self.rows: Any = None

    def embed_passages(self, texts: list[str]) -> Any:
        self.asked += texts
        return super().embed_passages(texts) if self.rows is None else self.rows

    def embed_queries(self, texts: list[str]) -> Any:
        return -self.embed_passages(texts)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "cache"


@pytest.fixture
def cached(folder: Path) -> Iterator[CachedEmbedder]:
    embedder = CachedEmbedder(Counting(), folder)
    yield embedder
    embedder.close()


def again(folder: Path, inner: Counting | None = None) -> closing[CachedEmbedder]:
    """The cache as another process would open it."""
    return closing(CachedEmbedder(inner or Counting(), folder))


def test_it_says_what_the_model_says(cached: CachedEmbedder) -> None:
    model = Hashing(16)
    assert (cached.id, cached.dim, cached.spec, cached.unrelated) == (model.id, 16, model.spec, 0.0)
    for _ in range(2):
        assert np.array_equal(cached.embed_passages(TEXTS), model.embed_passages(TEXTS))
        assert np.array_equal(cached.embed_queries(TEXTS), -model.embed_passages(TEXTS))
    assert cached.embed_passages([]).shape == cached.embed_queries([]).shape == (0, 16)


def test_a_text_is_embedded_once_by_what_it_says(cached: CachedEmbedder, folder: Path) -> None:
    cached.embed_passages(TEXTS)
    assert cached.made == 3
    cached.embed_passages(["the heron", "the gate"])
    assert cached.made == 4
    with again(folder) as other:
        assert np.array_equal(other.embed_passages(TEXTS), Hashing(16).embed_passages(TEXTS))
        assert (other.made, other.inner.asked) == (0, [])  # type: ignore[attr-defined]


def test_a_question_and_a_passage_are_kept_apart(cached: CachedEmbedder, folder: Path) -> None:
    cached.embed_passages(["the kettle"])
    with again(folder) as other:
        assert np.array_equal(other.embed_queries(["the kettle"]), -Hashing(16).embed_passages(["the kettle"]))
        assert other.made == 1


def test_queries_of_other_weights_are_made_again(cached: CachedEmbedder, folder: Path) -> None:
    cached.embed_passages(["the kettle"])
    cached.embed_queries(["the kettle"])
    changed = Counting()
    changed.query_id = "others"  # type: ignore[attr-defined]
    with again(folder, changed) as other:
        other.embed_passages(["the kettle"])
        assert other.made == 0
        other.embed_queries(["the kettle"])
        assert other.made == 1


def test_another_model_does_not_share(cached: CachedEmbedder, folder: Path) -> None:
    cached.embed_passages(TEXTS)
    for stranger in (Counting(name="/other"), Counting(32)):
        with again(folder, stranger) as other:
            assert np.array_equal(other.embed_passages(TEXTS), Hashing(stranger.dim).embed_passages(TEXTS))
            assert other.made == 3


def test_a_second_fill_makes_nothing(small: Dataset, tmp_path: Path) -> None:
    made = []
    for _ in range(2):
        inner = Counting()
        with Lab.fill(small, embedder=inner, cache=tmp_path) as lab:
            lab.run(_DENSE)
            assert lab._cached is not None
            made.append((lab._cached.made, len(inner.asked)))
    assert made[0][0] == made[0][1] > len(small.topics) + 50
    assert made[1] == (0, 0)


def test_an_edited_set_embeds_what_was_edited(small: Dataset, tmp_path: Path) -> None:
    with Lab.fill(small, embedder=Counting(), cache=tmp_path):
        pass
    edited = [{**small.documents[0], "text": "Something quite different."}, *small.documents[1:]]
    other = Dataset(small.name, small.split, edited, small.topics, small.qrels, "1" * 12)
    with Lab.fill(other, embedder=Counting(), cache=tmp_path) as lab:
        assert lab._cached is not None and lab._cached.made == 1


# ---- damage


def test_a_file_that_is_no_database_is_a_clear_error(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "vectors.db").write_bytes(b"this is not a database, and long enough to tell" * 100)
    with pytest.raises(StoreError, match=r"cache: .* cannot be used \(file is not a database\); delete its vectors.db"):
        CachedEmbedder(Counting(), folder)


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match=r"cannot be used .* give another with --cache"):
        CachedEmbedder(Counting(), tmp_path / "file" / "cache")


def test_a_truncated_vector_is_made_again_for_good(cached: CachedEmbedder, folder: Path) -> None:
    cached.embed_passages(TEXTS)
    cached.close()
    with closing(sqlite3.connect(folder / "vectors.db")) as database, database:
        database.execute("UPDATE vectors SET data = substr(data, 1, 7)")
    for made in (3, 0):
        with again(folder) as other:
            assert np.array_equal(other.embed_passages(TEXTS), Hashing(16).embed_passages(TEXTS))
            assert other.made == made


def test_damage_found_while_reading_is_a_clear_error(cached: CachedEmbedder, folder: Path) -> None:
    cached.embed_passages([f"text {number}" for number in range(2_000)])
    cached.close()
    file = folder / "vectors.db"
    whole = file.read_bytes()
    assert len(whole) > 100_000
    file.write_bytes(whole[:8192] + b"\xa5" * (len(whole) - 8192))
    with pytest.raises(StoreError, match=r"cannot be used \(.*\); delete its vectors.db"), again(folder) as other:
        other.embed_passages([f"text {number}" for number in range(2_000)])


def test_a_failed_write_leaves_no_transaction_behind(cached: CachedEmbedder, folder: Path) -> None:
    with closing(sqlite3.connect(folder / "vectors.db")) as database:
        database.execute("CREATE TRIGGER full BEFORE INSERT ON vectors BEGIN SELECT raise(ABORT, 'disk is full'); END")
        with pytest.raises(StoreError, match="disk is full"):
            cached.embed_passages(TEXTS)
        database.execute("DROP TRIGGER full")
    cached.embed_passages(TEXTS)
    with again(folder) as other:
        other.embed_passages(TEXTS)
        assert other.made == 0


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (np.zeros((1, 16), np.float32), r"gave \(1, 16\) for 2 texts of 16 numbers"),
        (np.zeros((2, 8), np.float32), r"gave \(2, 8\) for 2 texts of 16 numbers"),
        (np.full((2, 16), np.nan, np.float32), "gave a NaN or infinite value"),
    ],
)
def test_what_is_no_vector_is_not_kept(cached: CachedEmbedder, rows: Any, reason: str) -> None:
    inner: Any = cached.inner
    inner.rows = rows
    with pytest.raises(EmbedderError, match=reason):
        cached.embed_passages(["a", "b"])
    inner.rows = None
    assert np.array_equal(cached.embed_passages(["a", "b"]), Hashing(16).embed_passages(["a", "b"]))


# ---- many at once


def test_many_threads_share_one(cached: CachedEmbedder) -> None:
    texts = [f"text {number}" for number in range(200)]
    right = Hashing(16).embed_passages(texts)
    wrong: list[object] = []

    def work(start: int) -> None:
        try:
            for step in range(0, 200, 20):
                at = (start + step) % 200
                if not np.array_equal(cached.embed_passages(texts[at : at + 20]), right[at : at + 20]):
                    wrong.append(at)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(20 * number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []
    assert 200 <= cached.made <= 8 * 200  # two may make the same at the same time; neither is counted away


ROUNDS = 15
PROCESS = f"""
import sys, pathlib, time
from trivet.models.embedders.hashing import Hashing
from trivet.evaluate.vectors import CachedEmbedder
print("ready", flush=True)
start = float(sys.stdin.readline())
for round in range({ROUNDS}):
    while time.time() < start + 0.04 * round:  # all begin at once
        pass
    cached = CachedEmbedder(Hashing(16), pathlib.Path(sys.argv[1]) / str(round))
    cached.embed_passages(["the kettle", "the heron"])
    cached.close()
print("done", flush=True)
"""


def test_several_processes_may_begin_at_once(tmp_path: Path) -> None:
    """Each round makes a new cache: SQLite alone does not let two set one up at the same moment."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for process in processes:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    start = time.time() + 0.2
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(f"{start}\n")
        process.stdin.flush()
    for process in processes:
        out, errors = process.communicate(timeout=120)
        assert out == "done\n", errors
    for round in range(ROUNDS):
        with again(tmp_path / str(round)) as other:
            other.embed_passages(["the heron", "the kettle"])
            assert other.made == 0


def test_one_waits_while_another_sets_the_cache_up(folder: Path) -> None:
    folder.mkdir(parents=True)
    made: list[CachedEmbedder] = []
    thread = threading.Thread(target=lambda: made.append(CachedEmbedder(Counting(), folder)))
    with FileLock(folder / "vectors.lock"):
        thread.start()
        thread.join(0.3)
        assert thread.is_alive() and not made and not (folder / "vectors.db").exists()
    thread.join(60)
    made[0].close()
