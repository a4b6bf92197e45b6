"""A check of SQLite's write-ahead log for damage.

SQLite reads its log up to the first frame with a wrong checksum and takes the rest for an unfinished transaction. That
is right after a power cut; after a flipped bit it drops acknowledged commits without a message. A commit that is
followed by more frames was finished. Where SQLite reads less than that, the store is not opened, because opening it
would overwrite commits that could still be saved.

The layout is the one of SQLite's file format: a header of 32 bytes, then frames of 24 bytes and a page each.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import struct
import threading
import time
from pathlib import Path

from trivet.errors import StoreError
from trivet.stores.indexes.file_locks import SLICE_SECONDS
from trivet.stores.sqlite.lock_waiting import granted

_HEADER, _FRAME = 32, 24
_LITTLE, _BIG = 0x377F0682, 0x377F0683  # magic numbers, for the byte order of the checksums
# Another process may restart or delete the log at this moment; damage is still there a second later.
_PAUSES = (0.02, 0.1, 0.3, 0.6, 0.0)  # seconds


def check_log(path: Path, address: str, seconds: float) -> None:
    """Refuse a store whose log has finished commits that SQLite will not read.

    ``address`` opens it read-only, so that the check changes nothing; wait ``seconds`` where the store is locked.
    """
    log = Path(f"{path}-wal")
    if not path.exists() or not path.stat().st_size:
        return
    for pause in _PAUSES:
        salt, last = _finished(log)
        if not last or _readable(path, address, salt, seconds) >= last:
            return
        time.sleep(pause)
    message = "the write-ahead log is damaged: commits in it can no longer be read"
    copy = f"copy {str(path)!r} and {str(log)!r} away first"
    way_out = "then restore a backup, or delete the -wal file to go on without those commits"
    raise StoreError(f"store: {str(path)!r}: {message}; {copy}, {way_out}")


def _finished(log: Path) -> tuple[bytes, int]:
    """Return the salt and the last frame that ends a finished commit; no salt where the header is damaged."""
    with contextlib.suppress(OSError), log.open("rb") as file:  # no log
        header = os.pread(file.fileno(), _HEADER, 0)
        if os.fstat(file.fileno()).st_size > _HEADER:
            page = _page_size(header)
            return (b"", 1) if page is None else (header[16:24], _last_commit(file.fileno(), header[16:24], page))
    return b"", 0


def _page_size(header: bytes) -> int | None:
    if len(header) < _HEADER:
        return None
    magic, _, page, _ = struct.unpack(">4I", header[:16])
    if magic not in (_LITTLE, _BIG):
        return None
    first = second = 0
    words = struct.unpack("<6I" if magic == _LITTLE else ">6I", header[:24])
    for one, other in zip(words[::2], words[1::2], strict=True):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + other + first) & 0xFFFFFFFF
    return int(page) if struct.pack(">2I", first, second) == header[24:32] else None


def _last_commit(file: int, salt: bytes, page: int) -> int:
    """Return the number of the last finished commit.

    Frames of an earlier round have another salt and come after all frames of this round; one in between is damaged.
    """
    heads = [os.pread(file, 16, at) for at in range(_HEADER, os.fstat(file).st_size - _FRAME - page + 1, _FRAME + page)]
    ours = max((number for number, head in enumerate(heads, start=1) if head[8:16] == salt), default=0)
    commits = (number for number, head in enumerate(heads[: max(ours - 1, 0)], start=1) if any(head[4:8]))
    return max(commits, default=0)


def _readable(path: Path, address: str, salt: bytes, seconds: float) -> int:
    """Return how many frames SQLite reads: the first bytes of the -shm file say it, in native byte order."""
    connection = sqlite3.connect(address, uri=True, isolation_level=None, timeout=SLICE_SECONDS)
    try:
        connection.execute("BEGIN")
        granted(path, lambda: connection.execute("SELECT count(*) FROM sqlite_master").fetchone(), seconds)
        noted = os.pread(_shared_memory(Path(f"{path}-shm")), 48, 0)
        if len(noted) < 48 or (salt and noted[32:40] != salt):
            return 1 << 32  # the log was restarted meanwhile: its commits are in the store
        return int(struct.unpack("=I", noted[16:20])[0])
    except OSError:
        return 1 << 32  # no -shm file: a place where SQLite keeps none
    finally:
        connection.close()


_kept: dict[tuple[int, int], int] = {}  # -shm files that stay open, by device and inode
_kept_lock = threading.Lock()


def _shared_memory(path: Path) -> int:
    """Open a -shm file, and keep it open until it is deleted.

    Closing it would drop every POSIX lock that SQLite holds on it in this process, for other connections too. The next
    process to open the store would take itself for the first and truncate the file, which this process has mapped.
    """
    with _kept_lock:
        for held, file in list(_kept.items()):
            if not os.fstat(file).st_nlink:
                os.close(_kept.pop(held))
        found = path.stat()
        if (found.st_dev, found.st_ino) not in _kept:
            file = os.open(path, os.O_RDONLY)
            found = os.fstat(file)
            _kept[found.st_dev, found.st_ino] = file
        return _kept[found.st_dev, found.st_ino]
