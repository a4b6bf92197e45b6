"""One timeline and one state: a server that is set back, snapshots, and writers that race."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import trivet
from servers import Postgres
from stores.postgres.conftest import rows
from trivet.engine import Engine
from trivet.errors import SnapshotLostError, StoreError
from trivet.stores.postgres.database import Database

WORDS: dict[str, Any] = {"weights": {"lexical": 1.0, "dense": 0.0, "graph": 0.0, "trigram": 0.0}, "rerankers": []}
SPELLING: dict[str, Any] = {"weights": {"lexical": 0.0, "dense": 0.0, "graph": 0.0, "trigram": 1.0}, "rerankers": []}
MEANING: dict[str, Any] = {"weights": {"lexical": 0.0, "dense": 1.0, "graph": 0.0, "trigram": 0.0}, "rerankers": []}
WALKED: dict[str, Any] = {"weights": {"lexical": 0.5, "dense": 0.0, "graph": 1.0, "trigram": 0.0}, "rerankers": []}
MANY = 1_200  # documents: enough for the graph to be kept in the cache folder


@pytest.fixture
def url(postgres: Postgres) -> Iterator[str]:
    yield postgres.fresh()
    postgres.sweep()


def notes(name: str, count: int, **meta: Any) -> list[dict[str, Any]]:
    return [
        {"id": f"{name}{number}", "text": f"{name} speaks of Port {name.title()} {number}", "meta": meta}
        for number in range(count)
    ]


# --- a server that is set back ----------------------------------------------------------------------------------------


def check_restored(memory: Engine, new: int) -> None:
    """Nothing of the documents ``lost…`` is found or counted in any way; every ``new…`` is."""
    for options in (WORDS, SPELLING, MEANING, WALKED):
        found = memory.search("lost speaks of Port Lost 7", k=50, **options)
        assert not [hit.id for hit in found if hit.id.startswith("lost")]
        assert not [hit.path for hit in found if any("Lost" in step for step in hit.path)]
    assert memory.search("Port Lost", k=5, **{**WORDS, "match": "all"}).hits == ()
    for number in range(new):
        assert memory.search(f'"Port New {number}"', k=1, **WORDS)[0].id == f"new{number}"
    where = {"place": "harbour"}
    assert {hit.id for hit in memory.search("speaks", k=100, where=where, **WORDS)} == {f"new{n}" for n in range(new)}
    assert memory.stats().documents == MANY + new and memory.stats().links == 1
    assert [link.target for link in memory.links("base0")] == ["base1"]
    assert memory.verify().problems == ()


@pytest.mark.usefixtures("one_server")
def test_a_server_that_is_set_back_is_answered_from_as_it_is_now(postgres: Postgres, url: str) -> None:
    with trivet.open(url, embedder="hashing:32") as memory:
        memory.add(notes("base", MANY, place="shore"))
        memory.link("base0", "base1")
        memory.wait()
        memory.search("base speaks of Port Base 3", **WALKED)
        saved = postgres.save(url)
        memory.add(notes("lost", 40, place="harbour"))
        memory.link("base0", "lost1", "supersedes")
        memory.wait()
        memory.prepare()
        memory.update_settings(weights={"graph": 1.0})
        for options in (WORDS, SPELLING, MEANING, WALKED):
            assert memory.search("lost speaks of Port Lost 7", where={"place": "harbour"}, **options).hits
        postgres.put_back(saved)
        memory.add(notes("new", 30, place="harbour"))
        memory.wait()
        check_restored(memory, 30)
    with trivet.open(url, embedder="hashing:32") as memory:
        check_restored(memory, 30)


@pytest.mark.usefixtures("one_server")
def test_an_engine_that_only_searches_sees_it_too(postgres: Postgres, url: str) -> None:
    """Another engine writes as much after the restore as was lost, so versions and counts are equal."""
    with trivet.open(url, embedder="hashing:32") as memory, trivet.open(url, embedder="hashing:32") as other:
        memory.add(notes("base", 10, place="shore"))
        memory.wait()
        saved = postgres.save(url)
        memory.add(notes("lost", 20, place="harbour"))
        memory.wait()
        where = {"place": "harbour"}
        for options in (WORDS, SPELLING, MEANING, WALKED):
            assert other.search("lost speaks of Port Lost 7", where=where, **options)[0].id.startswith("lost")
        version = other._collection.state().version
        postgres.put_back(saved)
        with trivet.open(url, embedder="hashing:32") as third:
            third.add(notes("base2x", 20, place="harbour"))
            third.wait()
            while third._collection.state().version < version:
                third.patch("base0", meta={"n": third._collection.state().version})
            third.patch("base2x3", meta={"place": "elsewhere"})
            third.delete("base2x4")
        for options in (WORDS, SPELLING, MEANING, WALKED):
            found = {hit.id for hit in other.search("base2x speaks of Port", k=50, where=where, **options)}
            assert found and found <= {f"base2x{n}" for n in range(20)} - {"base2x3", "base2x4"}


def test_a_collection_has_a_token_from_its_first_version_on(url: str) -> None:
    with trivet.open(url, embedder="none") as memory:
        first = memory._collection.state()
        assert (first.version, len(first.token)) == (0, 8)
        memory.add("heron")
        assert memory._collection.knows_version(0, first.token) and not memory._collection.knows_version(0, b"another")
        assert not memory._collection.knows_version(99, first.token)


def test_a_version_that_an_older_trivet_wrote_gets_a_token(url: str) -> None:
    with trivet.open(url, embedder="none") as memory:
        memory.add("heron")
        schema = memory._store.database.address.schema  # type: ignore[attr-defined]
        sql = f"DELETE FROM {schema}.timeline"
        memory._store.database.outside(lambda connection: connection.execute(sql))  # type: ignore[attr-defined]
    with trivet.open(url, embedder="none") as memory:
        state = memory._collection.state()
        assert len(state.token) == 8 and memory._collection.knows_version(state.version, state.token)


def test_searches_do_not_wait_for_each_other_to_read_the_state(memory: Engine) -> None:
    """A thread that waits for the server while it reads the state does not block the others."""
    memory.add("heron", id="a")
    assert memory.search("heron").hits
    collection: Any = memory._collection
    with collection.timeline._lock, ThreadPoolExecutor(1) as pool:
        assert pool.submit(collection.state).result(timeout=30).documents == 1


# --- races ------------------------------------------------------------------------------------------------------------

FLIPPER = """
import sys, trivet
with trivet.open(sys.argv[1], embedder="hashing:32") as memory:
    print("ready", flush=True)
    for number in range(100_000):
        memory.patch("d", text=f"public note about pumps {number}", meta={"tenant": "A"})
        memory.patch("d", text=f"SECRET note about pumps {number}", meta={"tenant": "B"})
