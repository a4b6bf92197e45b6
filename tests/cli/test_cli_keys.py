"""``trivet keys``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trivet.engine.keys import Keys
from trivet.filters import And, Eq, Range


def test_a_bound_key_is_made_and_listed_with_its_filter(cli: Callable[..., Any], tmp_path: Path) -> None:
    store = tmp_path / "memory.db"
    made = cli("keys", "create", "alice", "--where", "tenant=alice", "--where", "year>=2020", "--store", store)
    assert made.code == 0
    with Keys(store) as keys:
        key = keys.find(made.out.strip())
        assert key is not None
        assert key.where == And((Eq("tenant", "alice"), Range("year", gte=2020)))
    listed = cli("keys", "list", "--store", store)
    assert 'read, all collections where {"$and": [{"tenant": {"eq": "alice"}}, {"year": {"gte": 2020}}]}' in listed.out
    (shown,) = json.loads(cli("keys", "list", "--json", "--store", store).out)
    assert shown["where"] == {"$and": [{"tenant": {"eq": "alice"}}, {"year": {"gte": 2020}}]}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("create", "alice", "--scope", "admin", "--where", "tenant=alice"), "cannot be admin"),
        (("create", "alice", "--where", "{}"), "the filter is empty"),
        (("create", "alice", "--where", "tenant"), "is not understood"),
        (("create", "alice", "--where", "accessed>=2026-01-01"), "changes when a document is read"),
        (("revoke", "alice", "--where", "tenant=alice"), "--where goes with `create`"),
    ],
)
def test_what_cannot_bind_a_key_is_refused(cli: Callable[..., Any], tmp_path: Path, arguments: Any, told: str) -> None:
    refused = cli("keys", *arguments, "--store", tmp_path / "memory.db")
    assert refused.code == 2
    assert told in refused.err
