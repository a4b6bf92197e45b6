"""Fixtures that call the server with the SDK's client: in this process, over stdio or over HTTP."""

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
from command_line import beir, clean_place, cli, command, notes, process, trec, trees, vectors  # noqa: F401
from trivet.engine import Engine
from trivet.mcp.server import build
from trivet.mcp.tools import Memory

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
    """The command with which a client starts its own server."""

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
        argv = [sys.executable, "-m", "trivet", "mcp", "--http", "--port", "0", "--store", str(store)]
        running = subprocess.Popen(
            [*argv, "--embedder", "none", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            assert running.stderr is not None and running.stdout is not None
            said = running.stderr.readline()
            found = re.search(r"http://\S+", said)
            assert found, said + running.stderr.read()
            yield found[0]
        finally:
            os.kill(running.pid, signal.SIGTERM)
            out, err = running.communicate(timeout=20)
        assert out == ""
        assert "Traceback" not in err
        assert running.returncode in (0, -signal.SIGTERM), err

    return started
