from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

KEYS = ("TRIVET_SCORER_API_KEY", "COHERE_API_KEY", "CO_API_KEY", "JINA_API_KEY", "OPENAI_API_KEY")


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The address of ``server.py``, running in a process of its own."""
    script = Path(__file__).with_name("server.py")
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        process.terminate()


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*KEYS, *(name for name in os.environ if name.lower().endswith("_proxy"))]:
        monkeypatch.delenv(name, raising=False)
