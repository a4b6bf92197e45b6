"""Google ADK: the same operations on its own memory service and on ours, and an agent that loads memories."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest

import trivet

adk = pytest.importorskip("google.adk.memory", reason="needs the extra google-adk: `make test-integrations`")

from google.adk.agents import LlmAgent
from google.adk.events import Event
from google.adk.memory import BaseMemoryService, InMemoryMemoryService
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService, Session
from google.adk.tools import load_memory, preload_memory
from google.genai.types import Content, FunctionCall, Part
from programs import run_example, run_section

from trivet.errors import InputError
from trivet.integrations.google_adk import TrivetMemoryService

DOOR = "The greenhouse door sticks when it rains."
PUMP = "The irrigation pump is the quieter one now."


@pytest.fixture
def ours() -> Iterator[TrivetMemoryService]:
    words = {"weights": {"lexical": 1.0, "trigram": 0.0, "dense": 0.0, "graph": 0.0}, "context": 0.0}
    service = TrivetMemoryService(":memory:", embedder="hashing", options=words)
    yield service
    service.engine.close()


def said(id: str, text: str, author: str = "user", *, at: float = 1780308000.0, **more: Any) -> Event:
    role = "user" if author == "user" else "model"
    return Event(id=id, author=author, timestamp=at, content=Content(role=role, parts=[Part(text=text)]), **more)


def session(*events: Event, app: str = "heron", user: str = "ana", id: str = "s1") -> Session:
    return Session(id=id, app_name=app, user_id=user, events=list(events))


async def found(service: BaseMemoryService, query: str, app: str = "heron", user: str = "ana") -> list[MemoryEntry]:
    return (await service.search_memory(app_name=app, user_id=user, query=query)).memories


async def test_both_services_find_the_same_within_an_application_and_a_user(ours: TrivetMemoryService) -> None:
    theirs = InMemoryMemoryService()
    for service in (theirs, ours):
        await service.add_session_to_memory(session(said("e1", DOOR), said("e2", "Plane it.", "helper")))
        await service.add_session_to_memory(session(said("e1", PUMP), user="ben", id="s2"))
        await service.add_session_to_memory(session(said("e1", PUMP), app="heron/ana", user="x", id="s3"))
        await service.add_events_to_memory(app_name="heron", user_id="ana", events=[said("e9", PUMP)], session_id="s1")
    asked = [("pump", "heron", "ana"), ("pump", "heron", "ben"), ("door", "heron", "ana"), ("door", "heron", "ben"),
             ("pump", "heron/ana", "x"), ("pump", "heron", "nobody"), ("", "heron", "ana")]  # fmt: skip
    for query, app, user in asked:
        wanted = {
            (entry.id, entry.author, entry.content.parts[0].text) for entry in await found(theirs, query, app, user)
        }
        got = {(entry.id, entry.author, entry.content.parts[0].text) for entry in await found(ours, query, app, user)}
        assert got == wanted, (query, app, user)


async def test_a_session_that_is_added_again_adds_what_is_new(ours: TrivetMemoryService) -> None:
    await ours.add_session_to_memory(session(said("e1", DOOR)))
    await ours.add_session_to_memory(session(said("e1", DOOR), said("e2", PUMP)))
    await ours.add_session_to_memory(session(said("e2", PUMP)))  # loaded in part
    assert ours.engine.stats().documents == 2
    (entry,) = await found(ours, "door")
    assert (entry.content.role, entry.author, entry.timestamp) == ("user", "user", "2026-06-01T10:00:00+00:00")
    hit = ours.engine.search("door", where={"session": "s1", "speaker": "user"}).hits[0]
    assert hit.id == "heron/ana/e1"


async def test_what_is_not_said_is_not_kept(ours: TrivetMemoryService) -> None:
    call = Event(id="e3", author="helper", content=Content(parts=[Part(function_call=FunctionCall(name="x", args={}))]))
    thought = Content(role="model", parts=[Part(text="A secret thought.", thought=True), Part(text="Plane it.")])
    events = [said("e1", DOOR, partial=True), Event(id="e2", author="helper"), call]
    await ours.add_session_to_memory(session(*events, Event(id="e4", author="helper", content=thought)))
    (entry,) = await found(ours, "secret thought: plane")
    assert (entry.id, entry.content.parts[0].text) == ("e4", "Plane it.")


async def test_a_deleted_memory_does_not_come_back(ours: TrivetMemoryService) -> None:
    theirs = InMemoryMemoryService()
    for service in (theirs, ours):
        await service.add_session_to_memory(session(said("e1", DOOR), said("e2", PUMP)))
        await service.delete_memory(app_name="heron", user_id="ben", memory_id="e1")
        assert [entry.id for entry in await found(service, "door")] == ["e1"]
        await service.delete_memory(app_name="heron", user_id="ana", memory_id="e1")
        await service.delete_memory(app_name="heron", user_id="ana", memory_id="gone")
        await service.delete_memory(app_name="heron", user_id="ana")
        await service.add_session_to_memory(session(said("e1", DOOR), said("e2", PUMP)))
        assert not await found(service, "door")
        assert [entry.id for entry in await found(service, "pump")] == ["e2"]
    kept = ours.engine.get("heron/ana/e1")
    assert (kept.text, kept.kind) == ("", "adk-deleted")


async def test_memories_with_metadata_of_their_own(ours: TrivetMemoryService) -> None:
    content = Content(parts=[Part(text=DOOR)])
    memories = [MemoryEntry(content=content, author="ana", custom_metadata={"room": "north"})]
    for _ in range(2):
        await ours.add_memory(app_name="heron", user_id="ana", memories=memories, custom_metadata={"by": "hand"})
    (entry,) = await found(ours, "door")
    assert entry.custom_metadata == {"room": "north", "by": "hand"}
    assert ours.engine.search("door", where={"custom.room": "north"}).hits
    with pytest.raises(InputError, match="object is not JSON"):
        await ours.add_memory(app_name="a", user_id="b", memories=memories, custom_metadata={"bad": object()})


async def test_how_many_and_which_settings(tmp_path: Path) -> None:
    with trivet.open(tmp_path / "m.db", embedder="hashing") as engine:
        service = TrivetMemoryService(engine, k=1, options={"alpha": 0.0})
        await service.add_session_to_memory(session(said("e1", "the pump"), said("e2", "the pump, the pump")))
        assert len(await found(service, "pump")) == 1


class Model(BaseLlm):
    """Answers the first request with a call of `load_memory`, and the second one with what it was given."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        answers = [part.function_response for content in llm_request.contents for part in content.parts or []]
        loaded = next((answer for answer in answers if answer), None)
        if loaded is None:
            part = Part(function_call=FunctionCall(name="load_memory", args={"query": "door"}))
        else:
            preloaded = any(DOOR in (part.text or "") for each in llm_request.contents for part in each.parts or [])
            part = Part(text=f"{loaded.response}, preloaded: {preloaded}")
        yield LlmResponse(content=Content(role="model", parts=[part]))


