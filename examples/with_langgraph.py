"""trivet in LangGraph: the long-term memory of an agent. Needs `pip install 'trivet[langgraph]'`."""

from __future__ import annotations

from trivet.integrations.langgraph import TrivetStore

ANA, BEN = ("users", "ana"), ("users", "ben")


def main() -> None:
    store = TrivetStore(":memory:", index={"fields": ["text"]})  # graph.compile(store=store) gives it to every node
    store.put(ANA, "food", {"text": "Ana is allergic to peanuts.", "topic": "health"})
    store.put(ANA, "sport", {"text": "Ana rows on the canal before work.", "topic": "habit"})
    store.put(BEN, "food", {"text": "Ben likes peanut butter.", "topic": "taste"})
    store.put(ANA, "login", {"text": "Ana asked for a new password."}, ttl=30)  # minutes since it was last read

    for item in store.search(ANA, query="can she eat a peanut curry?", limit=1):
        print(item.namespace, item.key, item.value["text"])
    print([item.key for item in store.search(("users",), filter={"topic": {"$ne": "habit"}})])
    print(store.list_namespaces(prefix=("users",)))
    store.engine.close()


if __name__ == "__main__":
    main()
