"""Put a backup in the place of a store, as a new generation of it.

The backup is copied beside the store, checked row by row and given a new generation; then the store is locked and
replaced in one step. No process may have it open: it would keep using the old file. The indexes are deleted, and one
that is left over is never used for the new generation.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from trivet.errors import InputError, NotFoundError, StoreBusyError, StoreError
from trivet.stores.indexes.file_locks import named
from trivet.stores.indexes.lock_holders import holders
from trivet.stores.sqlite import backup, row_checksums
from trivet.stores.sqlite.database import Database, is_open_here
from trivet.stores.sqlite.location import resolved
from trivet.stores.sqlite.lock_waiting import is_busy
from trivet.types import Progress

LOCK_SECONDS = 3.0  # to wait for a process that is closing the store
#: Where SQLite keeps its locks in a file (its file format: PENDING_BYTE, and the 511 bytes after it).
LOCK_BYTE, LOCK_BYTES = 0x40000000, 512


def restore(source: Path, target: Path, progress: Progress | None = None) -> tuple[int, bool]:
    """Put the backup ``source`` in the place of ``target``; return its bytes, and whether it replaced a store."""
    source, target = resolved(source), resolved(target)
    _check(source, target)
    replaces = target.exists()
    if replaces:
        _check_unused(target)
        with _locked_bytes(target):  # refuse before anything is copied, without changing a byte
            pass
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        _copy(source, draft, progress)
        _make_store(draft, source)
        with _locked(target) if replaces else contextlib.nullcontext():
            if not replaces and os.path.lexists(target):
                raise InputError(f"restore: {str(target)!r} exists by now; try again")
            size = _put(draft, target)
    except (OSError, sqlite3.Error) as error:  # a StoreError is an OSError too, with a message of its own
        if isinstance(error, StoreError):
            raise
        cause = getattr(error, "strerror", None) or error
        raise StoreError(f"restore: {str(target)!r} cannot be written ({cause}); it is as it was") from error
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            Path(f"{draft}{suffix}").unlink(missing_ok=True)
    shutil.rmtree(f"{target}.index", ignore_errors=True)
    return size, replaces


def _check(source: Path, target: Path) -> None:
    if not source.exists():
        raise NotFoundError(f"restore: there is no backup {str(source)!r}")
    if source.is_dir():
        raise InputError(f"restore: {str(source)!r} is a folder; name the file that `trivet backup` wrote")
    if target.is_dir():
        raise InputError(f"restore: {str(target)!r} is a folder; name the file of the store")
    if source == target:
        raise InputError("restore: the backup and the store are the same file")
    if not target.parent.is_dir():
        raise InputError(f"restore: the folder {str(target.parent)!r} does not exist; create it first")


def _copy(source: Path, draft: Path, progress: Progress | None) -> None:
    def report(_: int, remaining: int, total: int) -> None:
        if progress:
            progress(total - remaining, total)

    try:
        # what a killed writer left beside the backup is read too
        mode = "" if Path(f"{source}-wal").exists() else "&immutable=1"
        address = f"file:{quote(os.fsencode(source))}?mode=ro{mode}"
        with (
            contextlib.closing(sqlite3.connect(address, uri=True, isolation_level=None)) as given,
            contextlib.closing(sqlite3.connect(draft, isolation_level=None)) as copy,
        ):
            given.backup(copy, pages=backup.STEP, progress=report)
            copy.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.DatabaseError as error:
        if "not a database" in str(error) or "malformed" in str(error):
            raise StoreError(f"restore: {str(source)!r} is not a backup of a store ({error})") from error
        raise


def _make_store(draft: Path, source: Path) -> None:
    """Migrate the copy to the current schema, give it a new generation, and check it."""
    try:
        Database(draft).close()
    except StoreError as error:
        raise StoreError(f"restore: {str(source)!r} is not a backup of a store: {error}") from error
    with contextlib.closing(sqlite3.connect(draft, isolation_level=None)) as copy:
        copy.execute("PRAGMA journal_mode=DELETE")
        backup.begin_generation(copy)
        found = [str(row[0]) for row in copy.execute("PRAGMA integrity_check(20)") if row[0] != "ok"]
        found += row_checksums.problems(copy)
    if found:
        more = f" (and {len(found) - 1:,} more)" if len(found) > 1 else ""
        raise StoreError(f"restore: the backup {str(source)!r} is damaged: {found[0]}{more}; nothing was changed")


def _put(draft: Path, target: Path) -> int:
    """Replace the store by the copy, completely or not at all."""
    if target.exists():
        shutil.copymode(target, draft)
    with draft.open("rb+") as file:
        os.fsync(file.fileno())
        size = file.seek(0, os.SEEK_END)
    # A log that is left over would be read into the new file: move it away first, delete it last.
    left_over = [path for path in (Path(f"{target}-wal"), Path(f"{target}-shm")) if path.exists()]
    moved = [path.rename(f"{path}.replaced") for path in left_over]
    draft.rename(target)
    for path in moved:
        path.unlink(missing_ok=True)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return size


@contextlib.contextmanager
def _locked(target: Path) -> Iterator[None]:
    """Lock the store so that no process can open it; ``StoreBusyError`` names the process that has it open."""
    _check_unused(target)
    try:
        connection = _sole(target)
    except sqlite3.DatabaseError as error:
        if is_busy(error):
            raise _in_use(target) from error
        with _locked_bytes(target):  # damaged, so SQLite cannot lock it; this is when a backup is needed
            yield
        return
    try:
        yield
    finally:
        connection.close()


def _sole(target: Path) -> sqlite3.Connection:
    """Open a connection with an exclusive lock; SQLite refuses it while any process has the store open."""
    connection = sqlite3.connect(target, isolation_level=None, timeout=LOCK_SECONDS)
    try:
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        connection.execute("PRAGMA journal_mode=DELETE")  # moves the log into the file, and needs the lock
        connection.execute("BEGIN EXCLUSIVE")
    except BaseException:
        connection.close()
        raise
    return connection


@contextlib.contextmanager
def _locked_bytes(target: Path) -> Iterator[None]:
    import fcntl

    with target.open("rb+") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, LOCK_BYTES, LOCK_BYTE)
        except OSError as error:
            raise _in_use(target) from error
        yield


def _check_unused(target: Path) -> None:
    """Refuse where this process has the store open: its own locks do not keep it out."""
    if is_open_here(target):
        raise StoreBusyError(f"restore: {str(target)!r} is open in this process; close it first")


def _in_use(target: Path) -> StoreBusyError:
    who = named(holders(target))
    return StoreBusyError(f"restore: {str(target)!r} is in use by {who}; end it, then try again. Nothing was changed")
