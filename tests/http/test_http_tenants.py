"""A key bound to a filter: one table says what every route of the service does with it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from chat.completions import Completions, serving
from tenants import MARKS, OWN, SECRET, check_hidden, filled, told
from trivet.engine.keys import Keys
from trivet.http.app import ROUTES, create
from trivet.http.config import Config

ALICE = MARKS["alice"]
HOME = "/v1/collections/default"
IN = "/v1/collections/{collection}"
STORE, ONE = "/v1/vector_stores/{collection}", "/v1/vector_stores/default"
HIDDEN, ABSENT = f"{SECRET}-1", "nowhere-1"
SAME, IDS, REFUSED, OPEN = "same", "ids", "refused", "open"


@dataclass(frozen=True)
class Ask:
    url: str
    options: dict[str, Any] = field(default_factory=dict)

    def about(self, id: str) -> Ask:
        """The same request about another document than the one that is named ``ID``."""

        def put(value: Any) -> Any:
            if isinstance(value, str):
                return value.replace("ID", id)
            if isinstance(value, dict):
                return {name: put(item) for name, item in value.items()}
            return [put(item) for item in value] if isinstance(value, list) else value

        return Ask(put(self.url), put(self.options))


def ask(url: str, **options: Any) -> Ask:
    return Ask(url.replace("~", HOME), options)


#: Route → how a bound key fares, and requests. SAME: as on a store with its own documents alone; IDS: the same
#: documents, while scores may differ; REFUSED: 403; OPEN: it needs no key and has no data. ``ID`` in a request stands
#: for a document: one that is hidden and one that does not exist are answered alike.
TABLE: dict[tuple[str, str], tuple[str, list[Ask]]] = {
    ("GET", "/v1/collections"): (SAME, [ask("/v1/collections")]),
    ("PUT", IN): (REFUSED, [ask("/v1/collections/mine", json={}), ask("~", json={})]),
    ("GET", IN): (SAME, [ask("~"), ask("/v1/collections/none")]),
    ("GET", f"{IN}/stats"): (SAME, [ask("~/stats")]),
    ("DELETE", IN): (REFUSED, [ask("~"), ask("/v1/collections/other")]),
    ("GET", "/v1/profiles"): (SAME, [ask("/v1/profiles")]),
    ("POST", f"{IN}/documents"): (
        SAME,
        [
            ask("~/documents", json={"text": "A new one.", "id": "new-1"}),
            ask("~/documents", json={"text": "Not mine.", "id": "new-2", "meta": {"tenant": "bobby"}}),
            ask("~/documents", json={"text": "Both's.", "id": "new-3", "meta": {"tenant": ["alice", "bobby"]}}),
            ask("~/documents", json={"text": "Linked.", "id": "new-4", "links": ["ID"]}),
        ],
    ),
    ("GET", f"{IN}/documents"): (
        SAME,
        [
            ask("~/documents"),
            ask("~/documents?limit=3&after=12"),
            ask("~/documents?where=ticket%3DT-1"),
            ask("~/documents?where=IDkey%3D1"),
        ],
    ),
    ("DELETE", f"{IN}/documents"): (SAME, [ask("~/documents?id=ID"), ask("~/documents?where=ticket%3DT-1")]),
    ("GET", f"{IN}/documents/{{id:path}}"): (SAME, [ask("~/documents/ID"), ask(f"~/documents/{ALICE}-1")]),
    ("PUT", f"{IN}/documents/{{id:path}}"): (
        SAME,
        [ask(f"~/documents/{ALICE}-1", json={"text": "Other."}), ask("~/documents/new-1", json={"text": "New."})],
    ),
    ("PATCH", f"{IN}/documents/{{id:path}}"): (
        SAME,
        [
            ask("~/documents/ID", json={"title": "x"}),
            ask(f"~/documents/{ALICE}-1", json={"title": "x"}),
            ask(f"~/documents/{ALICE}-1", json={"meta": {"tenant": "bobby"}}),
        ],
    ),
    ("DELETE", f"{IN}/documents/{{id:path}}"): (SAME, [ask("~/documents/ID"), ask(f"~/documents/{ALICE}-1")]),
    ("POST", f"{IN}/remember"): (
        IDS,
        [
            ask("~/remember", json={"text": "Something new altogether."}),
            ask("~/remember", json={"text": "x", "where": {f"{SECRET}key": 1}}),
        ],
    ),
    ("GET", f"{IN}/facets"): (SAME, [ask("~/facets"), ask("~/facets?where=ticket%3DT-1")]),
    ("GET", f"{IN}/timeline"): (SAME, [ask("~/timeline"), ask("~/timeline?step=day&field=updated")]),
    ("GET", f"{IN}/standing"): (SAME, [ask("~/standing"), ask("~/standing?id=ID")]),
    ("POST", f"{IN}/search"): (
        IDS,
        [
            ask("~/search", json={"query": "loud pump", "k": 50}),
            ask("~/search", json={"query": f"{SECRET} pump", "k": 50, "overrides": {"neighbours": 2}}),
            ask("~/search", json={"query": "pump", "where": {"ticket": "T-1"}, "exclude": ["ID"], "marks": True}),
            ask("~/search", json={"query": "pump", "where": {"IDkey": "T-1"}}),
        ],
    ),
    ("GET", f"{IN}/search"): (IDS, [ask("~/search?q=loud+pump&k=50"), ask("~/search?q=pump&where=IDkey%3D1")]),
    ("POST", f"{IN}/explain"): (
        SAME,
        [
            ask("~/explain", json={"query": "pump", "id": "ID"}),
            ask("~/explain", json={"query": "pump", "id": "ID", "where": {"ticket": "T-1"}}),
        ],
    ),
    ("GET", f"{IN}/settings"): (SAME, [ask("~/settings")]),
    ("PATCH", f"{IN}/settings"): (REFUSED, [ask("~/settings", json={"k": 3})]),
    ("GET", f"{IN}/settings/history"): (REFUSED, [ask("~/settings/history")]),
    ("POST", f"{IN}/settings/revert"): (REFUSED, [ask("~/settings/revert", json={"to": 1})]),
    ("POST", f"{IN}/feedback"): (
        SAME,
        [
            ask("~/feedback", json={"query": "why", "id": "ID", "good": True}),
            ask("~/feedback", json={"query": "why", "id": f"{ALICE}-1", "good": True}),
        ],
    ),
    ("GET", f"{IN}/feedback"): (SAME, [ask("~/feedback")]),
    ("DELETE", f"{IN}/feedback"): (
        SAME,
        [ask("~/feedback?id=ID"), ask(f"~/feedback?query={SECRET}+question"), ask("~/feedback")],
    ),
    ("GET", f"{IN}/links"): (SAME, [ask("~/links"), ask("~/links?id=ID"), ask(f"~/links?id={ALICE}-1")]),
    ("POST", f"{IN}/links"): (
        SAME,
        [
            ask("~/links", json={"source": f"{ALICE}-1", "target": "ID"}),
            ask("~/links", json={"source": "ID", "target": f"{ALICE}-1"}),
        ],
    ),
    ("DELETE", f"{IN}/links"): (
        SAME,
        [ask(f"~/links?source=ID&target={SECRET}-2"), ask(f"~/links?source={ALICE}-1&target={ALICE}-2")],
    ),
    ("GET", f"{IN}/qrels"): (SAME, [ask("~/qrels"), ask("~/qrels?format=trec")]),
    ("POST", f"{IN}/jobs"): (REFUSED, [ask("~/jobs", json={"kind": "tune"}), ask("~/jobs", json={"kind": "evaluate"})]),
    ("GET", f"{IN}/jobs"): (REFUSED, [ask("~/jobs")]),
    ("DELETE", f"{IN}/jobs/{{kind}}"): (REFUSED, [ask("~/jobs/tune")]),
    ("POST", f"{IN}/jobs/tune/apply"): (REFUSED, [ask("~/jobs/tune/apply")]),
    ("GET", f"{IN}/export"): (SAME, [ask("~/export"), ask("~/export?vectors=true")]),
    ("POST", f"{IN}/import"): (
        SAME,
        [
            ask(
                "~/import",
                content=b'{"id": "new-1", "text": "One."}\n{"id": "new-2", "text": "x", "meta": {"tenant": "bobby"}}\n',
            ),
            ask("~/import", content=f'{{"feedback": {{"query": "q", "id": "{HIDDEN}", "good": true}}}}\n'.encode()),
            ask("~/import?id=md", content=f"See [[{HIDDEN}]].".encode(), headers={"Content-Type": "text/markdown"}),
        ],
    ),
    ("GET", "/v1/evaluations"): (REFUSED, [ask("/v1/evaluations")]),
    ("GET", "/v1/evaluations/{file}/report"): (REFUSED, [ask("/v1/evaluations/x.json/report")]),
    ("GET", "/v1/caller"): (SAME, [ask("/v1/caller")]),
    ("GET", "/v1/choices"): (SAME, [ask("/v1/choices")]),
    ("GET", f"{IN}/recent"): (REFUSED, [ask("~/recent")]),
    ("GET", "/healthz"): (OPEN, [ask("/healthz")]),
    ("HEAD", "/healthz"): (OPEN, [ask("/healthz")]),
    ("GET", "/readyz"): (OPEN, [ask("/readyz")]),
    ("HEAD", "/readyz"): (OPEN, [ask("/readyz")]),
    ("GET", "/metrics"): (REFUSED, [ask("/metrics")]),
    ("POST", "/projects"): (
        SAME,
        [ask("/projects", json={"name": f"{SECRET} project"}), ask("/projects", json={"name": f"{ALICE} project"})],
    ),
    ("GET", "/projects"): (SAME, [ask("/projects")]),
    ("POST", "/sessions"): (
        SAME,
        [
            ask("/sessions", json={"project": f"{SECRET} project", "id": "new-1"}),
            ask("/sessions", json={"project": f"{ALICE} project", "id": "new-2"}),
            ask("/sessions", json={"id": f"{ALICE}-session"}),
        ],
    ),
    ("GET", "/sessions"): (
        SAME,
        [ask("/sessions"), ask("/sessions?project=ID"), ask(f"/sessions?project={SECRET}+project")],
    ),
    ("GET", "/sessions/{id}"): (
        SAME,
        [ask("/sessions/ID"), ask(f"/sessions/{SECRET}-session"), ask(f"/sessions/{ALICE}-session")],
    ),
    ("DELETE", "/sessions/{id}"): (SAME, [ask(f"/sessions/{SECRET}-session"), ask(f"/sessions/{ALICE}-session")]),
    ("GET", "/sessions/{id}/episodes"): (
        SAME,
        [
            ask(f"/sessions/{SECRET}-session/episodes"),
            ask(f"/sessions/{ALICE}-session/episodes"),
            ask(f"/sessions/{ALICE}-session/episodes?before=ID"),
        ],
    ),
    ("POST", "/sessions/{id}/episodes"): (SAME, [ask(f"/sessions/{SECRET}-session/episodes", json={"user": "hi"})]),
    ("GET", "/sessions/{id}/search"): (
        IDS,
        [
            ask(f"/sessions/{SECRET}-session/search?q=ask"),
            ask(f"/sessions/{ALICE}-session/search?q={SECRET}+ask&recent=0"),
        ],
    ),
    ("GET", "/sessions/{id}/context"): (
        SAME,
        [ask(f"/sessions/{SECRET}-session/context?q=ask"), ask(f"/sessions/{ALICE}-session/context?q=ask")],
    ),
    ("POST", "/sessions/{id}/chat"): (
        IDS,
        [
            ask(f"/sessions/{SECRET}-session/chat", json={"message": "What was asked?"}),
            ask(f"/sessions/{ALICE}-session/chat", json={"message": "What was asked?"}),
            ask(f"/sessions/{ALICE}-session/chat", json={"message": "And what more?", "stream": True}),
        ],
    ),
    ("GET", "/settings"): (SAME, [ask("/settings")]),
    ("PATCH", "/settings"): (REFUSED, [ask("/settings", json={"semanticWeight": 0.4})]),
    ("GET", "/episodes/search"): (
        IDS,
        [ask("/episodes/search?q=ask"), ask(f"/episodes/search?q=ask&sessionIds={SECRET}-session,{ALICE}-session")],
    ),
    ("GET", "/search"): (IDS, [ask("/search?q=pump"), ask(f"/search?q=pump&repositoryId={SECRET}")]),
    ("POST", "/v1/embeddings"): (
        SAME,
        [
            ask("/v1/embeddings", json={"input": "pump", "model": "default"}),
            ask("/v1/embeddings?collection=other", json={"input": "pump", "model": "default"}),
        ],
    ),
    ("POST", "/v1/files"): (SAME, [ask("/v1/files", files={"file": ("a.txt", b"A new one.")})]),
    ("GET", "/v1/files"): (SAME, [ask("/v1/files"), ask("/v1/files?after=ID")]),
    ("GET", "/v1/files/{id}"): (SAME, [ask("/v1/files/ID")]),
    ("DELETE", "/v1/files/{id}"): (SAME, [ask("/v1/files/ID")]),
    ("POST", "/v1/vector_stores"): (REFUSED, [ask("/v1/vector_stores", json={"name": "mine"})]),
    ("GET", "/v1/vector_stores"): (SAME, [ask("/v1/vector_stores")]),
    ("GET", STORE): (SAME, [ask(f"{ONE}"), ask("/v1/vector_stores/none")]),
    ("DELETE", STORE): (REFUSED, [ask(f"{ONE}"), ask("/v1/vector_stores/other")]),
    ("POST", f"{STORE}/files"): (SAME, [ask(f"{ONE}/files", json={"file_id": "ID"})]),
    ("GET", f"{STORE}/files"): (SAME, [ask(f"{ONE}/files"), ask(f"{ONE}/files?after=ID")]),
    ("GET", f"{STORE}/files/{{id:path}}"): (SAME, [ask(f"{ONE}/files/ID"), ask(f"{ONE}/files/{ALICE}-1")]),
    ("DELETE", f"{STORE}/files/{{id:path}}"): (SAME, [ask(f"{ONE}/files/ID"), ask(f"{ONE}/files/{ALICE}-1")]),
    ("POST", f"{STORE}/search"): (
        IDS,
        [
            ask(f"{ONE}/search", json={"query": "loud pump"}),
            ask(f"{ONE}/search", json={"query": "pump", "filters": {"type": "eq", "key": "ticket", "value": "T-1"}}),
            ask(f"{ONE}/search", json={"query": "pump", "filters": {"type": "eq", "key": "IDkey", "value": 1}}),
        ],
    ),
    ("GET", "/"): (OPEN, [ask("/")]),
    ("GET", "/assets/{digest}/{name}"): (OPEN, [ask("/assets/0/app.js")]),
    ("GET", "/docs"): (OPEN, [ask("/docs")]),
    ("GET", "/docs/start.js"): (OPEN, [ask("/docs/start.js")]),
    ("GET", "/docs/{name}"): (OPEN, [ask("/docs/swagger-ui.css")]),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    both, alone = tmp_path_factory.mktemp("both"), tmp_path_factory.mktemp("alone")
    filled(both / "memory.db", "bob", "alice")
    filled(alone / "memory.db", "alice")
    return both, alone


@pytest.fixture(scope="module")
def model() -> Iterator[Completions]:
    with serving() as server:
        yield server


Open = Callable[[int], TestClient]


def opener(stack: ExitStack, folders: tuple[Path, Path], to: Path, model: Completions) -> Open:
    """``opener(…)(0)``: the service over a copy of the store of both tenants, asked with a key bound to alice; 1: over
    that of alice alone."""
    known: dict[int, TestClient] = {}

    def start(number: int) -> TestClient:
        if number not in known:
            store = to / str(number)
            shutil.copytree(folders[number], store)
            with Keys(store / "memory.db") as keys:
                _, text = keys.create("alice", "write", where=OWN)
            config = Config(store=str(store / "memory.db"), chat={"url": model.url, "model": "plain"})
            app = TestClient(create(config), "http://127.0.0.1:8787", raise_server_exceptions=False)
            app.headers["Authorization"] = f"Bearer {text}"
            known[number] = stack.enter_context(app)
        return known[number]

    return start


@pytest.fixture
def opened(folders: tuple[Path, Path], tmp_path: Path, model: Completions) -> Iterator[Open]:
    with ExitStack() as stack:
        yield opener(stack, folders, tmp_path, model)


@pytest.fixture(scope="module")
def reading(folders: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory, model: Completions) -> Iterator[Open]:
    """The same, for requests that change nothing."""
    with ExitStack() as stack:
        yield opener(stack, folders, tmp_path_factory.mktemp("reading"), model)


_HEX = re.compile(r'"(?!project-)[0-9a-f]{16}"|(?<="created_at": )[0-9]+')


def answered(response: httpx.Response) -> str:
    headers = {
        name: value
        for name, value in response.headers.items()
        if name not in ("x-request-id", "date", "content-length")
    }
    text = re.sub(r'": ', '":', response.text)
    text = re.sub(r'":', '": ', text)
    return f"{response.status_code} {headers} {_HEX.sub('MADE', told(text))}"


def ids_of(response: httpx.Response) -> Any:
    """Return the parts of a response that do not depend on word frequencies in the whole collection."""
    if response.status_code >= 400:
        return answered(response)
    if "event-stream" in response.headers["content-type"]:
        return [line for line in response.text.splitlines() if line.startswith("event: ")]
    body = response.json()
    if "hits" in body:
        hits = [hit.get("episode", hit) for hit in body["hits"]]
        return response.status_code, sorted(hit["id"] for hit in hits), body["degraded"]
    if "search_query" in body:
        return response.status_code, sorted(hit["file_id"] for hit in body["data"]), body["degraded"]
    if "similar" in body:
        return response.status_code, body["stored"], sorted(item["id"] for item in body["similar"])
    return response.status_code, sorted(body), body["episode"]["answer"]


def test_every_route_is_in_the_table() -> None:
    known = {(method, route.path) for route in ROUTES for method in route.methods}  # type: ignore[attr-defined]
    assert set(TABLE) == known


@pytest.mark.parametrize("route", TABLE, ids=" ".join)
def test_a_bound_key_is_told_nothing_of_others(
    route: tuple[str, str], opened: Open, reading: Open, model: Completions
) -> None:
    fares, requests = TABLE[route]
    start = reading if route[0] in ("GET", "HEAD") else opened
    here, alone = start(0), start(1)
    model.log.clear()
    for request in requests:
        answers = []
        for client in (here, alone):
            asked = request.about(ABSENT)
            answers.append(client.request(route[0], asked.url, **asked.options))
        first, second = answers
        if fares == REFUSED:
            assert first.status_code == 403, first.text
            assert first.json()["type"].endswith("not-allowed")
        elif fares == IDS:
            assert ids_of(first) == ids_of(second)
        else:
            assert answered(first) == answered(second)
        assert first.status_code < 500
        named = set(re.findall(rf"{SECRET}[\w-]*(?:[ +]\w+)?", f"{request.url} {request.options}"))
        whole = f"{first.text} {dict(first.headers)}"
        for name in sorted({*named, *(name.replace("+", " ") for name in named)}, key=len, reverse=True):
            whole = whole.replace(name, "")  # what the caller itself named may come back
        check_hidden(whole)
        if request.about(ABSENT) != request:
            hidden = request.about(HIDDEN)
            other = here.request(route[0], hidden.url, **hidden.options)
            assert answered(other).replace(HIDDEN, ABSENT) == answered(first) or fares == IDS
            assert other.status_code == first.status_code
    assert SECRET not in str(model.log)


def test_a_page_goes_on_where_it_ended(opened: Open) -> None:
    client = opened(0)
    ids: list[str] = []
    after = None
    while True:
        body = client.get(f"{HOME}/documents", params={"limit": 3, **({"after": after} if after else {})}).json()
        ids += [document["id"] for document in body["documents"]]
        if (after := body["next"]) is None:
            break
        assert len(after) == 32
    assert len(ids) == 11
    assert all(id.startswith((ALICE, "project-")) for id in ids)


def test_an_id_that_is_taken_outside_is_a_conflict(opened: Open) -> None:
    client = opened(0)
    for method, url, body in (
        ("POST", f"{HOME}/documents", {"text": "Mine.", "id": HIDDEN}),
        ("PUT", f"{HOME}/documents/{HIDDEN}", {"text": "Mine."}),
        ("POST", f"{HOME}/remember", {"text": "Mine.", "id": HIDDEN}),
        ("POST", "/sessions", {"id": f"{SECRET}-session"}),
    ):
        answer = client.request(method, url, json=body)
        assert answer.status_code == 409, answer.text
        assert "cannot be used here" in answer.json()["detail"]


def test_the_caller_is_told_what_binds_them(opened: Open) -> None:
    told = opened(0).get("/v1/caller").json()
    assert (told["key"], told["scope"], told["bound"]) == ("alice", "write", True)
    assert told["where"] == {"tenant": {"eq": "alice"}}


def test_a_bound_key_reads_only_if_it_is_for_reading(opened: Open, tmp_path: Path) -> None:
    client = opened(0)
    with Keys(tmp_path / "0" / "memory.db") as keys:
        _, text = keys.create("reader", "read", where=OWN)
    headers = {"Authorization": f"Bearer {text}"}
    assert client.get(f"{HOME}/documents", headers=headers).status_code == 200
    assert client.post(f"{HOME}/documents", json={"text": "x"}, headers=headers).status_code == 403
