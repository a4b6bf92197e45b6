"""A request that ran out of time gives its thread back."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from starlette.testclient import TestClient

import trivet
from trivet.concurrency import deadline
from trivet.errors import DeadlineError

HOME = "/v1/collections/default"
LONG = 60.0  # seconds: as good as for ever


class Hanging:
    """An embeddings endpoint that holds texts with "slow" in them until it is released."""

    def __init__(self) -> None:
        free = self.free = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if any("slow" in text for text in asked["input"]):
                    free.wait(LONG)
                rows = [{"index": at, "embedding": [1.0, float(at), 1.0]} for at, _ in enumerate(asked["input"])]
                body = json.dumps({"data": rows}).encode()
                try:
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:  # nobody waits any more
                    pass

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.spec = f"http://127.0.0.1:{self._server.server_port}/v1?dim=3#hanging"

    def close(self) -> None:
        self.free.set()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    endpoint = Hanging()
    yield endpoint
    endpoint.close()


def test_threads_come_back_from_a_model_that_hangs(server: Callable[..., Any], hanging: Hanging) -> None:
    """With one thread, an abandoned request used to make every other request a 504."""
    running = server("--embedder", hanging.spec, "--request-seconds", "1", "--threads", "1", "--max-waiting", "50")
    with running.http() as client:
        assert client.post(f"{HOME}/documents", json={"id": "a", "text": "the alder"}).status_code == 201
        for _ in range(3):
            late = client.post(f"{HOME}/search", json={"query": "slow alder"})
            assert late.status_code == 504
            assert late.json()["type"].endswith("timeout")
            assert client.get(f"{HOME}/documents/a").status_code == 200
        late = client.post(f"{HOME}/documents", json={"id": "b", "text": "a slow one"})
        assert late.status_code in (201, 504), "stored; what it means follows"
        assert client.get(f"{HOME}/documents/b").status_code == 200
        assert not hanging.free.is_set(), "the model hangs still"
    assert "Traceback" not in running.log.read_text()


def test_abandoned_work_ends_and_nothing_is_left_waiting(
    service: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = service(request_seconds=0.2, threads=2, max_waiting=50)
    ended: list[BaseException] = []
    settings = trivet.Engine.stats

    def slow(self: trivet.Engine) -> Any:
        try:
            while True:
                deadline.check()
                time.sleep(0.005)
        except DeadlineError as error:
            ended.append(error)
            raise

    monkeypatch.setattr(trivet.Engine, "stats", slow)
    answers: list[int] = []
    asking = [
        threading.Thread(target=lambda: answers.append(client.get(f"{HOME}/stats").status_code)) for _ in range(8)
    ]
    for one in asking:
        one.start()
    for one in asking:
        one.join()
    assert answers == [504] * 8
    bridge = client.app.state.dispatcher  # type: ignore[attr-defined]
    until = time.monotonic() + LONG
    while bridge.waiting and time.monotonic() < until:
        time.sleep(0.01)
    assert bridge.waiting == 0
    assert 1 <= len(ended) <= 8, "what had not begun was not begun any more"
    monkeypatch.setattr(trivet.Engine, "stats", settings)
    assert client.get(f"{HOME}/stats").status_code == 200


def test_a_statement_without_end_is_answered_504(
    service: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = service(request_seconds=0.2, threads=1)
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
    with monkeypatch.context() as patched:
        patched.setattr(trivet.Engine, "stats", lambda self: self._collection.rows.all(endless, ()))
        assert client.get(f"{HOME}/stats").status_code == 504
    assert client.get(f"{HOME}/stats").status_code == 200


def test_a_write_is_not_begun_by_a_request_that_waited_too_long(
    service: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = service(request_seconds=0.2, threads=1, max_waiting=50)
    free = threading.Event()
    monkeypatch.setattr(trivet.Engine, "stats", lambda self: free.wait(LONG))
    assert client.get(f"{HOME}/stats").status_code == 504, "its thread is kept: it asks nobody how late it is"
    assert client.delete(f"{HOME}/documents", params={"id": "a"}).status_code == 504
    late = client.post(f"{HOME}/feedback", json={"query": "q", "id": "a"})
    assert late.status_code == 504
    free.set()
    until = time.monotonic() + LONG
    while (found := client.get(f"{HOME}/feedback")).status_code != 200:
        assert time.monotonic() < until
    assert found.json()["feedback"] == []
