"""Connections to a PostgreSQL server: a pool for each process, snapshots, write transactions, errors.

Writers of one collection take turns by the lock on its row in ``heads``. A read whose connection was lost (the server
restarted) is repeated on a new one. A write is not, because it may or may not have been committed: it raises an error,
and repeating it is safe. Every psycopg error becomes a ``StoreError`` that says what to do, chosen by its SQLSTATE.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout, TooManyRequests

from trivet.concurrency import deadline
from trivet.errors import InputError, SnapshotLostError, StoreError
from trivet.stores.postgres import nul_characters, rights
from trivet.stores.postgres.address import Address
from trivet.stores.postgres.schema import MIGRATION_LOCK, MIGRATIONS, SPREAD_UNTIL, Server

Connection = psycopg.Connection[tuple[Any, ...]]
#: Runs a statement with its values, and returns the rows.
Select = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]
Result = TypeVar("Result")

REQUIRED, OPTIONAL = ("vector", "pg_trgm"), ("btree_gin", "pg_textsearch")  # extensions
OLDEST = 140000  # PostgreSQL 14
CANDIDATES = 200  # that an HNSW index keeps while it is searched: its default of 40 finds too few of the best 100
_JIT = {"jit": "off"}  # it takes 0.1 s for a statement that runs for 0.01 s
#: An HNSW index is read as far as rows are needed.
SETTINGS = {**_JIT, "hnsw.iterative_scan": "relaxed_order", "hnsw.ef_search": str(CANDIDATES)}
#: Milliseconds before Citus opens one more connection to a worker for a statement; its 10 pass where it is busy.
_CITUS = {"citus.executor_slow_start_interval": "250"}
_UNFINISHED = (TransactionStatus.INTRANS, TransactionStatus.INERROR)
PAUSE = 0.1  # seconds before a read is repeated after a lost connection, doubled each time


class SlowError(StoreError):
    """The server stopped a statement that took longer than its time limit."""


@dataclass(slots=True)
class _Snapshot:
    """The connection of one thread's snapshot; None before its first read."""

    connection: Connection | None = None
    pipeline: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)


