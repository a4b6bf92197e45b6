"""The OpenAI-compatible routes without its SDK, which tests/integrations/test_openai.py has: keys, forms, limits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from trivet.engine.keys import Keys
from trivet.errors import InputError
from trivet.filters import And, Eq, In, Not, Or, Range
from trivet.http.app import create
from trivet.http.config import Config
from trivet.http.openai_filters import translated

EQUAL = {"type": "eq", "key": "a", "value": 1}


def test_a_filter_is_translated() -> None:
    parts = [EQUAL, {"type": "nin", "key": "b", "value": ["x"]}, {"type": "lte", "key": "c", "value": 2.5}]
    expected = (Eq("a", 1), Not(In("b", ("x",))), Range("c", lte=2.5))
    assert translated({"type": "and", "filters": parts}, 10) == And(expected)
    assert translated({"type": "or", "filters": parts}, 10) == Or(expected)


def test_a_filter_may_have_so_many_levels() -> None:
    deep: dict[str, Any] = EQUAL
    for _ in range(3):
        deep = {"type": "and", "filters": [deep]}
    assert translated(deep, 3) == And((And((And((Eq("a", 1),)),)),))
    with pytest.raises(InputError, match="more than 2 levels"):
        translated(deep, 2)


@pytest.mark.parametrize(
    ("sent", "status", "detail"),
    [
        ({"json": {"file": "x"}}, 415, "multipart/form-data"),
        ({"content": b"junk", "headers": {"Content-Type": "multipart/form-data; boundary=x"}}, 400, "body: "),
        ({"content": b"junk", "headers": {"Content-Type": "multipart/form-data"}}, 400, "body: "),
        ({"files": {"other": ("a.txt", b"x")}}, 422, "file: missing"),
        ({"files": [("file", ("a.txt", b"x")), ("file", ("b.txt", b"y"))]}, 400, "Too many files"),
        ({"files": {"file": ("a.txt", b"x" * 3_000)}}, 413, "2,000"),
    ],
)
def test_a_form_that_is_none(
    service: Callable[..., TestClient], sent: dict[str, Any], status: int, detail: str
) -> None:
    answer = service(max_body_bytes=2_000).post("/v1/files", **sent)
    assert answer.status_code == status, answer.text
    assert detail in answer.json()["detail"]
    assert answer.json()["message"] == answer.json()["detail"], "the SDK shows nothing else"


def test_too_many_texts_to_embed(service: Callable[..., TestClient]) -> None:
    client = service(max_batch=2)
    assert client.post("/v1/embeddings", json={"input": ["a", "b"], "model": "default"}).status_code == 200
    assert client.post("/v1/embeddings", json={"input": ["a", "b", "c"], "model": "default"}).status_code == 413


@pytest.mark.parametrize("tokens", [[1, 2], [[1, 2], [3]]])
def test_numbers_of_tokens_are_refused_with_the_way_out(client: TestClient, tokens: list[Any]) -> None:
    answer = client.post("/v1/embeddings", json={"input": tokens, "model": "default"})
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("input: numbers of tokens are not read; send text (LangChain:")


def test_a_collection_without_a_model_embeds_nothing(client: TestClient) -> None:
    client.put("/v1/collections/plain", json={"words_only": True})
    answer = client.post("/v1/embeddings?collection=plain", json={"input": "a", "model": "default"})
    assert answer.status_code == 422
    assert "has no embedding model" in answer.json()["detail"]


def test_documents_of_other_routes_are_files_too(client: TestClient) -> None:
    note = {"id": "notes/door", "text": "The side door sticks.", "title": "Door", "meta": {"floor": 1, "tags": ["a"]}}
    client.post("/v1/collections/default/documents", json=note)
    (file,) = client.get("/v1/vector_stores/default/files").json()["data"]
    assert (file["id"], file["attributes"]) == ("notes/door", {"floor": 1})
    (hit,) = client.post("/v1/vector_stores/default/search", json={"query": "side door"}).json()["data"]
    assert (hit["file_id"], hit["filename"], hit["content"][0]["text"]) == ("notes/door", "Door", note["text"])
    assert client.delete("/v1/vector_stores/default/files/notes/door").json()["deleted"]
    assert client.get("/v1/vector_stores/default").json()["file_counts"]["total"] == 0


def test_a_key_is_needed_and_its_filter_holds(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with Keys(path) as keys, TestClient(create(Config(store=str(path), embedder="none")), "http://127.0.0.1") as http:
        tokens = {name: keys.create(name, "write", where=f"user={name}")[1] for name in ("ana", "ben")}

        def call(who: str, method: str, url: str, **options: Any) -> Any:
            return http.request(method, f"/v1{url}", headers={"Authorization": f"Bearer {tokens[who]}"}, **options)

        assert http.get("/v1/files").status_code == 401
        made = call("ana", "POST", "/files", files={"file": ("a.txt", b"The harbour opens at nine.")})
        assert made.status_code == 200, made.text
        id = made.json()["id"]
        assert call("ben", "GET", f"/files/{id}").status_code == 404
        assert call("ben", "POST", "/vector_stores/default/files", json={"file_id": id}).status_code == 404
        assert call("ana", "POST", "/vector_stores/default/files", json={"file_id": id}).status_code == 200
        search = {"json": {"query": "harbour"}}
        assert len(call("ana", "POST", "/vector_stores/default/search", **search).json()["data"]) == 1
        assert call("ben", "POST", "/vector_stores/default/search", **search).json()["data"] == []
