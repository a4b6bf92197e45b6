"""Stores by address (``trivet.stores``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trivet import stores
from trivet.errors import InputError, MissingExtraError
from trivet.plugins import Registry
from trivet.stores import StoreType, address, is_server, is_there, open_keys, open_store, scheme_of, shown


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """A registry with the scheme ``shed`` alone; returns what its functions were called with."""
    calls: list[tuple[str, str]] = []

    def record(name: str) -> Any:
        return lambda url: calls.append((name, url))

    registry: Registry[StoreType] = Registry("store", "trivet.stores.tests", {})
    registry.add("shed", StoreType(record("open"), record("exists"), record("keys")))
    monkeypatch.setattr(stores, "STORES", registry)
    return calls


def test_a_registered_scheme_is_opened_by_its_type(opened: list[tuple[str, str]]) -> None:
    open_store("shed://memory"), is_there("shed://memory"), open_keys("shed://memory")
    assert opened == [("open", "shed://memory"), ("exists", "shed://memory"), ("keys", "shed://memory")]


def test_a_path_made_of_a_url_is_the_url(opened: list[tuple[str, str]]) -> None:
    open_store(Path("shed://memory/a"))
    assert opened == [("open", "shed://memory/a")]


def test_an_unknown_scheme_is_refused_with_the_known_ones(opened: list[tuple[str, str]]) -> None:
    with pytest.raises(InputError, match=r"mysql:// is not an address of a store; give a path, shed://…"):
        open_store("mysql://host/db")


@pytest.mark.parametrize(
    ("given", "scheme"),
    [
        ("memory.db", ""),
        ("folder:/memory.db", ""),
        (Path("mysql://host"), ""),
        ("postgres://host/db", "postgres"),
        ("PostgreSQL://host/db", "postgresql"),
        ("qdrants://host?words=x.db", "qdrants"),
        ("qdrant+local:folder", "qdrant+local"),
    ],
)
def test_the_scheme_of_an_address(given: str | Path, scheme: str) -> None:
    assert scheme_of(given) == scheme and is_server(given) == bool(scheme)


def test_a_path_stays_as_it_is() -> None:
    assert address(Path("a/b.db")) == "a/b.db" and address("a//b.db") == "a//b.db"


@pytest.mark.parametrize("given", ["qdrant+local:/folder", "qdrant+local:folder", "qdrant+local:/folder?words=a.db"])
def test_the_folder_of_a_local_address_stays_as_it_is(given: str) -> None:
    assert address(Path(given)) == given


@pytest.mark.parametrize(
    ("given", "without"),
    [
        ("postgresql://me:se:cr%2Fet@host:5432/db?password=hush&schema=a", "postgresql://me@host:5432/db?schema=a"),
        ("postgresql:///db?host=/run/postgresql", "postgresql:///db?host=/run/postgresql"),
        ("qdrant://host:6333?words=a.db&api_key=hush", "qdrant://host:6333?words=a.db&"),
        ("a:b@c.db", "a:b@c.db"),
    ],
)
def test_an_address_is_shown_without_its_secrets(given: str, without: str) -> None:
    assert shown(given) == without


def test_a_missing_driver_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'trivet\[postgres\]'"):
        open_store("postgresql://host/db")
    with pytest.raises(MissingExtraError, match=r"pip install 'trivet\[qdrant\]'"):
        is_there("qdrant://host?words=x.db")