class Database:
    """One store on a server, as this process is connected to it."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._pid = os.getpid()
        self._closed = False
        self._local = threading.local()  # ``snapshot`` of each thread
        first, self.pooled = _first(address)
        if self.pooled and address.maintenance_work_mem is not None:
            first.close()
            raise InputError(
                "store: maintenance_work_mem cannot be set through a connection pooler; "
                "run `ALTER ROLE … SET maintenance_work_mem` on the server, or give its own address"
            )
        with _translated(address), contextlib.closing(first) as connection:
            rights.check_schema(connection, address)
            standby = _is_read_only(connection)
            self.server = look(connection, address) if standby else prepare(connection, address)
            check(connection, address, self.server)
            if self.server.citus and address.maintenance_work_mem is not None:
                raise InputError(
                    "store: maintenance_work_mem cannot be set on the workers of a cluster by an address; "
                    "run `ALTER ROLE … SET maintenance_work_mem` on the coordinator, and Citus sets it on all nodes"
                )
            self._missing_rights = rights.missing_rights(connection, address)
            self.read_only = standby or bool(self._missing_rights)
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            address.conninfo,
            kwargs={"autocommit": True, "application_name": "trivet", **self._kwargs()},
            min_size=0,
            max_size=address.pool,
            timeout=address.patience,
            reconnect_timeout=address.patience,
            configure=nul_characters.adapt,
            open=True,
            name="trivet",
        )

    def _kwargs(self, seconds: float | None = None) -> dict[str, Any]:
        """Return the arguments of a connection. A pooler takes no options, and keeps no prepared statements."""
        if self.pooled:
            return {"prepare_threshold": None}
        return {"options": _options(self.address, self._settings(seconds))}

    def _settings(self, seconds: float | None) -> dict[str, str]:
        """Return our settings; ``seconds`` is the time limit of a statement, 0 for none."""
        timeout = int((self.address.statement_timeout if seconds is None else seconds) * 1000)
        memory = self.address.maintenance_work_mem
        more = {"maintenance_work_mem": memory} if memory is not None else {}
        more |= _CITUS if self.server.citus else {}
        return {"search_path": self.server.search_path, "statement_timeout": str(timeout), **SETTINGS, **more}

    def _beginning(self, seconds: float | None = None) -> list[str]:
        """Return what begins a transaction: through a pooler our settings, which end with it."""
        if self.pooled:
            settings = self._settings(seconds).items()  # in one statement: five take five times as long
            return ["SELECT " + ", ".join(f"set_config('{name}', '{value}', true)" for name, value in settings)]
        return [] if seconds is None else [f"SET LOCAL statement_timeout TO {int(seconds * 1000)}"]

    # --- connections --------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def connection(self) -> Iterator[Connection]:
        """Lend a connection of the pool, in autocommit, with errors as ``StoreError``."""
        self._check_open()
        with _translated(self.address), self._pool.connection() as connection:
            yield connection

    @property
    def in_snapshot(self) -> bool:
        """Whether this thread reads a snapshot."""
        return getattr(self._local, "snapshot", None) is not None

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let this thread read one state until the block ends, whatever is written meanwhile.

        It is the state at the first read. A connection that was lost before is replaced; one that is lost later raises
        ``SnapshotLostError``, since its state cannot be read again.
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
            if snapshot.connection is not None:  # after ROLLBACK psycopg forgets what the connection has prepared
                self._end(snapshot.connection, snapshot.pipeline, "COMMIT")

    def _begin(self, snapshot: _Snapshot, work: Callable[[Connection], Result]) -> Result:
        """Begin the snapshot with the first read."""
        return self._open(snapshot, work, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def _open(self, snapshot: _Snapshot, work: Callable[[Connection], Result], begin: str) -> Result:
        """Open a transaction with its first read; BEGIN, the settings and the statement are sent together."""
        connection, pipeline = self._pool.getconn(), contextlib.ExitStack()
        try:
            if psycopg.Pipeline.is_supported():  # libpq 14 or newer
                pipeline.enter_context(connection.pipeline())
            for statement in (begin, *self._beginning()):
                connection.execute(statement)
            result = work(connection)
        except BaseException:
            self._end(connection, pipeline)
            raise
        snapshot.connection, snapshot.pipeline = connection, pipeline
        return result

    def _end(self, connection: Connection, pipeline: contextlib.ExitStack, statement: str = "ROLLBACK") -> None:
        """End a transaction, whatever its state, and return the connection to the pool."""
        with contextlib.suppress(psycopg.Error), pipeline:
            connection.execute(statement)
        if connection.info.transaction_status in _UNFINISHED:  # an error stopped the pipeline
            with contextlib.suppress(psycopg.Error):
                connection.execute("ROLLBACK")
        self._pool.putconn(connection)

    def ask(self, work: Callable[[Connection], Result], transaction: bool = False) -> Result:
        """Return what ``work`` reads; repeat it on another connection when the server closed this one.

        ``transaction``: in one, for settings that end with it.
        """
        snapshot: _Snapshot | None = getattr(self._local, "snapshot", None)
        if snapshot is not None:
            connection = snapshot.connection
            if connection is None:
                return self._retried(lambda: self._begin(snapshot, work))
            try:
                return work(connection)
            except psycopg.Error as error:
                raise _translate(self.address, error, in_snapshot=True) from error

        return self._retried(lambda: self._once(work, transaction or self.pooled))

    def _once(self, work: Callable[[Connection], Result], transaction: bool) -> Result:
        if not transaction:
            with self._pool.connection() as connection:
                return work(connection)
        own = _Snapshot()
        result = self._open(own, work, "BEGIN")
        assert own.connection is not None
        self._end(own.connection, own.pipeline, "COMMIT")
        return result

    def _retried(self, once: Callable[[], Result]) -> Result:
        """Repeat a read while connections are lost, up to the time limit ``patience`` of the address."""
        until, pause = time.monotonic() + self.address.patience, PAUSE
        while True:
            self._check_open()
            deadline.check()
            try:
                return once()
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                if not _is_lost(error) or time.monotonic() + pause > until:
                    raise _translate(self.address, error) from error
            except psycopg.Error as error:
                raise _translate(self.address, error) from error
            self._pool.check()  # the other connections are lost too: drop them before one is used
            time.sleep(pause)
            pause *= 2

    def all(self, query: str, values: Sequence[Any] = (), binary: bool = False) -> list[tuple[Any, ...]]:
        """Return all rows of a statement; ``binary``: bytes are sent as they are, and not as twice as many digits."""
        # None: without values a percent sign stands for itself
        return self.ask(lambda connection: connection.execute(query, values or None, binary=binary).fetchall())

    def planned(self, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Return all rows of a statement that is planned for these values: a general plan expects other row counts.

        On a cluster it carries our settings, which do not reach the workers otherwise.
        """
        if self.server.citus:
            return self.all_within(
                "; ".join(f"SET LOCAL {name} TO {value}" for name, value in _JIT.items()), query, values
            )
        return self.ask(lambda connection: connection.execute(query, values or None, prepare=False).fetchall())

    def prepared(self, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Return all rows of a statement whose plan does not depend on its values: it is planned once a connection.

        Planning looks at every index of a table, so it takes longer the more collections there are.
        """
        return self.ask(lambda connection: connection.execute(query, values, prepare=True).fetchall())

    def settings_of_index(self, candidates: int = CANDIDATES, once: bool = False) -> str:
        """Return a condition, always true, that sets what the HNSW index needs, where a worker evaluates it.

        Our connections have these settings, but those of Citus to its workers do not, and ``SET LOCAL`` would need a
        transaction on every worker. ``once``: before the first row, in a statement for one worker; in one for several
        the coordinator would evaluate that.
        """
        if not self.server.citus and candidates == CANDIDATES:
            return "true"
        own = {**SETTINGS, "hnsw.ef_search": str(candidates)}
        calls = (f"set_config('{name}', '{value}', true)" for name, value in own.items() if name not in _JIT)
        condition = f"{' || '.join(calls)} <> ''"
        return f"(SELECT {condition})" if once else condition

    def all_within(self, local: str, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Return all rows of a statement that runs with the settings in ``local``, ``SET LOCAL …``."""
        citus = "SET LOCAL citus.propagate_set_commands TO 'local'; " if self.server.citus else ""

        def work(connection: Connection) -> list[tuple[Any, ...]]:
            for setting in f"{citus}{local}".split("; "):  # a pipeline takes one statement at a time
                connection.execute(setting)
            return connection.execute(query, values, prepare=False).fetchall()

        return self.ask(work, transaction=True)

    @contextlib.contextmanager
    def write(self) -> Iterator[Connection]:
        """Open a write transaction."""
        self._check_open()
        if self._missing_rights:
            raise StoreError(f"{self._missing_rights}; nothing was written")
        read_only = self.ask(_is_read_only)  # a lost connection shows before the transaction
        if self.read_only and read_only:
            raise StoreError(f"store: {self.address.shown!r} is read-only (a standby?); nothing was written")
        self.read_only = False  # it was a standby, and was promoted meanwhile
        with deadline.lifted(), self.connection() as connection, self.transaction(connection):
            yield connection

    @contextlib.contextmanager
    def transaction(self, connection: Connection, seconds: float | None = None) -> Iterator[None]:
        """Open a transaction with our settings on a connection."""
        with connection.transaction():
            for statement in self._beginning(seconds):
                connection.execute(statement)
            yield

    def outside(self, work: Callable[[Connection], Result]) -> Result:
        """Run ``work`` on a connection of its own, outside of the pool and without a time limit, to build an index."""
        self._check_open()
        with _translated(self.address), contextlib.closing(_connect(self.address, **self._kwargs(0))) as connection:
            return work(connection)

    @contextlib.contextmanager
    def locked(self, name: str) -> Iterator[bool]:
        """Take a lock of the whole server, if it is free, on a connection of its own; yield whether it was.

        It ends with a transaction, because a pooler may give the connection to others after it.
        """
        self._check_open()
        with _translated(self.address), contextlib.closing(_connect(self.address)) as connection:
            connection.execute("BEGIN; SET LOCAL idle_in_transaction_session_timeout TO 0")
            # without parameters: with them the statement's snapshot stays, and CREATE INDEX CONCURRENTLY waits for it
            key = f"trivet.{self.address.schema}.{name}"
            row = connection.execute(f"SELECT pg_try_advisory_xact_lock(hashtext('{key}'), 1)").fetchone()
            try:
                yield bool(row and row[0])
            finally:
                with contextlib.suppress(psycopg.Error):  # lost meanwhile: the lock is gone with it
                    connection.execute("ROLLBACK")

    def _check_open(self) -> None:
        if os.getpid() != self._pid:
            raise StoreError(
                f"store: {self.address.shown!r} was opened before this process was forked; open it here again"
            )
        if self._closed:
            raise StoreError(f"store: {self.address.shown!r} is closed; open it again")

    def close(self) -> None:
        """Close all connections."""
        self._closed = True
        if os.getpid() == self._pid:  # otherwise they are the connections of the parent process
            self._pool.close(timeout=5.0)


def is_store(url: str) -> bool:
    """Tell whether there is a store at the address, without creating anything."""
    address = Address.parse(url)
    with _translated(address), contextlib.closing(_connect(address)) as connection:
        return _schema_version(connection, address) > 0


# --- the schema -------------------------------------------------------------------------------------------------------


def prepare(connection: Connection, address: Address) -> Server:
    """Create extensions, schema and tables where they are missing."""
    server = look(connection, address)
    if _schema_version(connection, address) == len(MIGRATIONS) and not _missing(server):
        return server
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
        if connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (address.schema,)).fetchone() is None:
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(address.schema)))
        for name in _missing(server):
            _add_extension(connection, address, name)
        for name in OPTIONAL:
            with contextlib.suppress(StoreError):  # not installed, not preloaded or not allowed: works without
                _add_extension(connection, address, name)
        server = look(connection, address)
        connection.execute(f"SET LOCAL search_path TO {server.search_path}")
        connection.execute("CREATE TABLE IF NOT EXISTS migrations (number integer PRIMARY KEY)")
        done = _schema_version(connection, address)
        for number, migration in enumerate(MIGRATIONS[done:], start=done + 1):
            for statement in migration(server):
                connection.execute(statement)
            connection.execute("INSERT INTO migrations VALUES (%s)", (number,))
        if 0 < done < SPREAD_UNTIL:
            from trivet.stores.postgres.redistribute import move_spread  # it imports this module

            connection.execute("SET LOCAL statement_timeout TO 0")
            move_spread(connection, server, address)
    return server


