"""Triples are extracted as data, and a failing endpoint is given up in time. A real server on this machine."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import trivet
from trivet.chat.extraction import MAX_FAILURES, MAX_TEXT, MAX_TRIPLES, Extractor
from trivet.errors import ChatError, InputError

FACTS = {"harbour": [["Odo Varga", "was born in", "Pellworm Point"]], "rain": []}


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.log: list[dict[str, Any]] = []
        self.answer: Any = None  # what it says instead of the facts; an int is a status


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.log.append({"authorization": self.headers["Authorization"], "path": self.path, **asked})
        said = self.server.answer
        if said is None:
            text = asked["messages"][-1]["content"]
            said = (
                "Here you are:\n" + json.dumps(next((f for word, f in FACTS.items() if word in text), [])) + "\nDone."
            )
        status, content = (said, "no") if isinstance(said, int) else (200, said)
        message = {"choices": [{"message": {"role": "assistant", "content": content}, "finish_reason": "stop"}]}
        data = json.dumps(message).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    thread = threading.Thread(target=running.serve_forever)
    thread.start()
    yield running
    running.shutdown()
    thread.join()
    running.server_close()


@pytest.fixture
def extractor(server: Server) -> Iterator[Extractor]:
    url = f"http://127.0.0.1:{server.server_port}/v1"
    environment = {"TRIVET_TRIPLES_URL": url, "TRIVET_TRIPLES_MODEL": "small", "TRIVET_TRIPLES_API_KEY": "k-1"}
    made = Extractor.configured(environment)
    yield made
    made.close()


def test_documents_get_their_triples_and_a_walk_takes_them(server: Server, extractor: Extractor) -> None:
    notes = [{"id": "fact", "text": "He came from the harbour."}, {"id": "rain", "text": "Only rain."}]
    with trivet.open(":memory:", embedder="none") as engine:
        engine.add(
            map(extractor.with_triples, [*notes, {"id": "town", "title": "Pellworm Point", "text": "At the causeway."}])
        )
        document = engine.get("fact")
        assert document is not None
        assert document.meta["triples"] == FACTS["harbour"]
        found = engine.search("harbour", weights={"lexical": 1, "dense": 0, "graph": 1})
        assert {hit.id: hit.path for hit in found}["town"] == ("fact", "Pellworm Point")
    assert [entry["path"] for entry in server.log] == ["/v1/chat/completions"] * 3
    assert {entry["authorization"] for entry in server.log} == {"Bearer k-1"}
    assert server.log[0]["temperature"] == 0
    assert extractor.failed == {}


def test_a_document_that_has_triples_is_not_asked_about(server: Server, extractor: Extractor) -> None:
    known = [{"text": "a", "triples": []}, {"text": "b", "meta": {"triples": [["x1", "is", "y1"]]}}]
    assert list(map(extractor.with_triples, known)) == known
    assert server.log == []


def test_a_long_document_is_shown_in_part(server: Server, extractor: Extractor) -> None:
    extractor.triples("x" * MAX_TEXT * 2, "Title")
    assert len(server.log[0]["messages"][-1]["content"]) < MAX_TEXT + 20


@pytest.mark.parametrize("answer", ["none that I know of", "[[1, 2", '{"a": 1}', "[" * 100_000])
def test_an_answer_that_is_no_triples_is_said(server: Server, extractor: Extractor, answer: str) -> None:
    server.answer = answer
    with pytest.raises(ChatError, match="did not return a JSON array"):
        extractor.triples("some text")


def test_what_is_no_triple_is_left_out_and_many_are_cut(server: Server, extractor: Extractor) -> None:
    server.answer = json.dumps([["a1", "b1", "c1"], ["a1", "b1", "c1"], ["x"], 7, ["a", "b", "c" * 500], None])
    assert extractor.triples("text") == (("a1", "b1", "c1"),)
    server.answer = json.dumps([[f"s{n}", "r1", "o1"] for n in range(99)])
    assert len(extractor.triples("text")) == MAX_TRIPLES


def test_one_failure_is_written_down_and_several_in_a_row_end_it(server: Server, extractor: Extractor) -> None:
    server.answer = "nothing"
    documents = [{"id": f"d{n}", "text": "rain"} for n in range(9)]
    stored = map(extractor.with_triples, documents)
    assert "triples" not in next(stored)
    server.answer = None
    assert next(stored)["triples"] == []
    assert list(extractor.failed) == ["d0"]
    server.answer = 500
    with pytest.raises(ChatError):
        list(stored)
    assert list(extractor.failed) == ["d0", *(f"d{n}" for n in range(2, 2 + MAX_FAILURES))]
    assert "k-1" not in str(extractor.failed)


@pytest.mark.parametrize("environment", [{}, {"TRIVET_TRIPLES_URL": "http://x/v1"}, {"TRIVET_TRIPLES_MODEL": "m"}])
def test_without_an_endpoint_it_says_what_to_set(environment: dict[str, str]) -> None:
    with pytest.raises(InputError, match=r"TRIVET_TRIPLES_URL.*TRIVET_TRIPLES_MODEL"):
        Extractor.configured(environment)


def test_an_import_asks_for_triples_and_shows_no_secret(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = tmp_path / "note.txt"
    note.write_text("He came from the harbour with the key sk-abcdefghijklmnopqrstuvwxyz012345.")
    monkeypatch.setenv("TRIVET_TRIPLES_URL", f"http://127.0.0.1:{server.server_port}/v1")
    monkeypatch.setenv("TRIVET_TRIPLES_MODEL", "small")
    command = ["import", str(note), "-s", str(tmp_path / "m.db"), "--embedder", "none", "--triples", "--redact"]
    done = subprocess.run([sys.executable, "-m", "trivet", *command], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert "sk-abc" not in str(server.log)
    with trivet.open(tmp_path / "m.db", embedder="none") as engine:
        (document,) = engine.documents()
        assert document.meta["triples"] == FACTS["harbour"]
        assert "sk-abc" not in document.text
