"""The journal of a writer: what it intended to write, and what was acknowledged.

One file a writer, one JSON line a step, forced to disk before the writer goes on: ``try`` before the call, ``done``
after it returned. A writer killed in between leaves a ``try`` without ``done``: such a step may or may not have
happened. A line cut short by the kill was never acted on (``try`` is on disk before the call starts) and is passed
over.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_LETTERS = "bcdfghjkmnpqtvwx"  # no vowels, no s, no y: no stemmer touches such a word


def word(*numbers: int) -> str:
    """A word of its own for these numbers, which no analyser takes apart or shortens."""
    spelt = "z".join("".join(_LETTERS[int(digit, 16)] for digit in f"{number:x}") for number in numbers)
    return f"zz{spelt}zq"


class Journal:
    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        os.write(self._file, b"\n")  # the one before may have been killed inside a line

    def put(self, **step: Any) -> None:
        os.write(self._file, json.dumps(step).encode() + b"\n")
        os.fsync(self._file)


def steps(path: Path) -> Iterator[dict[str, Any]]:
    if not path.exists():
        return
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        try:
            step = json.loads(line)
        except json.JSONDecodeError:
            continue
        if isinstance(step, dict):
            yield step


def outcomes(path: Path) -> dict[str, set[str | None]]:
    """id → the texts it may hold now (None: it is absent): one where every step was acknowledged, more after a kill."""
    known: dict[str, set[str | None]] = {}
    open_steps: dict[int, dict[str, str | None]] = {}
    for step in steps(path):
        if step["state"] == "try":
            open_steps[step["number"]] = step["texts"]
            for id, text in step["texts"].items():
                known[id] = known.get(id, {None}) | {text}
        else:
            for id, text in open_steps[step["number"]].items():
                known[id] = {text}
    return known
