"""Which imports need not be read again?

A *receipt* says: all that this import reads is in the collection, unchanged, and was when the collection's version was
N. While nobody has written since, the same import would change nothing, so it is not read. What follows a load by
itself, its vectors, carries the receipts along. A version is known by its number and its token: a restored backup gives
the number again to other content.

A projection: it lies beside the indexes, may be deleted at any time, and is worth nothing as soon as anything differs.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from trivet import __version__

FORMAT = 2
Version = tuple[int, str]  # its number, and its token in hexadecimal
PIECE = 1 << 20  # bytes of a file that are hashed at once


class Receipts:
    """Those of one collection: a file each, and one that says for which version they hold."""

    def __init__(self, folder: Path, identity: str) -> None:
        self._folder, self._identity = folder, identity

    def find(self, key: str, version: Version) -> dict[str, Any] | None:
        """What the import of that key was told when it was last made, where that still holds."""
        if self._version() != version:
            return None
        try:
            found: dict[str, Any] = json.loads((self._folder / f"{key}.json").read_text(encoding="utf-8"))
            return found
        except (OSError, ValueError):
            return None

    def keep(self, key: str, version: Version, told: Mapping[str, Any]) -> None:
        """Where it cannot be written, the next import reads again."""
        with contextlib.suppress(OSError):
            if self._version() != version:
                self.forget()
                self._folder.mkdir(parents=True, exist_ok=True)
            self._write(f"{key}.json", told)
            self._write("holds.json", {"identity": self._identity, "version": version})

    def carry(self, before: Version, version: Version) -> None:
        """Let those of the version ``before`` hold for this one, which differs from it in vectors alone."""
        if self._version() == before:
            with contextlib.suppress(OSError):
                self._write("holds.json", {"identity": self._identity, "version": version})

    def keep_only(self, version: Version) -> None:
        """Delete all that hold for another version: nobody can use them any more."""
        if self._version() != version:
            self.forget()

    def forget(self) -> None:
        """Delete all of them."""
        if self._folder.exists():
            for path in self._folder.glob("*"):
                path.unlink(missing_ok=True)

    def _version(self) -> Version | None:
        try:
            found = json.loads((self._folder / "holds.json").read_text())
            number, token = found["version"]
            return (int(number), str(token)) if found["identity"] == self._identity else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _write(self, name: str, value: Any) -> None:
        draft = self._folder / f"{secrets.token_hex(4)}.draft"
        draft.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
        draft.replace(self._folder / name)


def key(parts: Iterable[object]) -> str:
    """One name for everything that decides what an import would do."""
    hashed = blake2b(f"{FORMAT} {__version__}".encode(), digest_size=16)
    for part in parts:
        hashed.update(repr(part).encode("utf-8", "surrogatepass") + b"\0")
    return hashed.hexdigest()


def content(path: Path) -> tuple[int, str]:
    """How many bytes a file has, and their hash."""
    hashed, size = blake2b(digest_size=16), 0
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            hashed.update(piece)
            size += len(piece)
    return size, hashed.hexdigest()


def stamp(stat: os.stat_result) -> tuple[int, int, int, int]:
    """What tells that a file is the one it was, without reading it: a change of content changes its last two times, one
    of which nobody can set back."""
    return stat.st_size, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns
