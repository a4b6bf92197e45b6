"""LangChain: its own conformance suites, and what is special to the adapter."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import trivet

pytest.importorskip("langchain_core", reason="needs the extra langchain: `make test-integrations`")
suites = pytest.importorskip("langchain_tests.integration_tests", reason="needs langchain-tests")

from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.indexing import InMemoryRecordManager, index
from programs import run_example, run_section

from trivet.errors import EmbedderError, InputError, ModelMismatchError
from trivet.integrations.langchain import TrivetRetriever, TrivetVectorStore

NOTES = {
    "door": "The greenhouse door sticks when it rains.",
    "pump": "We swapped the irrigation pump for a quieter one.",
    "roof": "The roof of the greenhouse leaks above the tomatoes.",
    "port": "The gateway listens on port 8443.",
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[TrivetVectorStore]:
    with trivet.open(tmp_path / "notes.db", embedder="hashing:64") as engine:
        made = TrivetVectorStore(engine)
        made.add_texts(list(NOTES.values()), [{"number": at} for at in range(4)], ids=list(NOTES))
        yield made


class TestVectorStoreWithItsEmbedding(suites.VectorStoreIntegrationTests):  # type: ignore[misc,name-defined]
    """LangChain's suite, with the embedding object that the suite gives."""

    @pytest.fixture
    def vectorstore(self, tmp_path: Path) -> Iterator[TrivetVectorStore]:
        made = TrivetVectorStore(tmp_path / "suite.db", self.get_embeddings())
        yield made
        made.engine.close()


class TestVectorStoreWithOurs(suites.VectorStoreIntegrationTests):  # type: ignore[misc,name-defined]
    """LangChain's suite, with the built-in model."""

    @pytest.fixture
    def vectorstore(self, tmp_path: Path) -> Iterator[TrivetVectorStore]:
        made = TrivetVectorStore(tmp_path / "suite.db")
        yield made
        made.engine.close()


class TestRetriever(suites.RetrieversIntegrationTests):  # type: ignore[misc,name-defined]
    """LangChain's suite for retrievers."""

    @pytest.fixture(autouse=True)
    def _filled(self, store: TrivetVectorStore) -> None:
        self.engine = store.engine

    @property
    def retriever_constructor(self) -> type[TrivetRetriever]:
        return TrivetRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"engine": self.engine}

    @property
    def retriever_query_example(self) -> str:
        return "what happened in the greenhouse?"


class TestSearch:
    def test_a_filter_is_one_of_trivet(self, store: TrivetVectorStore) -> None:
        found = store.similarity_search("greenhouse", k=4, filter={"number": {"gte": 2}})
        assert {document.id for document in found} == {"roof", "port"}

    def test_a_field_that_no_document_has_is_named(self, store: TrivetVectorStore) -> None:
        with pytest.raises(InputError, match="did you mean 'number'"):
            store.similarity_search("greenhouse", filter={"numbr": 2})

    def test_scores_fall_and_relevance_is_that_of_trivet(self, store: TrivetVectorStore) -> None:
        scores = [score for _, score in store.similarity_search_with_score("greenhouse door", k=3)]
        assert scores == sorted(scores, reverse=True)
        relevance = [found for _, found in store.similarity_search_with_relevance_scores("greenhouse door", k=3)]
        assert relevance == [hit.relevance for hit in store.engine.search("greenhouse door", 3)]

    def test_a_threshold_is_on_the_relevance(self, store: TrivetVectorStore) -> None:
        (best, least), *_ = store.similarity_search_with_relevance_scores("greenhouse door", k=3)
        found = store.similarity_search_with_relevance_scores("greenhouse door", k=3, score_threshold=least)
        assert found[0][0] == best
        assert all(relevance >= least for _, relevance in found)

    def test_a_vector_finds_the_nearest(self, store: TrivetVectorStore) -> None:
        embedder = store.engine._models.embedder
        assert embedder is not None
        vector = embedder.embed_passages([NOTES["pump"]])[0].tolist()
        assert store.similarity_search_by_vector(vector, k=1)[0].id == "pump"

    def test_mmr_prefers_what_differs(self, store: TrivetVectorStore) -> None:
        store.add_texts(["The greenhouse door sticks when it rains again."], ids=["copy"])
        plain = [document.id for document in store.similarity_search("greenhouse door rains", k=2, rerankers=[])]
        assert set(plain) == {"door", "copy"}
        mixed = store.max_marginal_relevance_search("greenhouse door rains", k=2, lambda_mult=0.1)
        assert {document.id for document in mixed} != {"door", "copy"}

    def test_settings_of_the_search_are_keywords(self, store: TrivetVectorStore) -> None:
        assert store.similarity_search("8443", k=1, alpha=0.0)[0].id == "port"
        with pytest.raises(InputError, match="alhpa"):
            store.similarity_search("8443", alhpa=0.0)

    def test_as_a_retriever_with_a_threshold(self, store: TrivetVectorStore) -> None:
        retriever = store.as_retriever(search_type="similarity_score_threshold", search_kwargs={"score_threshold": 1.0})
        assert retriever.invoke("submarine volcano") == []


