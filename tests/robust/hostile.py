"""Hostile HTTP requests over raw sockets to two real servers, one open on this machine and one that asks for keys.

Nothing foreign may succeed, nothing hidden may be told, nothing may be planted, changed or deleted, no request may end
or fill the process, and honest requests between them are answered. ``attacks`` makes the requests.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import re
import secrets
import signal
import socket
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import trivet
from robust.account import Account, Scale
from robust.attacks import KINDS, PRIVATE, PUBLIC, SECRET, SHOWN, Attack, Targets, attacks, tagged
from trivet.engine import collections_in
from trivet.engine.keys import Keys
from trivet.http.app import create
from trivet.http.config import Config

SERVE = [sys.executable, "-c", "from trivet.cli import main; main()", "serve", "--port", "0"]
#: Small limits, so that they are reached: 1 MB of a body, 1 s for it and for the work, four threads.
LIMITS = [
    "--max-body-bytes", "1000000", "--body-seconds", "1", "--request-seconds", "1", "--threads", "4",
    "--max-waiting", "64",
]  # fmt: skip
SERVERS = ("open", "keyed")
DOCUMENTS = 60  # in each collection
BATCH, SENDERS = 24, 8  # attacks between two honest requests, and how many at once
START_SECONDS = 60.0
ANSWER_SECONDS = (
    20.0  # the limits of the server and its linger add up to 4 s; the rest is for a machine with other work
)
HONEST_SECONDS = 30.0  # the same, and an honest client asks again when the server is busy
LEAVE_SECONDS = 0.1
#: Of resident memory at its peak. Without a right nothing large is held; with every right ten bodies of 1 MB are parsed
#: at a time, and each is some ten times as large then.
GROWTH_MB = {"keyed": 32.0, "open": 160.0}
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3}) ")
BUSY = (429, 503, 504)  # documented; who is honest asks again
TEXT = "the lantern at the harbour, floor {number}"


@dataclass
class Server:
    """A ``trivet serve`` process on a port of its own choice."""

    name: str
    store: Path
    log: Path
    process: subprocess.Popen[bytes]
    port: int = 0
    read: int = 0  # bytes of the log that were looked at

    def wait(self) -> None:
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until and self.process.poll() is None:
            found = [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]
            self.port = next((line["port"] for line in found if line["event"] == "listening"), 0)
            if self.port and any(line["event"] == "ready" for line in found):
                return
            time.sleep(0.1)
        raise RuntimeError(f"the server did not start: {self.log.read_text()[-800:]}")

    def new_lines(self) -> list[str]:
        """Return the whole lines that the log got since the last call."""
        with self.log.open("rb") as log:
            log.seek(self.read)
            data = log.read()
        data = data[: data.rfind(b"\n") + 1]
        self.read += len(data)
        return data.decode("utf-8", "replace").splitlines()

    def status(self, name: str) -> float:
        """Return a line of /proc/PID/status, in MB."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith(f"{name}:")).split()[1]) / 1024

    def connections(self) -> int:
        """Return the number of open sockets, the listening one and the event loop's own among them."""
        links = []
        for handle in Path(f"/proc/{self.process.pid}/fd").iterdir():
            with contextlib.suppress(OSError):  # closed since it was listed
                links.append(str(handle.readlink()))
        return sum(link.startswith("socket:") for link in links)

    def end(self) -> None:
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(START_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@dataclass
class Siege:
    """The servers, what is known of them, and what was written by honest requests."""

    account: Account
    servers: dict[str, Server]
    targets: Targets
    honest: dict[str, dict[str, str]] = field(default_factory=lambda: {name: {} for name in SERVERS})
    kinds: Counter[str] = field(default_factory=Counter)


def run(account: Account, scale: Scale, folder: Path, rng: random.Random) -> None:
    attack(account, scale.attacks, folder, rng)


def attack(account: Account, number: int, folder: Path, rng: random.Random, flags: tuple[str, ...] = ()) -> None:
    """Attack two new servers ``number`` times; ``flags`` are added to their command line."""
    tokens = _build(folder)
    before = {name: contents(folder / f"{name}.db") for name in SERVERS}
    with contextlib.ExitStack() as stack:
        servers = {name: _start(name, folder, flags) for name in SERVERS}
        for server in servers.values():
            stack.callback(server.end)
        for server in servers.values():
            server.wait()
        ports = {name: server.port for name, server in servers.items()}
        siege = Siege(account, servers, Targets(ports, *tokens, _routes()))
        _warm_up(siege)
        _send_all(siege, number, rng)
        for server in servers.values():
            _judge_log(siege, server)
    for server in servers.values():
        if server.process.returncode not in (0, -signal.SIGTERM):
            account.fault("crashed", f"{server.name}: ended with {server.process.returncode}: {_tail(server)}")
    for name in SERVERS:
        for fault in differences(before[name], contents(folder / f"{name}.db"), siege.honest[name]):
            account.fault(*fault)
    missing = {make.__name__ for make in KINDS} - {kind.replace(" ", "_") for kind in siege.kinds}
    if missing and number >= len(KINDS):
        account.fault("wrong", f"no attack of the kinds {', '.join(sorted(missing))}")
    account.tell(f"hostile: {', '.join(f'{kind} {count:,}' for kind, count in siege.kinds.items())}")


# --- the servers ------------------------------------------------------------------------------------------------------


def _build(folder: Path) -> tuple[str, str, tuple[str, ...]]:
    """Fill both stores; return the reader's key, the admin's, and keys that are not valid."""
    for name in SERVERS:
        with trivet.open(folder / f"{name}.db", embedder="hashing:64") as engine:
            for collection in ("default", PUBLIC, PRIVATE):
                marker = (SHOWN if collection == PUBLIC else SECRET).decode()
                place = engine if collection == "default" else engine.collection(collection, embedder="hashing:64")
                place.add([_document(number, marker) for number in range(1, DOCUMENTS + 1)])
                place.link("d1", "d2")
                place.feedback("lantern", "d1")
                place.wait()
    with Keys(folder / "keyed.db") as keys:
        admin, reader = keys.create("admin", "admin")[1], keys.create("reader", "read", [PUBLIC])[1]
        revoked = keys.create("revoked", "admin")[1]
        keys.revoke("revoked")
    return reader, admin, (revoked, f"{admin[:17]}{secrets.token_urlsafe(32)}")


def _document(number: int, marker: str) -> dict[str, Any]:
    text = f"{TEXT.format(number=number)} {marker}"
    return {"id": f"d{number}", "text": text, "title": f"note {marker}", "meta": {"floor": number, "tag": marker}}


def _start(name: str, folder: Path, flags: tuple[str, ...]) -> Server:
    store, log = folder / f"{name}.db", folder / f"{name}.log"
    command = [*SERVE, "--store", str(store), "--embedder", "hashing:64", *LIMITS, *flags]
    with log.open("wb") as errors:
        process = subprocess.Popen(command, stdout=errors, stderr=errors, cwd=folder)
    return Server(name, store, log, process)


def _routes() -> tuple[tuple[str, str], ...]:
    paths = create(Config()).openapi()["paths"]
    return tuple((method.upper(), path) for path, item in paths.items() for method in item)


def _tail(server: Server) -> str:
    return server.log.read_text(errors="replace")[-800:]


# --- attacking --------------------------------------------------------------------------------------------------------


def _send_all(siege: Siege, number: int, rng: random.Random) -> None:
    made = enumerate(attacks(rng, siege.targets, number))
    watched = Path("/proc/self/status").exists()
    if not watched:
        siege.account.note("hostile: there is no /proc here: the memory of the servers is not watched")
    servers = siege.servers.items() if watched else ()
    before = {name: (server.status("VmRSS"), server.connections()) for name, server in servers}
    with ThreadPoolExecutor(SENDERS, thread_name_prefix="hostile") as senders:
        while batch := list(islice(made, BATCH)):
            under_way = [senders.submit(_send_one, siege, at, one) for at, one in batch]
            _ask_honestly(siege, batch[0][0])
            for sending in under_way:
                sending.result()
            for server in siege.servers.values():
                _judge_log(siege, server)
                if server.process.poll() is not None:
                    raise RuntimeError(f"{server.name}: the server is dead: {_tail(server)}")
            if batch[0][0] % 2_400 == 0:
                siege.account.tell(f"hostile: {batch[-1][0] + 1:,} attacks")
    _ask_honestly(siege, number)
    for name, (resident, connections) in before.items():
        _judge_memory(siege, siege.servers[name], resident, connections)


def _send_one(siege: Siege, number: int, attack: Attack) -> None:
    attack = tagged(attack, number)
    answer, late = converse(attack, siege.targets.ports[attack.server])
    siege.kinds[attack.kind] += 1
    siege.account.add("attacks")
    statuses = [int(status) for status in STATUS.findall(answer)]
    if statuses and min(statuses) >= 400:
        siege.account.add("of them refused")
    for kind, told in judge(attack, answer, late, str(siege.servers[attack.server].store.parent)):
        siege.account.fault(
            kind, f"attack {number}, {attack.kind}, {attack.server}: {told}: {attack.pieces[0][:500]!r}"
        )


def converse(attack: Attack, port: int) -> tuple[bytes, bool]:
    """Send an attack; return everything that was answered on all its connections, and whether an answer never ended."""
    with contextlib.ExitStack() as stack:
        peers = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port), ANSWER_SECONDS))
            for _ in range(attack.connections)
        ]
        with contextlib.suppress(OSError):  # it was refused and closed; the answer is still to be read
            for at, piece in enumerate(attack.pieces):
                if at and attack.pause:
                    time.sleep(attack.pause)
                for peer in peers:
                    peer.sendall(piece)
        return _answers(peers, attack)


