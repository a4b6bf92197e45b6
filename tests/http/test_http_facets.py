"""Facets, timeline, recent searches and service information: their counts, and who may read them."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from trivet.engine.keys import Keys

HOME = "/v1/collections/default"
EAST, WEST = {"port": "east"}, {"port": "west"}
NOTES = [
    {
        "id": "a",
        "text": "The ferry sails at dawn.",
        "kind": "plan",
        "meta": {**EAST, "berths": 2},
        "created": "2026-01-05",
    },
    {"id": "b", "text": "The ferry waits for the mail.", "kind": "plan", "meta": EAST, "created": "2026-01-20"},
    {"id": "c", "text": "Fog holds the pilots ashore.", "kind": "note", "meta": WEST, "created": "2026-03-01"},
    {"id": "d", "text": "fog holds  the PILOTS ashore.", "kind": "note", "created": "2024-03-01"},
]


@pytest.fixture
def filled(client: TestClient) -> TestClient:
    client.post(f"{HOME}/documents", json={"documents": NOTES}).raise_for_status()
    client.post(f"{HOME}/links", json={"source": "b", "target": "a", "type": "supersedes"}).raise_for_status()
    return client


def test_facets_are_counted_under_the_filter(filled: TestClient) -> None:
    facets = {one["field"]: one for one in filled.get(f"{HOME}/facets").json()["facets"]}
    assert facets["kind"]["values"] == [{"value": "note", "documents": 2}, {"value": "plan", "documents": 2}]
    assert facets["port"] == {
        "field": "port",
        "documents": 3,
        "distinct": 2,
        "values": [{"value": "east", "documents": 2}, {"value": "west", "documents": 1}],
    }
    assert facets["berths"]["values"] == [{"value": 2, "documents": 1}]
    some = filled.get(f"{HOME}/facets", params={"where": "kind=note", "values": 1}).json()["facets"]
    assert [(one["field"], one["documents"], len(one["values"])) for one in some] == [
        ("kind", 2, 1),
        ("port", 1, 1),
    ], "a field that no document within the filter has is not named"


def test_the_timeline_has_every_document_once(filled: TestClient) -> None:
    found = filled.get(f"{HOME}/timeline").json()
    assert found["step"] == "month"
    assert [(one["period"], one["documents"]) for one in found["periods"]] == [
        ("2024-03", 1),
        ("2026-01", 2),
        ("2026-03", 1),
    ]
    assert filled.get(f"{HOME}/timeline?step=year").json()["periods"][1] == {"period": "2026", "documents": 3}
    assert filled.get(f"{HOME}/timeline?where=kind=plan").json()["step"] == "day"
    assert filled.get(f"{HOME}/timeline?field=valid_to").json()["periods"] == []
    assert filled.get(f"{HOME}/timeline?step=hour").status_code == 422


def test_what_is_superseded_and_what_is_a_copy(filled: TestClient) -> None:
    assert filled.get(f"{HOME}/standing").json() == {
        "superseded": [{"id": "a", "by": "b"}],
        "copies": [["c", "d"]],
        "looked_at": 4,
    }
    only = filled.get(f"{HOME}/standing", params={"id": ["d", "b"]}).json()
    assert (only["superseded"], only["copies"]) == ([], [["c", "d"]])


def test_marks_are_the_words_that_were_asked_for(filled: TestClient) -> None:
    asked = {"query": "pilot fogs", "marks": True, "overrides": {"alpha": 0.0}}
    hit = filled.post(f"{HOME}/search", json=asked).json()["hits"][0]
    assert [hit["text"][start:end] for start, end in hit["marks"]] == ["Fog", "pilots"]
    assert "marks" not in filled.post(f"{HOME}/search", json={"query": "fog"}).json()["hits"][0]
    assert "marks" in filled.post(f"{HOME}/search", json={**asked, "explain": False}).json()["hits"][0]


def test_recent_searches_are_timed_and_say_nothing_of_the_question(filled: TestClient) -> None:
    assert filled.get(f"{HOME}/recent").json()["searches"] == []
    filled.post(f"{HOME}/search", json={"query": "a secret matter"})
    filled.get(f"{HOME}/search", params={"q": "fog"})
    told = filled.get(f"{HOME}/recent").json()
    assert [set(one["stages"]) >= {"lexical", "fusion"} for one in told["searches"]] == [True, True]
    assert "secret" not in str(told)
    assert len(filled.get(f"{HOME}/recent?limit=1").json()["searches"]) == 1
    filled.put("/v1/collections/other", json={})
    assert filled.get("/v1/collections/other/recent").json()["searches"] == [], "of this collection alone"


def test_choices_are_what_a_profile_can_be_made_of(client: TestClient) -> None:
    told = client.get("/v1/choices").json()
    for fusion in told["fusions"]:
        answer = client.post(f"{HOME}/search", json={"query": "x", "overrides": {"fusion": fusion}})
        assert answer.status_code == 200
    assert told["fusion_settings"]["rrf"] == ["rrf_k"] and told["fusion_settings"].keys() == set(told["fusions"])
    assert told["rerankers"]["importance"]["floor"]["default"] == 0.7
    assert set(told["legs"]) == set(client.get(f"{HOME}/settings").json()["weights"])


def test_who_am_i(service: Any, tmp_path: Any) -> None:
    client = service()
    assert client.get("/v1/caller").json()["scope"] == "admin"
    assert client.get("/v1/caller").json()["key"] is None
    with Keys(tmp_path / "memory.db") as keys:
        _, reader = keys.create("reader", "read", ["default"])
    told = client.get("/v1/caller", headers={"X-API-Key": reader}).json()
    assert (told["key"], told["scope"], told["collections"]) == ("reader", "read", ["default"])
    for path in ("facets", "timeline", "standing", "recent", "qrels", "jobs"):
        url = f"{HOME}/{path}"
        assert client.get(url).status_code == 401, path
        assert client.get(url, headers={"X-API-Key": reader}).status_code == 200, path
        other = client.get(f"/v1/collections/elsewhere/{path}", headers={"X-API-Key": reader})
        assert other.status_code == 403, path
    for method, path in (("POST", "jobs"), ("DELETE", "jobs/tune"), ("POST", "jobs/tune/apply")):
        body = {"kind": "tune"} if path == "jobs" else None
        refused = client.request(method, f"{HOME}/{path}", headers={"X-API-Key": reader}, json=body)
        assert refused.status_code == 403, path
    assert client.get("/v1/evaluations", headers={"X-API-Key": reader}).status_code == 403, "of the whole store"


def test_stats_tell_what_the_bytes_are_for_when_asked(client: TestClient) -> None:
    client.post(f"{HOME}/documents", json={"text": "heron"})
    assert "space" not in client.get(f"{HOME}/stats").json()
    found = client.get(f"{HOME}/stats", params={"space": True}).json()
    assert sum(found["space"].values()) > found["documents"] == 1
