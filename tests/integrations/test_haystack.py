"""Haystack: its own conformance suites, and what is special to the adapter."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("haystack", reason="needs the extra haystack: `make test-integrations`")

from haystack import Document, Pipeline
from haystack.dataclasses import ByteStream
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from haystack.errors import FilterError
from haystack.testing import document_store as suites
from haystack.testing import document_store_async as async_suites
from haystack.utils import Secret
from programs import run_example, run_section

from trivet.errors import InputError
from trivet.integrations.haystack import TrivetDocumentStore, TrivetHybridRetriever

NOTES = {
    "door": "The greenhouse door sticks when it rains.",
    "pump": "We swapped the irrigation pump for a quieter one.",
    "port": "The gateway listens on port 8443.",
}


def condition(field: str, operator: str, value: Any) -> dict[str, Any]:
    return {"field": field, "operator": operator, "value": value}


@pytest.fixture
def notes(tmp_path: Path) -> Iterator[TrivetDocumentStore]:
    store = TrivetDocumentStore(tmp_path / "notes.db", embedder="hashing:64")
    documents = [Document(id=id, content=text, meta={"number": at}) for at, (id, text) in enumerate(NOTES.items())]
    store.write_documents(documents)
    yield store
    store.engine.close()


class Ours:
    """The store, and what the suites leave to each store."""

    @pytest.fixture
    def document_store(self, tmp_path: Path) -> Iterator[TrivetDocumentStore]:
        """A collection for the embeddings of the suites, which have 768 numbers."""
        store = TrivetDocumentStore(tmp_path / "suite.db", embedder="vectors:768")
        yield store
        store.engine.close()

    @staticmethod
    def assert_documents_are_equal(received: list[Document], expected: list[Document]) -> None:
        """Compare all but the embeddings, which are in the index and are not returned."""
        assert all(document.embedding is None for document in received)
        assert received == [replace(document, embedding=None) for document in expected]

    def test_write_documents(self, document_store: TrivetDocumentStore) -> None:
        assert document_store.write_documents([Document(content="one", id="1")]) == 1
        with pytest.raises(DuplicateDocumentError, match="'1' exists"):
            document_store.write_documents([Document(content="two", id="1")])

    async def test_write_documents_async(self, document_store: TrivetDocumentStore) -> None:
        assert await document_store.write_documents_async([Document(content="one", id="1")]) == 1
        with pytest.raises(DuplicateDocumentError, match="'1' exists"):
            await document_store.write_documents_async([Document(content="two", id="1")])


class TestDocumentStore(
    Ours,
    suites.DocumentStoreBaseExtendedTests,
    suites.CountDocumentsByFilterTest,
    suites.CountUniqueMetadataByFilterTest,
    suites.GetMetadataFieldsInfoTest,
    suites.GetMetadataFieldMinMaxTest,
    suites.GetMetadataFieldUniqueValuesTest,
):
    """Every suite of Haystack for a document store: base, extended, and the metadata of the documents."""


class TestDocumentStoreAsync(
    Ours,
    async_suites.CountDocumentsAsyncTest,
    async_suites.WriteDocumentsAsyncTest,
    async_suites.DeleteDocumentsAsyncTest,
    async_suites.DeleteAllAsyncTest,
    async_suites.DeleteByFilterAsyncTest,
    async_suites.UpdateByFilterAsyncTest,
    async_suites.FilterDocumentsAsyncTest,
    async_suites.CountDocumentsByFilterAsyncTest,
    async_suites.CountUniqueMetadataByFilterAsyncTest,
    async_suites.GetMetadataFieldsInfoAsyncTest,
    async_suites.GetMetadataFieldMinMaxAsyncTest,
    async_suites.GetMetadataFieldUniqueValuesAsyncTest,
):
    """The same through the asynchronous methods."""


class TestRetriever:
    def test_it_finds_by_words_and_the_score_is_the_relevance(self, notes: TrivetDocumentStore) -> None:
        (found,) = TrivetHybridRetriever(notes, top_k=1).run("where does the door stick")["documents"]
        assert (found.id, found.content, found.meta) == ("door", NOTES["door"], {"number": 0})
        assert found.score == notes.engine.search("where does the door stick", 1)[0].relevance

    @pytest.mark.parametrize(("policy", "found"), [("replace", {"pump", "port"}), ("merge", {"pump"})])
    def test_filters_of_a_run(self, notes: TrivetDocumentStore, policy: str, found: set[str]) -> None:
        retriever = TrivetHybridRetriever(notes, filters=condition("meta.number", "<", 2), filter_policy=policy)
        documents = retriever.run("the gateway pump door", filters=condition("number", ">", 0))["documents"]
        assert {document.id for document in documents} == found

    def test_settings_of_the_search(self, notes: TrivetDocumentStore) -> None:
        words = TrivetHybridRetriever(notes, top_k=3, options={"alpha": 0.0})
        assert [document.id for document in words.run("8443")["documents"]] == ["port"]

    def test_embeddings_of_a_pipeline(self, tmp_path: Path) -> None:
        store = TrivetDocumentStore(tmp_path / "own.db", embedder="vectors:2")
        store.write_documents(
            [Document(id=id, content=id, embedding=given) for id, given in (("a", [1, 0]), ("b", [0, 1]))]
        )
        found = TrivetHybridRetriever(store, top_k=1).run("nothing in common", query_embedding=[0.1, 0.9])
        assert found["documents"][0].id == "b"
        store.engine.close()

    def test_in_a_pipeline_that_is_saved_and_read(self, notes: TrivetDocumentStore) -> None:
        pipeline = Pipeline()
        pipeline.add_component("retriever", TrivetHybridRetriever(notes, top_k=1, options={"alpha": 0.4}))
        again = Pipeline.loads(pipeline.dumps(), allowed_modules=["trivet.integrations.haystack"])
        results = [each.run({"retriever": {"query": "port of the gateway"}}) for each in (pipeline, again)]
        assert [each["retriever"]["documents"][0].id for each in results] == ["port", "port"]
        retriever = again.get_component("retriever")
        assert retriever.options == {"alpha": 0.4}
        retriever.document_store.engine.close()

    def test_asynchronously(self, notes: TrivetDocumentStore) -> None:
        retriever = TrivetHybridRetriever(notes, top_k=1)

        async def ask() -> list[str]:
            found = await asyncio.gather(*(retriever.run_async(text) for text in NOTES.values()))
            return [each["documents"][0].id for each in found]

        assert asyncio.run(ask()) == list(NOTES)


class TestSaving:
    def test_a_secret_stays_one(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TRIVET_STORE", str(tmp_path / "secret.db"))
        store = TrivetDocumentStore(Secret.from_env_var("TRIVET_STORE"), "notes", "hashing:8")
        store.write_documents([Document(id="a", content="text")])
        data = store.to_dict()
        store.engine.close()
        assert str(tmp_path) not in repr(data)
        again = TrivetDocumentStore.from_dict(data)
        assert (again.count_documents(), again.engine.name) == (1, "notes")
        again.engine.close()

    def test_an_empty_secret_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("TRIVET_STORE", raising=False)
        with pytest.raises(InputError, match="store: the secret is empty"):
            TrivetDocumentStore(Secret.from_env_var("TRIVET_STORE", strict=False))


class TestWriting:
    @pytest.mark.parametrize(
        ("document", "message"),
        [
            (Document(id="x", content="text", embedding=[1.0, 2.0]), "embedder='vectors:2'"),
            (Document(id="x", blob=ByteStream(b"image")), "blob cannot be stored"),
            (Document(id="x", meta={"number": 1}), "document 'x': text"),
            (Document(id="x", content="text", meta={"bad": object()}), "bad: object is not JSON"),
        ],
    )
    def test_what_would_be_lost_is_refused(self, notes: TrivetDocumentStore, document: Document, message: str) -> None:
        with pytest.raises(InputError, match=message):
            notes.write_documents([document])
        assert notes.count_documents() == 3

    def test_an_id_that_is_given_twice(self, notes: TrivetDocumentStore) -> None:
        twice = [Document(id="new", content="one"), Document(id="new", content="two")]
        with pytest.raises(DuplicateDocumentError, match="'new' exists or is given twice"):
            notes.write_documents(twice, DuplicatePolicy.FAIL)
        assert notes.count_documents() == 3, "nothing is written"
        assert notes.write_documents(twice, DuplicatePolicy.OVERWRITE) == 2
        assert notes.filter_documents(condition("id", "==", "new"))[0].content == "two"

    def test_an_empty_filter_deletes_nothing(self, notes: TrivetDocumentStore) -> None:
        for wrong in (lambda: notes.delete_by_filter({}), lambda: notes.update_by_filter({}, {"a": 1})):
            with pytest.raises(FilterError, match="every document matches"):
                wrong()
        assert notes.count_documents() == 3


class TestFilters:
    @pytest.mark.parametrize(
        ("filters", "found"),
        [
            (condition("meta.nothing", "==", 1), []),
            (condition("meta.nothing", "!=", 1), ["door", "pump", "port"]),
            (condition("nothing", "not in", [1]), ["door", "pump", "port"]),
            (condition("number", "in", [1, None]), ["pump"]),
            (condition("number", "in", []), []),
            (condition("id", "in", ["door", "port"]), ["door", "port"]),
            (
                {
                    "operator": "OR",
                    "conditions": [
                        condition("meta.number", ">=", 2),
                        {"operator": "NOT", "conditions": [condition("number", ">", 0)]},
                    ],
                },
                ["door", "port"],
            ),
        ],
    )
    def test_what_matches(self, notes: TrivetDocumentStore, filters: dict[str, Any], found: list[str]) -> None:
        assert [document.id for document in notes.filter_documents(filters)] == found
        assert notes.count_documents_by_filter(filters) == len(found)
        searched = TrivetHybridRetriever(notes).run("gateway pump door", filters=filters)["documents"]
        assert {document.id for document in searched} == set(found)

    @pytest.mark.parametrize(
        ("filters", "message"),
        [
            (condition("content", "==", "text"), "'content' cannot be filtered"),
            (condition("number", "~", 1), "unknown operator '~'"),
            ({"operator": "XOR", "conditions": []}, "unknown operator 'XOR'"),
            (condition("number", "==", {"a": 1}), "cannot be compared"),
            (condition("number", ">", "soon"), "takes a number or an ISO date"),
            ({"operator": "AND", "conditions": ["number"]}, "'number' is not a dictionary"),
        ],
    )
    def test_what_is_refused(self, notes: TrivetDocumentStore, filters: dict[str, Any], message: str) -> None:
        with pytest.raises(FilterError, match=message):
            notes.filter_documents(filters)


def test_the_example_prints_what_it_finds(capsys: pytest.CaptureFixture[str]) -> None:
    run_example("haystack")
    assert capsys.readouterr().out.splitlines() == [
        "[('door', 'The greenhouse door sticks when it rains.')]",
        "[('pump', 'We swapped the irrigation pump for a quieter one.')]",
    ]


def test_the_code_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = run_section("Haystack")
    names["store"].engine.close()
    assert [document.id for document in names["documents"]] == ["door"]
