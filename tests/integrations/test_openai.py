"""OpenAI's SDK against a real server: embeddings, files, vector stores, filters and errors."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import trivet
from trivet.engine.keys import Keys

openai = pytest.importorskip("openai", reason="needs openai: `make test-integrations`")

from openai import OpenAI

TEXTS = {
    "door.md": "# Door\nThe greenhouse door sticks when it rains.",
    "pump.txt": "The irrigation pump of the palm house was replaced in May.",
    "table.csv": "name,amount\nrope,12\nladder,3\n",
}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    store, port = tmp_path_factory.mktemp("openai") / "memory.db", free_port()
    arguments = ["--store", str(store), "--port", str(port), "--log-level", "warning"]
    with Keys(store) as keys:  # the SDK sends one in any case
        key = keys.create("sdk", "admin")[1]
    server = subprocess.Popen([sys.executable, "-m", "trivet", "serve", *arguments])
    address = f"http://127.0.0.1:{port}"
    until = time.monotonic() + 60
    while time.monotonic() < until:
        assert server.poll() is None
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{address}/readyz", timeout=5):
            break
        time.sleep(0.05)
    yield address, key
    os.kill(server.pid, signal.SIGTERM)
    server.wait(30)


@pytest.fixture(scope="module")
def client(service: tuple[str, str]) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{service[0]}/v1", api_key=service[1], max_retries=0) as client:
        yield client


@pytest.fixture
def store(client: OpenAI, tmp_path: Path) -> Iterator[str]:
    """A vector store with the files, by the helpers that the SDK has for that."""
    made = client.vector_stores.create(name=f"store-{tmp_path.name}")
    for number, (name, text) in enumerate(TEXTS.items()):
        (tmp_path / name).write_text(text)
        file = client.files.create(file=tmp_path / name, purpose="assistants")
        assert (file.filename, file.bytes, file.purpose) == (name, len(text), "assistants")
        attributes = {"kind_of": name.split(".")[1], "number": number, "new": number > 0}
        attached = client.vector_stores.files.create_and_poll(file.id, vector_store_id=made.id, attributes=attributes)
        assert (attached.status, attached.attributes, attached.last_error) == ("completed", attributes, None)
    yield made.id
    client.vector_stores.delete(made.id)


def found(client: OpenAI, store: str, query: Any = "greenhouse pump ladder", **options: Any) -> set[str]:
    return {hit.filename for hit in client.vector_stores.search(store, query=query, **options)}


class TestVectorStores:
    def test_create_list_retrieve_and_delete(self, client: OpenAI) -> None:
        made, unnamed = client.vector_stores.create(name="mine"), client.vector_stores.create()
        assert (made.id, made.name, made.object, made.file_counts.total) == ("mine", "mine", "vector_store", 0)
        assert {made.id, unnamed.id} <= {one.id for one in client.vector_stores.list()}
        assert client.vector_stores.retrieve("mine") == made
        with pytest.raises(openai.ConflictError, match="choose another name"):
            client.vector_stores.create(name="mine")
        for one in (made, unnamed):
            assert client.vector_stores.delete(one.id).deleted
        with pytest.raises(openai.NotFoundError):
            client.vector_stores.retrieve("mine")
        with pytest.raises(openai.ConflictError, match="default collection"):
            client.vector_stores.delete("default")

    def test_it_is_made_with_files(self, client: OpenAI) -> None:
        file = client.files.create(file=("a.txt", b"The lid is blue."), purpose="assistants")
        made = client.vector_stores.create(name="with-files", file_ids=[file.id])
        assert found(client, made.id, "blue lid") == {"a.txt"}
        with pytest.raises(openai.NotFoundError, match="nowhere"):
            client.vector_stores.create(name="never", file_ids=["nowhere"])
        assert "never" not in {one.id for one in client.vector_stores.list()}
        client.vector_stores.delete(made.id)

    def test_what_has_no_counterpart_is_refused_by_name(self, client: OpenAI) -> None:
        with pytest.raises(openai.UnprocessableEntityError, match="expires_after"):
            client.vector_stores.create(name="x", expires_after={"anchor": "last_active_at", "days": 1})
        with pytest.raises(openai.UnprocessableEntityError, match="rewrite_query"):
            client.vector_stores.search("default", query="x", rewrite_query=True)
        with pytest.raises(openai.UnprocessableEntityError, match="ranker"):
            client.vector_stores.search("default", query="x", ranking_options={"ranker": "none"})


class TestFiles:
    def test_pages_of_the_sdk_reach_every_file(self, client: OpenAI, store: str) -> None:
        listed = list(client.vector_stores.files.list(store, limit=1))
        assert len({item.id for item in listed}) == len(TEXTS)
        assert [item.attributes["number"] for item in listed if item.attributes] == [0, 1, 2]
        assert {item.id for item in listed} <= {item.id for item in client.files.list(limit=2)}

    def test_a_file_leaves_with_all_its_parts(self, client: OpenAI, store: str) -> None:
        (table,) = [one for one in client.vector_stores.files.list(store) if (one.attributes or {})["number"] == 2]
        assert client.vector_stores.files.retrieve(table.id, vector_store_id=store) == table
        assert client.vector_stores.search(store, query="rope ladder").data[0].filename == "table.csv"
        assert client.vector_stores.files.delete(table.id, vector_store_id=store).deleted
        assert "table.csv" not in found(client, store)
        with pytest.raises(openai.NotFoundError):
            client.vector_stores.files.retrieve(table.id, vector_store_id=store)
        assert client.files.retrieve(table.id).filename == "table.csv", "the upload stays"
        assert client.files.delete(table.id).deleted
        with pytest.raises(openai.NotFoundError):
            client.files.retrieve(table.id)
        with pytest.raises(openai.NotFoundError):
            client.vector_stores.files.create(store, file_id=table.id)

    @pytest.mark.parametrize(
        ("name", "content", "reason"),
        [
            ("a.pdf", b"%PDF-1.7 broken", "a.pdf"),
            ("a.bin", bytes(range(256)) * 40, "a.bin"),
            ("a.jsonl", b'{"text": "x"}', "import route"),
            ("a.txt", b"", "a.txt"),
        ],
    )
    def test_a_file_that_cannot_be_read(self, client: OpenAI, name: str, content: bytes, reason: str) -> None:
        with pytest.raises(openai.UnprocessableEntityError, match=reason):
            client.files.create(file=(name, content), purpose="assistants")

    def test_an_attribute_may_not_hide_what_is_ours(self, client: OpenAI, store: str) -> None:
        file = next(iter(client.files.list()))
        with pytest.raises(openai.UnprocessableEntityError, match="'filename' is a name of the service"):
            client.vector_stores.files.create(store, file_id=file.id, attributes={"filename": "x"})


class TestSearch:
    def test_a_hit_has_its_file_text_score_and_attributes(self, client: OpenAI, store: str) -> None:
        page = client.vector_stores.search(store, query="the entrance jams in wet weather", max_num_results=1)
        (hit,) = page.data
        assert (hit.filename, hit.attributes) == ("door.md", {"kind_of": "md", "number": 0, "new": False})
        assert "sticks when it rains" in hit.content[0].text
        assert 0 < hit.score <= 1
        assert client.vector_stores.files.retrieve(hit.file_id, vector_store_id=store).attributes == hit.attributes

    @pytest.mark.parametrize(
        ("filters", "expected"),
        [
            ({"type": "eq", "key": "kind_of", "value": "md"}, {"door.md"}),
            ({"type": "ne", "key": "kind_of", "value": "md"}, {"pump.txt", "table.csv"}),
            ({"type": "gt", "key": "number", "value": 1}, {"table.csv"}),
            ({"type": "gte", "key": "number", "value": 1}, {"pump.txt", "table.csv"}),
            ({"type": "lt", "key": "number", "value": 1}, {"door.md"}),
            ({"type": "lte", "key": "number", "value": 1}, {"door.md", "pump.txt"}),
            ({"type": "in", "key": "kind_of", "value": ["md", "csv"]}, {"door.md", "table.csv"}),
            ({"type": "nin", "key": "kind_of", "value": ["md", "csv"]}, {"pump.txt"}),
            ({"type": "eq", "key": "new", "value": True}, {"pump.txt", "table.csv"}),
            ({"type": "eq", "key": "nothing", "value": 1}, set()),
            ({"type": "ne", "key": "nothing", "value": 1}, {"door.md", "pump.txt", "table.csv"}),
            (
                {
                    "type": "or",
                    "filters": [
                        {"type": "eq", "key": "number", "value": 0},
                        {
                            "type": "and",
                            "filters": [
                                {"type": "gte", "key": "number", "value": 1},
                                {"type": "eq", "key": "kind_of", "value": "txt"},
                            ],
                        },
                    ],
                },
                {"door.md", "pump.txt"},
            ),
        ],
    )
    def test_filters(self, client: OpenAI, store: str, filters: Any, expected: set[str]) -> None:
        assert found(client, store, filters=filters) == expected

    @pytest.mark.parametrize(
        "filters",
        [
            {"type": "like", "key": "a", "value": "b"},
            {"type": "and", "filters": []},
            {"type": "eq", "key": "$or", "value": 1},
            {"type": "eq", "key": "a"},
            {"type": "and", "filters": ["a=b"]},
            {"type": "eq", "key": "a", "value": {"b": 1}},
        ],
    )
    def test_a_filter_that_is_none(self, client: OpenAI, store: str, filters: Any) -> None:
        with pytest.raises(openai.UnprocessableEntityError):
            client.vector_stores.search(store, query="x", filters=filters)

    def test_the_score_threshold_is_a_relevance(self, client: OpenAI, store: str) -> None:
        hits = client.vector_stores.search(store, query="the greenhouse door sticks").data
        least = hits[0].score
        kept = client.vector_stores.search(
            store,
            query="the greenhouse door sticks",
            ranking_options={"score_threshold": least - 0.001, "ranker": "auto"},
        ).data
        assert [hit.file_id for hit in kept] == [hit.file_id for hit in hits if hit.score >= least - 0.001]
        assert found(client, store, "the greenhouse door sticks", ranking_options={"score_threshold": 1.0}) == set()

    def test_several_wordings(self, client: OpenAI, store: str) -> None:
        assert {"door.md", "pump.txt"} <= found(client, store, ["greenhouse entrance", "irrigation"])


class TestEmbeddings:
    def test_floats_and_base64_are_the_vectors_of_the_model(self, client: OpenAI) -> None:
        texts = ["The side door sticks.", "Der Deich ist grün."]
        made = client.embeddings.create(input=texts, model="default")  # the SDK asks for base64
        plain = client.embeddings.create(input=texts, model=made.model, encoding_format="float")
        with trivet.open(":memory:") as engine:
            expected = engine.embed(texts)
        for response in (made, plain):
            assert [item.index for item in response.data] == [0, 1]
            for item, vector in zip(response.data, expected, strict=True):
                assert item.embedding == pytest.approx(vector.tolist(), abs=1e-5)
        assert made.usage.total_tokens > 5
        (one,) = client.embeddings.create(input=texts[0], model="default", dimensions=len(expected[0])).data
        assert one.embedding == pytest.approx(expected[0].tolist(), abs=1e-5)

    @pytest.mark.parametrize(
        ("options", "reason"),
        [
            ({"model": "text-embedding-3-small"}, "write 'default'"),
            ({"dimensions": 7}, "dimensions: 7"),
            ({"input": []}, "input: empty"),
            ({"input": [1, 2]}, "input"),
        ],
    )
    def test_what_the_model_cannot_do(self, client: OpenAI, options: Any, reason: str) -> None:
        with pytest.raises(openai.UnprocessableEntityError, match=reason):
            client.embeddings.create(**{"input": "x", "model": "default", **options})
