"""How do many threads and processes share one PostgreSQL server?

A pool of connections a process; writers of one collection take turns by the lock on its row in ``heads``. A read that
lost its connection (the server was restarted) is asked again on a new one; a write is not, because nobody can say
whether its commit arrived: it is told as an error, and repeating it is safe. Every psycopg error leaves here as a
``StoreError`` that says what to do, told apart by its SQLSTATE.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout, TooManyRequests

from trivet import deadline
from trivet.errors import SnapshotLostError, StoreError
from trivet.pools import Pool
from trivet.stores.postgres import nul
from trivet.stores.postgres.address import Address
from trivet.stores.postgres.schema import MIGRATION_LOCK, MIGRATIONS, Server

Connection = psycopg.Connection[tuple[Any, ...]]
Answer = TypeVar("Answer")
Item = TypeVar("Item")

NEEDED, WELCOME = ("vector", "pg_trgm"), ("btree_gin", "pg_textsearch")
OLDEST = 140000  # PostgreSQL 14
#: Compiling a statement takes a tenth of a second and running it a hundredth. The index over the vectors is read on for
#: as long as rows are asked for; of its candidates 200 are kept in view, its own 40 finds too few of the best 100.
SETTINGS = {"jit": "off", "hnsw.iterative_scan": "relaxed_order", "hnsw.ef_search": "200"}
TOGETHER = 8  # parts of collections that are asked at the same time
_UNFINISHED = (TransactionStatus.INTRANS, TransactionStatus.INERROR)
PAUSE = 0.1  # seconds before a lost connection is tried again, doubled each time


class SlowError(StoreError):
    """The server stopped a statement that took longer than it was given."""


@dataclass(slots=True)
class _Snapshot:
    """The connection that one thread's questions go to; none before the first of them."""

    connection: Connection | None = None
    pipeline: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)