async def test_an_agent_loads_memories(ours: TrivetMemoryService) -> None:
    await ours.add_session_to_memory(session(said("e1", DOOR)))
    sessions = InMemorySessionService()
    agent = LlmAgent(name="helper", model=Model(model="none"), tools=[load_memory, preload_memory])
    runner = Runner(app_name="heron", agent=agent, session_service=sessions, memory_service=ours)
    mine = await sessions.create_session(app_name="heron", user_id="ana")
    asked = Content(role="user", parts=[Part(text="Why does the door stick?")])
    answers = [
        part.text
        async for event in runner.run_async(user_id="ana", session_id=mine.id, new_message=asked)
        for part in event.content.parts
        if part.text
    ]
    assert DOOR in answers[-1]
    assert answers[-1].endswith("preloaded: True")


def test_the_example_prints_what_it_finds(capsys: pytest.CaptureFixture[str]) -> None:
    run_example("google_adk")
    assert capsys.readouterr().out.splitlines() == [
        "ana ['user: The irrigation pump is the quieter one now.']",
        "ben ['user: The greenhouse door sticks when it rains.']",
        "carl []",
    ]


def test_the_code_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = run_section("Google ADK")
    names["memory"].engine.close()
    assert [entry.author for entry in names["found"].memories] == ["user"]