def _answers(peers: list[socket.socket], attack: Attack) -> tuple[bytes, bool]:
    if attack.ending == "reset":
        for peer in peers:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return b"", False
    if attack.ending == "half":
        for peer in peers:
            with contextlib.suppress(OSError):
                peer.shutdown(socket.SHUT_WR)
    until = time.monotonic() + (LEAVE_SECONDS if attack.ending == "leave" else ANSWER_SECONDS)
    found, late = b"", False
    for peer in peers:
        try:
            while True:
                peer.settimeout(max(until - time.monotonic(), 0.001))
                piece = peer.recv(65_536)
                if not piece:
                    break
                found += piece
        except TimeoutError:
            late = attack.ending != "leave"
        except OSError:  # reset by the server: it sent what it had to say before
            pass
    return found, late


def judge(attack: Attack, answer: bytes, late: bool, folder: str) -> Iterator[tuple[str, str]]:
    """Yield (kind of fault, what was seen) for everything in the answer that must not be."""
    statuses = [int(status) for status in STATUS.findall(answer)]
    if late:
        yield "hung", f"no end of the answer after {ANSWER_SECONDS:g} s: {answer[:200]!r}"
    if not attack.allowed and any(status == 101 or 200 <= status < 300 for status in statuses):
        yield attack.fault, f"answered {statuses}"
    if any(status >= 500 and status not in BUSY for status in statuses):
        yield "crashed", f"answered {statuses}: {answer[-400:]!r}"
    for marker in attack.hidden:
        if marker in answer:
            yield "leaked", f"{marker.decode()} is in the answer"
    if b"Traceback (most recent" in answer or folder.encode() in answer:
        yield "leaked", f"the inside of the server: {answer[:400]!r}"


