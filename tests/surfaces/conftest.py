"""How does a test run the command line?

``cli`` calls ``main`` in this process, which is quick; ``process`` starts a real one, for pipes, signals and imports.
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

from trivet.surfaces.cli import main

COMMAND = [sys.executable, "-c", "from trivet.surfaces.cli import main; main()"]


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture(autouse=True)
def clean_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, a quick embedder and none of the caller's own settings."""
    for name in ("TRIVET_STORE", "TRIVET_COLLECTION", "TRIVET_DEBUG", "NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TRIVET_EMBEDDER", "hashing")
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
    """The demo's notes in a store that no test writes to."""
    import trivet
    from trivet import data

    path = tmp_path_factory.mktemp("notes") / "notes.db"
    with trivet.open(path, embedder="hashing") as memory:
        memory.add(data.notes())
        memory.wait()
    return path
