"""trivet in LlamaIndex: a vector store of an index, and a retriever. Needs `pip install 'trivet[llama-index]'`."""

from __future__ import annotations

from llama_index.core import Document, MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

import trivet
from trivet.integrations.llama_index import TrivetRetriever, TrivetVectorStore

NOTES = [
    Document(id_="door", text="The greenhouse door sticks when it rains.", metadata={"year": 2025}),
    Document(id_="pump", text="We swapped the irrigation pump for a quieter one.", metadata={"year": 2026}),
    Document(id_="port", text="The gateway listens on port 8443.", metadata={"year": 2026}),
]


def main() -> None:
    with trivet.open(":memory:") as memory:
        storage = StorageContext.from_defaults(vector_store=TrivetVectorStore(memory))
        nothing = MockEmbedding(embed_dim=1)  # trivet embeds the texts; an index wants a model nevertheless
        index = VectorStoreIndex.from_documents(NOTES, storage, embed_model=nothing)
        recent = MetadataFilters(filters=[MetadataFilter(key="year", value=2026)])
        for found in index.as_retriever(similarity_top_k=1, filters=recent).retrieve("what is less noisy now?"):
            print(found.node.ref_doc_id, found.text)
        for found in TrivetRetriever(memory, similarity_top_k=1).retrieve("entrance jams in wet weather"):
            print(found.node.ref_doc_id, found.text)


if __name__ == "__main__":
    main()
