"""The import log: imports that would change nothing if they were repeated, kept in files.

An entry means: everything that this import reads is in the collection, unchanged, since the collection had version N.
While nobody has written since, the same import is not read again. Vectors that are added after an import carry its
entry along. A version is known by its number and its token: a restored backup repeats the number for other content.

The files are beside the indexes and may be deleted at any time.
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


class ImportFiles:
    """The entries of one collection: a file for each, and one with the version they hold for."""

    def __init__(self, folder: Path, identity: str) -> None:
        self._folder, self._identity = folder, identity

    def find(self, key: str, version: Version) -> dict[str, Any] | None:
        """Return what was kept for the import with this key, if it holds for the version."""
        if self._version() != version:
            return None
        try:
            found: dict[str, Any] = json.loads((self._folder / f"{key}.json").read_text(encoding="utf-8"))
            return found
        except (OSError, ValueError):
            return None

    def keep(self, key: str, version: Version, value: Mapping[str, Any]) -> None:
        """Keep a value for an import. Where it cannot be written, the next import reads again."""
        with contextlib.suppress(OSError):
            if self._version() != version:
                self.clear()
                self._folder.mkdir(parents=True, exist_ok=True)
            self._write(f"{key}.json", value)
            self._write("holds.json", {"identity": self._identity, "version": version})

    def carry(self, before: Version, version: Version) -> None:
        """Let the entries of the version ``before`` hold for this one, which differs in vectors only."""
        if self._version() == before:
            with contextlib.suppress(OSError):
                self._write("holds.json", {"identity": self._identity, "version": version})

    def keep_only(self, version: Version) -> None:
        """Delete the entries of another version: they are of no use any more."""
        if self._version() != version:
            self.clear()

    def clear(self) -> None:
        """Delete all entries."""
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


def fingerprint(parts: Iterable[object]) -> str:
    """Return one key for everything that decides what an import would do."""
    hashed = blake2b(f"{FORMAT} {__version__}".encode(), digest_size=16)
    for part in parts:
        hashed.update(repr(part).encode("utf-8", "surrogatepass") + b"\0")
    return hashed.hexdigest()


def content(path: Path) -> tuple[int, str]:
    """Return the number of bytes of a file, and their hash."""
    hashed, size = blake2b(digest_size=16), 0
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            hashed.update(piece)
            size += len(piece)
    return size, hashed.hexdigest()


def stamp(stat: os.stat_result) -> tuple[int, int, int, int]:
    """Return what tells that a file is unchanged, without reading it.

    A change of the content changes the last two times, and nobody can set ``ctime`` back.
    """
    return stat.st_size, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns
