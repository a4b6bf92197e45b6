"""Fixtures that run the service in this process or as a process of its own.

``client`` is the app in this process, which is quick; ``server`` is a real uvicorn on a free port, ended by its pid.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from command_line import beir, clean_place, cli, command, notes, process, trec, trees, vectors  # noqa: F401
from trivet.http.app import create
from trivet.http.config import Config

HOME = "/v1/collections/default"
SERVE = [sys.executable, "-c", "from trivet.cli import main; main()", "serve"]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Callable[..., TestClient]]:
    """``service(max_batch=2)``: the app with those settings, closed when the test ends."""
    with contextlib.ExitStack() as stack:

        def start(name: str = "memory.db", **settings: Any) -> TestClient:
            config = Config(store=str(tmp_path / name), **{"embedder": "hashing", **settings})
            return stack.enter_context(
                TestClient(create(config), "http://127.0.0.1:8787", raise_server_exceptions=False)
            )

        yield start


@pytest.fixture
def client(service: Callable[..., TestClient]) -> TestClient:
    return service()


@dataclass
class Server:
    process: subprocess.Popen[str]
    url: str
    log: Path

    def http(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=30)

    def end(self) -> int:
        """Send SIGTERM, as systemd does."""
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGTERM)
        return self.process.wait(30)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """``server("--workers", "2")`` starts a server process that ends with the test."""
    started: list[Server] = []

    def start(*flags: str, store: str = "memory.db") -> Server:
        port = free_port()
        log = tmp_path / f"log-{port}.jsonl"
        with log.open("w") as errors:
            process = subprocess.Popen(
                [*SERVE, "--store", str(tmp_path / store), "--embedder", "hashing", "--port", str(port), *flags],
                stderr=errors,
                text=True,
            )
        started.append(Server(process, f"http://127.0.0.1:{port}", log))
        wait_until_ready(started[-1])
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.end()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_ready(server: Server) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        assert server.process.poll() is None, server.log.read_text()
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"{server.url}/readyz").status_code == 200:
                return
        time.sleep(0.05)
    raise AssertionError(server.log.read_text())
