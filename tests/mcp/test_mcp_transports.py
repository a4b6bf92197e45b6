"""A real client and a real server process, over both transports."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

import trivet
from trivet.engine.keys import Keys

NOTE = {"text": "The pump in the north greenhouse is loud.", "id": "pump", "meta": {"project": "heron"}}


async def session(client: Client) -> None:
    """Use every feature once, as a client."""
    assert client.server_info is not None
    assert (client.server_info.name, client.server_info.version) == ("trivet", trivet.__version__)
    assert "memory" in (client.instructions or "")
    assert len((await client.list_tools()).tools) == 9
    assert len((await client.list_prompts()).prompts) == 3
    assert len((await client.list_resource_templates()).resource_templates) == 1

    async def done(name: str, **given: Any) -> Any:
        result = await client.call_tool(name, given)
        assert not result.is_error, result.content
        return result.structured_content

    assert (await done("remember", **NOTE))["id"] == "pump"
    fix = await done("remember", text="A rubber mat under it made it quiet.", id="mat", meta=NOTE["meta"])
    assert fix["stored"]
    await done("link", source="pump", target="mat", type="resolved-by")
    found = await done("recall", query="loud pump", where={"project": "heron"})
    assert [(memory["id"], memory["resolved_by"]) for memory in found["memories"]] == [("pump", ["mat"])]
    assert (await done("context", query="loud pump"))["sources"][0]["id"] == "pump"
    await done("feedback", query=found["query"], id="pump", good=True)
    await done("update", id="mat", importance=0.9)
    resources = (await client.list_resources()).resources
    assert [item.name for item in resources] == ["collection", "pump", "mat"]
    read = await client.read_resource(resources[1].uri)
    assert "> The pump" in read.contents[0].text  # type: ignore[union-attr]
    assert (await done("forget", ids=["mat"]))["forgotten"] == 1
    wrong = await client.call_tool("recall", {"k": 3})
    assert wrong.is_error
    assert "query: is required" in wrong.content[0].text  # type: ignore[union-attr]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_stdio(stdio: Callable[..., Any], store: Path, mode: str) -> None:
    async def main() -> None:
        async with Client(stdio(), mode=mode) as client:
            await session(client)

    anyio.run(main)
    with trivet.open(store) as memory:
        assert [document.id for document in memory.documents()] == ["pump"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_http(listening: Callable[..., Any], mode: str) -> None:
    async def main(address: str) -> None:
        async with Client(address, mode=mode) as client:
            await session(client)

    with listening() as address:
        assert address.startswith("http://127.0.0.1:")
        anyio.run(main, address)


def test_read_only_over_stdio(stdio: Callable[..., Any], store: Path) -> None:
    with trivet.open(store, embedder="none") as memory:
        memory.add("The pump is loud.", id="pump")
        before = memory.get("pump")

    async def main() -> None:
        async with Client(stdio("--read-only")) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["recall", "context", "get", "list"]
            assert (await client.call_tool("forget", {"ids": ["pump"]})).is_error
            found = await client.call_tool("recall", {"query": "pump"})
            assert found.structured_content["memories"][0]["id"] == "pump"

    anyio.run(main)
    with trivet.open(store) as memory:
        assert memory.get("pump") == before


def test_the_environment_says_which_store_and_what_may_be_done(store: Path) -> None:
    with trivet.open(store, "notes", embedder="none") as memory:
        memory.add("The pump is loud.", id="pump")
    said = {"TRIVET_STORE": str(store), "TRIVET_COLLECTION": "notes", "TRIVET_READ_ONLY": "1"}

    async def main() -> None:
        parameters = StdioServerParameters(command=sys.executable, args=["-m", "trivet", "mcp"], env=said)
        async with Client(parameters) as client:
            assert len((await client.list_tools()).tools) == 4
            found = await client.call_tool("recall", {"query": "pump"})
            assert found.structured_content["memories"][0]["id"] == "pump"

    anyio.run(main)


def test_ten_clients_at_once_over_http(listening: Callable[..., Any], store: Path) -> None:
    async def one(address: str, number: int) -> None:
        async with Client(address) as client:
            for turn in range(5):
                given = {"text": f"Client {number} saw pump {turn} today.", "id": f"{number}-{turn}"}
                assert not (await client.call_tool("remember", given)).is_error
                assert not (await client.call_tool("recall", {"query": f"pump {turn}"})).is_error

    async def main(address: str) -> None:
        async with anyio.create_task_group() as group:
            for number in range(10):
                group.start_soon(one, address, number)

    with listening() as address:
        anyio.run(main, address)
    with trivet.open(store) as memory:
        assert memory.stats().documents == 50


def test_stdout_carries_the_protocol_and_nothing_else(store: Path) -> None:
    """Raw messages: garbage, a wrong request, and the end of the input."""
    hello = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}},
    }  # fmt: skip
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    wrong = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "recall", "arguments": {"k": []}}}
    piped = "\n".join(["not json", *(json.dumps(message) for message in (hello, ready, wrong))]) + "\n"
    command = [sys.executable, "-m", "trivet", "mcp", "--store", str(store), "--embedder", "none"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(piped)
    process.stdin.flush()
    lines = []
    while not any(line.get("id") == 2 for line in lines):
        lines.append(json.loads(process.stdout.readline()))
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
    assert out == ""
    assert "Traceback" not in err
    assert all(line["jsonrpc"] == "2.0" for line in lines)
    assert lines[-1]["result"]["isError"] is True


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_server_that_waits(store: Path, number: int) -> None:
    """Clients send a signal when they exit; a server that reads stdin must end too."""
    command = [sys.executable, "-m", "trivet", "mcp", "--store", str(store), "--embedder", "none"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
    process.stdin.flush()
    assert process.stdout.readline()
    os.kill(process.pid, number)
    process.communicate(timeout=10)
    assert process.returncode == -number


# --- who may connect --------------------------------------------------------------------------------------------------


def test_another_machine_needs_a_key(store: Path, process: Callable[..., Any]) -> None:
    done = process("mcp", "--http", "--host", "0.0.0.0", "--port", "0", "--store", store, "--embedder", "none")
    assert done.code == 2
    assert "can be reached from other machines" in done.err
    assert "trivet keys create" in done.err
    assert done.out == ""


def test_a_store_with_keys_asks_for_one(store: Path, listening: Callable[..., Any]) -> None:
    trivet.open(store, embedder="none").close()
    with Keys(store) as keys:
        _, reader = keys.create("reader", "read")
        _, writer = keys.create("writer", "write")
        _, other = keys.create("other", "write", ["elsewhere"])
        gone, revoked = keys.create("gone", "write")
        keys.revoke(gone.id)

    async def allowed(address: str) -> None:
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {writer}"}) as http,
            Client(streamable_http_client(address, http_client=http)) as client,
        ):
            assert len((await client.list_tools()).tools) == 9

    with listening() as address:
        for header, status in (
            ({}, 401),
            ({"Authorization": "Bearer nonsense"}, 401),
            ({"Authorization": f"Bearer {revoked}"}, 401),
            ({"Authorization": f"Bearer {reader}"}, 403),
            ({"X-API-Key": other}, 403),
        ):
            answer = httpx2.post(address, json={}, headers=header)
            assert (answer.status_code, answer.headers["content-type"]) == (status, "text/plain; charset=utf-8")
        anyio.run(allowed, address)


def test_a_web_page_under_another_name_is_refused(listening: Callable[..., Any]) -> None:
    """DNS rebinding: a browser that resolves evil.example to 127.0.0.1."""
    with listening() as address:
        json_headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        evil = {**json_headers, "host": "evil.example"}
        assert httpx2.post(address, content="{}", headers=evil).status_code == 421
        evil = {**json_headers, "origin": "http://evil.example"}
        assert httpx2.post(address, content="{}", headers=evil).status_code == 403
        port = address.split(":")[2].partition("/")[0]
        for name in (
            f"127.0.0.1:{port}@evil.example",
            f"127.0.0.1:{port}.evil.example",
            "[::1]evil.example",
            "0.0.0.0",
        ):
            for more in ({}, {"Authorization": "Basic x"}, {"X-API-Key": ""}):
                sent = {**json_headers, **more, "host": name}
                assert httpx2.post(address, content="{}", headers=sent).status_code == 421, sent
                assert httpx2.get(address, headers=sent).status_code == 421, sent
        for origin in ("null", f"http://127.0.0.1:{port}.evil.example", f"http://localhost:{port}@evil.example"):
            sent = {**json_headers, "Authorization": "Basic x", "origin": origin}
            assert httpx2.post(address, content="{}", headers=sent).status_code == 403, sent


# --- what cannot begin ------------------------------------------------------------------------------------------------


def test_a_port_that_is_taken_is_told(store: Path, listening: Callable[..., Any], process: Callable[..., Any]) -> None:
    with listening() as address:
        port = address.rsplit(":", 1)[1].split("/")[0]
        done = process("mcp", "--http", "--port", port, "--store", store, "--embedder", "none")
    assert (done.code, done.out) == (1, "")
    assert f"cannot listen on 127.0.0.1 port {port}" in done.err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("mcp", "--port", "1"), 2, "need --http"),
        (("mcp", "--read-only", "--store", "nope.db"), 1, "there is no file 'nope.db'"),
        (("mcp", "--store", "a.db", "install", "--client", "cursor"), 2, "write --store after install"),
    ],
)
def test_a_wrong_start_is_one_line(
    process: Callable[..., Any], arguments: tuple[str, ...], code: int, said: str
) -> None:
    done = process(*arguments)
    assert (done.code, done.out) == (code, "")
    assert said in done.err
    assert len(done.err.strip().splitlines()) == 1


def test_without_the_extra_there_is_a_pip_line(cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from trivet.cli import mcp

    monkeypatch.setattr(mcp, "find_spec", lambda name: None)
    for arguments in (("mcp",), ("mcp", "install", "--client", "cursor")):
        done = cli(*arguments)
        assert done.code == 2
        assert "pip install 'trivet[mcp]'" in done.err


def test_the_library_and_the_help_do_not_load_the_protocol() -> None:
    for code in ("import trivet; trivet.open", "import trivet.cli"):
        script = (
            f"{code}\nimport sys\nprint([name for name in ('mcp', 'mcp_types', 'pydantic') if name in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[]", code
