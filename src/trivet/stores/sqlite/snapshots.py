"""Which folders are whole copies of a projection, and are their bytes those that were written?

A snapshot is a folder whose name grows with what it has read; its ``state.json`` holds a checksum of every other file.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import zlib
from pathlib import Path

FOREIGN = "it was made on another timeline of the store and was deleted"


class ForeignError(ValueError):
    """A projection was made of a truth that a restored backup, or another file, has replaced."""


class PrunedError(Exception):
    """Removals that a projection has not applied were pruned: it is opened again, or made anew."""


class OutdatedError(ValueError):
    """A projection was made by another version of trivet, or for other settings; it is made anew, and nothing is
    wrong."""


def told(name: str, error: Exception) -> list[str]:
    """What ``verify`` says of a snapshot that was deleted when it was opened; nothing where nothing was wrong."""
    if isinstance(error, OutdatedError | PrunedError):
        return []
    if isinstance(error, ForeignError):
        return [f"{name}: {FOREIGN}"]
    what = str(error) if str(error).endswith(("is damaged", "is not whole")) else "it cannot be read"
    return [f"{name}: {what} and was deleted"]


def discard(folder: Path) -> None:
    """Delete a projection; the states first, so that what a kill leaves of the rest is no snapshot, and no damage."""
    for snapshot in newest_first(folder):
        with contextlib.suppress(OSError):
            (snapshot / "state.json").unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def newest_first(folder: Path) -> list[Path]:
    return sorted((path for path in folder.glob("snapshot-*") if path.is_dir()), reverse=True)


def checksums(draft: Path) -> dict[str, int]:
    return {path.name: checksum(path) for path in draft.iterdir()}


def keep_only(final: Path) -> None:
    """A reader that has another one open keeps it until it lets go."""
    for old in final.parent.iterdir():
        if old.is_dir() and old != final:
            shutil.rmtree(old, ignore_errors=True)


def applied(folder: Path) -> int | None:
    """Return the last removal that the newest snapshot has applied; None where there is none."""
    for snapshot in newest_first(folder):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # damaged: whoever opens it deletes it
            return int(json.loads((snapshot / "state.json").read_text())["removed"])
    return None


def delete_all(folder: Path) -> None:
    """Delete every snapshot and draft."""
    for old in folder.iterdir():
        if old.is_dir():
            shutil.rmtree(old, ignore_errors=True)


def problems(folder: Path) -> list[str]:
    """Files of the newest whose bytes are not those that were written."""
    found = []
    for snapshot in newest_first(folder)[:1]:
        with contextlib.suppress(FileNotFoundError):  # replaced by another process meanwhile
            for name, written in json.loads((snapshot / "state.json").read_text())["sums"].items():
                if checksum(snapshot / name) != written:
                    found.append(f"{folder.name}: {name} is damaged; run rebuild")
    return found


def checksum(path: Path) -> int:
    total = 0
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            total = zlib.crc32(part, total)
    return total
