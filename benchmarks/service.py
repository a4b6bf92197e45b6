"""Measure the overhead of the HTTP service over the engine, and its behaviour under load.

    python benchmarks/service.py --workers 2 --save benchmarks/results/service-COMMIT.json --docs

A real `trivet serve` on a free port of this machine, its clients in this process over plain asyncio streams. First one
query at a time, over HTTP and by the engine itself, with the same queries on the same store: the difference of the
medians is the overhead. Then many clients at once, four queries to one write: every error is counted, and every
acknowledged write is read back. `--docs` writes the saved row into docs/reference/http.md; a test compares the two.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import platform
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import trivet
from trivet import data

HOME = "/v1/collections/default"
PAGE = Path(__file__).parent.parent / "docs/reference/http.md"
BLOCK = re.compile(r"<!-- load:start.*?-->\n.*?<!-- load:end -->", re.DOTALL)
ALONE = 300  # questions asked one at a time
WRITES = 5  # every fifth request is one


class Connection:
    """One keep-alive connection, with as much of HTTP/1.1 as responses with a length need."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def ask(self, method: str, path: str, body: Any) -> tuple[int, bytes]:
        if self._reader is None or self._writer is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        content = json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        self._writer.write(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        await self._writer.drain()
        lines = (await self._reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        length = next(int(line.split(b":")[1]) for line in lines if line.lower().startswith(b"content-length:"))
        return int(lines[0].split()[1]), await self._reader.readexactly(length)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None


def told(seconds: list[float]) -> dict[str, float]:
    cuts = quantiles(seconds, n=100)
    return {
        "p50_ms": round(median(seconds) * 1000, 2),
        "p95_ms": round(cuts[94] * 1000, 2),
        "p99_ms": round(cuts[98] * 1000, 2),
    }


async def alone(port: int, questions: list[str]) -> list[float]:
    connection = Connection(port)
    taken = []
    for query in [*questions[:50], *questions]:
        started = time.perf_counter()
        status, _ = await connection.ask("POST", f"{HOME}/search", {"query": query})
        taken.append(time.perf_counter() - started)
        assert status == 200
    connection.close()
    return taken[50:]


async def together(port: int, questions: list[str], clients: int, seconds: float) -> dict[str, Any]:
    until = time.perf_counter() + seconds
    statuses: Counter[str] = Counter()
    times: dict[str, list[float]] = {"search": [], "write": []}
    acknowledged: list[str] = []

    async def client(number: int) -> None:
        connection = Connection(port)
        at = 0
        while time.perf_counter() < until:
            at += 1
            writes = (number + at) % WRITES == 0
            started = time.perf_counter()
            try:
                if writes:
                    id = f"load-{number}-{at}"
                    body = {"text": f"note {at} of client {number}: {questions[at % len(questions)]}"}
                    status, _ = await connection.ask("PUT", f"{HOME}/documents/{id}", body)
                    if status == 201:
                        acknowledged.append(id)
                else:
                    query = questions[(number * 7 + at) % len(questions)]
                    status, _ = await connection.ask("POST", f"{HOME}/search", {"query": query})
            except (OSError, asyncio.IncompleteReadError):
                connection.close()
                statuses["connection lost"] += 1
                continue
            times["write" if writes else "search"].append(time.perf_counter() - started)
            statuses[str(status)] += 1
        connection.close()

    started = time.perf_counter()
    await asyncio.gather(*(client(number) for number in range(clients)))
    took = time.perf_counter() - started
    total = sum(statuses.values())
    return {
        "seconds": round(took, 1),
        "clients": clients,
        "requests": total,
        "per_second": round(total / took, 1),
        "statuses": dict(statuses),
        "search": told(times["search"]),
        "write": told(times["write"]),
        "acknowledged": acknowledged,
    }


def bare(store: Path, questions: list[str]) -> list[float]:
    with trivet.open(store) as engine:
        taken = []
        for query in [*questions[:50], *questions]:
            started = time.perf_counter()
            engine.search(query)
            taken.append(time.perf_counter() - started)
    return taken[50:]


@contextlib.contextmanager
def server(store: Path, workers: int, embedder: str) -> Any:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    flags = ["--store", str(store), "--port", str(port), "--workers", str(workers), "--embedder", embedder]
    command = [sys.executable, "-c", "from trivet.cli import main; main()", "serve", *flags]
    process = subprocess.Popen([*command, "--log-level", "warning"], stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        time.sleep(1.0)  # every worker
        yield port
    finally:
        os.kill(process.pid, signal.SIGTERM)
        process.wait(60)


def block(found: dict[str, Any], name: str) -> str:
    """Return the row as docs/reference/http.md shows it."""
    alone, load = found["alone"], found["load"]
    errors = sum(count for status, count in load["statuses"].items() if not status.startswith("2"))
    rows = [
        ("one query at a time, the engine itself", alone["engine"]),
        ("one query at a time, over HTTP", alone["http"]),
        (f"{load['clients']} clients, searches", load["search"]),
        (f"{load['clients']} clients, writes", load["write"]),
    ]
    lines = ["| what | p50 | p95 | p99 |", "|---|---|---|---|"]
    lines += [f"| {what} | {row['p50_ms']} ms | {row['p95_ms']} ms | {row['p99_ms']} ms |" for what, row in rows]
    told = (
        f"{load['requests']:,} requests in {load['seconds']:g} s from {load['clients']} clients at once, "
        f"one in {WRITES} a write: {load['per_second']:g} a second, {errors} errors; "
        f"of {load['writes']:,} acknowledged writes {load['lost']} were lost. "
        f"The service costs {alone['overhead_p50_ms']} ms over the bare engine (p50)."
    )
    made = (
        f"{found['made'][:10]}, {found['machine']}, {found['workers']} workers, embedder `{found['embedder']}`: "
        f"`benchmarks/results/{name}`. Clients and server share the cores, so this is a floor."
    )
    return f"<!-- load:start {name} -->\n" + "\n".join([*lines, "", told, "", made]) + "\n<!-- load:end -->"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--embedder", default="builtin")
    parser.add_argument("--save", type=Path, help="a JSON file for the result")
    parser.add_argument("--docs", action="store_true", help="put the saved result into docs/reference/http.md")
    options = parser.parse_args()
    if options.docs and not options.save:
        parser.error("--docs needs --save: the page names the file")
    questions = [question["text"] for question in data.questions()]
    questions = (questions * (ALONE // len(questions) + 1))[:ALONE]
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "memory.db"
        with trivet.open(store, embedder=options.embedder) as engine:
            engine.add(data.notes())
            engine.wait()
        engine_alone = bare(store, questions)
        with server(store, options.workers, options.embedder) as port:
            http_alone = asyncio.run(alone(port, questions))
            load = asyncio.run(together(port, questions, options.clients, options.seconds))
        acknowledged = load.pop("acknowledged")
        with trivet.open(store) as engine:
            there = {document.id for document in engine.documents()}
    found = {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "embedder": options.embedder,
        "workers": options.workers,
        "alone": {
            "engine": told(engine_alone),
            "http": told(http_alone),
            "overhead_p50_ms": round((median(http_alone) - median(engine_alone)) * 1000, 2),
        },
        "load": {**load, "writes": len(acknowledged), "lost": len(set(acknowledged) - there)},
    }
    print(json.dumps(found, indent=2))
    if options.save:
        options.save.write_text(json.dumps(found, indent=2) + "\n")
    if options.docs:
        shown = block(found, options.save.name)
        PAGE.write_text(BLOCK.sub(lambda _: shown, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
