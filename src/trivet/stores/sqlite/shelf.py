"""What is asked of one collection?

Everything a store does for it: here, what changes it; what is read of it, filtered, indexed and found is in the classes
it is made of.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from filelock import Timeout

from trivet.errors import InputError, NotFoundError, TrivetError
from trivet.filters import Filter
from trivet.stores.contract import Model, Prepared, Written
from trivet.stores.scoped import allowed, check_ends, ends
from trivet.stores.sqlite import access, expiries, feedback, history, records
from trivet.stores.sqlite.filter_sql import compile_filter
from trivet.stores.sqlite.finding import Finding
from trivet.stores.sqlite.sources import HEAD
from trivet.stores.sqlite.waiting import acquire, check_not_stopped
from trivet.types import Document, Feedback, Link

if TYPE_CHECKING:
    from trivet.stores.contract import Progress
    from trivet.stores.sqlite.store import SqliteStore


PRUNE_FROM = 1_000  # removed passages; fewer are read in a millisecond
PRUNE_SHARE = 0.2  # of the passages that are there


class Shelf(Finding):
    """One collection. Safe to use from many threads."""

    def __init__(self, store: SqliteStore, cid: int, uid: str, name: str, config: Mapping[str, Any]) -> None:
        super().__init__(store, cid, uid, name, config)
        self._sweeping, self._pruning = threading.Event(), threading.Event()
        self._removals = 0  # made by this process since it last looked whether to prune
        self.swept: Callable[[list[int]], None] = lambda dids: None  # told which documents a sweep has forgotten

    @contextlib.contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """A write transaction after which every projection has news."""
        with self._database.write() as connection:
            yield connection
            records.touch(connection, self.cid)

    def change_settings(self, change: Callable[[str], str], by: str = "") -> str:
        """Replace the settings by ``change(current)`` and write down who did, in one transaction."""
        with self.changing() as connection:
            current = self._settings(connection)
            settings = change(current)
            connection.execute("UPDATE collections SET settings = ? WHERE cid = ?", (settings, self.cid))
            history.record(connection, self.cid, by, settings, current, datetime.now(UTC).timestamp())
        return settings

    def add_model(self, identifier: str, spec: str, dim: int, answers: bool) -> Model:
        """Make a model known; ``answers`` makes it the collection's own."""
        if isinstance(dim, bool) or not isinstance(dim, int) or dim < 1:  # a caller's own embedder may say anything
            raise InputError(f"embedder {spec!r}: its dim is {dim!r}; it must be a whole number from 1 up")
        with self.changing() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO models (cid, id, spec, dim) VALUES (?, ?, ?, ?)",
                (self.cid, identifier, spec, dim),
            )
            connection.execute("UPDATE models SET spec = ? WHERE cid = ? AND id = ?", (spec, self.cid, identifier))
            row = connection.execute(
                "SELECT mid, id, spec, dim, vectors FROM models WHERE cid = ? AND id = ?", (self.cid, identifier)
            ).fetchone()
            if answers:
                connection.execute("UPDATE collections SET mid = ? WHERE cid = ?", (row[0], self.cid))
        return Model(*row)

    def forget_other_models(self, mid: int) -> None:
        """Delete the vectors of every model but this one."""
        with self._lock:
            self._meanings = {known: index for known, index in self._meanings.items() if known == mid}
        with self.changing() as connection:
            connection.execute(
                "DELETE FROM vectors WHERE mid IN (SELECT mid FROM models WHERE cid = ? AND mid <> ?)", (self.cid, mid)
            )
            connection.execute("DELETE FROM models WHERE cid = ? AND mid <> ?", (self.cid, mid))
        for old in self._folder.glob("meaning-*"):
            if old.name != f"meaning-{mid}":
                shutil.rmtree(old, ignore_errors=True)

    # --- records ----------------------------------------------------------------------------------------------------

    def write(self, batch: Sequence[Prepared], mid: int | None, within: Filter | None = None) -> Written:
        self._look_at_projections()
        self._forget_expired()
        with self._database.write() as connection:
            written = records.write(connection, self.cid, mid, batch, datetime.now(UTC).timestamp(), within)
            if written.added or written.updated:  # what was there already is no news
                records.touch(connection, self.cid)
        self._removed_some(written.updated)
        return written

    def remember(
        self,
        item: Prepared,
        mid: int | None,
        same: Callable[[Document], bool],
        likely: Sequence[int],
        named: bool,
        importance: Callable[[float], float],
        within: Filter | None = None,
    ) -> tuple[str, Written | None]:
        """Store it, unless a document that is ``same`` is there: that one is reinforced. In one transaction, so that
        two processes that are told the same at once store it once. (id, what was written or None)

        ``likely`` are row numbers to look at besides those of the very same text. ``named``: the id is the caller's
        own, and a document of that id that says something else is replaced.
        """
        self._look_at_projections()
        self._forget_expired()
        now = datetime.now(UTC).timestamp()
        with self.changing() as connection:
            own = records.find(connection, self.cid, item.document.id) if named else None
            if own is not None and allowed(own, within):
                twin = own if same(own) else None
            else:
                alike = lambda other: allowed(other, within) and same(other)  # noqa: E731
                twin = records.twin(connection, self.cid, item, alike, likely) if own is None else None
            if twin is None:
                return item.document.id, records.write(connection, self.cid, mid, [item], now, within)
            access.touch(connection, self.cid, [twin.id], now)
            records.set_importance(connection, self.cid, twin.id, importance(twin.importance))
            expiries.prolong(connection, self.cid, twin.id, item.document.expires)
            self._link(connection, [replace(link, source=twin.id) for link in item.links or ()], within)
            return twin.id, None

    def amend(
        self,
        identifier: str,
        mid: int | None,
        change: Callable[[Document], Prepared],
        within: Filter | None = None,
    ) -> Written:
        """Replace a document by what ``change`` makes of it, in one transaction: nobody's change is lost."""
        self._look_at_projections()
        self._forget_expired()
        with self.changing() as connection:
            known = records.find(connection, self.cid, identifier)
            if known is None or not allowed(known, within):
                raise NotFoundError(f"id: there is no document {identifier!r} in collection {self.name!r}")
            now = datetime.now(UTC).timestamp()
            return records.write(connection, self.cid, mid, [change(known)], now, within)

    def _forget_expired(self) -> None:
        """Forget what has expired first: an id that comes again is a new document, and nobody links to an old one."""
        ((passed,),) = self._all(expiries.PASSED, (self.cid, time.time()))
        if passed is not None:
            self.sweep()

    def remove(self, where: Filter, judged: bool = False) -> list[int]:
        self._forget_expired()
        with self.changing() as connection:
            sql, values = compile_filter(where, self.cid)
            dids = [did for (did,) in connection.execute(sql, values)]
            records.remove(connection, self.cid, dids, judged)
        if judged:
            self.receipts.forget()  # they name ids
        self._removed_some(len(dids))
        return dids

    def sweep(self) -> list[int]:
        """Forget the documents whose time has passed; return their row numbers."""
        with self._database.write() as connection:
            dids = expiries.expired(connection, self.cid, time.time())
            if dids:
                records.remove(connection, self.cid, dids, judged=True)
                records.touch(connection, self.cid)
        if dids:
            self.receipts.forget()
            self.swept(dids)
            self._removed_some(len(dids))
        return dids

    def compact(self, progress: Progress | None = None) -> int:
        """Write the indexes anew without what was removed, and prune the log of removals; return its rows."""
        self.rewrite_projections(progress)
        return self.prune()

    def prune(self) -> int:
        """Delete the removals that every index on disk has applied; return how many there were."""
        applied = self.applied()
        with self._database.write() as connection:
            sql = "SELECT seq FROM removed WHERE +cid = ? ORDER BY seq DESC LIMIT 1"
            last = connection.execute(sql, (self.cid,)).fetchone()
            if last is None:
                return 0
            cutoff = min(last[0], *applied) if applied else last[0]
            sql = "INSERT INTO pruned VALUES (?, ?) ON CONFLICT (cid) DO UPDATE SET seq = max(seq, excluded.seq)"
            connection.execute(sql, (self.cid, cutoff))
            return connection.execute("DELETE FROM removed WHERE +cid = ? AND seq <= ?", (self.cid, cutoff)).rowcount

    def _removed_some(self, count: int) -> None:
        """Prune in the background where removals have become many."""
        self._removals += count
        if self._removals >= PRUNE_FROM and not self._pruning.is_set():
            self._removals = 0
            self._pruning.set()
            self.store.start(self._prune_quietly)

    def _prune_quietly(self) -> None:
        try:
            # closed, or another process is at an index: there will be another time
            with contextlib.suppress(TrivetError, Timeout, OSError):
                ((count,),) = self._all("SELECT count(*) FROM removed WHERE cid = ?", (self.cid,))
                if count >= PRUNE_FROM and count > PRUNE_SHARE * self.state().passages:
                    self.settle_projections()
                    self.prune()
                    self._database.vacuum_if_worth_it()
        finally:
            self._pruning.clear()

    def _notice_expired(self) -> None:
        if not self.read_only and not self._sweeping.is_set():
            self._sweeping.set()
            self.store.start(self._sweep_quietly)

    def _sweep_quietly(self) -> None:
        try:
            with contextlib.suppress(TrivetError):  # closed or busy: nobody sees them, and somebody sweeps later
                self.sweep()
        finally:
            self._sweeping.clear()

    def link(self, links: Sequence[Link], within: Filter | None = None) -> None:
        self._forget_expired()
        with self.changing() as connection:
            check_ends(links, records.visible(connection, self.cid, ends(links), within), self.name)
            records.add_links(connection, self.cid, links)

    def _link(self, connection: sqlite3.Connection, links: Sequence[Link], within: Filter | None) -> None:
        """Add links that may lead to what is not here yet; within a filter, only to what it shows."""
        if within is not None:
            check_ends(links, records.visible(connection, self.cid, ends(links), within), self.name)
        records.add_links(connection, self.cid, links)

    def unlink(self, source: str, target: str, kind: str | None, within: Filter | None = None) -> int:
        with self.changing() as connection:
            if within is not None and len(records.visible(connection, self.cid, [source, target], within)) < 2:
                return 0
            return connection.execute(
                "DELETE FROM links WHERE cid = ? AND source = ? AND target = ? AND type = coalesce(?, type)",
                (self.cid, source, target, kind),
            ).rowcount

    def add_vectors(self, mid: int, vectors: Sequence[tuple[int, bytes]]) -> None:
        with self._counting:
            with self._database.write() as connection:
                before = _version(connection, self.cid)
                records.add_vectors(connection, mid, vectors)
                records.touch(connection, self.cid)
                after = _version(connection, self.cid)
            self._embedded += 1
            if before is not None and after is not None:
                self.receipts.carry(before, after)

    @contextlib.contextmanager
    def embedding(self) -> Iterator[bool]:
        """May this process work the backlog off? One does at a time."""
        lock = self.store.index_folder / f"embed-{self.cid}.lock"
        lock.parent.mkdir(parents=True, exist_ok=True)
        try:
            held = acquire(lock, 0)
        except Timeout:
            check_not_stopped([lock])  # else whoever waits for the vectors waits for ever
            yield False
            return
        with held:
            yield True

    def mark(self) -> tuple[int, int]:
        """A moment, for ``keep_receipt``: the version, and how often vectors were added from here."""
        with self._counting:
            return self.state().version, self._embedded

    def receipt(self, key: str) -> dict[str, Any] | None:
        state = self.state()
        return self.receipts.find(key, (state.version, state.token.hex()))

    def keep_receipt(self, key: str, told: Mapping[str, Any], since: tuple[int, int], writes: int) -> None:
        """Only where nothing was written since that moment but by those writes, and vectors: somebody else may have
        changed what they stored."""
        with self._counting:
            state, embedded = self.state(), self._embedded
        if state.version - since[0] == writes + embedded - since[1]:
            self.receipts.keep(key, (state.version, state.token.hex()), told)

    # --- what is no news --------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _noting(self) -> Iterator[sqlite3.Connection]:
        """A write transaction that is no news: projections hold nothing of feedback and accesses, so the version stays
        as it is and the next search has nothing to catch up on."""
        with self._database.write() as connection:
            if connection.execute("SELECT 1 FROM collections WHERE cid = ?", (self.cid,)).fetchone() is None:
                raise NotFoundError(f"collection: {self.name!r} was dropped")
            yield connection

    def touch(self, ids: Sequence[str], within: Filter | None = None) -> int:
        self._forget_expired()
        with self._noting() as connection:
            seen = ids if within is None else list(records.visible(connection, self.cid, ids, within))
            return access.touch(connection, self.cid, seen, datetime.now(UTC).timestamp())

    def judge(self, given: Feedback, within: Filter | None = None) -> None:
        """Only of a document that is here: a mistyped id would teach nothing, and say nothing."""
        self._forget_expired()
        with self._noting() as connection:
            if not records.visible(connection, self.cid, [given.id], within):
                told = f"there is no document {given.id!r} in collection {self.name!r}"
                raise NotFoundError(f"feedback: {told}; name it by the id that search shows (hit.id)")
            feedback.record(connection, self.cid, given)

    def restore_feedback(self, given: Sequence[Feedback], within: Filter | None = None) -> int:
        with self._noting() as connection:
            if within is not None:
                seen = records.visible(connection, self.cid, [item.id for item in given], within)
                given = [item for item in given if item.id in seen]
            return feedback.restore(connection, self.cid, given)

    def forget_feedback(self, query: str | None, identifier: str | None, within: Filter | None = None) -> int:
        with self._noting() as connection:
            if within is None:
                return feedback.forget(connection, self.cid, query, identifier)
            ids = feedback.judged(connection, self.cid, query, identifier)
            seen = records.visible(connection, self.cid, ids, within)
            return sum(feedback.forget(connection, self.cid, query, each) for each in sorted(seen))


def _version(connection: sqlite3.Connection, cid: int) -> tuple[int, str] | None:
    """The version in force within a transaction, with its token; None for a collection that was dropped."""
    row = connection.execute(HEAD, (cid,)).fetchone()
    return None if row is None else (row[0], row[1].hex())
