"""Search, explain and settings over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

HOME = "/v1/collections/default"
TREES = ["alder", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine", "rowan", "yew"]


@pytest.fixture
def trees(client: TestClient) -> TestClient:
    documents = [{"id": tree, "text": f"the {tree} in the wood", "meta": {"at": at}} for at, tree in enumerate(TREES)]
    assert client.post(f"{HOME}/documents", json={"documents": documents}).status_code == 201
    return client


def ids(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [hit["id"] for hit in answer.json()["hits"]]


def test_post_and_get_answer_alike(trees: TestClient) -> None:
    posted = trees.post(f"{HOME}/search", json={"query": "oak wood", "k": 3, "overrides": {"alpha": 0.3}})
    got = trees.get(f"{HOME}/search", params={"q": "oak wood", "k": 3, "alpha": 0.3})
    assert ids(posted) == ids(got)
    assert posted.json()["hits"][0]["id"] == "oak"
    assert posted.json()["profile"] == got.json()["profile"]


def test_a_hit_carries_its_account_unless_it_is_not_wanted(trees: TestClient) -> None:
    full = trees.post(f"{HOME}/search", json={"query": "oak"}).json()
    assert full["hits"][0]["contributions"][0]["leg"] in ("lexical", "dense")
    assert {stage["name"] for stage in full["trace"]} >= {"lexical", "fusion", "total"}
    short = trees.post(f"{HOME}/search", json={"query": "oak", "explain": False}).json()
    assert "contributions" not in short["hits"][0]
    assert "trace" not in short
    assert [hit["score"] for hit in short["hits"]] == [hit["score"] for hit in full["hits"]]


def test_the_whole_text_comes_on_request(trees: TestClient) -> None:
    text = " ".join(f"Branch {at} of the spruce." for at in range(500))
    trees.put(f"{HOME}/documents/spruce", json={"text": text})
    asked = {"query": "branch 400 of the spruce", "k": 1}
    (lean,) = trees.post(f"{HOME}/search", json=asked).json()["hits"]
    assert (lean["id"], "text" in lean["document"], "text" in lean["passage"]) == ("spruce", False, False)
    (whole,) = trees.post(f"{HOME}/search", json={**asked, "full": True}).json()["hits"]
    assert (whole["document"]["text"], whole["passage"]["text"]) == (text, lean["text"])
    params = {"q": asked["query"], "k": 1}
    assert trees.get(f"{HOME}/search", params={**params, "full": "true"}).json()["hits"] == [whole]


def test_a_caller_chooses_the_keys_of_a_hit(trees: TestClient) -> None:
    asked = {"query": "oak", "k": 1, "explain": False}
    chosen = trees.post(f"{HOME}/search", json={**asked, "fields": ["id", "fused"]}).json()["hits"]
    assert [list(hit) for hit in chosen] == [["id", "fused"]]
    assert trees.get(f"{HOME}/search", params={"q": "oak", "k": 1, "fields": "text"}).json()["hits"] == [
        {"text": "the oak in the wood"}
    ]


def test_pages_neither_repeat_nor_skip(trees: TestClient) -> None:
    whole = ids(trees.post(f"{HOME}/search", json={"query": "wood", "k": 12}))
    pages = [ids(trees.post(f"{HOME}/search", json={"query": "wood", "k": 5, "offset": at})) for at in (0, 5, 10)]
    assert [*pages[0], *pages[1], *pages[2]] == whole
    assert sorted(whole) == TREES


def test_filters_in_every_form(trees: TestClient) -> None:
    for where in ({"at": {"gte": 9}}, "at>=9", ["at>=9"], {"$not": {"at": {"lt": 9}}}):
        assert sorted(ids(trees.post(f"{HOME}/search", json={"query": "wood", "where": where}))) == TREES[9:], where
    assert sorted(ids(trees.get(f"{HOME}/search", params={"q": "wood", "where": ["at>=9", "at<=10"]}))) == TREES[9:11]


def test_exclude_profile_and_explain(trees: TestClient) -> None:
    assert "oak" not in ids(trees.post(f"{HOME}/search", json={"query": "oak wood", "exclude": ["oak"], "k": 12}))
    assert (
        trees.post(f"{HOME}/search", json={"query": "oak", "profile": "memories"}).json()["profile"].startswith("mem")
    )
    why = trees.post(f"{HOME}/explain", json={"query": "oak", "id": "elm"}).json()
    assert why["id"] == "elm"
    assert {verdict["leg"] for verdict in why["verdicts"]} == {"lexical", "dense", "graph"}
    assert trees.post(f"{HOME}/explain", json={"query": "oak", "id": "zz"}).status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"query": ""}, "query"),
        ({"query": "x", "k": 0}, "k"),
        ({"query": "x", "k": "5"}, "k"),
        ({"query": "x", "offset": -1}, "offset"),
        ({"query": "x", "where": {"colour": "red"}}, "where"),
        ({"query": "x", "where": {"at": {"about": 3}}}, "where"),
        ({"query": "x", "profile": "none"}, "profile"),
        ({"query": "x", "overrides": {"weights": {"dense": 9}}}, "weights.dense"),
        ({"query": "x", "overrides": {"alhpa": 1}}, "alhpa"),
        ({"query": "x", "overrides": {"by": 1}}, "by"),
        ({"query": "x", "overrides": {"where": "a=1"}}, "where"),
        ({"query": "x", "as_of": "soon"}, "as_of"),
        ({"query": "x", "fields": ["colour"]}, "fields"),
        ({"query": "x", "vector": [1.0]}, "vector"),
        ({"q": "x"}, "query"),
    ],
)
def test_what_is_wrong_is_named(trees: TestClient, body: Any, field: str) -> None:
    answer = trees.post(f"{HOME}/search", json=body)
    assert answer.status_code == 422, answer.text
    assert field in [error["field"] for error in answer.json()["errors"]]


# --- settings ---------------------------------------------------------------------------------------------------------


def test_settings_change_are_written_down_and_taken_back(client: TestClient) -> None:
    first = client.patch(f"{HOME}/settings", json={"k": 3, "weights": {"dense": 2.0}})
    assert (first.json()["k"], first.json()["weights"]["dense"]) == (3, 2.0)
    client.patch(f"{HOME}/settings", json={"profile": "memories"})
    changes = client.get(f"{HOME}/settings/history").json()["changes"]
    assert [change["number"] for change in changes] == [2, 1]
    assert changes[0]["by"] == "http"
    assert changes[0]["previous"]["k"] == 3
    back = client.post(f"{HOME}/settings/revert", json={"to": 1})
    assert back.json()["k"] == 3
    assert client.get(f"{HOME}/settings").json()["identity"] == first.json()["identity"]
    assert client.post(f"{HOME}/settings/revert", json={"to": 99}).status_code in (404, 422)
    assert client.post(f"{HOME}/settings/revert", json={"to": 10**30}).status_code == 422


def test_settings_out_of_range_change_nothing(client: TestClient) -> None:
    before = client.get(f"{HOME}/settings").json()
    for body in ({"k": 0}, {"keywordWeight": 9}, {"nonsense": 1}, {"by": "me"}, {"profile": "none"}, {}):
        answer = client.patch(f"{HOME}/settings", json=body)
        assert answer.status_code == 422, body
        assert answer.json()["errors"]
    assert client.get(f"{HOME}/settings").json() == before
    assert client.get(f"{HOME}/settings/history").json() == {"changes": []}


def test_another_process_sees_them_with_its_next_request(service: Callable[..., TestClient]) -> None:
    one, two = service(), service()
    one.patch(f"{HOME}/settings", json={"k": 7})
    assert two.get(f"{HOME}/settings").json()["k"] == 7


# --- compatibility ---------------------------------------------------------------------------------------------------


def test_seed_000_as_written(client: TestClient) -> None:
    """PATCH /settings with its two curl bodies, and its search by sessions."""
    assert client.get("/episodes/search?q=hello&sessionIds=1,2,3").json()["hits"] == [], "an empty store is no error"
    said = {1: "hello there", 2: "hello again", 9: "hello elsewhere"}
    documents = [
        {"id": f"e{session}", "text": text, "kind": "episode", "meta": {"session_id": session}}
        for session, text in said.items()
    ]
    client.post(f"{HOME}/documents", json={"documents": [*documents, {"id": "note", "text": "hello note"}]})
    assert client.patch("/settings", json={"keywordWeight": 1.0}).json()["keywordWeight"] == 1.0
    both = client.patch("/settings", json={"semanticWeight": 0.5, "keywordWeight": 2.0}).json()
    assert (both["semanticWeight"], both["keywordWeight"]) == (0.5, 2.0)
    assert (both["weights"]["dense"], both["weights"]["lexical"]) == (0.5, 2.0)
    assert client.get("/settings").json()["keywordWeight"] == 2.0
    assert sorted(ids(client.get("/episodes/search?q=hello&sessionIds=1,2,3"))) == ["e1", "e2"]
    assert sorted(ids(client.get("/episodes/search?q=hello"))) == ["e1", "e2", "e9"]
    assert len(ids(client.get("/episodes/search?q=hello&limit=1"))) == 1
    assert client.patch("/settings", json={"keywordWeight": 5.1}).status_code == 422, "0-5, as documented"


def test_seed_004_options(client: TestClient) -> None:
    documents = [
        {"id": f"{repository}-{kind}", "text": "open the door", "kind": kind, "meta": {"repositoryId": repository}}
        for repository in ("r1", "r2")
        for kind in ("code", "info")
    ]
    client.post(f"{HOME}/documents", json={"documents": documents})
    asked = {"q": "door", "repositoryId": "r1", "type": "code", "limit": 20, "alpha": 0.5}
    assert ids(client.get("/search", params=asked)) == ["r1-code"]
    assert ids(client.get("/search", params={"q": "door", "versionId": "7"})) == []
    assert client.get("/search", params={"q": "door", "alpha": 1.5}).status_code == 422


def test_camel_case_is_understood_once(client: TestClient) -> None:
    assert client.patch("/settings", json={"rrfK": 5, "minRelevance": 0.2}).json()["rrf_k"] == 5
    twice = client.patch("/settings", json={"rrfK": 5, "rrf_k": 6})
    assert twice.status_code == 422
    assert "two names" in twice.json()["detail"]


@pytest.mark.parametrize(
    ("path", "detail"),
    [
        (
            "search?q=door&min_relevence=0.9",
            "min_relevence: unknown parameter; did you mean 'min_relevance'? known: q, k,",
        ),
        ("documents/door-7?full=true", "full: unknown parameter; known: none"),
    ],
)
def test_a_misspelt_parameter_is_refused(client: Any, path: str, detail: str) -> None:
    found = client.get(f"{HOME}/{path}")
    assert (found.status_code, found.json()["detail"].startswith(detail)) == (422, True), found.text
    assert found.json()["errors"][0]["field"] == path.partition("?")[2].rpartition("&")[2].partition("=")[0]


def test_a_misspelt_field_is_named_beside_the_missing_one(client: Any) -> None:
    found = client.post(f"{HOME}/search", json={"qery": "door"})
    assert found.json()["detail"] == "query: missing; qery: unknown field"
