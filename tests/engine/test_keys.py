"""Keys are kept as hashes, found by their text alone, and limited to what they may do."""

from __future__ import annotations

import hashlib
import hmac
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import trivet
from trivet.engine.keys import SCOPES, Keys
from trivet.errors import InputError, NotFoundError
from trivet.filters import And, Eq, Range


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


def test_only_the_hash_is_kept(store: Path) -> None:
    with Keys(store) as keys:
        key, text = keys.create("dashboard", "read", ["tickets"])
        assert keys.find(text) == key
    secret = text.split("_", 2)[2].encode()
    for file in store.parent.glob("memory.db*"):
        assert file.is_dir() or secret not in file.read_bytes()


def test_what_is_not_the_whole_key_is_no_key(store: Path) -> None:
    with Keys(store) as keys:
        _, text = keys.create("one")
        other = keys.create("two")[1]
        wrong = text[:-1] + ("a" if text[-1] != "a" else "b")
        mixed = f"{text.rsplit('_', 1)[0][:17]}{other[17:]}"
        for bad in ("", "tvt_", text[:-1], text + "a", text.upper(), wrong, mixed, f" {text}", "é" * 60, "\0"):
            assert keys.find(bad) is None, bad


def test_an_unknown_id_is_compared_too(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that it takes as long as a wrong secret."""
    seen: list[Any] = []
    real = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: seen.append((len(a), len(b))) or real(a, b))
    with Keys(store) as keys:
        keys.find("tvt_" + "0" * 12 + "_" + "a" * 43)
        keys.find("nonsense")
    assert seen == [(32, 32), (32, 32)]


def test_a_scope_may_what_those_before_it_may(store: Path) -> None:
    with Keys(store) as keys:
        for at, scope in enumerate(SCOPES):
            key, _ = keys.create(scope, scope)
            assert [key.may(asked, "any") for asked in SCOPES] == [place <= at for place in range(len(SCOPES))]
        bound, _ = keys.create("clerk", "admin", ["tickets", "tickets"])
        assert bound.collections == ("tickets",)
        assert bound.may("admin", "tickets")
        assert not bound.may("read", "notes")
        assert not bound.may("read", None), "the store as a whole is more than its collection"


def test_revoked_by_name_or_id_and_seen_by_another_process(store: Path) -> None:
    with Keys(store) as one, Keys(store) as two:
        assert not one.any()
        key, text = one.create("same")
        _, second = one.create("same")
        assert two.find(text) == key
        with pytest.raises(InputError, match="name one by its id"):
            one.revoke("same")
        one.revoke(key.id)
        assert two.find(text) is None
        assert two.find(second) is not None
        one.revoke("same")
        assert two.any()
        assert not two.any_in_use()
        with pytest.raises(NotFoundError):
            one.revoke("same")


@pytest.mark.parametrize(
    ("name", "scope", "bound"),
    [("", "read", ()), ("x" * 65, "read", ()), ("a\nb", "read", ()), ("a", "root", ()), ("a", "read", [""])],
)
def test_what_is_wrong_is_refused(store: Path, name: str, scope: str, bound: Any) -> None:
    with Keys(store) as keys, pytest.raises(InputError):
        keys.create(name, scope, bound)
    with Keys(store) as keys:
        assert keys.list() == []


def test_an_older_store_is_upgraded_and_its_documents_stay(store: Path) -> None:
    with trivet.open(store, embedder="none") as engine:
        engine.add("kept", id="a")
        with Keys(store) as keys:
            keys.create("one")
        document = engine.get("a")
        assert document is not None and document.text == "kept"


def test_a_bound_key_keeps_its_filter(store: Path) -> None:
    with Keys(store) as keys:
        key, text = keys.create("alice", "write", ["notes"], where=["tenant=alice", "year>=2020"])
        assert key.where == And((Eq("tenant", "alice"), Range("year", gte=2020)))
        assert key.scope == "write"
        assert keys.find(text) == key
        assert keys.list() == [key]
        plain, other = keys.create("all")
        assert (plain.where, keys.find(other)) == (None, plain)


@pytest.mark.parametrize("where", [{}, [], "", "tenant", {"tenant": {}}, {"$or": [{}]}, 7, {"accessed": {"gte": 0}}])
def test_a_filter_that_binds_nothing_is_refused(store: Path, where: Any) -> None:
    with Keys(store) as keys:
        with pytest.raises(InputError, match="where"):
            keys.create("alice", where=where)
        assert keys.list() == []


def test_a_bound_key_is_no_admin(store: Path) -> None:
    with Keys(store) as keys, pytest.raises(InputError, match="cannot be admin"):
        keys.create("alice", "admin", where="tenant=alice")


def test_a_key_whose_filter_was_lost_or_changed_is_unknown(store: Path) -> None:
    with Keys(store) as keys:
        _, text = keys.create("alice", where="tenant=alice")
    for change in ('UPDATE key_filters SET filter = \'{"tenant": {"eq": "bob"}}\'', "DELETE FROM key_filters"):
        with sqlite3.connect(store) as connection:
            connection.execute(change)
        with Keys(store) as keys:
            assert keys.find(text) is None
            assert not keys.list()[0].may("read") or keys.list()[0].where is not None


def test_an_older_trivet_does_not_know_a_bound_key(store: Path) -> None:
    """It reads the table `keys` alone, hashes the secret alone, and knows three scopes."""
    with Keys(store) as keys:
        _, text = keys.create("alice", where="tenant=alice")
    with sqlite3.connect(store) as connection:
        ((kept, scope),) = connection.execute("SELECT hash, scope FROM keys").fetchall()
    assert kept != hashlib.sha256(text.split("_", 2)[2].encode()).digest()
    assert scope not in SCOPES