def check(connection: Connection, address: Address, server: Server) -> None:
    """Refuse a server or a schema of another version."""
    if server.version < OLDEST:
        raise StoreError(
            f"store: {address.shown!r} is PostgreSQL {server.version // 10000}, "
            f"and trivet needs {OLDEST // 10000} or newer"
        )
    version = _schema_version(connection, address)
    if version > len(MIGRATIONS):
        raise StoreError(
            f"store: {address.shown!r} has schema {version}, this trivet knows {len(MIGRATIONS)}; upgrade trivet"
        )
    if version < len(MIGRATIONS):
        raise StoreError(f"store: {address.shown!r} is read-only and was not prepared; open it once where it can write")


def look(connection: Connection, address: Address) -> Server:
    """Read the version and the extensions of the server."""
    rows = connection.execute(
        "SELECT e.extname, n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace"
    ).fetchall()
    homes = dict.fromkeys([address.schema, "public", *(home for name, home in rows if name in (*REQUIRED, *OPTIONAL))])
    path = ", ".join(sql.Identifier(home).as_string(connection) for home in homes)
    named: dict[str, str] = dict(rows)
    vectors = sql.Identifier(named.get("vector", "public")).as_string(connection)
    undistributed = "citus" in named and _has_local_tables(connection, address)
    return Server(connection.info.server_version, frozenset(named), path, vectors, undistributed, address.shards)