"""


@pytest.mark.slow
def test_a_document_that_changes_tenants_is_never_shown_to_the_wrong_one(url: str) -> None:
    with trivet.open(url, embedder="hashing:32") as memory:
        fillers = [
            {"id": f"f{n}", "text": f"filler about gardens {n}", "meta": {"tenant": "AB"[n % 2]}} for n in range(40)
        ]
        memory.add(fillers)
        memory.add("public note about pumps", id="d", meta={"tenant": "A"})
        memory.wait()
        bound = memory.within({"tenant": "A"})
        flipping = subprocess.Popen([sys.executable, "-c", FLIPPER, url], stdout=subprocess.PIPE, text=True)
        try:
            assert flipping.stdout is not None and flipping.stdout.readline() == "ready\n"
            begun, seen = memory._collection.state().version, 0
            for number in range(400):
                engine, where = (bound, None) if number % 2 else (memory, {"tenant": "A"})
                for hit in engine.search("note about pumps", where=where, k=5):
                    assert hit.document.meta["tenant"] == "A" and "SECRET" not in hit.document.text + hit.text
                    seen += hit.id == "d"
            assert memory._collection.state().version > begun + 20 and seen, "it flipped meanwhile, and was found"
        finally:
            flipping.kill()
            flipping.wait()
            flipping.stdout.close()  # type: ignore[union-attr]


@pytest.mark.usefixtures("one_server")
def test_a_deletion_by_filter_leaves_what_a_patch_took_out_of_it(url: str) -> None:
    """The patch holds the collection's row when the deletion begins; it commits first, so the document stays."""
    with trivet.open(url, embedder="none") as memory, trivet.open(url, embedder="none") as other:
        memory.add(
            [{"id": "kept", "text": "heron", "meta": {"old": 1}}, {"id": "gone", "text": "fox", "meta": {"old": 1}}]
        )
        changing, go_on = threading.Event(), threading.Event()
        documents: Any = memory._collection.documents
        real = documents.amend

        def slow(identifier: str, mid: int | None, change: Callable[[Any], Any], within: Any = None) -> Any:
            def changed(known: Any) -> Any:
                changing.set()
                assert go_on.wait(30)
                return change(known)

            return real(identifier, mid, changed, within)

        documents.amend = slow
        with ThreadPoolExecutor(2) as pool:
            patched = pool.submit(memory.patch, "kept", meta={"old": 0})
            assert changing.wait(30)
            deleted = pool.submit(other.delete, where={"old": 1})
            wait_for_lock(other)
            go_on.set()
            assert patched.result(60).meta == {"old": 0} and deleted.result(60) == 1
        assert [document.id for document in memory.documents()] == ["kept"]


def wait_for_lock(engine: Engine) -> None:
    """Wait until a connection waits for a row lock."""
    sql = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'trivet'"
    for _ in range(3_000):
        if rows(engine, sql):
            return
        threading.Event().wait(0.01)
    raise AssertionError("the deletion did not wait")


