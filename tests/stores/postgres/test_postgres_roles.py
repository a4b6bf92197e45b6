"""Roles with few rights: one that may write rows, one that may only read, and one that may not make the store."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit, urlunsplit

import pytest

import trivet
from servers import Postgres
from trivet.errors import StoreError

Role = Callable[[str, str], str]


@pytest.fixture
def role(postgres: Postgres) -> Iterator[Role]:
    """Return a function that makes a role with rights on a store, and gives the store's address for it."""
    made: list[str] = []

    def make(url: str, rights: str) -> str:
        name, schema = f"role_{secrets.token_hex(4)}", url.rpartition("schema=")[2]
        with postgres.connect() as connection:
            connection.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'hush'")
            made.append(name)
            for right in filter(None, rights.split(";")):
                connection.execute(right.format(role=name, schema=schema))
        parts = urlsplit(url)
        return urlunsplit((parts.scheme, f"{name}:hush@{parts.netloc.rpartition('@')[2]}", *parts[2:]))

    yield make
    with postgres.connect() as connection:
        for name in made:
            connection.execute(f"DROP OWNED BY {name}")
            connection.execute(f"DROP ROLE {name}")
    postgres.sweep()


READ = "GRANT USAGE ON SCHEMA {schema} TO {role};GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}"
WRITE = f"{READ};GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {{schema}} TO {{role}}"


def made(url: str) -> str:
    with trivet.open(url, embedder="hashing:32") as memory:
        memory.add([{"id": f"d{n}", "text": f"heron {n}"} for n in range(30)])
        memory.wait()
    return url


def test_a_role_that_may_only_read_searches_and_is_told_what_it_may_not(postgres: Postgres, role: Role) -> None:
    with trivet.open(role(made(postgres.fresh()), READ), embedder="hashing:32") as memory:
        results = memory.search("heron 7")
        assert results[0].id == "d7" and not results.degraded
        told = "the rights INSERT, UPDATE, DELETE are missing .*`GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA"
        with pytest.raises(StoreError, match=told):
            memory.add("fox")
        assert memory.stats().documents == 30


def test_a_role_that_may_write_rows_writes_and_searches(postgres: Postgres, role: Role) -> None:
    with trivet.open(role(made(postgres.fresh()), WRITE), embedder="hashing:32") as memory:
        memory.add("a fox", id="fox")
        memory.wait()
        memory.patch("fox", meta={"n": 1})
        assert memory.search("fox")[0].id == "fox"
        memory.delete("d1")
        assert memory.stats().documents == 30
        memory.prepare()
        assert memory.verify().ok


def test_a_role_that_may_write_rows_makes_a_collection(postgres: Postgres, role: Role) -> None:
    with trivet.open(role(made(postgres.fresh()), WRITE), "other", embedder="none") as memory:
        memory.add("a fox", id="fox")
        assert memory.search("fox")[0].id == "fox"


def test_a_schema_that_was_made_before_is_filled_by_a_role_that_may_make_tables_there(
    postgres: Postgres, role: Role
) -> None:
    url = postgres.fresh()
    mine = role(url, "CREATE SCHEMA {schema};GRANT USAGE, CREATE ON SCHEMA {schema} TO {role}")
    with trivet.open(mine, embedder="none") as memory:
        memory.add("heron", id="a")
        assert memory.search("heron")[0].id == "a" and memory.verify().ok


@pytest.mark.parametrize(
    ("rights", "told"),
    [
        (
            "",
            r"does not exist, and this role may not create it; .*`CREATE SCHEMA test_\w+ AUTHORIZATION role_\w+`",
        ),
        ("CREATE SCHEMA {schema}", r"`GRANT USAGE, CREATE ON SCHEMA test_\w+ TO role_\w+`"),
    ],
)
def test_a_role_that_may_not_make_the_store_is_told_the_statement(
    postgres: Postgres, role: Role, rights: str, told: str
) -> None:
    url = role(postgres.fresh(), rights)
    with pytest.raises(StoreError, match=told):
        trivet.open(url, embedder="none")


def test_a_role_without_rights_on_a_store_is_told_the_statement(postgres: Postgres, role: Role) -> None:
    url = role(made(postgres.fresh()), "")
    with pytest.raises(StoreError, match=r"`GRANT USAGE ON SCHEMA test_\w+ TO role_\w+`"):
        trivet.open(url, embedder="none")