def _has_local_tables(connection: Connection, address: Address) -> bool:
    """Tell whether the tables of the store are on this node only: they were made before CREATE EXTENSION citus."""
    sql = (
        "SELECT to_regclass(%s) IS NOT NULL AND NOT EXISTS "
        "(SELECT 1 FROM pg_dist_partition WHERE logicalrelid = to_regclass(%s))"
    )
    table = address.qualified("documents")
    row = connection.execute(sql, (table, table)).fetchone()
    return bool(row and row[0])


def _missing(server: Server) -> list[str]:
    return [name for name in REQUIRED if name not in server.extensions]


def _add_extension(connection: Connection, address: Address, name: str) -> None:
    try:
        with connection.transaction():
            connection.execute(sql.SQL("CREATE EXTENSION IF NOT EXISTS {} SCHEMA public").format(sql.Identifier(name)))
    except psycopg.Error as error:
        raise StoreError(
            f"store: {address.shown!r}: the server's extension {name!r} is needed and cannot be made here "
            f"({_first_line(error)}); install it on the server, then let an administrator run "
            f"`CREATE EXTENSION {name}` in the database"
        ) from error


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


def _first(address: Address) -> tuple[Connection, bool]:
    """Connect, and tell whether there is a pooler: it refuses options, or takes and drops them."""
    if not address.pooler:
        try:
            connection = _connect(address, options=_options(address, {"trivet.direct": "yes"}))
        except StoreError as error:
            if "startup parameter" not in str(error):
                raise
        else:
            row = connection.execute("SELECT current_setting('trivet.direct', true)").fetchone()
            return connection, row != ("yes",)
    return _connect(address, prepare_threshold=None), True