# --- snapshots --------------------------------------------------------------------------------------------------------


def database_of(engine: Engine) -> Database:
    found: Database = engine._store.database  # type: ignore[attr-defined]
    return found


def kill(postgres: Postgres) -> None:
    """Close every connection of every pool."""
    sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'trivet'"
    with postgres.connect() as connection:
        connection.execute(sql)


def test_a_snapshot_sees_one_state_and_so_does_one_within_it(url: str) -> None:
    with trivet.open(url, embedder="none") as memory, trivet.open(url, embedder="none") as other:
        memory.add("heron", id="a")
        with memory._collection.snapshot():
            before = memory._collection.state()
            other.add("fox", id="b")
            with memory._collection.snapshot():
                assert memory._collection.state() == before and memory.get("b") is None
            assert memory._collection.state() == before and memory.stats().documents == 1
        assert memory._collection.state().documents == 2 and memory.get("b") is not None


def test_each_thread_has_a_snapshot_of_its_own(url: str) -> None:
    with trivet.open(url, embedder="none") as memory:
        memory.add("heron", id="a")
        with memory._collection.snapshot(), ThreadPoolExecutor(1) as pool:
            memory._collection.state()
            pool.submit(memory.add, "fox", id="b").result(30)
            assert pool.submit(memory.get, "b").result(30) is not None and memory.get("b") is None


def test_a_connection_that_hung_up_is_replaced_before_a_snapshot_begins(postgres: Postgres, url: str) -> None:
    with trivet.open(url, embedder="none") as memory:
        memory.add("heron", id="a")
        for _ in range(3):
            kill(postgres)
            with memory._collection.snapshot():
                assert memory._collection.state().documents == 1
        assert not database_of(memory).in_snapshot and memory.search("heron")[0].id == "a"


def test_a_connection_that_hangs_up_in_a_snapshot_is_told_and_the_pool_goes_on(postgres: Postgres, url: str) -> None:
    with trivet.open(url, embedder="none") as memory:
        memory.add("heron", id="a")
        for _ in range(20):  # more often than the pool has connections
            told = pytest.raises(SnapshotLostError, match="was lost while it was read; repeat the call")
            with told, memory._collection.snapshot():
                memory._collection.state()
                kill(postgres)
                memory._collection.state()
            assert not database_of(memory).in_snapshot
        assert memory.search("heron")[0].id == "a"


@pytest.mark.parametrize(
    "call",
    [
        lambda memory: memory.search("heron")[0].id == "a",
        lambda memory: memory.get("a").id == "a",
        lambda memory: [link.target for link in memory.links()] == ["b"],
        lambda memory: memory.stats().links == 1,
        lambda memory: memory.facets()[0].field == "kind",
        lambda memory: memory.feedbacks() == [],
        lambda memory: memory.redundant().superseded == (),
        lambda memory: memory.explain("heron", "a").rank == 1,
    ],
)
def test_what_only_reads_begins_again_when_the_server_hangs_up_in_it(
    postgres: Postgres, url: str, call: Callable[[Engine], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    with trivet.open(url, embedder="none") as memory:
        memory.add([{"id": "a", "text": "heron"}, {"id": "b", "text": "fox"}])
        memory.link("a", "b")
        begin, times = Database._begin, []

        def killed(self: Database, snapshot: Any, work: Any) -> Any:
            answer = begin(self, snapshot, work)
            if not times:
                times.append(1)
                with postgres.connect() as other:
                    other.execute("SELECT pg_terminate_backend(%s::integer)", (snapshot.connection.info.backend_pid,))
            return answer

        monkeypatch.setattr(Database, "_begin", killed)
        assert call(memory) and times


def test_a_write_within_a_snapshot_is_not_seen_by_it_and_is_kept(url: str) -> None:
    with trivet.open(url, embedder="none") as memory:
        memory.add("heron", id="a")
        with memory._collection.snapshot():
            memory._collection.state()
            memory.add("fox", id="b")
            assert memory._collection.state().documents == 1
        assert memory._collection.state().documents == 2


def test_a_snapshot_of_a_closed_store_is_refused(url: str) -> None:
    with trivet.open(url, embedder="none") as memory:
        collection = memory._collection
    with pytest.raises(StoreError, match="is closed"), collection.snapshot():
        collection.state()


def test_a_statement_that_fails_in_a_snapshot_leaves_the_pool_in_order(url: str) -> None:
    with trivet.open(f"{url}&pool=1", embedder="none") as memory:
        memory.add("heron", id="a")
        database = database_of(memory)
        for first in (True, False):
            with pytest.raises(StoreError, match="division by zero"), memory._collection.snapshot():
                if not first:
                    memory._collection.state()
                database.all("SELECT 1 / 0")
            assert memory.search("heron")[0].id == "a" and memory.add("fox", id="b")
