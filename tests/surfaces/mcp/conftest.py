"""How does a test talk to the server? With the SDK's own client: in this process, over stdio or over HTTP."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters

import trivet
from trivet.engine import Engine
from trivet.surfaces.mcp.server import build
from trivet.surfaces.mcp.tools import Memory

Talk = Callable[[Client], Awaitable[Any]]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def engine(store: Path) -> Iterator[Engine]:
    with trivet.open(store, embedder="none") as opened:
        yield opened


@pytest.fixture
def talk(engine: Engine) -> Callable[..., Any]:
    """Runs a conversation with a server in this process."""

    def run(said: Talk, *, mode: str = "auto", **options: Any) -> Any:
        async def conversation() -> Any:
            async with Client(build(Memory(engine, **options)), mode=mode) as client:
                return await said(client)

        return anyio.run(conversation)

    return run


@pytest.fixture
def call(talk: Callable[..., Any]) -> Callable[..., Any]:
    """Calls one tool."""

    def run(name: str, options: dict[str, Any] | None = None, /, **given: Any) -> Any:
        async def said(client: Client) -> Any:
            return await client.call_tool(name, given)

        return talk(said, **(options or {}))

    return run


@pytest.fixture
def stdio(store: Path) -> Callable[..., StdioServerParameters]:
    """How a client starts a server of its own."""

    def made(*options: str) -> StdioServerParameters:
        arguments = ["-m", "trivet", "mcp", "--store", str(store), "--embedder", "none", *options]
        # The SDK hands on only a few variables: without this the server may be of another installation.
        tested = {"PYTHONPATH": str(Path(trivet.__file__).parents[1])}
        return StdioServerParameters(command=sys.executable, args=arguments, env=tested)

    return made


@pytest.fixture
def listening(store: Path) -> Callable[..., Any]:
    """A server process on a free port of this machine, ended by its pid."""

    @contextmanager
    def started(*options: str) -> Iterator[str]:
        command = [sys.executable, "-m", "trivet", "mcp", "--http", "--port", "0", "--store", str(store)]
        process = subprocess.Popen(
            [*command, "--embedder", "none", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            assert process.stderr is not None and process.stdout is not None
            said = process.stderr.readline()
            found = re.search(r"http://\S+", said)
            assert found, said + process.stderr.read()
            yield found[0]
        finally:
            os.kill(process.pid, signal.SIGTERM)
            out, err = process.communicate(timeout=20)
        assert out == ""
        assert "Traceback" not in err
        assert process.returncode in (0, -signal.SIGTERM), err

    return started