class TestWriting:
    def test_all_documents_can_be_deleted_and_some_by_filter(self, store: TrivetVectorStore) -> None:
        store.delete(where={"number": 0})
        assert store.get_by_ids(["door", "pump"]) == [
            Document(id="pump", page_content=NOTES["pump"], metadata={"number": 1})
        ]
        store.delete()
        assert store.engine.stats().documents == 0

    def test_a_missing_id_is_made(self, store: TrivetVectorStore) -> None:
        first, second = store.add_documents([Document(page_content="one", id="mine"), Document(page_content="two")])
        assert first == "mine"
        assert [document.page_content for document in store.get_by_ids([second])] == ["two"]

    def test_a_call_that_is_wrong_names_what_to_change(self, store: TrivetVectorStore) -> None:
        with pytest.raises(InputError, match="metadatas: 1 for 2 texts"):
            store.add_texts(["a", "b"], [{}])
        with pytest.raises(InputError, match="unknown argument 'metadata'"):
            store.add_texts(["a"], metadata=[{}])

    def test_the_indexing_of_langchain_skips_what_is_there(self, store: TrivetVectorStore) -> None:
        store.delete()
        manager = InMemoryRecordManager("notes")
        manager.create_schema()
        notes = [Document(page_content=text, metadata={"source": id}) for id, text in NOTES.items()]
        first = index(notes, manager, store, cleanup="full", source_id_key="source", key_encoder="sha256")
        again = index(notes[:3], manager, store, cleanup="full", source_id_key="source", key_encoder="sha256")
        assert (first["num_added"], again["num_skipped"], again["num_deleted"]) == (4, 3, 1)
        assert store.engine.stats().documents == 3


class TestEmbedding:
    def test_a_collection_keeps_the_model_that_it_was_made_with(self, tmp_path: Path) -> None:
        path = tmp_path / "own.db"
        made = TrivetVectorStore.from_texts(["a door"], DeterministicFakeEmbedding(size=8), store=path, ids=["door"])
        made.engine.close()
        again = TrivetVectorStore(path, DeterministicFakeEmbedding(size=8))
        assert again.similarity_search("a door", k=1)[0].id == "door"
        again.engine.close()
        with (
            pytest.raises(ModelMismatchError, match="DeterministicFakeEmbedding"),
            trivet.open(path, embedder="granite"),
        ):
            pass

    def test_without_the_object_a_search_is_by_words_and_says_so(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        path = tmp_path / "own.db"
        TrivetVectorStore.from_texts(["a door"], DeterministicFakeEmbedding(size=8), store=path).engine.close()
        with trivet.open(path) as engine:
            assert TrivetVectorStore(engine).similarity_search("door", k=1)[0].page_content == "a door"
        assert "dense was degraded" in caplog.text

    def test_an_object_that_fails_is_named(self, tmp_path: Path) -> None:
        class Broken(DeterministicFakeEmbedding):
            def embed_documents(self, texts: list[str]) -> list[list[float]]:
                raise ConnectionError("no route to the model")

        with pytest.raises(EmbedderError, match=r"langchain/Broken.*no route to the model"):
            TrivetVectorStore(tmp_path / "own.db", Broken(size=8))


class TestRetrieverResults:
    def test_a_passage_says_where_it_is_and_how_relevant(self, store: TrivetVectorStore) -> None:
        (found,) = TrivetRetriever(engine=store.engine, k=1, where={"number": [0, 1]}).invoke("greenhouse door")
        (hit,) = store.engine.search("greenhouse door", 1)
        assert (found.id, found.page_content) == ("door", NOTES["door"])
        assert found.metadata["number"] == 0
        assert found.metadata["trivet"]["relevance"] == hit.relevance
        assert found.metadata["trivet"]["confidence"] == hit.confidence

    def test_a_filter_of_one_call_is_added(self, store: TrivetVectorStore) -> None:
        retriever = TrivetRetriever(engine=store.engine, where={"number": [0, 1]})
        found = retriever.invoke("greenhouse", where={"number": [1, 2]})
        assert [document.id for document in found] == ["pump"]

    def test_many_questions_at_once(self, store: TrivetVectorStore) -> None:
        retriever = TrivetRetriever(engine=store.engine, k=1)

        async def ask() -> list[list[Document]]:
            return list(await asyncio.gather(*(retriever.ainvoke(question) for question in NOTES.values())))

        assert [found[0].id for found in asyncio.run(ask())] == list(NOTES)


def test_the_example_prints_what_it_finds(capsys: pytest.CaptureFixture[str]) -> None:
    run_example("langchain")
    assert capsys.readouterr().out.splitlines() == [
        "door {'project': 'heron'}",
        "['door', 'pump']",
        "[port, strong] The gateway listens on port 8443.",
    ]


def test_the_code_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = run_section("LangChain")
    names["store"].engine.close()
    assert [document.id for document in (*names["found"], *names["passages"])] == ["door", "door"]
