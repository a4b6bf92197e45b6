"""Keys, scopes and limits, and what a response says about an error."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute
from starlette.testclient import TestClient

import trivet
from trivet.engine.keys import Keys
from trivet.errors import EmbedderError, InputError, NotFoundError, StoreError
from trivet.http import server
from trivet.http.app import ROUTES, create
from trivet.http.config import Config

HOME = "/v1/collections/default"
OPEN = {"/healthz", "/readyz"}


@pytest.fixture
def keyed(service: Callable[..., TestClient], tmp_path: Path) -> tuple[TestClient, Keys]:
    client = service()
    keys = Keys(tmp_path / "memory.db")
    return client, keys


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def operations() -> list[tuple[str, str]]:
    schema = create(Config()).openapi()
    return [(method.upper(), path) for path, item in schema["paths"].items() for method in item]


# --- keys -------------------------------------------------------------------------------------------------------------


def test_a_revoked_key_is_no_key_and_the_store_stays_closed(keyed: tuple[TestClient, Keys]) -> None:
    client, keys = keyed
    assert client.get(f"{HOME}/stats").status_code == 200, "no key was ever made"
    _, text = keys.create("one")
    assert client.get(f"{HOME}/stats").status_code == 401
    assert client.get(f"{HOME}/stats", headers=bearer(text)).status_code == 200
    assert client.get(f"{HOME}/stats", headers={"X-API-Key": text}).status_code == 200
    keys.revoke("one")
    gone = client.get(f"{HOME}/stats", headers=bearer(text))
    assert gone.status_code == 401
    assert gone.headers["www-authenticate"].startswith("Bearer")
    assert client.get(f"{HOME}/stats").status_code == 401, "taking the last key away opens nothing"
    with pytest.raises(NotFoundError):
        keys.revoke("one")


def test_scopes_and_collections(keyed: tuple[TestClient, Keys]) -> None:
    client, keys = keyed
    client.put("/v1/collections/tickets")
    tokens = {name: keys.create(name, scope, bound)[1] for name, scope, bound in (
        ("reader", "read", ()), ("writer", "write", ()), ("admin", "admin", ()), ("clerk", "write", ("tickets",)),
    )}  # fmt: skip

    def status(who: str, method: str, path: str, **options: Any) -> int:
        return client.request(method, path, headers=bearer(tokens[who]), **options).status_code

    note = {"json": {"text": "x"}}
    assert status("reader", "GET", f"{HOME}/documents") == 200
    assert status("reader", "POST", f"{HOME}/documents", **note) == 403
    assert status("reader", "PATCH", f"{HOME}/settings", json={"k": 3}) == 403
    assert status("reader", "POST", f"{HOME}/search", json={"query": "x"}) == 200
    assert status("writer", "POST", f"{HOME}/documents", **note) == 201
    assert status("writer", "DELETE", "/v1/collections/tickets") == 403
    assert status("clerk", "POST", "/v1/collections/tickets/documents", **note) == 201
    assert status("clerk", "GET", f"{HOME}/documents") == 403
    assert status("clerk", "GET", "/settings") == 403, "the server's own collection is not theirs"
    assert status("clerk", "GET", "/metrics") == 403
    assert client.get("/v1/collections", headers=bearer(tokens["clerk"])).json() == {"collections": ["tickets"]}
    assert status("admin", "PUT", "/v1/collections/new") == 201
    assert status("admin", "DELETE", "/v1/collections/new") == 204
    client.patch(f"{HOME}/settings", json={"k": 4}, headers=bearer(tokens["writer"]))
    history = client.get(f"{HOME}/settings/history", headers=bearer(tokens["reader"])).json()["changes"]
    assert history[0]["by"] == "writer"


@pytest.mark.parametrize(("method", "path"), operations())
def test_no_route_is_open_by_mistake(service: Callable[..., TestClient], method: str, path: str) -> None:
    """Each request uses the example of the OpenAPI document, so that only the key is missing."""
    client = service(require_key=True)
    url = path.replace("{collection}", "default").replace("{id}", "x")
    params = {"q": "x", "source": "a", "target": "b"} if method in ("GET", "DELETE") else {}
    if (method, path) == ("DELETE", f"{HOME.replace('default', '{collection}')}/documents"):
        params["where"] = "kind=note"
    answer = client.request(method, url, json=example(method, path), params=params)
    if path in OPEN:
        assert answer.status_code == 200
    else:
        assert answer.status_code == 401, answer.text


@pytest.mark.parametrize(
    ("method", "path", "sent"),
    [
        ("POST", f"{HOME}/documents", {"json": {"txt": 1}}),
        ("POST", f"{HOME}/documents", {"content": b"{", "headers": {"Content-Type": "application/json"}}),
        ("POST", f"{HOME}/documents", {"content": b"x" * 2_000}),
        ("POST", f"{HOME}/documents", {"json": {"documents": ["a", "b", "c"]}}),
        ("DELETE", f"{HOME}/documents", {}),
        ("GET", f"{HOME}/search", {}),
        ("GET", f"{HOME}/documents?where=%7B", {}),
        ("PATCH", "/settings", {"json": {"profile": "nope"}}),
        ("POST", f"{HOME}/remember", {"json": {"text": 3}}),
        ("POST", "/sessions/x/chat", {"json": {}}),
    ],
)
def test_who_has_no_key_is_told_nothing_else(
    service: Callable[..., TestClient], tmp_path: Path, method: str, path: str, sent: dict[str, Any]
) -> None:
    client = service(max_batch=2, max_body_bytes=1_000)
    with Keys(tmp_path / "memory.db") as keys:
        _, text = keys.create("one", "admin")
        _, old = keys.create("old", "admin")
        keys.revoke("old")
    headers = sent.pop("headers", {})
    for wrong in ({}, bearer(old), bearer("tvt_nonsense")):
        answer = client.request(method, path, headers={**headers, **wrong}, **sent)
        assert answer.status_code == 401, answer.text
        assert "errors" not in answer.json()
    assert client.request(method, path, headers={**headers, **bearer(text)}, **sent).status_code in (400, 413, 422)


def example(method: str, path: str) -> Any:
    schema = create(Config()).openapi()
    content = schema["paths"][path][method.lower()].get("requestBody", {}).get("content", {})
    if "application/json" not in content:
        return None
    found = content["application/json"]["schema"]
    while "$ref" in found or "oneOf" in found or "anyOf" in found:
        found = (found.get("oneOf") or found.get("anyOf") or [found])[0]
        if "$ref" in found:
            found = schema["components"]["schemas"][found["$ref"].rsplit("/", 1)[1]]
    return found["examples"][0] if "examples" in found else {}


def test_every_route_of_the_app_is_in_the_description() -> None:
    known = set(operations())
    described = [route for route in ROUTES if isinstance(route, APIRoute) and route.include_in_schema]
    assert len(described) > 40
    for route in described:
        for method in route.methods:
            assert (method, re.sub(r":path\}", "}", route.path)) in known


def test_a_door_to_the_world_needs_a_key(tmp_path: Path) -> None:
    store = str(tmp_path / "memory.db")
    trivet.open(store, embedder="none").close()
    for config in (Config(store=store, host="0.0.0.0"), Config(store=store, host="example.com"),
                   Config(store=store, require_key=True)):  # fmt: skip
        with pytest.raises(InputError, match="trivet keys create"):
            server.require_key(config)
    server.require_key(Config(store=store))
    with Keys(store) as keys:
        keys.create("one")
        server.require_key(Config(store=store, host="0.0.0.0"))
        keys.revoke("one")
    with pytest.raises(InputError):
        server.require_key(Config(store=store, host="::"))


# --- limits -----------------------------------------------------------------------------------------------------------


def test_a_body_too_large(service: Callable[..., TestClient]) -> None:
    client = service(max_body_bytes=2_000)
    answer = client.post(f"{HOME}/documents", json={"text": "x" * 3_000})
    assert answer.status_code == 413
    assert answer.json()["errors"][0]["field"] == "body"

    def unannounced() -> Any:
        yield b'{"text": "'
        for _ in range(30):
            yield b"x" * 100

    streamed = client.post(f"{HOME}/documents", content=unannounced(), headers={"content-type": "application/json"})
    assert streamed.status_code == 413


def test_a_batch_too_large_and_a_filter_too_deep(service: Callable[..., TestClient]) -> None:
    client = service(max_batch=2, max_filter_depth=3)
    assert client.post(f"{HOME}/documents", json={"documents": ["a", "b", "c"]}).status_code == 413
    where: Any = {"kind": "note"}
    for _ in range(3):
        where = {"$not": where}
    assert client.post(f"{HOME}/search", json={"query": "x", "where": where}).status_code == 200
    deeper = client.post(f"{HOME}/search", json={"query": "x", "where": {"$not": where}})
    assert deeper.status_code == 422
    assert deeper.json()["errors"][0]["field"] == "where"


def test_too_slow_and_too_many(service: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch) -> None:
    client = service(request_seconds=0.2, threads=1, max_waiting=0)
    gate = threading.Event()
    monkeypatch.setattr(trivet.Engine, "stats", lambda self: gate.wait(10))
    slow = client.get(f"{HOME}/stats")
    assert slow.status_code == 504
    assert "0.2 s" in slow.json()["detail"]
    busy = client.get(f"{HOME}/settings")
    assert busy.status_code == 429
    assert busy.headers["retry-after"] == "1"
    gate.set()
    until = time.monotonic() + 10
    while client.get(f"{HOME}/settings").status_code != 200:
        assert time.monotonic() < until
        time.sleep(0.02)


# --- failures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (StoreError("store: '/srv/data/memory.db': disk full (SELECT * FROM documents)"), 503),
        (EmbedderError("embedder '/models/minilm': no such file"), 503),
        (RuntimeError("SELECT secret FROM /etc/passwd"), 500),
        (ZeroDivisionError("division by zero"), 500),
    ],
)
def test_a_failure_tells_nothing_of_the_inside(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    def broken(self: Any) -> Any:
        raise error

    monkeypatch.setattr(trivet.Engine, "stats", broken)
    answer = client.get(f"{HOME}/stats", headers={"X-Request-ID": "my-own.id"})
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["request_id"] == answer.headers["x-request-id"] == "my-own.id"
    assert not re.search(r"SELECT|/srv|/models|/etc|Traceback|Error|\.py", answer.text)


def test_no_answer_names_a_file(client: TestClient, tmp_path: Path) -> None:
    client.post(f"{HOME}/documents", json={"id": "a", "text": "alpha"})
    for path in ("/stats", "", "/settings", "/search?q=alpha", "/documents/a", "/export", "/documents/zz"):
        assert str(tmp_path) not in client.get(f"{HOME}{path}").text
    assert str(tmp_path) not in client.get("/metrics").text


def test_a_request_id_nobody_should_send_is_replaced(client: TestClient) -> None:
    for bad in ("x" * 65, "a b", "<script>"):
        assert client.get("/healthz", headers={"X-Request-ID": bad}).headers["x-request-id"] != bad


def test_unknown_paths_and_methods(client: TestClient) -> None:
    assert client.get("/nothing/here").json()["type"].endswith("not-found")
    wrong = client.post("/healthz")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET, HEAD")
    wrong = client.put(f"{HOME}/documents", json={})
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "DELETE, GET, POST"), "all that may be asked there"


def test_cors_is_off_unless_asked_for(service: Callable[..., TestClient]) -> None:
    origin = {"Origin": "https://app.example.com"}
    assert "access-control-allow-origin" not in service().get("/healthz", headers=origin).headers
    open_ = service("other.db", cors_origins=("https://app.example.com",))
    assert open_.get("/healthz", headers=origin).headers["access-control-allow-origin"] == origin["Origin"]
    assert "access-control-allow-origin" not in open_.get("/healthz", headers={"Origin": "https://evil"}).headers
    refused = open_.get(f"{HOME}/documents/nope", headers=origin)
    assert refused.status_code == 404
    assert refused.headers["access-control-allow-origin"] == origin["Origin"], "or the page learns nothing of it"
    keyed = service("keyed.db", cors_origins=("https://app.example.com",), require_key=True)
    refused = keyed.post(f"{HOME}/search", json={"query": "x"}, headers=origin)
    assert refused.status_code == 401
    assert refused.headers["access-control-allow-origin"] == origin["Origin"]


def test_a_web_page_cannot_use_its_visitors_machine(client: TestClient, tmp_path: Path) -> None:
    line = b'{"id": "planted", "text": "planted"}'
    for headers in (
        {"Origin": "https://evil.example", "Content-Type": "text/plain"},  # a form's post, which asks nobody first
        {"Origin": "null"},
        {"Host": "evil.example:8787", "Origin": "http://evil.example:8787"},  # a name that points here
        {"Host": "127.0.0.1.evil.example"},
    ):
        assert client.post(f"{HOME}/import", content=line, headers=headers).status_code == 403, headers
    assert client.get(f"{HOME}/export", headers={"Host": "evil.example"}).status_code == 403
    assert client.get(f"{HOME}/documents/planted").status_code == 404
    for headers in ({}, {"Host": "localhost:1"}, {"Host": "[::1]:80"}, {"Origin": "http://127.0.0.1:8787"}):
        assert client.post(f"{HOME}/search", json={"query": "x"}, headers=headers).status_code == 200, headers
    assert client.get("/healthz", headers={"Host": "10.0.0.7"}).status_code == 200
    with Keys(tmp_path / "memory.db") as keys:
        _, text = keys.create("anyone")
    for headers in ({"Host": "search.example.com"}, {"Origin": "https://evil.example"}):
        known = {**headers, **bearer(text)}
        assert client.post(f"{HOME}/search", json={"query": "x"}, headers=known).status_code == 403, "a key or not"


NOT_A_KEY: list[dict[str, str]] = [
    {}, {"Authorization": "Basic Zm9vOmJhcg=="}, {"Authorization": ""}, {"Authorization": "bearer"},
    {"Authorization": "Bearer "}, {"X-API-Key": ""}, {"X-API-Key": "junk"}, {"Authorization": "Bearer tvt_x"},
]  # fmt: skip


@pytest.mark.parametrize("sent", NOT_A_KEY, ids=str)
def test_host_and_origin_are_checked_whatever_headers_are_sent(client: TestClient, sent: dict[str, str]) -> None:
    line = b'{"id": "planted", "text": "planted"}'
    for path in (f"{HOME}/documents", "/v1/collections", "/openapi.json", "/", "/nothing"):
        answer = client.get(path, headers={"Host": "evil.example", **sent})
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (403, "Host"), path
    for method, path in (("POST", "/import"), ("DELETE", "/documents/planted"), ("PUT", "/documents/planted")):
        answer = client.request(
            method,
            f"{HOME}{path}",
            content=line,
            headers={"Origin": "http://evil.example", "Content-Type": "text/plain", **sent},
        )
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (403, "Origin"), path
    assert client.get(f"{HOME}/documents").json()["documents"] == []


def test_a_proxy_that_passes_its_own_host_is_named_in_the_settings(service: Callable[..., TestClient]) -> None:
    client = service(allowed_hosts=("search.example.com", "other.example.com:8443"))

    def status(host: str, **headers: str) -> int:
        return client.post(f"{HOME}/search", json={"query": "x"}, headers={"Host": host, **headers}).status_code

    assert status("search.example.com") == status("Search.Example.com:444") == status("127.0.0.1") == 200
    assert status("other.example.com:8443") == 200
    assert status("other.example.com") == status("search.example.com.evil.example") == 403
    assert status("search.example.com", Origin="https://search.example.com") == 200
    assert status("search.example.com", Origin="https://evil.example") == 403


def test_a_server_for_others_checks_the_host_where_names_are_given(service: Callable[..., TestClient]) -> None:
    for name, allowed, wanted in (("a.db", (), 401), ("b.db", ("search.example.com",), 403)):
        client = service(name, host="0.0.0.0", allowed_hosts=allowed)
        assert client.get(f"{HOME}/stats", headers={"Host": "10.0.0.7"}).status_code == wanted
        assert client.get(f"{HOME}/stats", headers={"Host": "search.example.com"}).status_code == 401
        assert client.get("/readyz", headers={"Host": "10.0.0.7"}).status_code == 200, (
            "a load balancer asks by any name"
        )


def test_an_import_ends_with_its_key(keyed: tuple[TestClient, Keys]) -> None:
    client, keys = keyed
    _, text = keys.create("one", "write")

    def body() -> Any:
        for number in range(500):
            if number == 250:
                keys.revoke("one")
            yield b'{"id": "%d", "text": "note %d"}\n' % (number, number)

    lines = client.post(f"{HOME}/import", content=body(), headers=bearer(text)).text.splitlines()
    last = json.loads(lines[-1])
    assert last["done"] is False
    assert "revoked" in last["error"]
    assert last["added"] < 500


# --- numbers ----------------------------------------------------------------------------------------------------------


def test_metrics_count_what_was_asked(client: TestClient) -> None:
    client.post(f"{HOME}/documents", json={"id": "a", "text": "the alder"})
    client.post(f"{HOME}/search", json={"query": "alder"})
    text = client.get("/metrics").text
    for name in (
        'trivet_search_stage_seconds_bucket{le="0.0005",stage="lexical"}',
        'trivet_search_stage_seconds_count{stage="total"}',
        "trivet_search_hits_total",
        "trivet_search_single_leg_hits_total",
        "trivet_search_degraded_total",
        'trivet_embed_backlog{collection="default"} 0.0',
        'trivet_http_requests_total{method="POST",route="/v1/collections/{collection}/search",status="200"}',
    ):
        assert name in text, name


def test_metrics_of_every_collection_whoever_opened_or_dropped_it(client: TestClient, tmp_path: Path) -> None:
    with trivet.open(tmp_path / "memory.db", "other", embedder="none") as other:
        other.add(["one", "two"])
        assert 'trivet_documents{collection="other"} 2.0' in client.get("/metrics").text
        other.drop()
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert 'collection="other"' not in answer.text
    with trivet.open(tmp_path / "memory.db", "other", embedder="none") as again:
        again.add("three")
    assert 'trivet_documents{collection="other"} 1.0' in client.get("/metrics").text


def test_a_load_balancer_may_ask_for_the_head_alone(client: TestClient) -> None:
    assert [client.head(path).status_code for path in ("/healthz", "/readyz")] == [200, 200]
