"""trivet in LangChain: a retriever in a chain, and a vector store. Needs `pip install 'trivet[langchain]'`."""

from __future__ import annotations

from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

import trivet
from trivet.integrations.langchain import TrivetRetriever, TrivetVectorStore

NOTES = [
    Document(id="door", page_content="The greenhouse door sticks when it rains.", metadata={"project": "heron"}),
    Document(
        id="pump", page_content="We swapped the irrigation pump for a quieter one.", metadata={"project": "heron"}
    ),
    Document(id="port", page_content="The gateway listens on port 8443.", metadata={"project": "gateway"}),
]


def numbered(documents: list[Document]) -> str:
    """Return the documents as a model would get them, with how sure trivet is of each."""
    lines = [
        f"[{document.id}, {document.metadata['trivet']['confidence']}] {document.page_content}"
        for document in documents
    ]
    return "\n".join(lines)


def main() -> None:
    with trivet.open(":memory:") as memory:
        store = TrivetVectorStore(memory)
        store.add_documents(NOTES)
        for found in store.similarity_search("entrance jams in wet weather", k=1):
            print(found.id, found.metadata)
        print([found.id for found in store.similarity_search("what broke?", filter={"project": "heron"})])
        chain = TrivetRetriever(engine=memory, k=1) | RunnableLambda(numbered)
        print(chain.invoke("which port does the gateway listen on?"))


if __name__ == "__main__":
    main()
