"""Conversations over HTTP, with a real server, a real client and a real chat endpoint on this machine."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

import trivet
from chat.completions import Completions, serving
from trivet.chat import Chat
from trivet.http.app import create
from trivet.http.config import Config


@contextlib.contextmanager
def listening(app: Any) -> Iterator[str]:
    bound = socket.create_server(("127.0.0.1", 0))
    running = uvicorn.Server(uvicorn.Config(app, log_config=None, ws="none", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
    finally:
        running.should_exit = True
        thread.join()
        bound.close()


@pytest.fixture
def endpoint() -> Iterator[Completions]:
    with serving() as running:
        yield running


@pytest.fixture
def chat(tmp_path: Path) -> Iterator[Chat]:
    """The same store, opened beside the service."""
    with trivet.open(tmp_path / "memory.db", embedder="none") as engine:
        yield Chat(engine)


@pytest.fixture
def client(tmp_path: Path, chat: Chat, endpoint: Completions) -> Iterator[Callable[..., httpx.Client]]:
    """``client("down")`` returns a client of a service whose chat endpoint behaves like that."""
    with contextlib.ExitStack() as stack:

        def make(model: str = "echo", config: dict[str, Any] | None = None, **options: Any) -> httpx.Client:
            table = {"url": endpoint.url, "model": model, **options} if model else {}
            settings: dict[str, Any] = {"embedder": "none", "chat": table, **(config or {})}
            base = stack.enter_context(listening(create(Config(store=str(tmp_path / "memory.db"), **settings))))
            return stack.enter_context(httpx.Client(base_url=base, timeout=60))

        yield make


def events(response: httpx.Response) -> list[tuple[str, Any]]:
    found = []
    for event in response.text.strip().split("\n\n"):
        name, data = event.split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def test_a_conversation_from_beginning_to_end(client: Callable[..., httpx.Client], chat: Chat) -> None:
    ask = client()
    project = ask.post("/projects", json={"name": "heron"})
    assert project.status_code == 201
    assert ask.post("/projects", json={"name": "heron"}).json() == project.json()
    assert ask.get("/projects").json() == [project.json()]

    made = ask.post("/sessions", json={"project": "heron", "title": "doors"})
    assert made.status_code == 201
    session = made.json()
    assert session["project"] == project.json()["id"]
    assert ask.post("/sessions", json={"id": "17"}).json()["id"] == "17"
    assert [item["id"] for item in ask.get("/sessions").json()] == [session["id"], "17"]
    assert ask.get("/sessions", params={"project": "heron"}).json() == [session]
    assert ask.get(f"/sessions/{session['id']}", params={"collection": "default"}).json() == session

    here = f"/sessions/{session['id']}"
    first = ask.post(f"{here}/episodes", json={"user": "Why does the door stick?", "answer": "Rain."})
    assert first.status_code == 201
    answer = ask.post(f"{here}/chat", json={"message": "and the other door?"})
    assert answer.status_code == 200
    assert answer.json()["episode"]["answer"] == "You said: and the other door?"
    assert [source["id"] for source in answer.json()["context"]["sources"]] == [first.json()["id"]]

    listed = ask.get(f"{here}/episodes").json()
    assert [item["id"] for item in listed] == [first.json()["id"], answer.json()["episode"]["id"]]
    assert ask.get(f"{here}/episodes", params={"limit": 1, "before": listed[1]["id"]}).json() == listed[:1]
    assert ask.get(f"{here}/episodes", params={"limit": 1}).json() == listed[1:]

    found = ask.get(f"{here}/search", params={"q": "door", "recent": 1, "scope": "session"}).json()
    assert [hit["episode"]["id"] for hit in found["hits"]] == [first.json()["id"]]
    assert found["hits"][0]["contributions"][0]["leg"] == "lexical"
    block = ask.get(f"{here}/context", params={"q": "door", "budget": 500}).json()
    assert block["text"].startswith("<recalled-data ")
    assert block["tokens"] <= 500
    assert ask.get(f"{here}/context", params={"q": "door", "budget": 0}).json()["left_out"] == 2

    assert ask.delete(here).json() == {"deleted": 2}
    assert ask.get(here).status_code == 404


def test_a_streamed_answer(client: Callable[..., httpx.Client], chat: Chat) -> None:
    session = chat.session()
    earlier = chat.add(session, "hello before", "hi")
    response = client().post(f"/sessions/{session.id}/chat", json={"message": "hello", "stream": True})
    assert response.headers["content-type"].startswith("text/event-stream")
    (first, context), *deltas, (last, done) = events(response)
    assert (first, last) == ("context", "done")
    assert [source["id"] for source in context["sources"]] == [earlier.id]
    assert {name for name, _ in deltas} == {"delta"}
    assert "".join(data["text"] for _, data in deltas) == "You said: \u2028über 🦡 hello" == done["episode"]["answer"]
    assert chat.episodes(session)[-1].id == done["episode"]["id"] == context["episode"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("model", "status", "kind"), [("down", 502, "refused"), ("hangs", 504, "timeout"), ("", 503, "unconfigured")]
)
def test_an_endpoint_that_is_down_is_a_problem_and_the_message_is_kept(
    client: Callable[..., httpx.Client], chat: Chat, model: str, status: int, kind: str, stream: bool
) -> None:
    session = chat.session()
    response = client(model, timeout=0.2).post(
        f"/sessions/{session.id}/chat", json={"message": "hello", "stream": stream}
    )
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert problem["type"].endswith(f"/chat-{kind}")
    assert problem["status"] == status
    (episode,) = chat.episodes(session)
    assert (episode.id, episode.user, episode.state) == (problem["episode"], "hello", "failed")


def test_a_stream_that_breaks_ends_with_an_error_event(client: Callable[..., httpx.Client], chat: Chat) -> None:
    session = chat.session()
    response = client("breaks").post(f"/sessions/{session.id}/chat", json={"message": "hello", "stream": True})
    assert response.status_code == 200
    *_, (name, problem) = events(response)
    assert (name, problem["status"]) == ("error", 502)
    (episode,) = chat.episodes(session)
    assert (episode.id, episode.answer, episode.state) == (problem["episode"], "half an answer", "partial")


def test_a_client_that_goes_away_leaves_a_partial_episode(
    client: Callable[..., httpx.Client], chat: Chat, endpoint: Completions
) -> None:
    session = chat.session()
    ask = client("endless")
    with ask.stream("POST", f"/sessions/{session.id}/chat", json={"message": "hello", "stream": True}) as response:
        next(response.iter_bytes())
    assert endpoint.gone.wait(60), "the endpoint was let go"
    (episode,) = settled(chat, session.id)
    assert episode.state == "partial"
    assert episode.answer.startswith("on and on ")
    assert episode.error == "the reader disconnected"


def settled(chat: Chat, session: str) -> Any:
    """Return the episodes, once none of them is open."""
    pause = threading.Event()
    for _ in range(600):
        found = chat.episodes(session)
        if all(episode.state != "open" for episode in found):
            return found
        pause.wait(0.05)
    return found


@pytest.mark.parametrize(
    ("method", "path", "given", "status"),
    [
        ("POST", "/projects", {"json": {"name": ""}}, 422),
        ("POST", "/projects", {"json": {"name": "a", "url": "http://evil"}}, 422),
        ("POST", "/projects", {"content": b"{", "headers": {"Content-Type": "application/json"}}, 400),
        ("POST", "/sessions", {"json": {"project": "nowhere"}}, 404),
        ("POST", "/sessions", {"json": {"id": "a/b"}}, 422),
        ("GET", "/sessions?collection=other", {}, 404),
        ("GET", "/sessions/nowhere", {}, 404),
        ("GET", "/sessions/17/episodes?limit=-1", {}, 422),
        ("GET", "/sessions/17/episodes?before=x", {}, 404),
        ("POST", "/sessions/17/episodes", {"json": {"user": " "}}, 422),
        ("POST", "/sessions/17/episodes", {"json": {"user": "a", "at": "yesterday"}}, 422),
        ("POST", "/sessions/17/chat", {"json": {"message": "a", "stream": "yes"}}, 422),
        ("POST", "/sessions/nowhere/episodes", {"json": {"user": "a"}}, 404),
        ("GET", "/sessions/17/search", {}, 422),
        ("GET", "/sessions/17/search?q=a&scope=world", {}, 422),
        ("GET", "/sessions/17/search?q=a&k=0", {}, 422),
        ("GET", "/sessions/17/context?q=a&budget=-1", {}, 422),
        ("POST", "/sessions/17/chat", {"json": {"message": ""}}, 422),
        ("POST", "/sessions/17/chat", {"json": {"message": " ", "stream": True}}, 422),
        ("POST", "/sessions/17/chat", {"json": {"message": "a", "url": "http://127.0.0.1:1"}}, 422),
        ("POST", "/sessions/17/chat", {"json": {"message": "a", "model": "other"}}, 422),
        ("POST", "/sessions/nowhere/chat", {"json": {"message": "a", "stream": True}}, 404),
    ],
)
def test_what_is_wrong_is_said(
    client: Callable[..., httpx.Client],
    chat: Chat,
    endpoint: Completions,
    method: str,
    path: str,
    given: Any,
    status: int,
) -> None:
    chat.session(id="17")
    response = client().request(method, path, **given)
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert endpoint.log == [], "nobody was asked"


def test_a_page_without_words_is_a_problem_without_paths(client: Callable[..., httpx.Client], chat: Chat) -> None:
    session = chat.session()
    response = client("traceback").post(f"/sessions/{session.id}/chat", json={"message": "hello"})
    assert response.status_code == 502
    assert "/opt/models" not in response.text
    assert "[path]" in response.json()["detail"]


# --- limits -----------------------------------------------------------------------------------------------------------


def test_only_so_many_answers_are_waited_for_and_searching_goes_on(
    client: Callable[..., httpx.Client], chat: Chat, endpoint: Completions
) -> None:
    session = chat.session()
    ask = client("hangs", {"max_chats": 2, "threads": 1}, timeout=8.0)
    answers: list[int] = []

    def wait() -> None:
        answers.append(ask.post(f"/sessions/{session.id}/chat", json={"message": "hello"}).status_code)

    threads = [threading.Thread(target=wait) for _ in range(2)]
    for thread in threads:
        thread.start()
    pause = threading.Event()
    for _ in range(600):
        if len(endpoint.log) == 2:
            break
        pause.wait(0.05)
    refused = ask.post(f"/sessions/{session.id}/chat", json={"message": "one more"})
    assert refused.status_code == 429
    assert refused.headers["retry-after"] == "5"
    assert len(chat.episodes(session)) == 2, "what is refused is not kept half"
    assert ask.get(f"/sessions/{session.id}/search", params={"q": "hello", "recent": 0}).status_code == 200
    for thread in threads:
        thread.join(60)
    assert answers == [504, 504]
    assert ask.post(f"/sessions/{session.id}/chat", json={"message": "again"}).status_code == 504, "a place is free"


def test_a_stream_gives_its_place_back_however_it_ends(
    client: Callable[..., httpx.Client], chat: Chat, endpoint: Completions
) -> None:
    session = chat.session()
    ask = client("endless", {"max_chats": 1})
    for _ in range(3):
        endpoint.gone.clear()
        with ask.stream("POST", f"/sessions/{session.id}/chat", json={"message": "on", "stream": True}) as response:
            assert response.status_code == 200
            next(response.iter_bytes())
        assert endpoint.gone.wait(60)
        settled(chat, session.id)


def test_the_end_of_the_server_does_not_wait_for_a_model(
    client: Callable[..., httpx.Client], chat: Chat, endpoint: Completions
) -> None:
    """The thread of the service is joined at the end of this test; a silent model would hold it for a minute."""
    session = chat.session()
    ask = client("hangs")
    with pytest.raises(httpx.ReadTimeout):
        ask.post(f"/sessions/{session.id}/chat", json={"message": "hello"}, timeout=3)
    (episode,) = chat.episodes(session)
    assert (episode.user, episode.state) == ("hello", "open")


def test_what_waits_too_long_is_504_and_the_session_is_there(
    client: Callable[..., httpx.Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = client(config={"request_seconds": 0.2})
    hold = threading.Event()
    monkeypatch.setattr(Chat, "projects", lambda self: hold.wait(30) and [])
    answer = ask.get("/projects")
    hold.set()
    assert answer.status_code == 504
    assert answer.json()["type"].endswith("/timeout")
