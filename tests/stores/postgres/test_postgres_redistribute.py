"""A collection that is moved between the two sets of tables keeps everything, and so does one that had ``spread``."""

from __future__ import annotations

import json
from typing import Any

import pytest

import trivet
from servers import Postgres
from trivet.engine import Engine
from trivet.engine.redistribute import redistribute
from trivet.errors import InputError, NotFoundError
from trivet.stores.postgres import database, postings, vector_search
from trivet.stores.postgres.address import Address
from trivet.stores.postgres.schema import LATER_BY_PART, MIGRATIONS, SPREAD_UNTIL
from trivet.stores.postgres.tables import BY_DOCUMENT, MAX_PARTS

from .conftest import rows

QUERIES = ("heron 7", "river stone", '"by the river"', "harbour lamp")
SPREAD = 3  # parts of a collection as an older trivet made it


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "PACK_FROM", 20)
    monkeypatch.setattr(vector_search, "INDEX_FROM", 40)


def fill(url: str) -> None:
    with trivet.open(url, embedder="hashing:32", passage_size=12) as memory:
        memory.add(
            [
                {
                    "id": f"d{n}",
                    "title": "T" * (n % 3),
                    "text": f"heron {n} by the river, and some more words\n\nof stone {n % 7} that is far away",
                    "meta": {"n": n, "s": f"v{n % 3}", "odd": "nul \0 ü"},
                }
                for n in range(60)
            ]
        )
        memory.add("a lamp\n\nin the harbour\n\nburns all night long and longer", id="long", links=["d1"])
        memory.link("d5", "d4", "supersedes")
        memory.touch(["d1", "d2"])
        memory.feedback("which bird", "d1", good=True)
        memory.update_settings(k=7)
        memory.delete(["d10", "d11"])
        memory.wait()
        memory.prepare()


def contents(memory: Engine) -> dict[str, Any]:
    """Return what a user can see of a collection."""
    found = memory.stats()
    return {
        "lines": list(memory.lines(vectors=True)),
        "counts": (found.documents, found.passages, found.embedded, found.links, found.model),
        "settings": (memory.settings, memory.settings_history()),
        "feedback": [(item.query, item.id, item.good) for item in memory.feedbacks()],
        "hits": [{hit.id: round(hit.score, 9) for hit in memory.search(query, k=40)} for query in QUERIES],
        "filtered": sorted(hit.id for hit in memory.search("heron", k=40, where={"s": "v1", "n": {"gte": 3}})),
    }


def indexes(memory: Engine) -> set[str]:
    sql = "SELECT indexname FROM pg_indexes WHERE schemaname = %s AND indexname LIKE 'meaning%%'"
    return {name for (name,) in rows(memory, sql, memory._store.database.address.schema)}  # type: ignore[attr-defined]


def test_a_collection_keeps_everything_there_and_back(postgres: Postgres) -> None:
    url = postgres.fresh()
    fill(url)
    with trivet.open(url, embedder="hashing:32") as memory:
        before, numbered = contents(memory), indexes(memory)
        memory.collection("other", embedder="none").add("stays where it is", id="x")
    for by in ("documents", "collections", "documents"):
        done = redistribute(url, "default", by)
        assert done.moved and (done.documents, done.passages) == before["counts"][:2]
        with trivet.open(url, embedder="hashing:32") as memory:
            tables = memory._collection.rows.tables  # type: ignore[attr-defined]
            assert tables.distributed == (by == "documents")
            assert contents(memory) == before
            assert memory.verify().problems == ()
            assert len(indexes(memory)) == 1 and indexes(memory) != numbered, "that of the old number is gone"
            numbered = indexes(memory)
            left = [
                rows(memory, f"SELECT count(*) FROM {table} WHERE cid NOT IN (SELECT cid FROM collections)")[0][0]
                for table in (*BY_DOCUMENT, *LATER_BY_PART, "heads", "lexicon", "links", "segments", "timeline")
            ]
            assert not any(left)
            assert memory.collection("other", embedder="none").get("x") is not None
            memory.add("heron of later", id="later")
            memory.patch("d7", meta={"n": 7})
            memory.wait()
            assert memory.search("later")[0].id == "later" and memory.verify().ok
            memory.delete("later")
    assert not redistribute(url, "default", "documents").moved
    postgres.sweep()


def test_who_has_it_open_is_told_to_open_it_again(postgres: Postgres) -> None:
    url = postgres.fresh()
    fill(url)
    with trivet.open(url, embedder="hashing:32") as memory:
        memory.search("heron")
        redistribute(url, "default", "documents")
        for call in (lambda: memory.search("heron"), lambda: memory.add("x"), memory.stats):
            with pytest.raises(NotFoundError, match="moved to other tables; open it again"):
                call()
    with trivet.open(url, embedder="hashing:32") as memory:
        assert memory.search("heron").hits
    postgres.sweep()


