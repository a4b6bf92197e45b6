"""Snapshots of an index on disk, and checks of their files.

A snapshot is a folder whose name grows with what it has read; its ``state.json`` has a checksum of every other file.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy.typing as npt

STATE = "state.json"  # written last, deleted first
FOREIGN = "it was made on another timeline of the store and was deleted"


class ForeignError(ValueError):
    """An index was made from records that a restored backup, or another file, has replaced."""


class PrunedError(Exception):
    """Removals that an index has not applied were pruned: it is opened again, or rebuilt."""


class OutdatedError(ValueError):
    """An index was made by another version of trivet, or for other settings; it is rebuilt, and nothing is wrong."""


def deletion_message(snapshot: Path, error: Exception) -> list[str]:
    """Return what ``verify`` reports of a snapshot that could not be opened and is deleted."""
    name = snapshot.parent.name
    if isinstance(error, OutdatedError | PrunedError):
        return []
    if isinstance(error, FileNotFoundError) and not (snapshot / STATE).exists():
        return []  # another process has a newer one and was deleting this one while it was read
    if isinstance(error, ForeignError):
        return [f"{name}: {FOREIGN}"]
    what = str(error) if str(error).endswith(("is damaged", "is not whole")) else "it cannot be read"
    return [f"{name}: {what} and was deleted"]


def discard(folder: Path) -> None:
    """Delete an index."""
    for snapshot in newest_first(folder):
        delete(snapshot)
    shutil.rmtree(folder, ignore_errors=True)


def delete(snapshot: Path) -> None:
    """Delete a snapshot or draft, its ``state.json`` first: a process that reads it, or a kill, then sees no damage."""
    with contextlib.suppress(OSError):
        (snapshot / STATE).unlink(missing_ok=True)
    shutil.rmtree(snapshot, ignore_errors=True)


def newest_first(folder: Path) -> list[Path]:
    """Return the snapshots in a folder, the newest first."""
    return sorted((path for path in folder.glob("snapshot-*") if path.is_dir()), reverse=True)


def checksums(draft: Path) -> dict[str, int]:
    """Return the checksum of every file in a folder."""
    return {path.name: checksum(path) for path in draft.iterdir()}


def keep_only(final: Path) -> None:
    """Delete every other snapshot; a reader that has one open can still read it."""
    for old in final.parent.iterdir():
        if old.is_dir() and old != final:
            delete(old)


def narrowed(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return numbers that are not negative in the smallest type that holds them, as they are kept on disk."""
    import numpy as np

    return column.astype(np.min_scalar_type(int(column.max(initial=0))))


def applied(folder: Path) -> int | None:
    """Return the last removal that the newest snapshot has applied; None where there is none."""
    for snapshot in newest_first(folder):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # damaged: opening it deletes it
            return int(json.loads((snapshot / STATE).read_text())["removed"])
    return None


def delete_all(folder: Path) -> None:
    """Delete every snapshot and draft."""
    for old in folder.iterdir():
        if old.is_dir():
            delete(old)


def problems(folder: Path) -> list[str]:
    """Return the files of the newest snapshot whose bytes are not those that were written."""
    found = []
    for snapshot in newest_first(folder)[:1]:
        with contextlib.suppress(FileNotFoundError):  # replaced by another process meanwhile
            for name, written in json.loads((snapshot / STATE).read_text())["sums"].items():
                if checksum(snapshot / name) != written:
                    found.append(f"{folder.name}: {name} is damaged; run rebuild")
    return found


def checksum(path: Path) -> int:
    """Return the CRC-32 of a file."""
    total = 0
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            total = zlib.crc32(part, total)
    return total
