"""Limits on request bodies, and the key check before a body is read."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from trivet.engine.keys import Keys
from trivet.http import body_limits
from trivet.http.app import ROUTES, create
from trivet.http.config import Config

HOME = "/v1/collections/default"
PIECE = b"x" * 1_000_000
GROWTH_MB = 30  # what a server may grow by, with pieces of 1 MB under way


def described() -> dict[tuple[str, str], bool]:
    """Return for the (method, path) of every route whether OpenAPI describes a body."""
    schema = create(Config()).openapi()
    return {
        (method.upper(), path): "requestBody" in operation
        for path, item in schema["paths"].items()
        for method, operation in item.items()
    }


def test_the_table_names_every_route_that_takes_a_body_and_no_other() -> None:
    plain = {(method, path.replace(":path}", "}")) for method, path in body_limits.BODIES}
    assert plain == {operation for operation, has_body in described().items() if has_body}
    assert [route for route, body in body_limits.BODIES.items() if body.streams] == [
        ("POST", "/v1/collections/{collection}/import")
    ]
    known = {(method, route.path) for route in ROUTES for method in route.methods}  # type: ignore[attr-defined]
    assert set(body_limits.BODIES) <= known


@pytest.mark.parametrize("operation", body_limits.BODIES, ids=" ".join)
def test_the_table_asks_for_the_scope_that_the_route_asks_for(
    service: Callable[..., TestClient], tmp_path: Path, operation: tuple[str, str]
) -> None:
    """The body is not JSON: a caller without access gets 401 or 403, one with access an error about the body."""
    client = service()
    with Keys(tmp_path / "memory.db") as keys:
        tokens = {scope: keys.create(scope, scope)[1] for scope in ("read", "write", "admin")}
        bound = keys.create("elsewhere", "admin", ["elsewhere"])[1]
    method, path = operation
    url = path.replace("{collection}", "default").replace("{id:path}", "x").replace("{id}", "x")
    order = list(tokens)

    def status(token: str) -> int:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        return client.request(method, url, content=b"{", headers=headers).status_code

    for scope, token in tokens.items():
        may = order.index(scope) >= order.index(body_limits.BODIES[operation].scope)
        assert (status(token) != 403) == may, scope
    assert status(bound) == 403
    assert status("junk") == 401


class Sender:
    """Sends a chunked body without end over a plain socket, until the server closes or ``most`` MB are sent."""

    def __init__(self, url: str) -> None:
        host, port = url.removeprefix("http://").split(":")
        self._address = (host, int(port))

    def send(self, method: str, path: str, most: int, headers: str = "") -> tuple[int, bytes]:
        with socket.create_connection(self._address, 30) as peer:
            head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{headers}"
            peer.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
            sent = 0
            try:
                for _ in range(most):
                    peer.sendall(b"%x\r\n%s\r\n" % (len(PIECE), PIECE))
                    sent += 1
            except OSError:  # closed by the server
                pass
            try:
                return sent, peer.recv(400)
            except OSError:
                return sent, b""

    def send_raw(self, head: bytes, piece: bytes, most: int) -> int:
        """Return how many MB of ``piece`` could be sent."""
        with socket.create_connection(self._address, 30) as peer:
            sent = 0
            try:
                peer.sendall(head)
                while sent < most * 1_000_000:
                    peer.sendall(piece)
                    sent += len(piece)
            except OSError:  # closed by the server
                pass
            return sent // 1_000_000


def resident_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


class Watching:
    """Record the peak memory of a process while the context is open."""

    def __init__(self, pid: int) -> None:
        self._pid, self._ended = pid, threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.peak = 0.0

    def _watch(self) -> None:
        while not self._ended.wait(0.01):
            self.peak = max(self.peak, resident_mb(self._pid))

    def __enter__(self) -> Watching:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._ended.set()
        self._thread.join()
        self.peak = max(self.peak, resident_mb(self._pid))


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the memory of a process from /proc")
def test_who_has_no_key_cannot_fill_the_memory(server: Callable[..., Any], tmp_path: Path) -> None:
    with Keys(tmp_path / "memory.db") as keys:
        reader = keys.create("reader", "read")[1]
    running = server("--max-body-bytes", "1000000")
    sender, before = Sender(running.url), resident_mb(running.process.pid)
    paths = [
        ("PUT", f"{HOME}/documents/a"), ("PUT", f"{HOME}/documents/a/import"), ("PUT", "/v1/collections/import"),
        ("POST", f"{HOME}/import"), ("POST", "/nothing/import"), ("POST", "/nothing"), ("PATCH", "/settings"),
        ("GET", f"{HOME}/export"), ("GET", "/healthz"), ("DELETE", f"{HOME}/documents/import"), ("POST", "/"),
    ]  # fmt: skip
    with Watching(running.process.pid) as memory:
        for method, path in paths:
            sent, _ = sender.send(method, path, 50)
            assert sent < 50 or method in ("GET", "DELETE"), (path, "refused, and the connection closed")
        allowed_less = f"Authorization: Bearer {reader}\r\n"
        sent, _ = sender.send("POST", f"{HOME}/import", 50, allowed_less)
        assert sent < 50, "a key that only reads"
        sent, _ = sender.send("POST", f"{HOME}/search", 50, allowed_less)
        assert sent < 50, "a body that is too long for a key that may"
    assert memory.peak - before < GROWTH_MB, f"{before:.0f} MB before, {memory.peak:.0f} MB at most"


CHUNKED = b"POST /v1/collections/default/search HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the memory of a process from /proc")
@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ", b"a" * 100_000),
        (b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n", b"X: aaaaaaaaaaaa\r\n" * 6_000),
        (b"GET /", b"a" * 100_000),
        (CHUNKED + b"1;", b"a" * 100_000),
        (CHUNKED + b"1\r\n{\r\n0\r\n", b"X: aaaaaaaaaaaa\r\n" * 6_000),
        (b"", b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 2_000),
    ],
    ids=["a header", "headers", "an address", "a chunk's extension", "trailers", "requests that wait for no answer"],
)
def test_what_has_no_end_before_the_body_is_cut_off(server: Callable[..., Any], head: bytes, piece: bytes) -> None:
    running = server()
    before = resident_mb(running.process.pid)
    with Watching(running.process.pid) as memory:
        assert Sender(running.url).send_raw(head, piece, 30) < 30
    assert memory.peak - before < GROWTH_MB, f"{before:.0f} MB before, {memory.peak:.0f} MB at most"
    with running.http() as client:
        assert client.get("/healthz").status_code == 200


def test_requests_that_do_not_wait_are_answered_in_order(server: Callable[..., Any]) -> None:
    running = server()
    host, port = running.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 30) as peer:
        paths = [f"/{number}" for number in range(20)]
        peer.sendall("".join(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" for path in paths).encode())
        answer = b""
        while answer.count(b"404 Not Found") < len(paths):
            answer += peer.recv(65_536)
        head = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nX: " + "a" * 60_000
        peer.sendall(f"{head}\r\n\r\n".encode())
        while piece := peer.recv(65_536):
            answer += piece
    assert answer.endswith(b'{"status":"ok"}')


@pytest.mark.slow
def test_what_is_announced_too_long_is_refused_before_it_comes(server: Callable[..., Any]) -> None:
    """Nothing of the body is sent, so the response can only depend on the headers."""
    running = server("--max-body-bytes", "1000000")
    host, port = running.url.removeprefix("http://").split(":")
    for method, path, length, wanted in (
        ("PUT", f"{HOME}/documents/a/import", 1_000_001, 413),
        ("PUT", "/v1/collections/import", 10**12, 413),
        ("POST", "/nothing/import", 1_000_001, 413),
        ("GET", f"{HOME}/export", 1_000_000, 413),
        ("POST", "/nothing", 1_000_000, 404),
        ("POST", "/healthz", 1_000_000, 405),
    ):
        with socket.create_connection((host, int(port)), 30) as peer:
            head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {length}\r\n\r\n"
            peer.sendall(head.encode())
            answer = b""
            while piece := peer.recv(65_536):  # until it is closed
                answer += piece
        assert int(answer.split()[1]) == wanted, (path, answer)
        assert b"connection: close" in answer.lower()


def test_who_sends_too_much_reads_why(server: Callable[..., Any]) -> None:
    """The whole body is sent before the response is read, as most clients do."""
    running = server("--max-body-bytes", "1000000")
    with running.http() as client:
        for path in (f"{HOME}/documents", "/nothing/import"):
            for _ in range(5):
                answer = client.post(path, content=b"x" * 5_000_000, headers={"Content-Type": "application/json"})
                assert answer.status_code == 413
                assert "at most 1,000,000" in answer.json()["detail"]


def _answer(peer: socket.socket) -> bytes:
    answer = b""
    while not answer.endswith(b"}"):
        answer += peer.recv(65_536)
    return answer


def test_a_body_that_goes_on_after_its_answer_does_not_hold_the_connection(server: Callable[..., Any]) -> None:
    running = server()
    host, port = running.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 30) as peer:
        peer.sendall(b"POST /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 500\r\n\r\n")
        answer = _answer(peer)
        peer.sendall(b"x")
        assert answer.startswith(b"HTTP/1.1 404")
        assert peer.recv(65_536) == b"", "closed, though the client may still send"


def test_an_import_whose_client_goes_away_is_logged_without_a_stack(server: Callable[..., Any]) -> None:
    running = server()
    host, port = running.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 30) as peer:
        head = f"POST {HOME}/import HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 500\r\n\r\n"
        peer.sendall(head.encode() + b'{"text": "a"}\n{"te')
    until = time.monotonic() + 30
    while "import ended" not in running.log.read_text() and time.monotonic() < until:
        time.sleep(0.05)
    told = running.log.read_text()
    assert '"event": "import ended"' in told and '"reason": "the client disconnected"' in told
    assert "Traceback" not in told


@pytest.mark.slow
def test_the_next_request_on_a_connection_has_its_own_time(server: Callable[..., Any]) -> None:
    running = server()
    host, port = running.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 30) as peer:
        peer.sendall(b"POST /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3\r\n\r\n")
        assert _answer(peer).startswith(b"HTTP/1.1 404")
        peer.sendall(b"xxxPOST /v1/collections/default/search HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        time.sleep(7)  # longer than an idle connection is kept
        peer.sendall(b'Content-Type: application/json\r\nContent-Length: 14\r\n\r\n{"query": "a"}')
        assert _answer(peer).startswith(b"HTTP/1.1 200")


def test_a_refused_request_leaves_a_connection_of_use(server: Callable[..., Any]) -> None:
    """A small body that was not read does not close the connection."""
    running = server()
    with running.http() as client:
        client.post("/nothing", json={"text": "x"})
        pool = client._transport._pool  # type: ignore[attr-defined]
        first = list(pool.connections)
        assert client.get("/healthz").status_code == 200
        assert list(pool.connections) == first


@pytest.mark.parametrize(
    ("body", "headers", "status", "told"),
    [
        (b"[" * 100_000, {}, 400, "nested too deeply"),
        (b'{"text": "a", "importance": ' + b"9" * 10_000 + b"}", {}, 400, "too many digits"),
        (b'{"text": "\xff\xfe"}', {}, 400, "not UTF-8"),
        (b"\x1f\x8b", {"Content-Encoding": "gzip"}, 415, "Content-Encoding"),
        (b"{}", {"Content-Encoding": "br, gzip"}, 415, "Content-Encoding"),
    ],
    ids=["deep", "digits", "latin", "gzip", "several"],
)
def test_a_body_that_cannot_be_read_is_told_why(
    client: TestClient, body: bytes, headers: dict[str, str], status: int, told: str
) -> None:
    answer = client.post(f"{HOME}/documents", content=body, headers={"Content-Type": "application/json", **headers})
    assert answer.status_code == status
    assert told in answer.json()["detail"]
    assert answer.json()["errors"][0]["field"] in ("body", "Content-Encoding")


def test_a_path_that_is_not_utf_8(client: TestClient) -> None:
    for path in ("%ff%fe", "a%c3", "%ed%a0%80"):
        answer = client.get(f"{HOME}/documents/{path}")
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "path"), path
    assert client.get(f"{HOME}/documents/%C3%A9").status_code == 404


def test_values_no_search_needs(client: TestClient) -> None:
    for params in ({"offset": 2**63}, {"offset": 10**14}):
        answer = client.get(f"{HOME}/search", params={"q": "a", **params})
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "offset")
    where = {"kind": {"in": [str(number) for number in range(20_000)]}}
    for path, body in (
        ("/search", {"query": "a", "where": where}),
        ("/explain", {"query": "a", "id": "b", "where": where}),
    ):
        answer = client.post(f"{HOME}{path}", json=body)
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "where"), path
