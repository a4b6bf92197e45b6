from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from trivet.errors import EmbedderError
from trivet.models.embedders import granite
from trivet.models.embedders.local import PooledSession
from trivet.models.encoders import stored_model
from trivet.models.encoders.byte_pairs import BytePairTokenizer
from trivet.models.encoders.session import WEIGHTS
from trivet.models.encoders.stored_model import CHECKSUMS, GRAPH, TOKENIZER, open_stored

TEXTS = ("Use -v host:container to mount a folder.", "def f(x): return x ** 2", "cat " * 600)


class Build:
    """Builds the built-in model and counts how often."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> tuple[bytes, bytes]:
        self.calls += 1
        return granite.build(granite.INT8)


def vectors(folder: Path, build: Build) -> np.ndarray:
    session, tokenizer = open_stored(folder, build, EmbedderError)
    opened = PooledSession(BytePairTokenizer(tokenizer, granite.MAX_TOKENS), session)
    return np.stack([opened.vector(text) for text in TEXTS])


def test_the_second_process_opens_what_the_first_built(tmp_path: Path) -> None:
    build = Build()
    first = vectors(tmp_path / "a/model", build)
    assert {file.name for file in (tmp_path / "a/model").iterdir()} == {GRAPH, TOKENIZER, WEIGHTS, CHECKSUMS}
    assert (tmp_path / "a/model" / GRAPH).stat().st_size < 100_000  # the weights are in a file that is mapped
    second = vectors(tmp_path / "a/model", build)
    assert build.calls == 1
    assert np.array_equal(first, second)
    assert [folder.name for folder in (tmp_path / "a").iterdir()] == ["model"]


@pytest.mark.parametrize("file", [GRAPH, TOKENIZER, WEIGHTS])
def test_a_flipped_byte_is_noticed(tmp_path: Path, file: str) -> None:
    build = Build()
    first = vectors(tmp_path / "model", build)
    content = bytearray((tmp_path / "model" / file).read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "model" / file).write_bytes(content)
    assert np.array_equal(vectors(tmp_path / "model", build), first)
    assert build.calls == 2


def test_files_that_nobody_touched_are_not_read_to_check_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build, read = Build(), []
    first = vectors(tmp_path / "model", build)
    checksum = stored_model._checksum
    monkeypatch.setattr(stored_model, "_checksum", lambda path: (read.append(path.name), checksum(path))[1])
    assert np.array_equal(vectors(tmp_path / "model", build), first)
    assert not read
    shutil.copytree(tmp_path / "model", tmp_path / "copy")
    assert np.array_equal(vectors(tmp_path / "copy", build), first)
    assert read == [GRAPH, TOKENIZER, WEIGHTS]
    assert build.calls == 1


@pytest.mark.parametrize("file", [GRAPH, TOKENIZER, WEIGHTS, CHECKSUMS])
def test_what_is_missing_is_built_again(tmp_path: Path, file: str) -> None:
    build = Build()
    first = vectors(tmp_path / "model", build)
    (tmp_path / "model" / file).unlink()
    assert np.array_equal(vectors(tmp_path / "model", build), first)
    assert np.array_equal(vectors(tmp_path / "model", build), first)
    assert build.calls == 2


def test_a_folder_that_cannot_be_written_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    build = Build()
    first, second = (vectors(tmp_path / "file" / "model", build) for _ in range(2))
    assert np.array_equal(first, second)
    assert build.calls == 2
