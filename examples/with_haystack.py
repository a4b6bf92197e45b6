"""trivet in Haystack: a document store and a hybrid retriever. Needs `pip install 'trivet[haystack]'`."""

from __future__ import annotations

from haystack import Document, Pipeline
from haystack.components.writers import DocumentWriter

from trivet.integrations.haystack import TrivetDocumentStore, TrivetHybridRetriever

NOTES = [
    Document(id="door", content="The greenhouse door sticks when it rains.", meta={"project": "heron"}),
    Document(id="pump", content="We swapped the irrigation pump for a quieter one.", meta={"project": "heron"}),
    Document(id="port", content="The gateway listens on port 8443.", meta={"project": "gateway"}),
]


def main() -> None:
    store = TrivetDocumentStore(":memory:")
    writing = Pipeline()
    writing.add_component("writer", DocumentWriter(store))
    writing.run({"writer": {"documents": NOTES}})

    asking = Pipeline()
    asking.add_component("retriever", TrivetHybridRetriever(store, top_k=1))
    heron = {"field": "meta.project", "operator": "==", "value": "heron"}
    for query, filters in (("entrance jams in wet weather", None), ("which machine was replaced?", heron)):
        found = asking.run({"retriever": {"query": query, "filters": filters}})
        print([(document.id, document.content) for document in found["retriever"]["documents"]])
    store.engine.close()


if __name__ == "__main__":
    main()
