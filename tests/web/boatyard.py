"""The notes of a boatyard, and a server with them, for the tests of the page."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx

import trivet

SERVE = [sys.executable, "-c", "from trivet.cli import main; main()", "serve"]

#: Written for these tests: a boatyard's notes. The words of some questions are in one note, their meaning in another.
NOTES: list[dict[str, Any]] = [
    {
        "id": "winch",
        "title": "Winch of the slipway",
        "text": "The winch slips under load. Grease its drum every month.",
    },
    {"id": "winch-new", "title": "New winch", "text": "The slipway has an electric winch now; the old one was sold."},
    {"id": "varnish", "title": "Varnish", "text": "Seven coats of varnish, sanded between each, keep the mast dry."},
    {"id": "mast", "title": "Mast step", "text": "The mast stands in an oak step. Check the step for rot in spring."},
    {"id": "tide", "title": "Tides", "text": "Launch two hours before high water, never on a falling tide."},
    {"id": "key", "title": "Shed key", "text": "The key of the shed hangs behind the oilskins."},
    {"id": "key-copy", "title": "Key", "text": "The key of the shed  hangs behind the OILSKINS."},
    {"id": "engine", "title": "Diesel", "text": "The diesel coughs on cold mornings; warm its filter first."},
    {"id": "sail", "title": "Mainsail", "text": "The mainsail tore along the leech and went to the sailmaker."},
    {"id": "anchor", "title": "Anchor chain", "text": "Forty metres of chain, marked with red paint every ten."},
    {"id": "paint", "title": "Bottom paint", "text": "Antifouling goes on the day before the launch, not earlier."},
    {
        "id": "rope",
        "title": "Ropes",
        "text": "The halyards are of polyester; the mooring lines of nylon, for it gives.",
    },
    {"id": "bilge", "title": "Bilge", "text": "The bilge pump starts by itself when its float rises."},
    {"id": "crane", "title": "Crane", "text": "The crane lifts six tonnes. Its hook is inspected every March."},
]
LINKS = (("winch-new", "winch", "supersedes"), ("mast", "varnish", "see-also"), ("tide", "paint", "part-of"))


def notes() -> list[dict[str, Any]]:
    """Return the notes with fields: half of the yard, half of a boat, about one per month."""
    return [
        {
            **note,
            "kind": "chore" if at % 3 == 0 else "note",
            "meta": {"place": "yard" if at % 2 == 0 else "boat", "source": f"log-{at // 4}.md", "crew": 1 + at % 4},
            "created": f"2025-{at % 12 + 1:02d}-10T09:00:00Z",
            "importance": round(0.2 + at * 0.06, 2),
        }
        for at, note in enumerate(NOTES)
    ]


def fill(store: Path) -> None:
    with trivet.open(store, embedder="hashing") as memory:
        memory.add(notes())
        for source, target, kind in LINKS:
            memory.link(source, target, type=kind)


@dataclass
class Site:
    process: subprocess.Popen[str]
    url: str
    store: Path
    log: Path
    collection: str = "default"

    @property
    def home(self) -> str:
        return f"/v1/collections/{self.collection}"

    def page(self, view: str = "search", **query: Any) -> str:
        """Return the URL of a view."""
        return f"{self.url}/?{urlencode({'view': view, 'c': self.collection, **query}, doseq=True)}"

    def fresh(self, filled: bool = True) -> Site:
        """Return the same server with a new collection."""
        made = replace(self, collection=f"c{secrets.token_hex(4)}")
        with self.http as client:
            client.put(made.home, json={}).raise_for_status()
            if filled:
                client.post(f"{made.home}/documents", json={"documents": notes()}).raise_for_status()
                for source, target, kind in LINKS:
                    body = {"source": source, "target": target, "type": kind}
                    client.post(f"{made.home}/links", json=body).raise_for_status()
        return made

    @property
    def http(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=60)

    def get(self, path: str) -> Any:
        with self.http as client:
            return client.get(path).raise_for_status().json()

    def search(self, query: str, **body: Any) -> Any:
        with self.http as client:
            return client.post(f"{self.home}/search", json={"query": query, **body}).raise_for_status().json()

    def end(self) -> None:
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGTERM)
        self.process.wait(60)


def serve(store: Path, *flags: str, port: int | None = None) -> Site:
    """Start a server process and wait until it responds."""
    place = port or free_port()
    log = store.with_name(f"log-{place}.jsonl")
    with log.open("a") as errors:
        command = [*SERVE, "--store", str(store), "--embedder", "hashing", "--port", str(place), *flags]
        process = subprocess.Popen(command, stderr=errors, text=True)
    site = Site(process, f"http://127.0.0.1:{place}", store, log)
    until = time.monotonic() + 90
    while time.monotonic() < until:
        assert process.poll() is None, log.read_text()
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"{site.url}/readyz").status_code == 200:
                return site
        time.sleep(0.05)
    raise AssertionError(log.read_text())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