def _options(address: Address, settings: Mapping[str, str]) -> str:
    """Return settings as the options of a connection, after those of the address."""
    given = conninfo_to_dict(address.conninfo).get("options") or ""
    escaped = (f"-c {name}={value.replace(' ', chr(92) + ' ')}" for name, value in settings.items())
    return " ".join((str(given), *escaped)).strip()


def _connect(address: Address, **arguments: Any) -> Connection:
    try:
        connection = psycopg.connect(address.conninfo, autocommit=True, application_name="trivet", **arguments)
    except psycopg.OperationalError as error:
        raise StoreError(f"store: {address.shown!r} cannot be reached ({_first_line(error)})") from error
    nul_characters.adapt(connection)
    return connection


# --- errors -----------------------------------------------------------------------------------------------------------

_ADVICE = {  # by SQLSTATE
    "57014": "the server needed longer than `statement_timeout` and stopped; ask for less, or raise it in the URL",
    "53300": "the server has no connection left; raise its max_connections, or lower `pool` in the URL",
    "53100": "the server's disk is full; free some space and repeat the call, nothing was half-written",
    "53200": "the server is out of memory; nothing was written",
    "42501": "this role may not do that; grant it, or open the store as its owner",
    "25006": "the server is read-only; nothing was written",
    "40P01": "two writers waited for each other and this one gave way; repeat the call",
    "54000": "a text is too long for the server's limits",
}
_LOST = ("57P01", "57P02", "57P03", "08000", "08003", "08006", "08001", "08004")


def _is_lost(error: psycopg.Error) -> bool:
    """Tell whether the connection was lost, rather than the statement wrong."""
    if isinstance(error, PoolTimeout | PoolClosed | TooManyRequests):
        return False
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    return error.sqlstate is None or error.sqlstate in _LOST


@contextlib.contextmanager
def _translated(address: Address) -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise _translate(address, error) from error


def _translate(address: Address, error: psycopg.Error, in_snapshot: bool = False) -> StoreError:
    if in_snapshot and _is_lost(error):
        return SnapshotLostError(
            f"store: {address.shown!r}: the connection was lost while it was read; repeat the call "
            f"({_first_line(error)})"
        )
    kind = SlowError if error.sqlstate == "57014" else StoreError
    return kind(_explanation(address, error))


def _explanation(address: Address, error: psycopg.Error) -> str:
    where = f"store: {address.shown!r}"
    if isinstance(error, PoolTimeout | TooManyRequests):
        return (
            f"{where}: no connection to the server within {address.patience:g} s: it cannot be reached, "
            f"or all {address.pool} of `pool` are in use"
        )
    if isinstance(error, PoolClosed):
        return f"{where} is closed; open it again"
    if error.sqlstate in _ADVICE:
        return f"{where}: {_ADVICE[error.sqlstate]} ({_first_line(error)})"
    if _is_lost(error):
        return (
            f"{where}: the connection was lost; a write may or may not have arrived, and repeating it is safe "
            f"({_first_line(error)})"
        )
    return f"{where}: {_first_line(error)}"


def _first_line(error: psycopg.Error) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
