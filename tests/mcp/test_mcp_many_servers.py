"""Six agents in six processes on one store: nothing is lost.

What other memory servers lose here is in the facts this project began with: each client starts a server of its own,
and all of them write to one file.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
from mcp import Client

import trivet

SERVERS, NOTES = 6, 20


def test_six_servers_on_one_store_lose_nothing(stdio: Callable[..., Any], store: Path) -> None:
    problems: list[str] = []
    firsts: list[bool] = []
    ready = 0

    async def agent(number: int, started: anyio.Event) -> None:
        nonlocal ready
        async with Client(stdio()) as client:
            ready += 1
            if ready == SERVERS:
                started.set()
            await started.wait()
            first = await client.call_tool("remember", {"text": f"Agent {number} was first.", "id": "first"})
            firsts.append(not first.is_error)

            async def note(turn: int) -> None:
                text = f"Agent {number} wrote down observation {turn} about pump {number * NOTES + turn}."
                done = await client.call_tool("remember", {"text": text, "id": f"{number}-{turn}"})
                if done.is_error:
                    problems.append(done.content[0].text)  # type: ignore[union-attr]
                found = await client.call_tool("recall", {"query": f"pump {number * NOTES + turn}", "k": 1})
                if found.is_error:
                    problems.append(found.content[0].text)  # type: ignore[union-attr]

            for first in range(0, NOTES, 4):  # four calls in flight in each server
                async with anyio.create_task_group() as calls:
                    for turn in range(first, min(first + 4, NOTES)):
                        calls.start_soon(note, turn)
            shared = await client.call_tool("remember", {"text": "All of us know this one fact about the boiler."})
            if shared.is_error:
                problems.append(shared.content[0].text)  # type: ignore[union-attr]

    async def main() -> None:
        started = anyio.Event()
        async with anyio.create_task_group() as agents:
            for number in range(SERVERS):
                agents.start_soon(agent, number, started)

    anyio.run(main)
    assert problems == []
    assert firsts.count(True) == 1, "an id that all want at once is one's"
    with trivet.open(store) as memory:
        found = {document.id: document.text for document in memory.documents()}
        for number in range(SERVERS):
            for turn in range(NOTES):
                assert f"observation {turn} about" in found[f"{number}-{turn}"]
        assert len(found) == SERVERS * NOTES + 2, "the shared fact is stored once"
        assert memory.verify().ok
        assert memory.search("observation 7 pump 67", k=1)[0].id == "3-7"
