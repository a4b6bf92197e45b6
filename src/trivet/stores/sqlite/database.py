"""How do many threads and processes share one SQLite file?

Readers have a connection per thread; writers take turns: threads by a lock, processes by ``BEGIN IMMEDIATE`` with a
long busy timeout. ``synchronous=FULL`` makes a commit survive a power cut, not only a killed process. Every sqlite3
error leaves here as a ``StoreError`` that says what to do.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from trivet import deadline
from trivet.errors import InputError, StoreError
from trivet.stores.sqlite.log import check_log
from trivet.stores.sqlite.schema import MIGRATIONS, statements

BUSY_SECONDS = 120.0  # a writer waits for the others this long before it gives up
CLOSE_SECONDS = 10.0  # closing waits this long for calls of other threads to end


class Database:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._write_lock = threading.RLock()
        self._local = threading.local()
        self._opened: list[tuple[threading.Thread | None, sqlite3.Connection]] = []
        self._opened_lock = threading.Lock()
        self._idle, self._busy = threading.Condition(), 0
        self._closed = False
        self._pid = os.getpid()
        self._check_place()
        self.read_only = not _writable(path)
        try:
            with self.explained():
                check_log(self.path, f"file:{quote(self._name)}?mode=ro")
                connection = self._writer = self._connect(None)
                version = self._version(connection)  # before anything is changed: it may be another program's file
                if not self.read_only:
                    self._use_wal(connection)
                    self._migrate()
                elif version < len(MIGRATIONS):
                    raise StoreError(
                        f"store: {str(self.path)!r} has schema {version}, this trivet needs {len(MIGRATIONS)}; "
                        "open it once where it can be written"
                    )
        except StoreError:
            self.close()
            raise

    def _check_place(self) -> None:
        try:
            self._name = os.fsencode(self.path)  # a name that is no UTF-8 is a name too
        except UnicodeEncodeError:
            self._name = b"\0"
        if b"\0" in self._name:
            raise InputError(f"path: {str(self.path)!r} holds a NUL or a lone surrogate, which no file name can")
        if self.path.is_dir():
            raise InputError(
                f"path: {str(self.path)!r} is a folder; name a file such as {str(self.path / 'memory.db')!r}"
            )
        if not self.path.parent.is_dir():
            raise InputError(f"path: the folder {str(self.path.parent)!r} does not exist; create it first")
        if not self.path.exists() and not os.access(self.path.parent, os.W_OK):
            raise StoreError(
                f"store: cannot create {str(self.path)!r}: its folder is read-only; choose a folder you can write to"
            )

    def _connect(self, owner: threading.Thread | None) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"file:{quote(self._name)}{self._mode()}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=OFF")
        connection.execute("PRAGMA cache_size=-16000")
        connection.execute("PRAGMA temp_store=MEMORY")
        with self._opened_lock:
            self._opened.append((owner, connection))
        return connection

    def _mode(self) -> str:
        if not self.read_only:
            return ""
        # What a killed writer left in the -wal file counts; where there is none, a read-only place cannot hold SQLite's
        # -shm file and `immutable` says that none is needed, because nobody will write.
        beside = [Path(f"{self.path}{suffix}") for suffix in ("-wal", "-shm")]
        return "?mode=ro" if any(path.exists() and path.stat().st_size for path in beside) else "?mode=ro&immutable=1"

    def _version(self, connection: sqlite3.Connection) -> int:
        connection.execute("BEGIN")  # one moment: another process may be making the store right now
        try:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        finally:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("COMMIT")
        if (tables or version) and not {"counters", "collections"} <= tables:
            raise StoreError(f"store: {str(self.path)!r} is a SQLite file of another program; choose another path")
        if version > len(MIGRATIONS):
            raise StoreError(
                f"store: {str(self.path)!r} has schema {version}, this trivet knows {len(MIGRATIONS)}; upgrade trivet"
            )
        return int(version)

    def _use_wal(self, connection: sqlite3.Connection) -> None:
        """SQLite says "locked" without waiting when two processes switch the same new file at once."""
        until = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                connection.execute("PRAGMA journal_mode=WAL")
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > until:
                    raise
                time.sleep(0.01)
            else:
                return

    def _migrate(self) -> None:
        if self._version(self._writer) == len(MIGRATIONS):
            return
        with self.write() as connection:
            # read again: another process may have migrated while this one waited for its turn
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            for script in MIGRATIONS[version:]:
                for statement in statements(script):
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version={len(MIGRATIONS)}")

    def read(self) -> sqlite3.Connection:
        """This thread's own connection."""
        self._check_open()
        deadline.check()
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            self._forget_dead_threads()
            connection = self._local.connection = self._connect(threading.current_thread())
            connection.set_progress_handler(deadline.passed, deadline.INSTRUCTIONS)
        return connection

    def _forget_dead_threads(self) -> None:
        """A server may start a thread a request: their connections would use up the file handles."""
        with self._opened_lock:
            dead = [item for item in self._opened if item[0] is not None and not item[0].is_alive()]
            self._opened = [item for item in self._opened if item not in dead]
        for _, connection in dead:
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    @contextlib.contextmanager
    def moment(self) -> Iterator[sqlite3.Connection]:
        """A connection of its own that sees one moment of the file, however long it reads: for checks and backups."""
        with self.explained():
            self._check_open()
            connection = self._connect(None)
            try:
                connection.execute("BEGIN")
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()  # from here on
                yield connection
            finally:
                with self._opened_lock:
                    self._opened = [item for item in self._opened if item[1] is not connection]
                connection.close()

    @contextlib.contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One write transaction: all of it or nothing."""
        self._check_open()
        if self.read_only:
            raise StoreError(f"store: {str(self.path)!r} is read-only; nothing was written")
        with deadline.acquired(self._write_lock), self.explained():
            connection = self._writer
            self._begin(connection)
            try:
                with deadline.lifted():
                    yield connection
                connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    def _begin(self, connection: sqlite3.Connection) -> None:
        """Wait for the other processes, but no longer than this request may take."""
        if deadline.left() is None:
            connection.execute("BEGIN IMMEDIATE")
            return
        connection.execute(f"PRAGMA busy_timeout={deadline.within(BUSY_SECONDS) * 1000:.0f}")
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            deadline.check()
            raise
        finally:
            connection.execute(f"PRAGMA busy_timeout={BUSY_SECONDS * 1000:.0f}")

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """sqlite3's errors, told to a person; what uses a connection does so in here, and ``close`` waits for it."""
        with self._idle:
            self._busy += 1
        try:
            yield
        except sqlite3.Error as error:
            if str(error) == "interrupted":
                deadline.check()
            raise StoreError(_explanation(self.path, error)) from error
        except UnicodeDecodeError as error:  # of SQLite's own message, which quotes the damaged bytes
            raise StoreError(_explanation(self.path, sqlite3.DatabaseError("malformed schema"))) from error
        finally:
            with self._idle:
                self._busy -= 1
                self._idle.notify_all()

    def _check_open(self) -> None:
        if os.getpid() != self._pid:  # SQLite's connections and our threads do not survive a fork
            raise StoreError(f"store: {str(self.path)!r} was opened before this process was forked; open it here again")
        if self._closed:
            raise StoreError(f"store: {str(self.path)!r} is closed; open it again with trivet.open")

    def close(self) -> None:
        self._closed = True
        if os.getpid() != self._pid:  # they are the parent's connections
            return
        with self._idle:
            if not self._idle.wait_for(lambda: self._busy == 0, timeout=CLOSE_SECONDS):
                return  # closing a connection under a thread that uses it would crash the process
        with self._opened_lock:
            for _, connection in self._opened:
                with contextlib.suppress(sqlite3.Error):
                    connection.close()
            self._opened.clear()


def _writable(path: Path) -> bool:
    """Can the file and its folder be written? SQLite needs both (the -wal file lies beside the store)."""
    if path.exists() and not os.access(path, os.W_OK):
        return False
    return os.access(path.parent, os.W_OK)


_ADVICE = (
    (
        "file is not a database",
        "it is not a trivet store, or its first bytes were overwritten; restore a backup or an export",
    ),
    ("not decode", "a text in it is damaged; run `trivet doctor` on it, then restore a backup or an export"),
    ("malformed", "the file is damaged; run `trivet doctor` on it, then restore a backup or an export"),
    ("disk is full", "the disk is full; free some space and repeat the call, nothing was half-written"),
    ("disk I/O error", "the disk failed or is full; check it and repeat the call, nothing was half-written"),
    ("readonly", "it is read-only; nothing was written"),
    ("unable to open", "it cannot be opened; check the path and its permissions"),
    ("locked", f"other processes kept it locked for {BUSY_SECONDS:g} s; try again"),
)


def _explanation(path: Path, error: sqlite3.Error) -> str:
    for sign, advice in _ADVICE:
        if sign in str(error):
            return f"store: {str(path)!r}: {advice} ({error})"
    return f"store: {str(path)!r}: {error}"
