"""Resolve the path of an embedded store, so that every name of a file leads to the same store and indexes."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from trivet.errors import InputError


def resolved(path: str | Path) -> Path:
    """Return the absolute path without symbolic links; the file need not exist.

    SQLite keeps ``-wal`` and ``-shm`` beside the real file, so everything of a store is looked for there.
    """
    try:
        Path(path).stat()
        return Path(os.path.realpath(path))
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise InputError(f"path: {str(path)!r} is a symbolic link that leads back to itself; name a file") from None
        return Path(os.path.realpath(path))
    except ValueError:  # a NUL or a lone surrogate: the store refuses it by name
        return Path(path).absolute()