def _judge_log(siege: Siege, server: Server) -> None:
    kept = (SHOWN.decode(), SECRET.decode(), siege.targets.reader, siege.targets.admin)
    for line in server.new_lines():
        if "Traceback (most recent" in line or '"status": 500' in line:
            siege.account.fault("crashed", f"{server.name}: {line}")
        if any(text in line for text in kept):
            siege.account.fault("leaked", f"{server.name}, into the log: {line}")


def _judge_memory(siege: Siege, server: Server, resident: float, connections: int) -> None:
    peak = server.status("VmHWM")
    told = f"{server.name}: {resident:.0f} MB before, {server.status('VmRSS'):.0f} MB after, {peak:.0f} MB at most"
    siege.account.tell(f"hostile: {told}")
    if peak - resident > GROWTH_MB[server.name]:
        siege.account.fault("leaked", told)
    until = time.monotonic() + ANSWER_SECONDS
    while server.connections() > connections and time.monotonic() < until:  # idle ones are closed after 5 s
        time.sleep(0.2)
    if server.connections() > connections:
        siege.account.fault("leaked", f"{server.name}: {connections} connections before, {server.connections()} after")


# --- honest requests --------------------------------------------------------------------------------------------------


def _warm_up(siege: Siege) -> None:
    """Open every collection and use every thread, so that what they take is not counted as growth."""
    for server in siege.servers.values():
        for collection in (PUBLIC, PRIVATE, "default"):
            ask = {"query": "lantern at the harbour"}
            with ThreadPoolExecutor(SENDERS) as clients:
                for _ in range(2 * SENDERS):
                    clients.submit(_honest, siege, server, "POST", "/search", ask, collection)
    _ask_honestly(siege, 0)


