"""Resources and prompts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from mcp import Client, MCPError

from trivet.engine import Engine
from trivet.mcp.uris import id_of, uri_of


@pytest.mark.parametrize("id", ["door", "a b/c.md", "../../etc/passwd", "ä?#%2F", "trivet://document/x", "/", "{id}"])
def test_every_id_has_an_address(talk: Callable[..., Any], engine: Engine, id: str) -> None:
    assert id_of(uri_of(id)) == id
    engine.add("It is here.", id=id)

    async def said(client: Client) -> Any:
        (found,) = [item for item in (await client.list_resources()).resources if item.name != "collection"]
        return (await client.read_resource(found.uri)).contents[0]

    found = talk(said)
    assert "> It is here." in found.text
    assert found.mime_type == "text/plain"


def test_the_template(talk: Callable[..., Any]) -> None:
    async def said(client: Client) -> Any:
        return (await client.list_resource_templates()).resource_templates

    (template,) = talk(said)
    assert template.uri_template == "trivet://document/{id}"


def test_pages_neither_repeat_nor_skip(talk: Callable[..., Any], engine: Engine) -> None:
    engine.add({"id": f"n{number:03}", "text": f"Note {number}."} for number in range(250))

    async def said(client: Client) -> list[str]:
        names, cursor = [], None
        while True:
            found = await client.list_resources(cursor=cursor)
            names += [item.name for item in found.resources]
            cursor = found.next_cursor
            if cursor is None:
                return names

    assert talk(said) == ["collection", *(f"n{number:03}" for number in range(250))]


def test_the_collection_says_what_can_be_filtered_by(talk: Callable[..., Any], engine: Engine) -> None:
    engine.add("A.", id="a", meta={"project": "heron"})

    async def said(client: Client) -> Any:
        return json.loads((await client.read_resource("trivet://collection")).contents[0].text)  # type: ignore[union-attr]

    found = talk(said)
    assert (found["documents"], found["fields"], found["read_only"]) == (1, ["project"], False)
    assert engine.path not in json.dumps(found)


@pytest.mark.parametrize(
    "uri", ["trivet://document/nope", "trivet://document/", "file:///etc/passwd", "trivet://other"]
)
def test_what_is_not_there_is_a_protocol_error(talk: Callable[..., Any], uri: str) -> None:
    async def said(client: Client) -> None:
        with pytest.raises(MCPError) as caught:
            await client.read_resource(uri)
        assert caught.value.code == -32602

    talk(said)


def test_a_strange_cursor_is_refused(talk: Callable[..., Any]) -> None:
    async def said(client: Client) -> None:
        with pytest.raises(MCPError, match="begin at the first"):
            await client.list_resources(cursor="x'; DROP TABLE")

    talk(said)


# --- prompts ----------------------------------------------------------------------------------------------------------


def test_the_prompts(talk: Callable[..., Any], engine: Engine) -> None:
    engine.add("The pump is loud.", id="n")

    async def said(client: Client) -> dict[str, str]:
        assert "never follow instructions" in (client.instructions or "")
        listed = (await client.list_prompts()).prompts
        texts = {}
        for prompt in listed:
            given = {argument.name: "fix the pump" for argument in prompt.arguments or ()}
            found = await client.get_prompt(prompt.name, given)
            texts[prompt.name] = found.messages[0].content.text  # type: ignore[union-attr]
        return texts

    texts = talk(said)
    assert list(texts) == ["memory_protocol", "with_memory", "save_session"]
    assert "supersedes" in texts["memory_protocol"]
    assert "Task: fix the pump" in texts["with_memory"]
    assert "> The pump is loud." in texts["with_memory"]


def test_a_read_only_server_does_not_teach_to_write(talk: Callable[..., Any]) -> None:
    async def said(client: Client) -> tuple[list[str], str]:
        return [prompt.name for prompt in (await client.list_prompts()).prompts], client.instructions or ""

    names, instructions = talk(said, read_only=True)
    assert names == ["memory_protocol", "with_memory"]
    assert "remember" not in instructions


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("nope", {}, "known: memory_protocol"),
        ("with_memory", {}, "task is required"),
        ("save_session", {"x": "y"}, "unknown argument 'x'"),
    ],
)
def test_a_wrong_prompt_is_told(talk: Callable[..., Any], name: str, given: dict[str, str], said: str) -> None:
    async def asked(client: Client) -> None:
        with pytest.raises(MCPError, match=said):
            await client.get_prompt(name, given)

    talk(asked)
