"""Checksums of the files of a term index.

Reading every byte of an index each time it is opened takes as long as thousands of searches. So an undamaged file is
remembered by its size, inode and times, in memory and in ``sound.json`` beside it, and read again only when they
change. Nobody can set ``ctime`` back, so a file with the same stamp has the same bytes unless the disk lost them;
``verify`` reads every file.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import struct
import time
import zlib
from collections.abc import Iterable
from pathlib import Path

from trivet.stores.import_log import stamp

REMEMBERED = "sound.json"
# A younger file is read again next time: within one tick of the clock (10 ms at most) a change keeps the stamp.
SETTLED_SECONDS = 0.1
PIECE = 1 << 20  # bytes read at once
_FOOTER_MAGIC = 1337
_CHECKSUMMED = (".term", ".idx", ".pos", ".fast", ".fieldnorm", ".store", ".del")

Stamp = tuple[int, int, int, int]


class FileChecksums:
    """The files of one index folder, and the stamps of those that are undamaged."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, Stamp] = {}

    def damaged(self, names: Iterable[str]) -> list[str]:
        """Return the damaged files. A missing one is left out: see ``missing``."""
        wrong: list[str] = []
        fresh = False
        loaded = False
        for name in names:
            found = self._stamp(name)
            if found is None or self._known.get(name) == found:
                continue
            if not loaded:
                self._known, loaded = {**self._remembered(), **self._known}, True
                if self._known.get(name) == found:
                    continue
            if not is_sound(self._folder / name):
                wrong.append(name)
            elif time.time_ns() - max(found[2:]) > SETTLED_SECONDS * 1e9:
                self._known[name] = found
                fresh = True
        if fresh:
            self._remember()
        return wrong

    def missing(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if self._stamp(name) is None]

    def _stamp(self, name: str) -> Stamp | None:
        try:
            return stamp((self._folder / name).stat())
        except OSError:
            return None

    def _remembered(self) -> dict[str, Stamp]:
        """Return the stamps of files that another process found undamaged."""
        try:
            held = json.loads((self._folder / REMEMBERED).read_text())
            return {str(name): (int(size), int(inode), int(m), int(c)) for name, (size, inode, m, c) in held.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def _remember(self) -> None:
        with contextlib.suppress(OSError):  # a read-only folder: the next process reads again
            there = {name: held for name, held in self._known.items() if self._stamp(name) == held}
            draft = self._folder / f"{REMEMBERED}.{secrets.token_hex(4)}.draft"
            draft.write_text(json.dumps(there))
            draft.replace(self._folder / REMEMBERED)


def is_sound(path: Path) -> bool:
    """Compare a file of tantivy with its footer: JSON with the CRC-32 of the bytes before it, length, magic number.

    A file that does not exist was merged by another process, which is no damage.
    """
    if path.suffix not in _CHECKSUMMED:
        return True
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            if size < 8:
                return False
            file.seek(size - 8)
            length, magic = struct.unpack("<II", file.read(8))
            left = size - 8 - length
            if magic != _FOOTER_MAGIC or left < 0:
                return False
            file.seek(left)
            footer = json.loads(file.read(length))
            file.seek(0)
            total = 0
            while left and (piece := file.read(min(PIECE, left))):
                total = zlib.crc32(piece, total)
                left -= len(piece)
            return bool(not left and total == footer["crc"])
    except FileNotFoundError:
        return True
    except (OSError, ValueError, KeyError, TypeError):
        return False
