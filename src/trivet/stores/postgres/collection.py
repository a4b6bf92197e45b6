"""What do all questions to one collection on a PostgreSQL server begin with?

Its state, in one look-up; and for a writer the lock on its row, so that of two each sees all or nothing of the other.
"""

from __future__ import annotations

import contextlib
import functools
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from trivet.analysis import Analyzer
from trivet.errors import NotFoundError, StoreError
from trivet.stores.contract import Model, State, read_again
from trivet.stores.postgres import links
from trivet.stores.postgres.connections import Connections
from trivet.stores.postgres.database import Connection
from trivet.stores.postgres.links import All
from trivet.stores.postgres.parts import Parts
from trivet.stores.postgres.place import Place
from trivet.stores.postgres.schema import KEPT_TOKENS

if TYPE_CHECKING:
    from trivet.filters import Filter
    from trivet.stores.postgres.scope import Scope
    from trivet.stores.postgres.store import PostgresStore


Given = ParamSpec("Given")
Answer = TypeVar("Answer")

PRUNED_EVERY = 1_024  # versions between two deletions of tokens that are too old


class Collection:
    def __init__(self, store: PostgresStore, cid: int, name: str, config: Mapping[str, Any]) -> None:
        self.store, self.cid, self.name, self.config = store, cid, name, dict(config)
        self.parts = Parts.of(cid, self.config.pop("spread", 0))  # how it is kept is nobody else's concern
        self.analyzer = Analyzer(self.config.get("language", "en"))
        self._database = store.database
        self._all = store.database.all
        self._lock = threading.Lock()
        self._scopes: OrderedDict[Filter, Scope] = OrderedDict()
        self._scopes_version = -1
        self._connections = Connections(store.database, self.parts, self.analyzer, store.start, self._note_snapshot)
        self._counted = (-1, (False, 0, 0, 0))  # at which version: BM25's table, passages, terms, the last passage
        self._packed = 0  # the last passage this process has seen to be taken into the postings
        self._chained = (-1, False)  # at which version: is there a link that changes recall?
        self._indexed: set[int] = set()  # models whose index is known to be there, or being made
        self._timeline, self._last = threading.Lock(), (-1, b"")  # the newest version seen, and its token

    @property
    def read_only(self) -> bool:
        return self._database.read_only

    def order_of(self, did: int) -> int:
        """The how-manieth document it was: of a spread collection the numbers are further apart."""
        return did // self.parts.every[0].step

    def snapshot(self) -> contextlib.AbstractContextManager[None]:
        """Let this thread read one state of the collection until the block ends."""
        return self._database.snapshot()

    def state(self) -> State:
        state = self._state()
        if self._database.in_snapshot:  # of a moment ago: another thread may have seen a later one
            return state
        if not state.token and not self.read_only:
            self._begin_timeline()
        if (state.version, state.token) != self._last:
            with self._timeline:  # one after another: a state that was read earlier must not look like one set back
                state = self._state()
                self._follow_timeline(state.version, state.token)
        return state

    def _begin_timeline(self) -> None:
        """Give a collection that was made before there were tokens one for the version it has."""
        with contextlib.suppress(StoreError), self._held() as (connection, _, _):  # a role may be allowed to read only
            sql = "SELECT version FROM heads WHERE cid = %s"
            (version,) = links.asking(connection)(sql, (self.cid,))[0]
            if token_of(links.asking(connection), self.cid, version) is None:
                begin(connection, self.cid, version)

    def _state(self) -> State:
        rows = self._all(
            "SELECT h.version, coalesce(t.token, ''::bytea), h.settings, h.documents, h.passages, "
            "m.mid, m.id, m.spec, m.dim, m.vectors "
            "FROM heads h LEFT JOIN timeline t ON t.cid = h.cid AND t.version = h.version "
            "LEFT JOIN models m ON m.cid = h.cid AND m.mid = h.mid WHERE h.cid = %s",
            (self.cid,),
        )
        if not rows:
            raise NotFoundError(f"collection: {self.name!r} was dropped")
        version, token, settings, documents, passages, *model = rows[0]
        return State(version, settings, documents, passages, None if model[0] is None else Model(*model), bytes(token))

    def knows_version(self, version: int, token: bytes) -> bool:
        return token_of(self._all, self.cid, version) == token

    def _follow_timeline(self, version: int, token: bytes) -> None:
        """Drop what is remembered where the server was set back: a backup was restored, or a standby took over."""
        last, seen = self._last
        if (version, token) != (last, seen):
            if last >= 0 and (version < last or token_of(self._all, self.cid, last) != seen):
                self._forget()
            self._last = (version, token)

    def _note_snapshot(self) -> tuple[int, bool]:
        """Within a snapshot: remember its state as one that was seen; return its version, and whether it is the newest.

        What an index reads may be newer than the state that the search began with. Where the server is set back to
        between the two, only the newer one tells. A later state than the snapshot's was seen by another thread, or
        the server was set back: from within a snapshot nobody can tell.
        """
        state = self._state()
        if not self._timeline.acquire(blocking=False):  # who has it may be waiting for the connection held here
            return state.version, False
        try:
            last, seen = self._last
            if last > state.version:
                return state.version, False
            known = last < 0 or (last, seen) == (state.version, state.token)
            if not known and token_of(self._all, self.cid, last) != seen:
                told = "its server was set back meanwhile (a restored backup?); repeat the call"
                raise StoreError(f"collection: {self.name!r}: {told}")
            self._last = (state.version, state.token)
        finally:
            self._timeline.release()
        return state.version, True

    def _forget(self) -> None:
        with self._lock:
            self._scopes.clear()
            self._scopes_version = -1
        self._counted, self._chained, self._packed = (-1, (False, 0, 0, 0)), (-1, False), 0
        self._connections.forget()

    @contextlib.contextmanager
    def _held(self) -> Iterator[tuple[Connection, Place, str]]:
        """A write transaction that holds the collection's row: (connection, where records go, settings)."""
        with self._database.write() as connection:
            row = connection.execute(
                "SELECT settings, bm25 FROM heads WHERE cid = %s FOR UPDATE", (self.cid,)
            ).fetchone()
            if row is None:
                raise NotFoundError(f"collection: {self.name!r} was dropped")
            yield connection, Place(self.parts, self.analyzer, self._table if row[1] else None), row[0]

    @contextlib.contextmanager
    def _changing(self) -> Iterator[tuple[Connection, Place, str]]:
        """The same, and every search after it has news."""
        with self._held() as held:
            yield held
            advance(held[0], self.cid)

    @property
    def _table(self) -> str:
        return f"words_{self.cid}"


def of_one_state(method: Callable[Concatenate[Any, Given], Answer]) -> Callable[Concatenate[Any, Given], Answer]:
    """Let a method of a collection read in a snapshot, again where the server hung up in it."""

    @functools.wraps(method)
    def read(self: Any, /, *values: Given.args, **named: Given.kwargs) -> Answer:
        def once() -> Answer:
            with self.snapshot():
                return method(self, *values, **named)

        return read_again(once)

    return read


def advance(connection: Connection, cid: int) -> None:
    """Give the collection a new version, and that a token that no other timeline has."""
    sql = "UPDATE heads SET version = version + 1 WHERE cid = %s RETURNING version"
    row = connection.execute(sql, (cid,)).fetchone()
    if row is None:
        return
    begin(connection, cid, row[0])
    if row[0] % PRUNED_EVERY == 0:
        connection.execute("DELETE FROM timeline WHERE cid = %s AND version <= %s", (cid, row[0] - KEPT_TOKENS))


def begin(connection: Connection, cid: int, version: int) -> None:
    """Write down a version's token."""
    sql = "INSERT INTO timeline (cid, version, token) VALUES (%s, %s, %s)"
    connection.execute(sql, (cid, version, secrets.token_bytes(8)))


def token_of(ask: All, cid: int, version: int) -> bytes | None:
    """The token of a version; None where it is not kept."""
    rows = ask("SELECT token FROM timeline WHERE cid = %s AND version = %s", (cid, version))
    return bytes(rows[0][0]) if rows else None


def now() -> float:
    return datetime.now(UTC).timestamp()
