"""A model as onnxruntime saved it: its graph, its weights in a file of their own, and its tokenizer.

To check and build the built-in model takes most of a cold search. So the first process keeps what it built in a folder
that is named after the model's id. The others open that: the weights are mapped and shared. Its checksums find damage,
as after a power cut; who can write to the folder can replace the model, as they can the installed package.
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


def open_stored(folder: Path, build: Callable[[], tuple[bytes, bytes]], error: Error) -> tuple[Any, bytes]:
    """Return a session and the bytes of the tokenizer: those in ``folder``, else built ones, which are kept there."""
    try:
        if json.loads((folder / CHECKSUMS).read_text(encoding="utf-8")) != _checksums(folder):
            raise ValueError("damaged")
        tokenizer = (folder / TOKENIZER).read_bytes()
        return open_session(str(folder / GRAPH), error, fuse=False), tokenizer
    except (OSError, ValueError, TrivetError):  # not there or damaged
        graph, tokenizer = build()
    draft = folder.with_name(f"draft-{uuid.uuid4().hex}")
    try:
        draft.mkdir(parents=True)
        (draft / TOKENIZER).write_bytes(tokenizer)
        session = open_session(graph, error, fuse=False, save=draft / GRAPH)
        (draft / CHECKSUMS).write_text(json.dumps(_checksums(draft)), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # another process was first
            draft.rename(folder)
        return session, tokenizer
    except (OSError, TrivetError):  # a folder that cannot be written: every process builds its own
        return open_session(graph, error, fuse=False), tokenizer
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _checksums(folder: Path) -> dict[str, int]:
    return {name: zlib.crc32((folder / name).read_bytes()) for name in (GRAPH, TOKENIZER, WEIGHTS)}
