"""The turns before and after a document in its session, looked up in the flattened metadata.

The nearest document with the same value of a session key is one look-up in the index of ``fields``. Sessions of
different owners may have the same name, so the whole identity is compared.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from trivet.stores.contract import Adjacent
from trivet.stores.known_turns import KnownTurns
from trivet.stores.sqlite.rows import CollectionRows
from trivet.text.conversation import GRAPH_SPEAKER_KEYS, SESSION_KEYS, TURN_KEYS, is_skipped

REACH = 32  # documents of sessions of the same name that are looked through on each side

_SESSION, _SPEAKERS = (", ".join(f"'$.{key}'" for key in keys) for keys in (TURN_KEYS, GRAPH_SPEAKER_KEYS))
_SAME_NAME = "f.cid = :cid AND f.key = :key AND f.value = json_extract(d.meta, :path)"
#: Documents in a session, with its identity, and the nearest document in a session of that name on one side.
_NEAREST = (
    f"SELECT c.did, json_extract(c.meta, {_SESSION}), n.did, json_extract(n.meta, {_SESSION}), "
    f"json_extract(n.meta, {_SPEAKERS}) FROM (SELECT d.did, d.meta, (SELECT f.did FROM fields f WHERE {_SAME_NAME} "
    "AND f.did {compared} d.did ORDER BY f.did {order} LIMIT 1) AS nearest FROM json_each(:dids) j "
    "CROSS JOIN documents d ON d.did = j.value WHERE json_extract(d.meta, :path) <> '') c "
    "CROSS JOIN documents n ON n.did = c.nearest"
)
#: The nearest documents in sessions of that name.
_FURTHER = (
    f"SELECT n.did, json_extract(n.meta, {_SESSION}), json_extract(n.meta, {_SPEAKERS}) FROM documents d "
    f"CROSS JOIN fields f ON {_SAME_NAME} AND f.did {{compared}} d.did CROSS JOIN documents n ON n.did = f.did "
    f"WHERE d.did = :did ORDER BY f.did {{order}} LIMIT {REACH}"
)
_BEFORE, _AFTER = (
    tuple(sql.format(compared=compared, order=order) for sql in (_NEAREST, _FURTHER))
    for compared, order in (("<", "DESC"), (">", "ASC"))
)


class SqliteSessions:
    """The sessions of one collection."""

    def __init__(self, rows: CollectionRows) -> None:
        self._rows = rows
        known = KnownTurns(self._keys_in_use, self._read)
        self.adjacent = known.adjacent
        rows.on_reset(known.drop)

    def _keys_in_use(self) -> list[str]:
        sql = "SELECT 1 FROM fields WHERE cid = ? AND key = ? LIMIT 1"
        return [key for key in SESSION_KEYS if self._rows.all(sql, (self._rows.cid, key))]

    def _read(self, keys: Sequence[str], dids: Sequence[int]) -> Adjacent:
        before: dict[int, int] = {}
        after: dict[int, int] = {}
        with self._rows.explained():
            connection = self._rows.database.read()
            for key in reversed(keys):  # of a document with several session keys, the first one counts
                given = {"cid": self._rows.cid, "key": key, "path": f"$.{key}", "dids": json.dumps(list(dids))}
                before |= _turns(connection, _BEFORE, given)
                after |= _turns(connection, _AFTER, given)
        return {did: (before.get(did), after.get(did)) for did in dids}


def _turns(connection: sqlite3.Connection, sql: Sequence[str], given: Mapping[str, Any]) -> dict[int, int]:
    """Map documents to the next turn of their session on one side."""
    nearest, further = sql
    found: dict[int, int] = {}
    for did, session, other, its_session, speakers in connection.execute(nearest, given).fetchall():
        if its_session != session:  # of another owner
            turns = connection.execute(further, {**given, "did": did})
            other, _, speakers = next((turn for turn in turns if turn[1] == session), (None, "", "[]"))
        if other is not None and not _is_skipped(speakers):
            found[did] = other
    return found


@lru_cache
def _is_skipped(speakers: str) -> bool:
    return is_skipped(json.loads(speakers))
