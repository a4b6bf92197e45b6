"""Damage to the files of an index is found when they are used, not only by ``verify``."""

from __future__ import annotations

import json
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from trivet.stores.indexes import graph_index
from trivet.stores.sqlite import file_checksums, term_index, vector_index
from trivet.stores.sqlite.file_checksums import FileChecksums

from . import heal

FILES = (
    "*.idx",
    "*.pos",
    "*.term",
    "*.fieldnorm",
    "*.fast",
    "*.del",
    "quick.faiss",
    "pids.npy",
    "meta.json",
    "state.json",
)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, limit in (
        (term_index, "TAIL_LIMIT", 4),
        (vector_index, "SNAPSHOT_FROM", 8),
        (graph_index, "TAIL_LIMIT", 4),
    ):
        monkeypatch.setattr(module, name, limit)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, list[str]]]]:
    folder = tmp_path_factory.mktemp("sound")
    with pytest.MonkeyPatch.context() as patch:
        for module, name, limit in (
            (term_index, "TAIL_LIMIT", 4),
            (vector_index, "SNAPSHOT_FROM", 8),
            (graph_index, "TAIL_LIMIT", 4),
        ):
            patch.setattr(module, name, limit)
        heal.build(folder / "memory.db", graph=True)
        shutil.copytree(folder, folder / "asked")
        with heal.open_small(folder / "asked" / "memory.db") as engine:
            yield folder, heal.answers(engine)


@pytest.fixture
def store(whole: tuple[Path, dict[str, list[str]]], tmp_path: Path) -> Path:
    shutil.copytree(whole[0], tmp_path / "store", ignore=shutil.ignore_patterns("asked"))
    return tmp_path / "store" / "memory.db"


@pytest.mark.parametrize("pattern", FILES)
@pytest.mark.parametrize("damage", ["flipped", "deleted"])
def test_a_search_answers_as_before_the_damage(
    pattern: str, damage: str, store: Path, whole: tuple[Path, dict[str, list[str]]]
) -> None:
    paths = sorted(Path(f"{store}.index").rglob(pattern))
    assert paths
    for path in paths:
        heal.DAMAGES[damage](path, random.Random(pattern))
    with heal.open_small(store) as engine:
        assert heal.answers(engine) == whole[1]


def test_damage_under_a_running_process_is_noticed(
    store: Path, whole: tuple[Path, dict[str, list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(term_index, "CHECK_SECONDS", 0.0)
    with heal.open_small(store) as engine:
        assert heal.answers(engine) == whole[1]
        for path in Path(f"{store}.index").rglob("*.idx"):
            data = bytearray(path.read_bytes())
            data[: len(data) // 2] = bytes(len(data) // 2)
            with path.open("r+b") as file:  # in place: the same file that is mapped into memory
                file.write(data)
        assert heal.answers(engine) == whole[1]


def test_a_sound_file_is_read_once(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = next(Path(f"{store}.index").glob("c1/words"))
    names = [path.name for path in folder.glob("*.idx")]
    read: list[Path] = []
    real = file_checksums.is_sound
    monkeypatch.setattr(file_checksums, "is_sound", lambda path: (read.append(path), real(path))[1])
    (folder / file_checksums.REMEMBERED).unlink(missing_ok=True)
    time.sleep(2 * file_checksums.SETTLED_SECONDS)
    first = FileChecksums(folder)
    assert first.damaged(names) == []
    assert len(read) == len(names)
    assert first.damaged(names) == FileChecksums(folder).damaged(names) == []  # in memory, and in the file beside it
    assert len(read) == len(names)
    (folder / file_checksums.REMEMBERED).write_text('{"a": 3')
    assert FileChecksums(folder).damaged(names) == []
    assert len(read) == 2 * len(names)
    heal.flipped(folder / names[0], random.Random(1))
    assert first.damaged(names) == [names[0]]


def test_a_snapshot_that_says_it_has_read_more_is_not_used(store: Path) -> None:
    for path in Path(f"{store}.index").rglob("snapshot-*/state.json"):
        state = json.loads(path.read_text())
        key = "vid" if "vid" in state else "pid"
        path.write_text(json.dumps({**state, key: state[key] + 3}))
    with heal.open_small(store) as engine:
        engine.add("newcomer z1z", id="n1")
        engine.wait()
        assert heal.ask(engine, "newcomer z1z", "dense")[0].id == "n1"
