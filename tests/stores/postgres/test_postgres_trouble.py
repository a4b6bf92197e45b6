"""A server that closes connections, is slow, has none left, or dies."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import trivet
from servers import Postgres, running
from trivet.errors import InputError, StoreError
from trivet.stores.postgres.lexical import PostgresLexical

LOADER = """
import sys, trivet
url, turn = sys.argv[1:]
def ids(number):
    return [f"r{turn}-{number}-{at}" for at in range(20)]
def step(memory, verb, number):
    print("begin", verb, turn, number, flush=True)
    if verb == "delete":
        memory.delete(ids(number))
    else:
        memory.add([{"id": id, "text": f"heron {verb} {id}", "meta": {"n": number}} for id in ids(number)])
    print("done", flush=True)
with trivet.open(url, embedder="hashing:32") as memory:
    try:
        for number in range(100_000):
            step(memory, "add", number)
            if number % 3 == 1:
                step(memory, "write", number)
            if number % 3 == 2:
                step(memory, "delete", number - 1)
    except trivet.errors.StoreError as error:
        print("refused", str(error).splitlines()[0], flush=True)
        sys.exit(3)
"""


@pytest.fixture(scope="module")
def own() -> Iterator[Postgres]:
    """A server that the tests here may stop and kill."""
    with running() as server:
        yield server


def test_a_restarted_server_is_found_again_by_the_next_search(own: Postgres) -> None:
    with trivet.open(own.fresh(), embedder="hashing:32") as memory:
        memory.add("heron", id="a")
        assert own.server is not None
        own.server.stop()
        own.server.start()
        assert [hit.id for hit in memory.search("heron")] == ["a"], "every connection of the pool had hung up"
        memory.add("fox", id="b")
        assert memory.search("fox")[0].id == "b"


def test_a_restart_in_the_middle_of_searches_is_waited_for(own: Postgres) -> None:
    with trivet.open(own.fresh(patience=30), embedder="none") as memory:
        memory.add([{"id": f"d{number}", "text": f"heron {number}"} for number in range(50)])
        stop = threading.Event()

        def ask() -> int:
            asked = 0
            while not stop.is_set():
                assert len(memory.search("heron")) == 10
                asked += 1
            return asked

        with ThreadPoolExecutor(3) as pool:
            asking = [pool.submit(ask) for _ in range(3)]
            time.sleep(0.3)
            assert own.server is not None
            own.server.stop("immediate")
            own.server.start()
            time.sleep(0.5)
            stop.set()
            assert all(one.result(60) > 0 for one in asking)


def account(line: list[str], here: dict[str, str]) -> dict[str, str]:
    """Return what is stored after a step of the loader: ``add ROUND NUMBER``, ``write`` it again, ``delete`` it."""
    verb, turn, number = line[0], int(line[1]), int(line[2])
    ids = [f"r{turn}-{number}-{at}" for at in range(20)]
    if verb == "delete":
        return {id: text for id, text in here.items() if id not in ids}
    return here | {id: f"heron {verb} {id}" for id in ids}


def test_a_server_killed_in_a_bulk_load_loses_nothing_acknowledged(own: Postgres) -> None:
    """After kill -9 of the postmaster each step is stored as a whole or not at all, and each step that returned is."""
    assert own.server is not None
    url = own.fresh(patience=1)
    trivet.open(url, embedder="hashing:32").close()
    certain: dict[str, str] = {}
    acknowledged = 0
    for turn in range(3):
        child = subprocess.Popen([sys.executable, "-c", LOADER, url, str(turn)], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        begun: list[str] = []
        kill_at = 7 + 5 * turn
        for line in child.stdout:
            told = line.split()
            if told[0] == "begin":
                begun = told[1:]
                if kill_at == 0:
                    own.server.kill()
                kill_at -= 1
            elif told[0] == "done":
                certain, begun, acknowledged = account(begun, certain), [], acknowledged + 1
            else:
                assert "repeating it is safe" in line or "cannot be reached" in line or "no connection" in line
        assert child.wait(60) == 3, "the loader was told"
        child.stdout.close()
        own.server.restart()
        with trivet.open(url, embedder="hashing:32") as memory:
            here = {document.id: document.text for document in memory.documents()}
            assert here in (certain, account(begun, certain) if begun else certain)
            memory.wait()
            assert memory.verify().ok and memory.stats().pending == 0
            if here:
                assert {hit.id for hit in memory.search("heron", k=len(here), lexical_depth=1_000)} <= here.keys()
        certain = here
    assert acknowledged >= 7 + 12 + 17


def test_a_leg_that_takes_too_long_is_left_out(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    with trivet.open(postgres.fresh(statement_timeout=0.2), embedder="hashing:32") as memory:
        memory.add("heron", id="a")
        sleep = "SELECT pg_sleep(5)"
        monkeypatch.setattr(PostgresLexical, "search", lambda self, *_: self._rows.all(sleep))
        results = memory.search("heron", graph_weight=0.0)
        assert [hit.id for hit in results] == ["a"]
        ((part, reason),) = [(item.part, item.reason) for item in results.degraded]
        assert part == "lexical" and "statement_timeout" in reason
    postgres.sweep()


def test_a_pool_that_is_used_up_says_so(postgres: Postgres) -> None:
    with trivet.open(postgres.fresh(pool=1, patience=0.3), embedder="none") as memory:
        memory.add("heron", id="a")
        with (
            memory._store.database.connection(),  # type: ignore[attr-defined]
            pytest.raises(StoreError, match=r"no connection .* all 1 of `pool` are in use"),
        ):
            memory.get("a")
        assert memory.get("a") is not None
    postgres.sweep()


def test_a_server_that_is_not_there(postgres: Postgres) -> None:
    with pytest.raises(StoreError, match="cannot be reached") as caught:
        trivet.open("postgresql://sam:secret@127.0.0.1:9/nowhere", embedder="none")
    assert "secret" not in str(caught.value)
    elsewhere = postgres.url.rsplit("/", 1)[0] + "/no_such_database"
    with pytest.raises(StoreError, match=r"cannot be reached.*no_such_database"):
        trivet.open(elsewhere, embedder="none")


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("postgresql://localhost", "names no database"),
        ("postgresql://localhost/db?schema=Robert'); DROP", "schema"),
        ("postgresql://localhost/db?pool=many", "pool 'many'"),
        ("postgresql://localhost/db?index=int8", "known: vector, halfvec"),
        ("mysql://localhost/db", "mysql://"),
    ],
)
def test_an_address_that_is_none(url: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        trivet.open(url, embedder="none")


def test_many_processes_that_make_the_same_store_make_it_once(postgres: Postgres) -> None:
    url = postgres.fresh()
    code = "import sys, trivet; trivet.open(sys.argv[1], embedder='none').add(sys.argv[2], id=sys.argv[2])"
    children = [subprocess.Popen([sys.executable, "-c", code, url, str(number)]) for number in range(3)]
    assert [child.wait(60) for child in children] == [0, 0, 0]
    with trivet.open(url, embedder="none") as memory:
        assert memory.collections() == ["default"] and memory.stats().documents == 3
    postgres.sweep()


def test_a_read_only_server_answers_and_refuses_to_be_written_to(postgres: Postgres) -> None:
    url = postgres.fresh()
    with trivet.open(url, embedder="none") as memory:
        memory.add("heron", id="a")
    with trivet.open(f"{url}&options=-cdefault_transaction_read_only%3Don", embedder="none") as memory:
        assert len(memory.search("heron")) == 1
        with pytest.raises(StoreError, match="read-only"):
            memory.add("fox")
    postgres.sweep()


def test_a_standby_that_was_promoted_is_written_to() -> None:
    """The server refuses writes at first, as a standby does, and takes them later; the process stays open."""

    def refuse(server: Postgres, on: str) -> None:
        with server.connect() as connection:
            connection.autocommit = True
            connection.execute(f"ALTER SYSTEM SET default_transaction_read_only = {on}")
            connection.execute("SELECT pg_reload_conf()")
        until = time.monotonic() + 30
        while time.monotonic() < until:  # the server tells its processes one after the other
            with server.connect() as connection:
                if connection.execute("SHOW default_transaction_read_only").fetchone() == (on,):
                    return
        raise AssertionError(f"default_transaction_read_only is not {on}")

    with running() as server:
        url = server.fresh()
        with trivet.open(url, embedder="none") as memory:
            memory.add("the first note", id="one")
        refuse(server, "on")
        with trivet.open(url, embedder="none") as memory:
            with pytest.raises(StoreError, match="read-only"):
                memory.add("refused", id="two")
            refuse(server, "off")
            memory.add("the second note", id="three")
            assert {hit.id for hit in memory.search("note")} == {"one", "three"}
