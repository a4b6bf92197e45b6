"""A model as onnxruntime saved it: its graph, its weights in a file of their own, and its tokenizer.

To check and build the built-in model takes most of a cold search. So the first process keeps what it built in a folder
that is named after the model's id. The others open that: the weights are mapped and shared. Its checksums find damage,
as after a power cut; a file that nobody has touched since it was written is not read for that. Who can write to the
folder can replace the model, as they can the installed package.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import uuid
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trivet.errors import TrivetError
from trivet.models.encoders.session import WEIGHTS, Error, open_session

GRAPH, TOKENIZER, CHECKSUMS = "model.onnx", "tokenizer", "checksums.json"
FILES = (GRAPH, TOKENIZER, WEIGHTS)


def open_stored(folder: Path, build: Callable[[], tuple[bytes, bytes]], error: Error) -> tuple[Any, bytes]:
    """Return a session and the bytes of the tokenizer: those in ``folder``, else built ones, which are kept there."""
    try:
        _check(folder, json.loads((folder / CHECKSUMS).read_text(encoding="utf-8")))
        tokenizer = (folder / TOKENIZER).read_bytes()
        return open_session(str(folder / GRAPH), error, fuse=False), tokenizer
    except (OSError, ValueError, TypeError, KeyError, TrivetError):  # not there or damaged
        graph, tokenizer = build()
    draft = folder.with_name(f"draft-{uuid.uuid4().hex}")
    try:
        draft.mkdir(parents=True)
        (draft / TOKENIZER).write_bytes(tokenizer)
        session = open_session(graph, error, fuse=False, save=draft / GRAPH)
        written = {name: [_checksum(draft / name), *_stamp(draft / name)] for name in FILES}
        (draft / CHECKSUMS).write_text(json.dumps(written), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # another process was first
            draft.rename(folder)
        return session, tokenizer
    except (OSError, TrivetError):  # a folder that cannot be written: every process builds its own
        return open_session(graph, error, fuse=False), tokenizer
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _check(folder: Path, written: dict[str, list[int]]) -> None:
    for name in FILES:
        checksum, *stamp = written[name]
        if stamp != _stamp(folder / name) and checksum != _checksum(folder / name):
            raise ValueError("damaged")


def _checksum(path: Path) -> int:
    return zlib.crc32(path.read_bytes())


def _stamp(path: Path) -> list[int]:
    """Return what changes when a file is written, replaced or copied."""
    found = path.stat()
    return [found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]