def test_what_is_kept_by_number_elsewhere_is_compared_again(postgres: Postgres) -> None:
    """Qdrant and others note the token of a version: none from before the move is known afterwards."""
    url = postgres.fresh()
    fill(url)
    with trivet.open(url, embedder="hashing:32") as memory:
        before = memory._collection.state()
        assert memory._collection.knows_version(before.version, before.token)
    redistribute(url, "default", "documents")
    with trivet.open(url, embedder="hashing:32") as memory:
        assert memory._collection.state().version > before.version
        assert not memory._collection.knows_version(before.version, before.token)
    postgres.sweep()


def test_a_name_or_a_way_that_is_unknown_is_refused(postgres: Postgres) -> None:
    url = postgres.fresh()
    fill(url)
    with pytest.raises(NotFoundError, match="'nothing' does not exist; there are: default"):
        redistribute(url, "nothing", "documents")
    with pytest.raises(InputError, match="by: 'rows' is unknown; known: documents, collections"):
        redistribute(url, "default", "rows")
    postgres.sweep()


# --- collections with ``spread`` --------------------------------------------------------------------------------------


def as_before(url: str, spread: int) -> None:
    """Make of a store what an older trivet would have made, with a collection that was created with ``spread``."""
    address = Address.parse(url)
    connection = database._connect(address, options=f"-c search_path={address.schema},public")
    with connection, connection.transaction():
        slot = f"mod(ascii(right(d.id, 1)), {spread})"
        connection.execute("SET LOCAL session_replication_role = replica")  # rows change before those they refer to
        for table, numbers in (("passages", ("pid", "did")), ("vectors", ("pid", "did")), ("fields", ("did",))):
            changed = ", ".join(f"{number} = t.{number} * {MAX_PARTS} + {slot}" for number in numbers)
            connection.execute(f"UPDATE {table} t SET cid = 2 + {slot}, {changed} FROM documents d WHERE d.did = t.did")
        connection.execute(f"UPDATE documents d SET cid = 2 + {slot}, did = did * {MAX_PARTS} + {slot}")
        connection.execute("DELETE FROM lexicon")
        connection.execute(
            "INSERT INTO lexicon SELECT p.cid, t.term, count(*) FROM passages p, "
            "unnest(tsvector_to_array(p.words)) AS t(term) GROUP BY 1, 2"
        )
        connection.execute("DELETE FROM postings; DELETE FROM segments")
        connection.execute("INSERT INTO segments SELECT 2, 1, 99")
        connection.execute("UPDATE numbers SET value = %s WHERE name = 'collection'", (1 + spread,))
        config = json.loads(connection.execute("SELECT config FROM collections").fetchone()[0])  # type: ignore[index]
        connection.execute("UPDATE collections SET config = %s", (json.dumps({**config, "spread": spread}),))
        for name in reversed(LATER_BY_PART):
            connection.execute(f"DROP TABLE {name} CASCADE")
        connection.execute("DROP STATISTICS fields_values")
        connection.execute("DELETE FROM migrations WHERE number >= %s", (SPREAD_UNTIL,))
        connection.execute("ALTER INDEX meaning_1_1 RENAME TO meaning_2_1")


@pytest.mark.usefixtures("one_server")
@pytest.mark.parametrize("spread", [1, SPREAD])
def test_a_migration_moves_a_spread_collection(postgres: Postgres, spread: int) -> None:
    url = postgres.fresh()
    fill(url)
    with trivet.open(url, embedder="hashing:32") as memory:
        before = contents(memory)
    as_before(url, spread)
    with trivet.open(url, embedder="hashing:32") as memory:
        tables = memory._collection.rows.tables  # type: ignore[attr-defined]
        assert tables.distributed and tables.root not in range(1, 2 + spread)
        assert rows(memory, "SELECT max(number) FROM migrations") == [(len(MIGRATIONS),)]
        assert indexes(memory) == set()
        memory.prepare()
        assert contents(memory) == before
        assert memory.verify().problems == ()
        for table in (*BY_DOCUMENT, "lexicon", "segments", "heads", "models"):
            others = f"SELECT count(*) FROM {table} WHERE cid <> %s"
            assert rows(memory, others, tables.root) == [(0,)], table
        assert len(indexes(memory)) == 1
        memory.add("heron of later", id="later")
        assert memory.search("later")[0].id == "later"
    postgres.sweep()


def test_the_option_of_older_addresses_names_its_successor() -> None:
    with pytest.raises(InputError, match="distribute=documents takes its place"):
        Address.parse("postgresql://db.example/notes?spread=4")
    with pytest.raises(InputError, match="distribute 'rows' is unknown; known: collections, documents"):
        Address.parse("postgresql://db.example/notes?distribute=rows")
