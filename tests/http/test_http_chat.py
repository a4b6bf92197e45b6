"""The routes of conversations are part of the service and need its keys."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from starlette.testclient import TestClient

from trivet.engine.keys import Keys


def test_a_conversation_and_seed_000s_search_see_the_same_episodes(client: TestClient) -> None:
    session = client.post("/sessions", json={"title": "doors"}).json()["id"]
    other = client.post("/sessions", json={"title": "roofs"}).json()["id"]
    for home in (session, other):
        made = client.post(f"/sessions/{home}/episodes", json={"user": f"hello from {home}", "answer": "hello"})
        assert made.status_code == 201
    found = client.get("/episodes/search", params={"q": "hello", "sessionIds": f"{session},nobody"}).json()["hits"]
    assert [hit["document"]["meta"]["session"] for hit in found] == [session]
    assert len(client.get("/episodes/search?q=hello").json()["hits"]) == 2
    assert client.get(f"/sessions/{session}/search", params={"q": "hello", "recent": 0}).status_code == 200
    assert client.get("/sessions/none").json()["type"].endswith("not-found")


def test_they_ask_for_a_key_too(service: Callable[..., TestClient], tmp_path: Path) -> None:
    client = service()
    with Keys(tmp_path / "memory.db") as keys:
        _, reader = keys.create("reader", "read")
        _, clerk = keys.create("clerk", "write", ["tickets"])
    read, bound = ({"Authorization": f"Bearer {text}"} for text in (reader, clerk))
    assert client.get("/sessions").status_code == 401
    assert client.post("/sessions", json={}).status_code == 401
    assert client.get("/sessions", headers=read).status_code == 200
    assert client.post("/sessions", json={}, headers=read).status_code == 403
    assert client.get("/sessions", headers=bound).status_code == 403
    assert client.get("/sessions", params={"collection": "tickets"}, headers=bound).status_code == 404


def test_without_an_endpoint_the_chat_says_so(client: TestClient) -> None:
    session = client.post("/sessions", json={}).json()["id"]
    answer = client.post(f"/sessions/{session}/chat", json={"message": "hello"})
    assert answer.status_code == 503
    assert answer.headers["content-type"] == "application/problem+json"
