"""Copy a store to a file while it is used.

SQLite's online backup reads in one transaction: the copy is the store as it was when the call began, and writers go on.
It is made under another name, checked row by row, synced to disk and then renamed, so the target is complete. Indexes
are not copied. The copy gets a generation of its own, so that no index of the old store is used for it, whether it is
put in place by ``trivet restore`` or by hand.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
from pathlib import Path

from trivet.errors import InputError, StoreError
from trivet.stores.sqlite import row_checksums
from trivet.stores.sqlite.database import Database
from trivet.types import Progress

STEP = 2_048  # pages between two reports of progress


def backup(database: Database, target: Path, own: set[Path], progress: Progress | None = None) -> int:
    """Copy the store to ``target``, which must not exist; return its bytes. ``own`` are the files of the store."""
    target = target.absolute()
    _check_target(target, own)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        _copy(database, draft, progress)
        _check(draft, database.path)
        size = _keep(draft, target)
    except (OSError, sqlite3.Error) as error:  # a StoreError is an OSError too, with a message of its own
        if isinstance(error, StoreError):
            raise
        cause = getattr(error, "strerror", None) or error
        raise StoreError(f"backup: cannot write {str(target)!r}: {cause}; nothing was left there") from error
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            with contextlib.suppress(OSError):  # where nothing could be written there is nothing to delete
                Path(f"{draft}{suffix}").unlink()
    return size


def _check_target(target: Path, own: set[Path]) -> None:
    place = target.resolve()
    if place in own or own & set(place.parents):
        raise InputError(f"backup: {str(target)!r} belongs to the store itself; choose another file")
    if os.path.lexists(target):
        raise InputError(f"backup: {str(target)!r} exists; a backup replaces nothing, choose another name")
    if not target.parent.is_dir():
        raise InputError(f"backup: the folder {str(target.parent)!r} does not exist; create it first")


def _copy(database: Database, draft: Path, progress: Progress | None) -> None:
    def report(_: int, remaining: int, total: int) -> None:
        if progress:
            progress(total - remaining, total)

    with database.moment() as source, contextlib.closing(sqlite3.connect(draft, isolation_level=None)) as copy:
        try:
            source.backup(copy, pages=STEP, progress=report)
            copy.execute("PRAGMA journal_mode=DELETE")  # one file, readable where nothing can be written
            begin_generation(copy)
        except sqlite3.Error as error:
            if "malformed" in str(error):
                raise
            raise StoreError(f"backup: cannot write {str(draft.parent)!r}: {error}; nothing was left there") from error


def begin_generation(copy: sqlite3.Connection) -> None:
    """Give the copy a new generation and new tokens: it shares no index and no version with the original."""
    copy.execute("BEGIN")
    copy.execute("UPDATE generation SET id = lower(hex(randomblob(16)))")
    copy.execute("UPDATE timeline SET token = randomblob(8)")
    copy.execute("DELETE FROM checkpoints")
    copy.execute("COMMIT")


def _check(draft: Path, store: Path) -> None:
    with contextlib.closing(sqlite3.connect(draft, isolation_level=None)) as copy:
        found = [str(row[0]) for row in copy.execute("PRAGMA integrity_check(20)") if row[0] != "ok"]
        found += row_checksums.problems(copy)
    if found:
        more = f" (and {len(found) - 1:,} more)" if len(found) > 1 else ""
        raise StoreError(
            f"backup: the copy of {str(store)!r} is not sound: {found[0]}{more}; it was not kept. Run `trivet doctor`"
        )


def _keep(draft: Path, target: Path) -> int:
    with draft.open("rb+") as file:
        os.fsync(file.fileno())
        size = file.seek(0, os.SEEK_END)
    if os.path.lexists(target):  # created by another process meanwhile
        raise InputError(f"backup: {str(target)!r} exists by now; a backup replaces nothing, choose another name")
    draft.rename(target)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return size
