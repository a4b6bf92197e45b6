"""LlamaIndex: the vector store beside its own simple one, in an index, and the retriever."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import trivet

pytest.importorskip("llama_index.core", reason="needs the extra llama-index: `make test-integrations`")

from llama_index.core import MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.schema import Document, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters, VectorStoreQuery, VectorStoreQueryMode
from programs import run_example, run_section

from trivet.errors import InputError
from trivet.integrations.llama_index import TrivetRetriever, TrivetVectorStore

NOTES = {
    "door": (
        "The greenhouse door sticks when it rains.",
        {"number": 1, "tags": ["wood", "rain"], "room": "greenhouse"},
    ),
    "pump": ("We swapped the irrigation pump for a quieter one.", {"number": 2, "tags": ["water"], "room": ""}),
    "port": ("The gateway listens on port 8443.", {"number": 3.5}),
}
FILTERS: list[dict[str, Any]] = [
    {"operator": "==", "key": "number", "value": 2},
    {"operator": "!=", "key": "number", "value": 2},
    {"operator": ">", "key": "number", "value": 1},
    {"operator": ">=", "key": "number", "value": 2},
    {"operator": "<", "key": "number", "value": 2},
    {"operator": "<=", "key": "number", "value": 2},
    {"operator": "in", "key": "number", "value": [1, 2]},
    {"operator": "nin", "key": "number", "value": [1, 2]},
    {"operator": "==", "key": "room", "value": "greenhouse"},
    {"operator": "!=", "key": "room", "value": "greenhouse"},
    {"operator": "contains", "key": "tags", "value": "rain"},
    {"operator": "any", "key": "tags", "value": ["water", "wood"]},
    {"operator": "all", "key": "tags", "value": ["rain", "wood"]},
    {"operator": "all", "key": "tags", "value": ["rain", "water"]},
    {"operator": "is_empty", "key": "room", "value": None},
    {"operator": "==", "key": "nothing", "value": 1},
    {"operator": "!=", "key": "nothing", "value": 1},
]


def nodes() -> list[TextNode]:
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="notes.md")}
    return [
        TextNode(id_=id, text=text, metadata=meta, embedding=vector, relationships=source if id != "port" else {})
        for (id, (text, meta)), vector in zip(NOTES.items(), ([1.0, 0.0], [0.6, 0.8], [0.0, 1.0]), strict=True)
    ]


@pytest.fixture
def own(tmp_path: Path) -> Iterator[TrivetVectorStore]:
    """A store for the embeddings of LlamaIndex."""
    store = TrivetVectorStore(tmp_path / "own.db", embedder="vectors:2")
    store.add(nodes())
    yield store
    store.client.close()


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[TrivetVectorStore]:
    """A store that embeds by itself."""
    store = TrivetVectorStore(tmp_path / "ours.db", embedder="hashing:64")
    store.add(nodes())
    yield store
    store.client.close()


def only(*filters: dict[str, Any] | MetadataFilters, condition: str = "and") -> MetadataFilters:
    made = [MetadataFilter(**each) if isinstance(each, dict) else each for each in filters]
    return MetadataFilters(filters=made, condition=condition)


def ask(text: str | None = None, k: int = 3, **fields: Any) -> VectorStoreQuery:
    return VectorStoreQuery(query_str=text, similarity_top_k=k, **fields)


class TestBesideTheSimpleStore:
    @pytest.mark.parametrize("filter", FILTERS, ids=repr)
    @pytest.mark.parametrize("condition", ["and", "or", "not"])
    def test_filters(self, own: TrivetVectorStore, filter: dict[str, Any], condition: str) -> None:
        simple = SimpleVectorStore()
        simple.add(nodes())
        filters = only(filter, {"operator": "<", "key": "number", "value": 3}, condition=condition)
        query = VectorStoreQuery(query_embedding=[0.9, 0.1], similarity_top_k=3, filters=filters)
        theirs = simple.query(query).ids
        assert own.query(query).ids == theirs
        assert {node.node_id for node in own.get_nodes(filters=filters)} == set(theirs or [])

    @pytest.mark.parametrize("ids", [["port", "pump"], ["none"], None])
    def test_ids(self, own: TrivetVectorStore, ids: list[str] | None) -> None:
        simple = SimpleVectorStore()
        simple.add(nodes())
        query = VectorStoreQuery(query_embedding=[0.9, 0.1], similarity_top_k=3, node_ids=ids)
        assert own.query(query).ids == simple.query(query).ids

    def test_documents(self, own: TrivetVectorStore) -> None:
        query = VectorStoreQuery(query_embedding=[0.9, 0.1], similarity_top_k=3, doc_ids=["notes.md"])
        assert own.query(query).ids == ["door", "pump"]

    def test_delete_and_clear(self, own: TrivetVectorStore) -> None:
        own.delete("no such document")
        own.delete("notes.md")
        assert [node.node_id for node in own.get_nodes()] == ["port"]
        own.clear()
        assert own.get_nodes() == []
        own.delete("notes.md")


class TestNodes:
    def test_a_node_comes_back_as_it_was(self, ours: TrivetVectorStore) -> None:
        expected = nodes()
        for node in expected:
            node.embedding = None  # it is in the index
        assert ours.get_nodes() == expected
        assert ours.get_nodes(["pump"]) == [expected[1]]

    def test_delete_nodes_by_id_and_filter(self, ours: TrivetVectorStore) -> None:
        ours.delete_nodes(["door", "pump"], only({"operator": ">", "key": "number", "value": 1}))
        assert [node.node_id for node in ours.get_nodes()] == ["door", "port"]
        with pytest.raises(InputError, match="give node_ids or filters"):
            ours.delete_nodes()
        ours.delete_nodes([])
        assert len(ours.get_nodes()) == 2
        assert ours.get_nodes([]) == []

    def test_a_node_without_text_is_refused(self, ours: TrivetVectorStore) -> None:
        with pytest.raises(InputError, match="document 'empty': text is empty"):
            ours.add([TextNode(id_="empty", text="")])

    def test_a_document_of_trivet_becomes_a_text_node(self, ours: TrivetVectorStore) -> None:
        ours.client.add("The boiler was serviced.", id="boiler", title="Heating", meta={"year": 2026})
        (node,) = ours.get_nodes(["boiler"])
        assert (node.get_content(), node.metadata) == ("The boiler was serviced.", {"title": "Heating", "year": 2026})


class TestModes:
    def test_the_default_is_hybrid_and_similarity_is_relevance(self, ours: TrivetVectorStore) -> None:
        found = ours.query(ask("where does the door stick"))
        hits = ours.client.search("where does the door stick", 3)
        assert found.ids == [hit.id for hit in hits]
        assert found.similarities == [hit.relevance for hit in hits]
        assert found.nodes is not None
        assert found.nodes[0].get_content() == NOTES["door"][0]

    @pytest.mark.parametrize("mode", [VectorStoreQueryMode.TEXT_SEARCH, VectorStoreQueryMode.SPARSE])
    def test_text_search_is_by_words(self, ours: TrivetVectorStore, mode: VectorStoreQueryMode) -> None:
        assert ours.query(ask("8443", mode=mode)).ids == ["port"]
        assert ours.query(ask("8444", mode=mode)).ids == []

    def test_alpha_of_a_hybrid_query(self, own: TrivetVectorStore) -> None:
        hybrid = {"mode": VectorStoreQueryMode.HYBRID, "query_embedding": [0.0, 1.0], "hybrid_top_k": 1}
        assert own.query(ask("greenhouse door", alpha=0.0, **hybrid)).ids == ["door"]
        assert own.query(ask("greenhouse door", alpha=1.0, **hybrid)).ids == ["port"]

    def test_mmr(self, ours: TrivetVectorStore) -> None:
        ours.add([TextNode(id_="copy", text="The greenhouse door sticks when it rains again.")])
        query = "greenhouse door rains"
        assert set(ours.query(ask(query, 2), rerankers=[]).ids or []) == {"door", "copy"}
        found = ours.query(ask(query, 2, mode=VectorStoreQueryMode.MMR, mmr_threshold=0.1))
        assert set(found.ids or []) != {"door", "copy"}

    def test_what_trivet_has_not_is_refused(self, ours: TrivetVectorStore) -> None:
        with pytest.raises(InputError, match="mode: 'svm' is no mode of trivet"):
            ours.query(ask("door", mode=VectorStoreQueryMode.SVM))
        with pytest.raises(InputError, match="'text_match' on 'room' is no filter of trivet"):
            ours.query(ask("door", filters=only({"operator": "text_match", "key": "room", "value": "green"})))
        with pytest.raises(InputError, match="'number' takes a list"):
            ours.query(ask("door", filters=only({"operator": "in", "key": "number", "value": 1})))

    def test_nested_filters(self, ours: TrivetVectorStore) -> None:
        one, two = ({"operator": "==", "key": "number", "value": value} for value in (1, 2))
        rain = {"operator": "contains", "key": "tags", "value": "rain"}
        either = only(one, two, condition="or")
        assert ours.query(ask("door", filters=only(either, only(rain, condition="not")))).ids == ["pump"]
        assert ours.query(ask("door", filters=only(either, only()))).ids == ours.query(ask("door", filters=either)).ids


class TestIndex:
    def test_it_needs_no_embedding(self, ours: TrivetVectorStore) -> None:
        storage = StorageContext.from_defaults(vector_store=ours)
        documents = [Document(id_="boiler.md", text="The boiler was serviced in March.")]
        index = VectorStoreIndex.from_documents(documents, storage, embed_model=MockEmbedding(embed_dim=1))
        (found,) = index.as_retriever(similarity_top_k=1).retrieve("when was the boiler serviced")
        assert found.node.ref_doc_id == "boiler.md"
        index.delete_ref_doc("boiler.md")
        assert [node.node_id for node in ours.get_nodes()] == list(NOTES)

    def test_with_the_embedding_of_the_index(self, tmp_path: Path) -> None:
        store = TrivetVectorStore(tmp_path / "index.db", embedder="vectors:8")
        storage = StorageContext.from_defaults(vector_store=store)
        model = MockEmbedding(embed_dim=8)
        VectorStoreIndex.from_documents([Document(id_="a", text="The boiler.")], storage, embed_model=model)
        again = VectorStoreIndex.from_vector_store(store, embed_model=model)
        filters = only({"operator": "==", "key": "ref_doc_id", "value": "a"})
        (found,) = again.as_retriever(filters=filters).retrieve("boiler")
        assert found.get_content() == "The boiler."
        assert store.client.stats().pending == 0
        store.client.close()


class TestRetriever:
    def test_passages_of_any_collection(self, tmp_path: Path) -> None:
        with trivet.open(tmp_path / "m.db", embedder="hashing:64", passage_size=20) as engine:
            parts = [
                f"# Part {at}\n\nIt is about the {noun}, and nothing else at all."
                for at, noun in enumerate(("pump", "door"))
            ]
            engine.add("\n\n".join(parts), id="long", title="Notes", meta={"year": 2026})
            (found,) = TrivetRetriever(engine, similarity_top_k=1, where={"year": 2026}).retrieve("the door")
            hit = engine.search("the door")[0]
            assert isinstance(found.node, TextNode)
            assert (found.node.text, found.score) == (hit.text, hit.relevance)
            assert (found.node.start_char_idx, found.node.end_char_idx) == (hit.passage.start, hit.passage.end)
            assert found.node.metadata == {"title": "Notes", "year": 2026}

    def test_nodes_of_a_vector_store(self, ours: TrivetVectorStore) -> None:
        (found,) = TrivetRetriever(ours.client, 1, options={"alpha": 0.0}).retrieve("port 8443")
        assert found.node == ours.get_nodes(["port"])[0]

    def test_asynchronously(self, ours: TrivetVectorStore) -> None:
        async def work() -> tuple[Any, ...]:
            await ours.async_add([TextNode(id_="boiler", text="The boiler was serviced.")])
            found = await TrivetRetriever(ours.client, 1).aretrieve("boiler serviced")
            result = await ours.aquery(ask("boiler serviced", 1))
            await ours.adelete("notes.md")
            await ours.adelete_nodes(["boiler"])
            left = await ours.aget_nodes()
            await ours.aclear()
            return found[0].node.node_id, result.ids, [node.node_id for node in left], ours.get_nodes()

        assert asyncio.run(work()) == ("boiler", ["boiler"], ["port"], [])


def test_the_example_prints_what_it_finds(capsys: pytest.CaptureFixture[str]) -> None:
    run_example("llama_index")
    assert capsys.readouterr().out.splitlines() == [
        "pump We swapped the irrigation pump for a quieter one.",
        "door The greenhouse door sticks when it rains.",
    ]


def test_the_code_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = run_section("LlamaIndex")
    names["store"].client.close()
    assert names["result"].ids == ["door"]
    assert names["nodes"][0].text == "The greenhouse door sticks when it rains."
