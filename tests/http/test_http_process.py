"""The service as a real process: several workers, signals, a killed worker."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

import trivet
from trivet.http import server as server_module
from trivet.http.config import Config

HOME = "/v1/collections/default"


def children(pid: int) -> list[int]:
    """Return the worker processes: the children that run our factory."""
    found = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [child for child in found if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def test_two_processes_see_a_settings_change_with_the_next_request(server: Callable[..., Any]) -> None:
    one, two = server(), server()
    with one.http() as first, two.http() as second:
        for k in (3, 7, 5):
            assert first.patch("/settings", json={"k": k}).status_code == 200
            assert second.get(f"{HOME}/settings").json()["k"] == k
            assert f"k={k}" in second.post(f"{HOME}/search", json={"query": "anything"}).json()["profile"]
        first.put(f"{HOME}/documents/a", json={"text": "written by the first"})
        assert second.post(f"{HOME}/search", json={"query": "written"}).json()["hits"][0]["id"] == "a"


def test_it_ends_when_told_and_its_log_is_json(server: Callable[..., Any]) -> None:
    one = server()
    with one.http() as client:
        client.get(f"{HOME}/stats", headers={"X-Request-ID": "known-1"})
        client.post(f"{HOME}/search", json={"query": "a secret question"})
    assert one.end() in (0, -signal.SIGTERM)
    text = one.log.read_text()
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    (asked,) = [line for line in lines if line.get("request_id") == "known-1" and line["event"] == "request"]
    assert (asked["route"], asked["status"]) == ("/v1/collections/{collection}/stats", 200)
    assert lines[-1]["event"] != "request"
    assert "closed" in [line["event"] for line in lines]
    assert "secret question" not in text


def test_a_request_in_hand_is_answered_before_the_end(server: Callable[..., Any]) -> None:
    one = server()
    went = threading.Event()

    def body() -> Any:
        for at in range(300):
            yield json.dumps({"id": f"d{at}", "text": f"number {at}"}).encode() + b"\n"
            if at == 250:
                went.set()
                time.sleep(0.7)

    with one.http() as client:
        done: list[httpx.Response] = []
        thread = threading.Thread(target=lambda: done.append(client.post(f"{HOME}/import", content=body())))
        thread.start()
        assert went.wait(20)
        os.kill(one.process.pid, signal.SIGTERM)
        thread.join(30)
    last = json.loads(done[0].text.splitlines()[-1])
    assert (last["done"], last["added"]) == (True, 300)
    one.process.wait(30)


def test_a_client_that_never_ends_does_not_keep_the_server_up(server: Callable[..., Any]) -> None:
    one = server("--drain-seconds", "1")
    host, port = one.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as stuck:
        head = f"POST {HOME}/import HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        line = b'{"id": "a", "text": "first"}\n'
        stuck.sendall(head.encode() + f"{len(line):x}\r\n".encode() + line + b"\r\n")
        time.sleep(0.5)
        started = time.monotonic()
        one.end()
        assert time.monotonic() - started < 15


@pytest.mark.parametrize("length", ["Content-Length: 1000", "Transfer-Encoding: chunked"])
def test_a_body_that_trickles_in_is_given_up(server: Callable[..., Any], length: str) -> None:
    one = server("--body-seconds", "0.6")
    host, port = one.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as slow:
        head = f"POST {HOME}/search HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n{length}\r\n\r\n"
        slow.sendall(head.encode())
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(30):  # it never stops coming, and never gets there
                slow.sendall(b" " if "1000" in length else b"1\r\n \r\n")
                time.sleep(0.1)
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while data := slow.recv(65536):
                answer += data
    assert answer.startswith(b"HTTP/1.1 408"), answer
    assert b"connection: close" in answer.lower()
    assert b"problems/too-slow" in answer


def test_an_import_may_take_its_time_but_not_fall_silent(server: Callable[..., Any]) -> None:
    one = server("--body-seconds", "0.6")

    def lines(silence: float) -> Any:
        for number in range(5):
            yield json.dumps({"id": str(number), "text": f"note {number}"}).encode() + b"\n"
            time.sleep(0.2)
        time.sleep(silence)

    done = httpx.post(f"{one.url}{HOME}/import", content=lines(0), timeout=30)
    assert json.loads(done.text.splitlines()[-1])["done"] is True, "longer in all, but it went on"
    done = httpx.post(f"{one.url}{HOME}/import", content=lines(3), timeout=30)
    last = json.loads(done.text.splitlines()[-1])
    assert last["done"] is False
    assert "not complete after 0.6 s" in last["error"]
    assert httpx.get(f"{one.url}{HOME}/documents/4").status_code == 200, "what came before is kept"


def test_a_model_that_cannot_be_loaded_ends_the_command(process: Callable[..., Any]) -> None:
    ended = process("serve", "--embedder", "folder:nowhere", "--port", "0", "--workers", "2")
    assert ended.code in (1, 2)
    assert len(ended.err.strip().splitlines()) == 2, ended.err
    assert "Traceback" not in ended.err


@pytest.mark.crash
def test_a_killed_worker_loses_nothing_that_was_acknowledged(server: Callable[..., Any], tmp_path: Path) -> None:
    one = server("--workers", "2")
    stop, lock = threading.Event(), threading.Lock()
    acknowledged: list[str] = []

    def write(writer: int) -> None:
        at = 0
        while not stop.is_set():
            id = f"w{writer}-{at}"
            at += 1
            with contextlib.suppress(httpx.TransportError):  # the connection to the one that was killed
                answer = httpx.put(f"{one.url}{HOME}/documents/{id}", json={"text": f"note {id}"}, timeout=30)
                if answer.status_code == 201:
                    with lock:
                        acknowledged.append(id)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(2):
        time.sleep(0.8)
        before = len(acknowledged)
        victim = children(one.process.pid)[0]
        os.kill(victim, signal.SIGKILL)
    until = time.monotonic() + 120  # a worker that is started again imports everything, on a busy machine slowly
    while len(acknowledged) < before + 20 and time.monotonic() < until:
        time.sleep(0.05)
    stop.set()
    for thread in threads:
        thread.join(30)
    assert len(acknowledged) >= before + 20, "it goes on after the kill"
    one.end()
    with trivet.open(tmp_path / "memory.db", create=False) as engine:
        stored = {document.id for document in engine.documents()}
        assert set(acknowledged) <= stored
        assert engine.verify().ok


def test_the_listener_says_which_protocol_it_speaks() -> None:
    """Otherwise every response after the first on a connection waits 40 ms, with several workers."""
    with server_module._listener(Config(port=0)) as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_workers_add_their_numbers_up(server: Callable[..., Any]) -> None:
    one = server("--workers", "2")
    for _ in range(12):  # a new connection each: either worker may answer
        assert httpx.post(f"{one.url}{HOME}/search", json={"query": "x"}).status_code == 200
    text = httpx.get(f"{one.url}/metrics").text
    (line,) = [row for row in text.splitlines() if row.startswith('trivet_search_stage_seconds_count{stage="total"}')]
    assert float(line.split()[-1]) == 12.0
