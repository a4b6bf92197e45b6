"""An MCP server bound to a filter: one table covers every tool, resource and prompt."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

import trivet
from tenants import MARKS, OWN, SECRET, check_hidden, filled, told
from trivet.engine.keys import Keys
from trivet.mcp import prompts, resources, tools
from trivet.mcp.server import Handlers, build
from trivet.mcp.tools import Memory

ALICE = MARKS["alice"]
HIDDEN, ABSENT = f"{SECRET}-1", "nowhere-1"

#: Tool → its calls; ``ID`` stands for a document: one that is hidden and one that is not there are answered alike.
TOOLS: dict[str, list[dict[str, Any]]] = {
    "remember": [
        {"text": "Something new altogether.", "id": "new-1"},
        {"text": "Linked.", "id": "new-2", "links": [{"target": "ID", "type": "see-also"}]},
        {"text": "Not mine.", "id": "new-3", "meta": {"tenant": "bobby"}},
        {"text": "x", "where": {"IDkey": 1}},
    ],
    "recall": [
        {"query": "loud pump", "k": 50},
        {"query": f"{SECRET} pump", "k": 50, "exclude": ["ID"]},
        {"query": "pump", "where": {"IDkey": 1}},
    ],
    "context": [{"query": "loud pump", "budget": 4000}, {"query": f"{SECRET} pump"}],
    "get": [{"ids": ["ID", f"{ALICE}-1"]}, {"ids": ["trivet://document/ID"], "budget": 50}],
    "list": [{}, {"limit": 1}, {"where": {"IDkey": 1}}],
    "update": [{"id": "ID", "title": "x"}, {"id": f"{ALICE}-1", "meta": {"tenant": "bobby"}}],
    "link": [{"source": "ID", "target": f"{ALICE}-1", "type": "supersedes"}, {"source": f"{ALICE}-1", "target": "ID"}],
    "feedback": [{"query": "why", "id": "ID", "good": True}],
    "forget": [{"ids": ["ID"]}, {"links": [{"source": "ID", "target": f"{SECRET}-2"}]}, {"ids": [f"{ALICE}-2"]}],
}
RESOURCES = ["trivet://collection", "trivet://document/ID"]
PROMPTS: dict[str, dict[str, str]] = {
    "memory_protocol": {},
    "with_memory": {"task": f"Mend the {SECRET} pump"},
    "save_session": {},
}


def put(value: Any, id: str) -> Any:
    if isinstance(value, str):
        return value.replace("ID", id)
    if isinstance(value, dict):
        return {put(name, id): put(item, id) for name, item in value.items()}
    return [put(item, id) for item in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    both, alone = tmp_path_factory.mktemp("both"), tmp_path_factory.mktemp("alone")
    filled(both / "memory.db", "bob", "alice")
    filled(alone / "memory.db", "alice")
    return both, alone


def test_every_tool_resource_prompt_and_handler_is_in_the_tables() -> None:
    assert set(TOOLS) == {tool.name for tool in tools.TOOLS}
    assert set(PROMPTS) == {prompt.name for prompt in prompts.PROMPTS}
    assert [template.uri_template for template in resources.TEMPLATES] == ["trivet://document/{id}"]
    handlers = {name for name in dir(Handlers) if not name.startswith("_")}
    listing = {"list_tools", "list_resources", "list_templates", "list_prompts"}
    assert handlers == {"call_tool", "read_resource", "get_prompt", *listing}


async def everything(client: Client, id: str) -> list[str]:
    """Return the results of everything a client can call, as text."""
    listings = (client.list_tools, client.list_resources, client.list_resource_templates, client.list_prompts)
    answers = [str(client.instructions), *[(await listing()).model_dump_json() for listing in listings]]
    answers += [await tried(client.read_resource, put(uri, id)) for uri in RESOURCES]
    answers += [await tried(client.get_prompt, name, given) for name, given in PROMPTS.items()]
    called = [(name, put(given, id)) for name, calls in TOOLS.items() for given in calls]
    answers += [f"{name} {await tried(client.call_tool, name, given)}" for name, given in called]
    return answers


async def tried(call: Callable[..., Any], *given: Any) -> str:
    try:
        return str((await call(*given)).model_dump_json())
    except Exception as error:
        return f"{type(error).__name__}: {error}"


#: Depends on how common a word is in the whole collection, or on the moment.
_VARIES = re.compile(r'(\\?"(?:relevance|similarity|rank|at|created|last_modified|lastModified|tokens)\\?": ?)[^,}]+')


def comparable(text: str) -> str:
    text = re.sub(r"relevance \d\.\d+|similarity \d\.\d+|memory [0-9a-f]{4,}", "", told(text))
    return re.sub(r"[0-9a-f]{16}", "", _VARIES.sub(r"\1_", text))


def test_a_bound_server_tells_nothing_of_others(folders: tuple[Path, Path], tmp_path: Path) -> None:
    async def heard(engine: trivet.Engine, id: str) -> list[str]:
        async with Client(build(Memory(engine.within(OWN)))) as client:
            return await everything(client, id)

    answers: dict[tuple[int, str], list[str]] = {}
    for number, id in ((0, HIDDEN), (0, ABSENT), (1, ABSENT)):
        store = tmp_path / f"{number}-{id}"
        shutil.copytree(folders[number], store)
        with trivet.open(store / "memory.db") as engine:
            answers[number, id] = anyio.run(heard, engine, id)
            assert engine.within({"tenant": "bob"}).stats().documents == (11 if number == 0 else 0)
    here, absent, alone = answers.values()
    for one, other, third in zip(here, absent, alone, strict=True):
        check_hidden(re.sub(rf"{HIDDEN}|{SECRET}-2|{SECRET} pump|{SECRET}%2D1", "", one))
        ordered = sorted(comparable(one.replace(HIDDEN, ABSENT)).split())
        assert ordered == sorted(comparable(other).split())
        if not one.startswith(("recall", "context")):  # the order of hits is the whole collection's
            assert ordered == sorted(comparable(third).split())


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_key_of_a_request_binds_it(
    listening: Callable[..., Any], store: Path, folders: tuple[Path, Path], mode: str
) -> None:
    shutil.copytree(folders[0], store.parent, dirs_exist_ok=True)
    with Keys(store) as keys:
        texts = {name: keys.create(name, "write", where={"tenant": name})[1] for name in MARKS}
        texts["all"] = keys.create("all", "write")[1]

    async def recalled(address: str, name: str) -> str:
        headers = {"Authorization": f"Bearer {texts[name]}"}
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            Client(streamable_http_client(address, http_client=http), mode=mode) as client,
        ):
            return " ".join(await everything(client, "nowhere-1"))

    with listening() as address:
        for name, mark in MARKS.items():
            other = next(item for item in MARKS.values() if item != mark)
            heard = anyio.run(recalled, address, name)
            assert mark in heard
            if name == "alice":
                assert f"{other}-" not in heard
        both = anyio.run(recalled, address, "all")
        assert all(f"{mark}-" in both for mark in MARKS.values())


def test_where_on_the_command_line_binds_the_server(stdio: Callable[..., Any], store: Path) -> None:
    with trivet.open(store, embedder="none") as engine:
        engine.add("Hers.", id="hers", meta={"tenant": "bob"})

    async def main() -> None:
        async with Client(stdio("--where", "tenant=alice", "--where", "team=a")) as client:
            await client.call_tool("remember", {"text": "Mine.", "id": "mine"})
            assert [item.name for item in (await client.list_resources()).resources] == ["collection", "mine"]

    anyio.run(main)
    with trivet.open(store) as engine:
        assert engine.get("mine").meta == {"tenant": "alice", "team": "a"}  # type: ignore[union-attr]
