"""The turns before and after documents in their sessions, read from a PostgreSQL server in a few statements."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from trivet.stores.contract import Adjacent
from trivet.stores.known_turns import KnownTurns
from trivet.stores.postgres.edges import Wanted, having
from trivet.stores.postgres.rows import Rows
from trivet.text.conversation import GRAPH_SPEAKER_KEYS, SESSION_KEYS, TURN_KEYS, is_skipped

REACH = 32  # documents in sessions of the same name that are looked through on each side

_Meta = Mapping[str, Any]


class PostgresSessions:
    """The sessions of one collection."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        known = KnownTurns(self._keys_in_use, self._read)
        self.adjacent, self.drop_caches = known.adjacent, known.drop

    def _keys_in_use(self) -> list[str]:
        tables = self._rows.tables
        sql = f"SELECT 1 FROM {tables.fields} WHERE {tables.of()} AND key = %s LIMIT 1"
        return [key for key in SESSION_KEYS if self._rows.all(sql, (key,))]

    def _read(self, keys: Sequence[str], dids: Sequence[int]) -> Adjacent:
        metas = self._metas(dids)
        wanted = [(did, key, meta[key]) for did, meta in metas.items() if (key := _session_key(keys, meta))]
        before = self._turns(wanted, metas, "AND f.did < a.did ORDER BY f.did DESC")
        after = self._turns(wanted, metas, "AND f.did > a.did ORDER BY f.did")
        return {did: (before.get(did), after.get(did)) for did in dids}

    def _turns(self, wanted: Sequence[Wanted], metas: Mapping[int, _Meta], nearest: str) -> dict[int, int]:
        """Map documents to the next turn of their session on one side."""
        near = self._near(wanted, f"{nearest} LIMIT 1")
        known = {**metas, **self._metas([others[0] for others in near.values()])}
        hidden = [item for item in wanted if item[0] in near and not _same(known, item[0], near[item[0]][0])]
        if hidden:  # the nearest is in a session of the same name, but of another owner
            further = self._near(hidden, f"{nearest} LIMIT {REACH}")
            known |= self._metas([other for others in further.values() for other in others])
            near |= further
        found: dict[int, int] = {}
        for did, others in near.items():
            turn = next((other for other in others if other in known and _same(known, did, other)), None)
            if turn is not None and not is_skipped(known[turn].get(key) for key in GRAPH_SPEAKER_KEYS):
                found[did] = turn
        return found

    def _near(self, wanted: Sequence[Wanted], nearest: str) -> dict[int, list[int]]:
        """Map documents to those in sessions of the same name on one side, the nearest first."""
        found: dict[int, list[int]] = {}
        for did, other in having(self._rows, wanted, nearest):
            found.setdefault(did, []).append(other)
        # each part of a distributed collection has answered for itself
        return {did: sorted(others, key=lambda other: abs(other - did)) for did, others in found.items()}

    def _metas(self, dids: Sequence[int]) -> dict[int, _Meta]:
        rows = self._rows.by_number(f"SELECT did, meta FROM {self._rows.tables.documents}", "did", dids)
        return {did: json.loads(meta) for did, meta in rows}


def _session_key(keys: Sequence[str], meta: _Meta) -> str | None:
    return next((key for key in keys if isinstance(meta.get(key), str | int | float) and meta[key] != ""), None)


def _same(metas: Mapping[int, _Meta], did: int, other: int) -> bool:
    """Tell whether two documents are in one session of one owner."""
    return all(metas[did].get(key) == metas[other].get(key) for key in TURN_KEYS)
