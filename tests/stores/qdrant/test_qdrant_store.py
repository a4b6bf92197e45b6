"""Vectors in Qdrant, filters for it, its address, and a Qdrant that cannot be reached."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trivet
from servers import Postgres
from trivet.engine import Engine
from trivet.errors import InputError, StoreError
from trivet.filters import And, Contains, Eq, Exists, Filter, In, Not, Or, Prefix, Range, matches
from trivet.types import Document

qdrant_client = pytest.importorskip("qdrant_client")
from qdrant_client import models  # noqa: E402

from trivet.stores.postgres import postings  # noqa: E402
from trivet.stores.qdrant.address import Address  # noqa: E402
from trivet.stores.qdrant.points import Points, named  # noqa: E402
from trivet.stores.qdrant.tags import compile_filter, tag, tags_of  # noqa: E402
from trivet.stores.sqlite.graph import SqliteGraphIndex as SqliteGraph  # noqa: E402

MEANING = {"weights": {"lexical": 0.0, "dense": 1.0, "graph": 0.0}, "rerankers": []}


@pytest.fixture
def memory(tmp_path: Path, taught: Callable[..., Any]) -> Iterator[Engine]:
    with trivet.open(f"qdrant+local:{tmp_path / 'm'}", embedder=taught("heron", "fox", "lamp")) as engine:
        engine.add([{"id": id, "text": f"the {id}", "meta": {"n": n}} for n, id in enumerate(("heron", "fox", "lamp"))])
        yield engine


def points_of(engine: Engine) -> Points:
    found: Points = engine._collection.sync.points  # type: ignore[attr-defined]
    return found


def place_of(engine: Engine) -> str:
    model = engine._collection.state().model
    assert model is not None
    name: str = engine._collection.sync.name_of(model.mid)  # type: ignore[attr-defined]
    return name


def test_vectors_are_in_qdrant_named_by_their_model(memory: Engine) -> None:
    assert points_of(memory).count(place_of(memory)) == 3
    info = points_of(memory)._client.get_collection(place_of(memory))
    vectors = info.config.params.vectors
    assert isinstance(vectors, dict) and set(vectors) == {"taught"} and vectors["taught"].size == 3
    assert named("a/b c:1") == "a_b_c_1"


def test_prepare_brings_every_index_of_the_record_store_up_to_date_but_that_of_vectors(
    memory: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SqliteGraph, "update_in_background", lambda self: pytest.fail("prepare does not wait for it"))
    memory.prepare("default")
    records = memory._collection._records  # type: ignore[attr-defined]
    index = records.graph.opened.index
    assert index is not None and index.is_current(memory._collection.state().version)
    assert not list(records.vectors.opened()) and memory.verify().ok


def test_prepare_packs_the_postings_of_a_record_store_on_a_server(
    postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings, "PACK_FROM", 20)
    words = quote(postgres.fresh(), safe="")
    with trivet.open(f"qdrant+local:{tmp_path}?words={words}", embedder="hashing:32") as engine:
        engine.add([{"id": f"d{n}", "text": f"heron {n}"} for n in range(30)])
        engine.wait()
        engine.prepare()
        database = engine._collection._records.rows.database  # type: ignore[attr-defined]
        assert database.all("SELECT last FROM segments") == [(30,)]
        assert engine.search("heron 7", weights={"lexical": 1.0, "dense": 0.0, "graph": 0.0})[0].id == "d7"
    postgres.sweep()


def test_what_qdrant_lost_is_made_again_from_the_records(memory: Engine, taught: Callable[..., Any]) -> None:
    points_of(memory).drop(place_of(memory))
    assert not memory.verify().ok
    url = memory.url
    memory.close()
    model = taught("heron", "fox", "lamp")
    with trivet.open(url, embedder=model) as again:
        assert again.search("fox", **MEANING)[0].id == "fox"
        assert model.passages == [] and again.verify().ok


def test_a_point_of_a_document_that_is_gone_is_passed_over_and_taken_away(memory: Engine) -> None:
    assert memory.search("fox", **MEANING).hits
    stray = [(999, [0.0, 1.0, 0.0], {"did": 999, "tags": []})]
    points_of(memory).put(place_of(memory), "taught", stray)
    assert memory.search("fox", **MEANING)[0].id == "fox"
    assert "points" in memory.verify().problems[0]
    memory.rebuild()
    assert memory.verify().ok and points_of(memory).count(place_of(memory)) == 3


def test_while_qdrant_is_down_words_answer_and_nothing_is_lost(memory: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Points._translated

    def down(self: Points) -> Any:
        raise StoreError("store: Qdrant does not answer (refused)")

    monkeypatch.setattr(Points, "_translated", down)
    memory.add("a second heron", id="new")
    results = memory.search("heron", graph_weight=0.0)
    assert {hit.id for hit in results} == {"heron", "new"}
    assert [(item.part, "does not answer" in item.reason) for item in results.degraded] == [("dense", True)]
    memory.delete("fox")
    monkeypatch.setattr(Points, "_translated", real)
    found = memory.search("heron fox", **MEANING)
    assert {hit.id for hit in found if hit.contributions[0].raw > 0} == {"heron", "new"}
    assert memory.verify().ok


def test_metadata_that_changes_is_sifted_by_what_it_is_now(memory: Engine) -> None:
    memory.patch("fox", meta={"n": 7})
    assert [hit.id for hit in memory.search("fox", where={"n": 7}, **MEANING)] == ["fox"]
    assert memory.search("fox", where={"n": 1}, **MEANING).hits == ()


def test_dropping_a_collection_drops_its_points(memory: Engine) -> None:
    client = points_of(memory)
    name = place_of(memory)
    other = memory.collection("other", embedder="hashing:8")
    other.add("x")
    memory.drop()
    assert not client.exists(name) and other.search("x").hits


VALUES = st.sampled_from(["a", "b", "", 1, 1.0, True, 2.5, "1", "x" * 300])
FIELDS = st.sampled_from(["k", "l", "kind", "id", "created", "meta.kind"])
LEAVES: st.SearchStrategy[Filter] = st.one_of(
    st.builds(Eq, FIELDS, VALUES),
    st.builds(In, FIELDS, st.lists(VALUES, max_size=3).map(tuple)),
    st.builds(Exists, FIELDS),
    st.builds(lambda field, low: Range(field, gte=low), FIELDS, st.integers(0, 3)),
    st.builds(Prefix, FIELDS, st.sampled_from(["", "a", "x"])),
    st.builds(Contains, FIELDS, st.sampled_from(["", "b", "xx"])),
)
FILTERS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(And, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, min_size=1, max_size=3).map(tuple)),
    ),
    max_leaves=5,
)


def allows(found: models.Filter | None, tags: list[str]) -> bool:
    """Evaluate a Qdrant filter, for the few forms that we write."""
    if found is None:
        return True

    def holds(part: Any) -> bool:
        if isinstance(part, models.Filter):
            return allows(part, tags)
        return bool(set(part.match.any) & set(tags))

    must, should, must_not = found.must or [], found.should or [], found.must_not or []
    parts = [list(each) if isinstance(each, list) else [each] for each in (must, should, must_not)]
    return all(map(holds, parts[0])) and (not parts[1] or any(map(holds, parts[1]))) and not any(map(holds, parts[2]))


@settings(max_examples=300)
@given(
    where=FILTERS, meta=st.dictionaries(st.sampled_from(["k", "l", "kind"]), VALUES), kind=st.sampled_from(["a", "b"])
)
def test_what_the_server_sifts_lets_through_whatever_is_allowed(where: Filter, meta: dict[str, Any], kind: str) -> None:
    document = Document("a", "text", kind=kind, meta=meta)
    found, exact = compile_filter(where)
    allowed, let_through = matches(where, document), allows(found, tags_of(document))
    assert let_through or not allowed, "too little may never come through"
    if exact:
        assert let_through == allowed


def test_equal_values_have_equal_tags_and_others_do_not() -> None:
    assert tag("k", 1) == tag("k", 1.0) == tag("k", True) != tag("k", "1")
    assert len(tag("k", "x" * 1000)) < 60


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("qdrant://localhost:6333", "keeps vectors"),
        ("qdrant+local:", "names no folder"),
        ("qdrant://localhost?words=x.db&shards=many", "shards 'many'"),
        ("qdrant://localhost?words=x.db&sharks=3", "unknown option 'sharks'"),
        ("qdrant+local:m?words=qdrant+local:n", "another Qdrant"),
    ],
)
def test_an_address_that_is_none(url: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=told):
        trivet.open(url, embedder="none")


def test_options_of_a_cluster_are_passed_through(tmp_path: Path) -> None:
    place = Address.parse(
        "qdrants://db.example:6334?words=w.db&api_key=k&shards=6&replicas=2&consistency=2&grpc=yes&tenant=org"
    )
    assert (
        place.client.items()
        >= {"url": "https://db.example:6334", "timeout": 10, "prefer_grpc": True, "api_key": "k"}.items()
    )
    assert place.collection == {"shard_number": 6, "replication_factor": 2, "write_consistency_factor": 2}
    assert (place.tenant, place.records, place.shown) == ("org", "w.db", "qdrants://db.example:6334")
    assert Address.parse(f"qdrant+local:{tmp_path}").records == str(tmp_path / "words.db")


class _Listener(BaseHTTPRequestHandler):
    """A server that records every request and accepts it."""

    heard: ClassVar[list[tuple[str, str, Any]]] = []

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.heard.append((self.command, self.path, json.loads(body) if body else None))
        result: Any = {"exists": False} if self.path.endswith("/exists") else True
        told = {"title": "qdrant", "version": "1.15.0", "result": result, "status": "ok", "time": 0.0}
        if self.command == "PUT" and "/index" in self.path:
            told["result"] = {"operation_id": 1, "status": "completed"}
        data = json.dumps(told).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815 - its names

    def log_message(self, *_: Any) -> None: ...


def test_options_of_a_cluster_reach_the_server(tmp_path: Path) -> None:
    _Listener.heard.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Listener)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"qdrant://127.0.0.1:{server.server_port}?words={tmp_path / 'w.db'}"
        points = Points(Address.parse(f"{url}&shards=6&replicas=2&consistency=2&on_disk=yes&tenant=org"))
        points.create("trivet-x", "hashing:8", 8)
        points.close()
    finally:
        server.shutdown()
        server.server_close()
    sent = {path.partition("?")[0]: body for method, path, body in _Listener.heard if method == "PUT"}
    made = sent["/collections/trivet-x"]
    assert {name: made[name] for name in ("shard_number", "replication_factor", "write_consistency_factor")} == {
        "shard_number": 6,
        "replication_factor": 2,
        "write_consistency_factor": 2,
    }
    (vectors,) = made["vectors"].values()
    assert made["on_disk_payload"] is True and vectors["size"] == 8 and vectors["on_disk"] is True
    indexes = [body for method, path, body in _Listener.heard if method == "PUT" and "/index" in path]
    assert {body["field_name"] for body in indexes} == {"tags", "did", "tenant"}
    assert [body["field_schema"].get("is_tenant") for body in indexes if body["field_name"] == "tenant"] == [True]


def test_a_server_that_is_not_there_is_translated(tmp_path: Path) -> None:
    with trivet.open(f"qdrant://127.0.0.1:9?words={tmp_path / 'w.db'}&timeout=1", embedder="hashing:8") as memory:
        memory.add("heron", id="a")
        results = memory.search("heron")
        assert [hit.id for hit in results] == ["a"]
        assert "Qdrant does not answer" in results.degraded[0].reason
