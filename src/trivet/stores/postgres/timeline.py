"""The versions of a collection, and how a process notices that the server was set back to an earlier one."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

from trivet.errors import StoreError
from trivet.stores.contract import Model, State
from trivet.stores.postgres.database import Select
from trivet.stores.postgres.rows import Rows
from trivet.stores.postgres.transaction import add_token

_STATE = (
    "SELECT h.version, coalesce(t.token, ''::bytea), h.settings, h.documents, h.passages, "
    "m.mid, m.id, m.spec, m.dim, m.vectors "
    "FROM heads h LEFT JOIN timeline t ON t.cid = h.cid AND t.version = h.version "
    "LEFT JOIN models m ON m.cid = h.cid AND m.mid = h.mid WHERE h.cid = %s"
)


class Timeline:
    """The newest version that this process has seen, and its token.

    A restored backup, or a standby that takes over, gives a version number again to other content, with another token.
    """

    def __init__(self, rows: Rows, drop_caches: Callable[[], None]) -> None:
        """``drop_caches`` is called where the server was set back."""
        self._rows, self._drop_caches = rows, drop_caches
        self._lock = threading.Lock()
        self._newest = (-1, b"")

    def state(self) -> State:
        """Read the state of the collection, and drop the caches where it is not a successor of the last one."""
        state = self.read()
        if self._rows.database.in_snapshot:  # it began earlier: another thread may have seen a later state
            return state
        if not state.token and not self._rows.database.read_only:
            self._add_first_token()
        if (state.version, state.token) != self._newest:
            with self._lock:  # one after another: a state that was read earlier must not look like a set-back server
                state = self.read()
                self._follow(state)
        return state

    def read(self) -> State:
        """Read the state of the collection."""
        rows = self._rows.all(_STATE, (self._rows.root,))
        if not rows:
            raise self._rows.dropped()
        version, token, settings, documents, passages, *model = rows[0]
        return State(version, settings, documents, passages, None if model[0] is None else Model(*model), bytes(token))

    def knows_version(self, version: int, token: bytes) -> bool:
        """Tell whether this version is in the collection's past."""
        return self._token_of(version) == token

    def _follow(self, state: State) -> None:
        version, token = self._newest
        if (version, token) != (state.version, state.token):
            if version >= 0 and (state.version < version or self._token_of(version) != token):
                self._drop_caches()
            self._newest = (state.version, state.token)

    def note_snapshot(self) -> tuple[int, bool]:
        """Take note of the state of the current snapshot; return its version, and whether it is the newest.

        What an index reads may be newer than the state that the search began with. If the server is set back to a state
        between the two, only the newer one shows it. A later state than the snapshot's was seen by another thread, or
        the server was set back: which one cannot be seen inside of a snapshot.
        """
        state = self.read()
        if not self._lock.acquire(blocking=False):  # the thread that has it may wait for the connection held here
            return state.version, False
        try:
            version, token = self._newest
            if version > state.version:
                return state.version, False
            known = version < 0 or (version, token) == (state.version, state.token)
            if not known and self._token_of(version) != token:
                raise StoreError(
                    f"collection: {self._rows.name!r}: its server was set back meanwhile (a restored backup?); "
                    "repeat the call"
                )
            self._newest = (state.version, state.token)
        finally:
            self._lock.release()
        return state.version, True

    def _token_of(self, version: int) -> bytes | None:
        return token_of(self._rows.all, self._rows.root, version)

    def _add_first_token(self) -> None:
        """Give the version of a collection that was created before there were tokens one."""
        with contextlib.suppress(StoreError), self._rows.locked() as transaction:  # the role may only read
            ((version,),) = transaction.all("SELECT version FROM heads WHERE cid = %s", (self._rows.root,))
            if token_of(transaction.all, self._rows.root, version) is None:
                add_token(transaction.connection, self._rows.root, version)


def token_of(select: Select, cid: int, version: int) -> bytes | None:
    """Return the token of a version; None where it is not kept."""
    rows = select("SELECT token FROM timeline WHERE cid = %s AND version = %s", (cid, version))
    return bytes(rows[0][0]) if rows else None
