"""A store of the earliest version is opened by today's, with everything in it.

``fixtures/schema-1.sqlite.gz`` was made by the first commit whose tables today's migrations stand on (5a5efe8, schema
1), ``schema-4.sqlite.gz`` by the last one before schema 5 (89cf7ef), each by ``fixtures/make.py`` run on that commit's
own code; ``fixtures/expected.json`` is what they put in.
"""

from __future__ import annotations

import gzip
import json
import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import trivet
from robust.account import Account, Scale
from trivet.stores.sqlite.schema import MIGRATIONS

FIXTURES = Path(__file__).parent / "fixtures"
VERSIONS = (1, 4)
WORDS_ALONE: dict[str, Any] = {"profile": "default", "alpha": 0, "understanding": "plain", "rerankers": []}


def run(account: Account, scale: Scale, folder: Path, rng: random.Random) -> None:
    for version in VERSIONS:
        for told in faults(unpacked(version, folder)):
            account.fault("lost", f"schema {version}: {told}")
        account.add("migrations")


def unpacked(version: int, folder: Path) -> Path:
    store = folder / f"schema-{version}.db"
    store.write_bytes(gzip.decompress((FIXTURES / f"schema-{version}.sqlite.gz").read_bytes()))
    assert user_version(store) == version
    return store


def user_version(store: Path) -> int:
    with closing(sqlite3.connect(store)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def faults(store: Path) -> list[str]:
    """What is not as it was put in; then the store is written to, as by any other."""
    expected = json.loads((FIXTURES / "expected.json").read_text())
    found: list[str] = []
    with trivet.open(store) as engine:
        documents = {document.id: document for document in engine.documents()}
        for item in expected["documents"]:
            kept = documents.pop(item["id"], None)
            told = kept and {"id": kept.id, "text": kept.text, "title": kept.title, "meta": dict(kept.meta)}
            if kept is None or {**told, "importance": kept.importance} != item:
                found.append(f"document {item['id']}: {kept}")
        found += [f"a stranger: {id}" for id in documents]
        if [[link.source, link.target, link.type] for link in engine.links()] != expected["links"]:
            found.append(f"links: {engine.links()}")
        for item in expected["documents"]:
            hits = [hit.id for hit in engine.search(item["meta"]["word"], k=3, **WORDS_ALONE)]
            if hits != [item["id"]]:
                found.append(f"{item['id']} by its word: {hits}")
            if [hit.id for hit in engine.search(item["text"], k=1, **{**WORDS_ALONE, "alpha": 1})] != [item["id"]]:
                found.append(f"{item['id']} by its meaning")
        if engine.settings.k != expected["k"]:
            found.append(f"settings: k is {engine.settings.k}")
        engine.add("written by today's", id="today", meta={"word": "newcomer"})
        engine.feedback("who is new", "today")
        engine.update_settings(k=4)
        engine.touch(["today"])
        engine.delete(expected["documents"][0]["id"])
        found += engine.verify().problems
    if user_version(store) != len(MIGRATIONS):
        found.append(f"the schema is {user_version(store)}, not {len(MIGRATIONS)}")
    return found
