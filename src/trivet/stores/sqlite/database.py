"""One SQLite file, shared by many threads and processes.

Each thread reads with a connection of its own, and searches with one that is lent to it. One writer at a time: threads
wait for a lock, processes for ``BEGIN IMMEDIATE`` with a long busy timeout. ``synchronous=FULL`` makes a commit survive
a power cut, not only a killed process. A file that is replaced, moved or deleted while it is open is noticed before and
after every write, and the write is refused. Every sqlite3 error is raised as a ``StoreError`` that says what to do.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from weakref import WeakSet

from trivet.concurrency import deadline
from trivet.errors import InputError, StoreBusyError, StoreError, StoreReplacedError
from trivet.stores.indexes.file_locks import SLICE_SECONDS, Wait, named
from trivet.stores.indexes.lock_holders import holders
from trivet.stores.sqlite.lock_waiting import PAUSE, STOPPED_SECONDS, granted, is_busy, store_holders
from trivet.stores.sqlite.schema import MIGRATIONS, statements
from trivet.stores.sqlite.write_ahead_log import check_log

BUSY_SECONDS = 120.0  # a writer waits for the others this long before it gives up
CLOSE_SECONDS = 10.0  # closing waits this long for calls of other threads to end
LOG_SECONDS = 30.0  # compacting waits this long for readers of an old state
# A store gives free pages back by itself only where they are many and it takes a second or two.
VACUUM_SHARE, VACUUM_FROM, VACUUM_AT_MOST = 0.25, 64_000_000, 256_000_000  # of all pages; bytes; bytes in use
WRITER_CACHE, READER_CACHE = 16_000, 4_000  # KiB of pages of a connection
REOPENINGS = 5  # attempts to open a file that is replaced meanwhile

_OPEN: WeakSet[Database] = WeakSet()  # of this process: its own POSIX locks do not keep it out

FileId = tuple[int, int]  # device and inode


def is_open_here(path: Path) -> bool:
    """Tell whether this process has the store open."""
    wanted = file_id(path)
    return any(database.file == wanted and not database.closed for database in list(_OPEN))


def file_id(path: Path) -> FileId | None:
    """Return what tells a file from another that has its name later; None where there is no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


