"""Fixtures that run the command line, shared by several suites.

``cli`` calls ``main`` in this process, which is quick; ``process`` starts another one, for pipes, signals and imports.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from trivet.cli import main

COMMAND = [sys.executable, "-c", "from trivet.cli import main; main()"]


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture(autouse=True)
def clean_place(tmp_path: Path, vectors: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to an empty folder, with a quick embedder and without the environment variables of the user."""
    for name in ("TRIVET_STORE", "TRIVET_COLLECTION", "TRIVET_DEBUG", "NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TRIVET_EMBEDDER", "hashing")
    monkeypatch.setenv("TRIVET_CACHE", str(vectors))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    def run(*arguments: str | Path, piped: str | bytes = b"") -> Ran:
        content = piped.encode() if isinstance(piped, str) else piped
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ran(int(ended.value.code or 0), captured.out, captured.err)

    return run


@pytest.fixture
def command() -> list[str]:
    return COMMAND


@pytest.fixture
def process() -> Callable[..., Ran]:
    def run(*arguments: str | Path, piped: str = "", **environment: str) -> Ran:
        done = subprocess.run(
            [*COMMAND, *map(str, arguments)],
            input=piped,
            capture_output=True,
            encoding="utf-8",
            env={**os.environ, **environment},
            timeout=60,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(scope="session")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store with the demo's notes; no test writes to it."""
    import trivet
    from trivet import data

    path = tmp_path_factory.mktemp("notes") / "notes.db"
    with trivet.open(path, embedder="hashing") as memory:
        memory.add(data.notes())
        memory.wait()
    return path


# --- the evaluation lab -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the cache of vectors of all tests."""
    return tmp_path_factory.mktemp("vectors")


@pytest.fixture
def beir(tmp_path: Path) -> Callable[..., Path]:
    """Return ``beir(corpus, queries, qrels)``, which writes a test collection; each part is lines or records."""

    def write(corpus: list[Any], queries: list[Any], qrels: list[str], name: str = "tiny", split: str = "test") -> Path:
        folder = tmp_path / name
        (folder / "qrels").mkdir(parents=True, exist_ok=True)
        for file, records in (("corpus", corpus), ("queries", queries)):
            lines = [item if isinstance(item, str) else json.dumps(item) for item in records]
            (folder / f"{file}.jsonl").write_text("".join(f"{line}\n" for line in lines))
        head = "query-id\tcorpus-id\tscore"
        (folder / "qrels" / f"{split}.tsv").write_text("".join(f"{line}\n" for line in (head, *qrels)))
        return folder

    return write


TREES = "alder ash aspen beech birch cedar cherry elm fir hazel holly larch lime maple oak pine plum poplar rowan yew"


@pytest.fixture
def trees(beir: Callable[..., Path]) -> Path:
    """Write a test collection of forty queries in two strata; lexical search finds the relevant document of each."""
    names = [f"{tree}{part}" for tree in TREES.split() for part in ("leaf", "bark")]
    corpus = [{"_id": f"d{at}", "title": name, "text": f"all of {name} in the wood"} for at, name in enumerate(names)]
    queries = [
        {"_id": f"q{at}", "text": f"{name} wood", "metadata": {"type": "leaf" if at % 2 == 0 else "bark"}}
        for at, name in enumerate(names)
    ]
    return beir(corpus, queries, [f"q{at}\td{at}\t1" for at in range(len(names))], "trees")


@pytest.fixture
def trec(tmp_path: Path) -> Callable[..., Path]:
    """Return ``trec("right", lambda at: [f"d{at}"])``, which writes a run of another system for the forty queries."""

    def write(name: str, answer: Callable[[int], list[str]]) -> Path:
        path = tmp_path / f"{name}.trec"
        lines = [
            f"q{at} Q0 {id} {rank} {1 / rank} {name}"
            for at in range(2 * len(TREES.split()))
            for rank, id in enumerate(answer(at), start=1)
        ]
        path.write_text("".join(f"{line}\n" for line in lines))
        return path

    return write