class Database:
    def __init__(self, address: Address) -> None:
        self.address = address
        self._pid = os.getpid()
        self._closed = False
        self._starting = threading.Lock()
        self._threads: Pool | None = None  # made for the first collection of several parts
        self._local = threading.local()  # ``snapshot``: this thread's
        with _explained(address), contextlib.closing(_connect(address)) as connection:
            self.read_only = _is_read_only(connection)
            self.server = look(connection, address) if self.read_only else prepare(connection, address)
            check(connection, address, self.server)
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            address.conninfo,
            kwargs={"autocommit": True, "options": self._options(), "application_name": "trivet"},
            min_size=0,
            max_size=address.pool,
            timeout=address.patience,
            reconnect_timeout=address.patience,
            configure=nul.adapt,
            open=True,
            name="trivet",
        )

    def _options(self) -> str:
        """What every connection is told as it starts."""
        timeout = int(self.address.statement_timeout * 1000)
        path = self.server.search_path.replace(" ", "\\ ")
        told = {"search_path": path, "statement_timeout": timeout, "client_min_messages": "warning", **SETTINGS}
        return " ".join(f"-c {name}={value}" for name, value in told.items())

    # --- connections --------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def connection(self) -> Iterator[Connection]:
        """One of the pool, in autocommit; errors are told to a person."""
        self._check_open()
        with _explained(self.address), self._pool.connection() as connection:
            yield connection

    @property
    def in_snapshot(self) -> bool:
        return getattr(self._local, "snapshot", None) is not None

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let this thread's questions see one state until the block ends, whatever is written meanwhile.

        It is the state at the first question. A connection that hung up before is replaced then; one that hangs up
        later is a ``SnapshotLostError``, since what was read on it cannot be read again.
        """
        if self.in_snapshot:
            yield
            return
        self._check_open()
        snapshot = self._local.snapshot = _Snapshot()
        try:
            yield
        finally:
            self._local.snapshot = None
            if snapshot.connection is not None:
                self._end(snapshot.connection, snapshot.pipeline)

    def _begin(self, snapshot: _Snapshot, work: Callable[[Connection], Answer]) -> Answer:
        """What ``work`` reads on a connection that sees one state from now on. BEGIN travels with the question."""
        connection, pipeline = self._pool.getconn(), contextlib.ExitStack()
        try:
            if psycopg.Pipeline.is_supported():  # libpq 14 or newer
                pipeline.enter_context(connection.pipeline())
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            answer = work(connection)
        except BaseException:
            self._end(connection, pipeline)
            raise
        snapshot.connection, snapshot.pipeline = connection, pipeline
        return answer

    def _end(self, connection: Connection, pipeline: contextlib.ExitStack) -> None:
        """End a snapshot's transaction and give its connection back, whatever has become of both."""
        with contextlib.suppress(psycopg.Error), pipeline:
            connection.execute("ROLLBACK")
        if connection.info.transaction_status in _UNFINISHED:  # an error had stopped the pipeline
            with contextlib.suppress(psycopg.Error):
                connection.execute("ROLLBACK")
        self._pool.putconn(connection)

    def ask(self, work: Callable[[Connection], Answer]) -> Answer:
        """What ``work`` reads; asked again, on another connection, when the server hung up."""
        snapshot: _Snapshot | None = getattr(self._local, "snapshot", None)
        if snapshot is not None:
            connection = snapshot.connection
            if connection is None:
                return self._retried(lambda: self._begin(snapshot, work))
            try:
                return work(connection)
            except psycopg.Error as error:
                raise _told(self.address, error, in_snapshot=True) from error

        def once() -> Answer:
            with self._pool.connection() as connection:
                return work(connection)

        return self._retried(once)

    def _retried(self, once: Callable[[], Answer]) -> Answer:
        """Try until it is answered, for as long as a lost connection is what is wrong and patience lasts."""
        until, pause = time.monotonic() + self.address.patience, PAUSE
        while True:
            self._check_open()
            deadline.check()
            try:
                return once()
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                if not _is_lost(error) or time.monotonic() + pause > until:
                    raise _told(self.address, error) from error
            except psycopg.Error as error:
                raise _told(self.address, error) from error
            self._pool.check()  # the others hung up too: they are let go before one of them is handed out
            time.sleep(pause)
            pause *= 2

    def all(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        # without values a percent sign is just that
        return self.ask(lambda connection: connection.execute(query, values or None).fetchall())

    def together(self, work: Callable[[Item], Answer], items: Sequence[Item]) -> list[Answer]:
        """``work`` for each part of a collection, at the same time: they may lie on several workers of a cluster."""
        if len(items) == 1 or self.in_snapshot:  # a snapshot is one connection's
            return [work(item) for item in items]
        with self._starting:
            self._check_open()
            if self._threads is None:
                self._threads = Pool(min(TOGETHER, self.address.pool), "trivet-parts")
        return list(self._threads.map(deadline.carried(work), items))

    def planned(self, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """The same, planned with these values: a plan for any values cannot know how much they find. On a cluster with
        our settings, too, which its workers hear of in no other way."""
        if self.server.citus:
            return self.all_within(
                "; ".join(f"SET LOCAL {name} TO {SETTINGS[name]}" for name in SETTINGS), query, values
            )
        return self.ask(lambda connection: connection.execute(query, values or None, prepare=False).fetchall())

    def all_within(self, local: str, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """The same, with settings for this one statement: ``local`` is ``SET LOCAL …`` of our own making."""
        citus = "SET LOCAL citus.propagate_set_commands TO 'local'; " if self.server.citus else ""

        def work(connection: Connection) -> list[tuple[Any, ...]]:
            if self.in_snapshot:  # which ends with a transaction of its own
                for setting in f"{citus}{local}".split("; "):  # a pipeline takes one statement at a time
                    connection.execute(setting)
                return connection.execute(query, values, prepare=False).fetchall()
            connection.execute(f"BEGIN; {citus}{local}")
            try:
                return connection.execute(query, values, prepare=False).fetchall()
            finally:
                with contextlib.suppress(psycopg.Error):  # of the answer, not of the end
                    connection.execute("ROLLBACK")

        return self.ask(work)

    @contextlib.contextmanager
    def write(self) -> Iterator[Connection]:
        """One write transaction: all of it or nothing."""
        self._check_open()
        if self.read_only:
            raise StoreError(f"store: {self.address.shown!r} is read-only (a standby?); nothing was written")
        self.ask(lambda connection: connection.execute("SELECT 1"))  # a connection that hung up is told before, not in
        with deadline.lifted(), self.connection() as connection, connection.transaction():
            yield connection

    def outside(self, work: Callable[[Connection], Answer]) -> Answer:
        """On a connection of its own, without a time limit: what builds an index must not hold one of the pool."""
        self._check_open()
        with _explained(self.address), contextlib.closing(_connect(self.address, self._options())) as connection:
            connection.execute("SET statement_timeout = 0")
            return work(connection)

    def _check_open(self) -> None:
        if os.getpid() != self._pid:
            told = f"{self.address.shown!r} was opened before this process was forked"
            raise StoreError(f"store: {told}; open it here again")
        if self._closed:
            raise StoreError(f"store: {self.address.shown!r} is closed; open it again with trivet.open")

    def close(self) -> None:
        self._closed = True
        if self._threads is not None:
            self._threads.close()
        if os.getpid() == self._pid:  # else they are the parent's connections
            self._pool.close(timeout=5.0)


def is_store(url: str) -> bool:
    """Is there a store of ours? Nothing is made."""
    address = Address.parse(url)
    with _explained(address), contextlib.closing(_connect(address)) as connection:
        return _schema_version(connection, address) > 0


# --- the schema -------------------------------------------------------------------------------------------------------


def prepare(connection: Connection, address: Address) -> Server:
    """Extensions, schema and tables, made by whoever comes first; a store that is complete costs one look."""
    server = look(connection, address)
    if _schema_version(connection, address) == len(MIGRATIONS) and not _missing(server):
        return server
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
        connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(address.schema)))
        for name in _missing(server):
            _add_extension(connection, address, name)
        for name in WELCOME:
            with contextlib.suppress(StoreError):  # not there, not preloaded or not allowed: done without
                _add_extension(connection, address, name)
        server = look(connection, address)
        connection.execute(f"SET LOCAL search_path TO {server.search_path}")
        connection.execute("CREATE TABLE IF NOT EXISTS migrations (number integer PRIMARY KEY)")
        done = _schema_version(connection, address)
        for number, migration in enumerate(MIGRATIONS[done:], start=done + 1):
            for statement in migration(server):
                connection.execute(statement)
            connection.execute("INSERT INTO migrations VALUES (%s)", (number,))
    return server


def check(connection: Connection, address: Address, server: Server) -> None:
    if server.version < OLDEST:
        told = f"PostgreSQL {server.version // 10000}, and trivet needs {OLDEST // 10000} or newer"
        raise StoreError(f"store: {address.shown!r} is {told}")
    version = _schema_version(connection, address)
    if version > len(MIGRATIONS):
        told = f"has schema {version}, this trivet knows {len(MIGRATIONS)}; upgrade trivet"
        raise StoreError(f"store: {address.shown!r} {told}")
    if version < len(MIGRATIONS):
        raise StoreError(f"store: {address.shown!r} is read-only and was not prepared; open it once where it can write")


def look(connection: Connection, address: Address) -> Server:
    rows = connection.execute(
        "SELECT e.extname, n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace"
    ).fetchall()
    homes = dict.fromkeys([address.schema, "public", *(home for name, home in rows if name in (*NEEDED, *WELCOME))])
    path = ", ".join(sql.Identifier(home).as_string(connection) for home in homes)
    return Server(connection.info.server_version, frozenset(name for name, _ in rows), path)


def _missing(server: Server) -> list[str]:
    return [name for name in NEEDED if name not in server.extensions]


def _add_extension(connection: Connection, address: Address, name: str) -> None:
    try:
        with connection.transaction():
            connection.execute(sql.SQL("CREATE EXTENSION IF NOT EXISTS {} SCHEMA public").format(sql.Identifier(name)))
    except psycopg.Error as error:
        told = f"the server's extension {name!r} is needed and cannot be made here ({_first_line(error)})"
        mend = f"install it on the server, then let an administrator run `CREATE EXTENSION {name}` in the database"
        raise StoreError(f"store: {address.shown!r}: {told}; {mend}") from error


def _schema_version(connection: Connection, address: Address) -> int:
    table = sql.Identifier(address.schema, "migrations")
    found = connection.execute("SELECT to_regclass(%s)", (table.as_string(connection),)).fetchone()
    if found is None or found[0] is None:
        return 0
    row = connection.execute(sql.SQL("SELECT coalesce(max(number), 0) FROM {}").format(table)).fetchone()
    return int(row[0]) if row else 0


def _is_read_only(connection: Connection) -> bool:
    row = connection.execute("SHOW transaction_read_only").fetchone()
    return row is not None and row[0] == "on"


def _connect(address: Address, options: str = "") -> Connection:
    extra: dict[str, Any] = {"options": options} if options else {}
    try:
        connection = psycopg.connect(address.conninfo, autocommit=True, application_name="trivet", **extra)
    except psycopg.OperationalError as error:
        raise StoreError(f"store: {address.shown!r} cannot be reached ({_first_line(error)})") from error
    nul.adapt(connection)
    return connection


# --- errors -----------------------------------------------------------------------------------------------------------

_ADVICE = {  # by SQLSTATE: names of constraints and tables differ on every worker of a cluster
    "57014": "the server needed longer than `statement_timeout` and stopped; ask for less, or raise it in the URL",
    "53300": "the server has no connection left; raise its max_connections, or lower `pool` in the URL",
    "53100": "the server's disk is full; free some space and repeat the call, nothing was half-written",
    "53200": "the server is out of memory; nothing was written",
    "42501": "this role may not do that; grant it, or open the store as its owner",
    "25006": "the server is read-only; nothing was written",
    "40P01": "two writers waited for each other and this one gave way; repeat the call",
    "54000": "a text is too long for the server's limits",
}
_HUNG_UP = ("57P01", "57P02", "57P03", "08000", "08003", "08006", "08001", "08004")


def _is_lost(error: psycopg.Error) -> bool:
    """Did the connection go, rather than the statement fail?"""
    if isinstance(error, PoolTimeout | PoolClosed | TooManyRequests):
        return False
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    return error.sqlstate is None or error.sqlstate in _HUNG_UP


@contextlib.contextmanager
def _explained(address: Address) -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise _told(address, error) from error


def _told(address: Address, error: psycopg.Error, in_snapshot: bool = False) -> StoreError:
    if in_snapshot and _is_lost(error):
        told = "the connection was lost while it was read; repeat the call"
        return SnapshotLostError(f"store: {address.shown!r}: {told} ({_first_line(error)})")
    kind = SlowError if error.sqlstate == "57014" else StoreError
    return kind(_explanation(address, error))


def _explanation(address: Address, error: psycopg.Error) -> str:
    where = f"store: {address.shown!r}"
    if isinstance(error, PoolTimeout | TooManyRequests):
        told = f"no connection to the server within {address.patience:g} s"
        return f"{where}: {told}: it cannot be reached, or all {address.pool} of `pool` are in use"
    if isinstance(error, PoolClosed):
        return f"{where} is closed; open it again with trivet.open"
    if error.sqlstate in _ADVICE:
        return f"{where}: {_ADVICE[error.sqlstate]} ({_first_line(error)})"
    if _is_lost(error):
        told = "the connection was lost; a write may or may not have arrived, and repeating it is safe"
        return f"{where}: {told} ({_first_line(error)})"
    return f"{where}: {_first_line(error)}"


def _first_line(error: psycopg.Error) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