def _ask_honestly(siege: Siege, number: int) -> None:
    """Search and write on both servers, as one who may."""
    for name, server in siege.servers.items():
        found = _honest(siege, server, "POST", "/search", {"query": "lantern at the harbour", "k": 5})
        if found is not None and SECRET not in found:
            siege.account.fault("wrong", f"{name}: a search found nothing: {found[:300]!r}")
        id, text = f"honest-{number % 20}", f"honest text {number}"
        if _honest(siege, server, "PUT", f"/documents/{id}", {"text": text}) is not None:
            siege.honest[name][id] = text


def _honest(
    siege: Siege, server: Server, method: str, path: str, body: dict[str, Any], collection: str = "default"
) -> bytes | None:
    """Return the answer; ask again while the server is busy, and note a fault when that takes too long."""
    headers = {"Content-Type": "application/json"}
    if server.name == "keyed":
        headers["Authorization"] = f"Bearer {siege.targets.admin}"
    siege.account.add("honest requests")
    until, last = time.monotonic() + HONEST_SECONDS, "no answer"
    while (left := until - time.monotonic()) > 0:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=left)
        try:
            connection.request(method, f"/v1/collections/{collection}{path}", json.dumps(body), headers)
            answer = connection.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException) as error:
            last = repr(error)
        else:
            if 200 <= answer.status < 300:
                return data
            last = f"{answer.status}: {data[:300]!r}"
            if answer.status not in BUSY:
                siege.account.fault("wrong", f"{server.name}: honest {method} {path}: {last}")
                return None
        finally:
            connection.close()
        time.sleep(0.1)
    siege.account.fault("hung", f"{server.name}: honest {method} {path}: not answered in {HONEST_SECONDS:g} s: {last}")
    return None


# --- what is stored ---------------------------------------------------------------------------------------------------


def contents(store: Path) -> dict[str, Any]:
    """Return everything that is stored: one entry a document, and one a collection for its links and settings."""
    found: dict[str, Any] = {}
    for name in collections_in(store):
        with trivet.open(store, name) as engine:
            for item in engine.documents():
                found[f"{name}/{item.id}"] = item.title, item.text, item.kind, dict(item.meta), item.importance
            rest = engine.links(), engine.feedbacks(), engine.settings, engine.settings_history()
            found[f"{name}: links, feedback and settings"] = repr(rest)
    with Keys(store) as keys:
        found["keys"] = repr(keys.list())
    return found


def differences(before: dict[str, Any], after: dict[str, Any], honest: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield a fault for everything that is gone, new or changed, and that no honest request wrote."""
    for id, text in honest.items():
        now = after.pop(f"default/{id}", None)
        if now is None or now[1] != text:
            yield "lost", f"{id}: acknowledged as {text!r}, now {now}"
    for name in before.keys() - after.keys():
        yield "lost", f"{name} is gone"
    for name in after.keys() - before.keys():
        yield "strange", f"{name} is new: {str(after[name])[:300]}"
    for name in before.keys() & after.keys():
        if before[name] != after[name]:
            yield "strange", f"{name} was changed: {str(after[name])[:300]}"