class Database:
    """The connections of this process to one SQLite file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._write_lock, self._wait = threading.RLock(), Wait(STOPPED_SECONDS)
        self._local = threading.local()
        self._spare: list[dict[str, Any]] = []  # what ``lent`` gives to the next thread
        self._opened: list[tuple[threading.Thread | None, sqlite3.Connection]] = []
        self._opened_lock = threading.Lock()
        self._idle, self._busy = threading.Condition(), 0
        self._closed = False
        self._pid = os.getpid()
        self._check_place()
        self.read_only = not _writable(path)
        self._log = Path(f"{path}-wal")
        self.file: FileId | None = None  # the file that was opened; None until it is
        self._log_id: FileId | None = None
        try:
            with self.explained():
                self._open()
        except StoreError:
            self.close()
            raise
        _OPEN.add(self)

    def _open(self) -> None:
        """Open the file; again where it was replaced meanwhile: SQLite would keep using the old one."""
        for _ in range(REOPENINGS):
            before = file_id(self.path)
            self._open_once()
            found = file_id(self.path)
            if found is not None and before in (None, found):
                # SQLite replaces neither the file nor its log while a connection is open; another program may
                self.file, self._log_id = found, None if self.read_only else file_id(self._log)
                return
            self._close_all()
        raise StoreReplacedError(f"store: {str(self.path)!r} is being replaced; try again when that is done")

    def _open_once(self) -> None:
        check_log(self.path, f"file:{quote(self._name)}?mode=ro", BUSY_SECONDS)
        self._stamp = self._read_stamp()
        connection = self._writer = self._connect(None, SLICE_SECONDS)
        version = self._version(connection)  # before any change: it may be a file of another program
        if not self.read_only:
            self._use_wal(connection)
            self._migrate()
        elif version < len(MIGRATIONS):
            raise StoreError(
                f"store: {str(self.path)!r} has schema {version}, this trivet needs {len(MIGRATIONS)}; "
                "open it once where it can be written"
            )
        (self.generation,) = connection.execute("SELECT id FROM generation").fetchone()

    @property
    def closed(self) -> bool:
        return self._closed

    def check_file(self) -> None:
        """Raise ``StoreReplacedError`` where the path no longer names the file that is open."""
        self._check_open()
        if file_id(self.path) == self.file and (self._log_id is None or file_id(self._log) == self._log_id):
            if self.read_only and self._read_stamp() != self._stamp:
                self._see_again()
            return
        message = f"store: {str(self.path)!r} was replaced, moved or deleted while it was open"
        raise StoreReplacedError(f"{message} (was a backup put in its place?); open it again")

    def _read_stamp(self) -> tuple[int, int, bool] | None:
        """Return what changes when another process writes; SQLite does not notice it in a read-only place."""
        if not self.read_only:
            return None
        with contextlib.suppress(OSError):
            found = self.path.stat()
            return found.st_size, found.st_mtime_ns, self._has_log()
        return None

    def _see_again(self) -> None:
        """Let every thread connect again: an immutable connection never notices a change."""
        with self._opened_lock:
            self._stamp = self._read_stamp()
            self._local, self._spare = threading.local(), []

    def _check_place(self) -> None:
        try:
            self._name = os.fsencode(self.path)  # file names need not be UTF-8
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

    def _connect(
        self, owner: threading.Thread | None, timeout: float = math.inf, cache: int = WRITER_CACHE
    ) -> sqlite3.Connection:
        """Open a connection; its statements wait ``timeout`` seconds for a lock, ``BUSY_SECONDS`` at most."""
        connection = sqlite3.connect(
            f"file:{quote(self._name)}{self._mode()}",
            uri=True,
            timeout=min(SLICE_SECONDS, BUSY_SECONDS),
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        # the first statement that reads the schema, and may find the store locked
        granted(self.path, lambda: connection.execute("PRAGMA synchronous=FULL"), BUSY_SECONDS)
        connection.execute(f"PRAGMA busy_timeout={1_000 * min(timeout, BUSY_SECONDS):.0f}")
        connection.execute("PRAGMA foreign_keys=OFF")
        # Overwrite deleted rows with zeros at once: 500 documents in one call take 13 to 19 ms of processor time
        # instead of 10 to 13; one at a time they take no longer.
        connection.execute("PRAGMA secure_delete=ON")
        connection.execute(f"PRAGMA cache_size=-{cache}")
        connection.execute("PRAGMA temp_store=MEMORY")
        with self._opened_lock:
            self._opened.append((owner, connection))
        return connection

    def _mode(self) -> str:
        if not self.read_only:
            return ""
        # What a killed writer left in the -wal file is read. Without one, `immutable` says that no -shm file is needed,
        # which a read-only place cannot have, until another process writes (``check_file``).
        return "?mode=ro" if self._has_log() else "?mode=ro&immutable=1"

    def _has_log(self) -> bool:
        beside = [Path(f"{self.path}{suffix}") for suffix in ("-wal", "-shm")]
        return any(path.exists() and path.stat().st_size for path in beside)

    def _version(self, connection: sqlite3.Connection) -> int:
        connection.execute("BEGIN")  # one state: another process may be creating the store
        try:
            version = granted(self.path, lambda: connection.execute("PRAGMA user_version").fetchone()[0], BUSY_SECONDS)
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
        """Switch a new file to the write-ahead log; any process that has it open must be waited for."""
        granted(self.path, lambda: connection.execute("PRAGMA journal_mode=WAL"), BUSY_SECONDS, in_the_way=holders)

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
        """Return this thread's connection: that of its ``snapshot``, else one that sees the newest state."""
        return getattr(self._local, "snapshot", None) or self.newest()

    def newest(self) -> sqlite3.Connection:
        """Return this thread's connection that sees the newest state, from which indexes are updated."""
        return self._own("connection")

    def _own(self, name: str) -> sqlite3.Connection:
        self._check_open()
        deadline.check()
        connection: sqlite3.Connection | None = getattr(self._local, name, None)
        if connection is None:
            self._close_dead_threads()
            is_lent = getattr(self._local, "is_lent", False)
            connection = self._connect(None if is_lent else threading.current_thread(), cache=READER_CACHE)
            connection.set_progress_handler(deadline.passed, deadline.INSTRUCTIONS)
            setattr(self._local, name, connection)
        return connection

    @property
    def in_snapshot(self) -> bool:
        """Whether this thread reads a snapshot."""
        return getattr(self._local, "snapshot", None) is not None

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let this thread's ``read`` see one state until the block ends, whatever is written meanwhile."""
        if self.in_snapshot:
            yield
            return
        with self.explained():
            self.check_file()
            local, connection = self._local, self._own("reader")
            connection.execute("BEGIN")
            try:
                connection.execute("SELECT 1 FROM generation").fetchone()  # the state is that of the first statement
                local.snapshot = connection
                yield
            finally:
                local.snapshot = None
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("COMMIT")

    @contextlib.contextmanager
    def lent(self) -> Iterator[None]:
        """Let this thread read with the connections that were given back last, until the block ends.

        Eight threads that search in turn would else go through the pages of sixteen connections.
        """
        own, spare = vars(self._local), self._spare
        if own.get("is_lent") or self.in_snapshot:
            yield
            return
        before = own.copy()
        own.clear()
        own.update(spare.pop() if spare else {"is_lent": True})
        try:
            yield
        finally:
            spare.append(own.copy())
            own.clear()
            own.update(before)

    def _close_dead_threads(self) -> None:
        """Close the connections of ended threads: a server may start a thread for each request."""
        with self._opened_lock:
            dead = [item for item in self._opened if item[0] is not None and not item[0].is_alive()]
            self._opened = [item for item in self._opened if item not in dead]
        for _, connection in dead:
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    @contextlib.contextmanager
    def moment(self) -> Iterator[sqlite3.Connection]:
        """Give a connection of its own that sees one state, however long it reads: for checks and backups."""
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
    def write(self, seconds: float | None = None) -> Iterator[sqlite3.Connection]:
        """Begin a write transaction; ``StoreBusyError`` where other writers kept the lock for so many seconds."""
        self._check_open()
        if self.read_only:
            raise StoreError(f"store: {str(self.path)!r} is read-only; nothing was written")
        deadline.check()
        seconds = deadline.within(BUSY_SECONDS if seconds is None else seconds)
        with self._turn(seconds), self.explained():
            connection = self._writer
            milliseconds = int(1000 * min(seconds, SLICE_SECONDS))
            connection.execute(f"PRAGMA busy_timeout={milliseconds}")
            granted(self.path, lambda: connection.execute("BEGIN IMMEDIATE"), seconds, self._wait)
            try:
                if self.file is not None:
                    self.check_file()
                with deadline.lifted():
                    yield connection
                connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise
            if self.file is not None:  # a write to a file that was replaced is not acknowledged
                self.check_file()

    def vacuum_if_worth_it(self) -> None:
        """Give free pages back where they are many and writers wait for a second or two at most."""
        with self.explained():
            connection = self.newest()
            free, pages, size = (
                int(connection.execute(f"PRAGMA {name}").fetchone()[0])
                for name in ("freelist_count", "page_count", "page_size")
            )
        used = (pages - free) * size
        if free > VACUUM_SHARE * pages and free * size > VACUUM_FROM and used <= VACUUM_AT_MOST:
            self.vacuum()

    def vacuum(self) -> None:
        """Rewrite the file without free pages, and empty its log: deleted rows are in neither.

        Writers of other processes wait meanwhile, readers do not. It needs space for two more copies.
        """
        self._check_open()
        if self.read_only:
            raise StoreError(f"store: {str(self.path)!r} is read-only; nothing was written")
        self._check_room()
        with self._turn(BUSY_SECONDS), self.explained():
            self.check_file()
            connection = self._connect(None, SLICE_SECONDS)
            try:
                connection.execute("PRAGMA temp_store=FILE")  # the new copy may be larger than the memory
                granted(self.path, lambda: connection.execute("VACUUM"), BUSY_SECONDS, self._wait)
                self._empty_log(connection)
            finally:
                with self._opened_lock:
                    self._opened = [item for item in self._opened if item[1] is not connection]
                connection.close()

    def _empty_log(self, connection: sqlite3.Connection) -> None:
        """Move the log into the file and truncate it; wait for readers of an old state."""
        until = time.monotonic() + LOG_SECONDS
        while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:  # busy
            if time.monotonic() > until:
                message = f"store: {str(self.path)!r}: a reader kept its log in use for {LOG_SECONDS:g} s"
                raise StoreBusyError(
                    f"{message}; what was deleted may still be in it: end that reader, then compact again"
                )
            time.sleep(PAUSE)

    def _check_room(self) -> None:
        needed = self.path.stat().st_size
        for folder in {self.path.parent, Path(os.environ.get("SQLITE_TMPDIR") or tempfile.gettempdir())}:
            free = shutil.disk_usage(folder).free
            if free < needed:
                message = f"compact: {str(folder)!r} has {free:,} bytes free, and a copy of the store needs {needed:,}"
                raise StoreError(f"{message}; free some space, then compact again. Nothing was changed in the file")

    @contextlib.contextmanager
    def _turn(self, seconds: float) -> Iterator[None]:
        """Let one thread of this process write at a time."""
        if not self._write_lock.acquire(timeout=seconds if seconds < BUSY_SECONDS else -1):
            deadline.check()
            raise StoreBusyError(f"store: {str(self.path)!r}: another thread is writing")
        try:
            yield
        finally:
            self._write_lock.release()

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Turn sqlite3's errors into ``StoreError``; every use of a connection is in here: ``close`` waits for it."""
        with self._idle:
            if not self._busy:  # else ``close`` still waits, and a call that has begun may end
                self._check_open()
            self._busy += 1
        try:
            yield
        except sqlite3.Error as error:
            if is_busy(error) or str(error) == "interrupted":
                deadline.check()
            kind = StoreBusyError if is_busy(error) else StoreError
            raise kind(_explanation(self.path, error)) from error
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
            raise StoreError(f"store: {str(self.path)!r} is closed; open it again")

    def close(self) -> None:
        if os.getpid() != self._pid:  # the connections are the parent's
            self._closed = True
            return
        with self._idle:
            self._closed = True
            if not self._idle.wait_for(lambda: self._busy == 0, timeout=CLOSE_SECONDS):
                return  # closing a connection that a thread uses would crash the process
        self._close_all()

    def _close_all(self) -> None:
        with self._opened_lock:
            for _, connection in self._opened:
                with contextlib.suppress(sqlite3.Error):
                    connection.close()
            self._opened.clear()


def _writable(path: Path) -> bool:
    """Tell whether the file and its folder can be written; SQLite needs both, for the -wal file."""
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
)


def _explanation(path: Path, error: sqlite3.Error) -> str:
    if is_busy(error):
        cause = f"{named(store_holders(path))} kept it locked for {BUSY_SECONDS:g} s; try again"
        return f"store: {str(path)!r}: {cause} ({error})"
    for sign, advice in _ADVICE:
        if sign in str(error):
            return f"store: {str(path)!r}: {advice} ({error})"
    return f"store: {str(path)!r}: {error}"
