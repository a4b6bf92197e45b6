"""The service reranks with the scorer of its configuration, and only with that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient

from trivet.errors import InputError
from trivet.http.config import Config, resolve
from trivet.http.server import check

NOTES = [{"id": "green", "text": "The side door is green."}, {"id": "river", "text": "A side door by the river."}]
READ = {"query": "side door", "overrides": {"rerankers": [{"name": "cross_encoder", "budget_ms": 20000.0}]}}


def asked(client: TestClient, body: dict[str, Any]) -> Any:
    client.post("/v1/collections/default/documents", json={"documents": NOTES})
    return client.post("/v1/collections/default/search", json=body)


def test_the_configured_scorer_is_asked(service: Callable[..., TestClient]) -> None:
    client = service(scorer="words")
    answer = asked(client, READ).json()
    assert answer["degraded"] == []
    assert "2 of 2 scored" in next(stage["detail"] for stage in answer["trace"] if stage["name"] == "rerank")
    assert client.get("/v1/collections/default/stats").json()["scorer"] == "words/1"


def test_without_one_the_answer_says_so(service: Callable[..., TestClient]) -> None:
    client = service()
    answer = asked(client, READ).json()
    assert [item["part"] for item in answer["degraded"]] == ["cross_encoder"]
    assert len(answer["hits"]) == 2


@pytest.mark.parametrize(
    "body",
    [
        {**READ, "scorer": "http://10.0.0.1/rerank"},
        {"query": "side door", "overrides": {"scorer": "http://10.0.0.1/rerank"}},
        {"query": "side door", "overrides": {"rerankers": [{"name": "cross_encoder", "scorer": "folder:/etc"}]}},
    ],
)
def test_a_request_cannot_choose_the_scorer(service: Callable[..., TestClient], body: dict[str, Any]) -> None:
    assert asked(service(scorer="words"), body).status_code == 422


def test_it_is_set_like_everything_else(tmp_path: Any) -> None:
    assert Config().scorer == "none"
    assert resolve({}, {"TRIVET_SCORER": "words"})[0].scorer == "words"
    file = tmp_path / "t.toml"
    file.write_text('scorer = "folder:/models/reranker"\n')
    assert resolve({}, {}, file)[0].scorer == "folder:/models/reranker"
    assert resolve({"scorer": "words"}, {"TRIVET_SCORER": "other"}, file)[0].scorer == "words"


def test_a_wrong_one_is_told_before_the_server_starts(tmp_path: Any) -> None:
    with pytest.raises(InputError, match="scorer 'nonsense'"):
        check(Config(store=str(tmp_path / "m.db"), scorer="nonsense"))
    found = dict(check(Config(store=str(tmp_path / "m.db"), port=0, scorer="words")))
    assert found["scorer"] == "words/1"
