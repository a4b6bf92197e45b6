"""Are a model's lines made into wordings, and only that?"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from trivet.chat.endpoint import ChatSettings, Endpoint
from trivet.chat.rewording import LONGEST, MOST, reworded
from trivet.errors import ChatError, InputError


class Model(BaseHTTPRequestHandler):
    """Says what the test put into ``says``."""

    says = ""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        answer = {"choices": [{"message": {"role": "assistant", "content": self.says}, "finish_reason": "stop"}]}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    made = Endpoint(ChatSettings(url=f"http://127.0.0.1:{server.server_port}/v1", model="m"))
    yield made
    made.close()
    server.shutdown()
    server.server_close()
    thread.join()


def test_one_a_line_without_bullets_and_repeats(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Model, "says", '1. Where is the ladder kept?\n- "ladder location"\n\nladder location\nWHERE IS IT'
    )
    assert reworded("where is it", endpoint) == ["Where is the ladder kept?", "ladder location"]


def test_no_more_than_asked_for_and_no_essays(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Model, "says", "\n".join(["x" * (LONGEST + 1), *(f"wording {n}" for n in range(9))]))
    assert reworded("q", endpoint, 2) == ["wording 0", "wording 1"]


@pytest.mark.parametrize("count", [0, MOST + 1, True, "3"])
def test_a_count_that_is_none(endpoint: Endpoint, count: int) -> None:
    with pytest.raises(InputError, match="count: "):
        reworded("q", endpoint, count)


def test_an_endpoint_that_is_not_there_says_so() -> None:
    nowhere = Endpoint(ChatSettings(url="http://127.0.0.1:9/v1", model="m", timeout=2.0))
    with pytest.raises(ChatError):
        reworded("q", nowhere)
    nowhere.close()
