"""Start processes that work on one store, kill some, and check that everything acknowledged is there.

Processes that write and read, each with its journal and its file of complaints; and the audit of what they left.
"""

from __future__ import annotations

import random
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, Any

import trivet

from .journal import outcomes, steps

HERE = Path(__file__).parent
# plain: a word that no document has is not to be taken for its nearest one, which is another's
PATIENT = {"lexical_timeout": 300_000, "dense_timeout": 300_000}  # what is found is asked, not how soon
WORDS_ALONE = {"alpha": 0, "understanding": "plain", **PATIENT}
MEANING_ALONE = {"alpha": 1, "understanding": "plain", **PATIENT}

Texts = dict[str, set[str | None]]  # id → what it may hold; None: it may be absent


class Crew:
    """Processes on one store, each with its own journal and its own file of complaints."""

    def __init__(self, store: Path, folder: Path, seed: int) -> None:
        self.store, self.folder, self.seed = store, folder, seed
        self.members: dict[tuple[str, int], subprocess.Popen[bytes]] = {}
        self.exits: list[tuple[str, int]] = []
        self._complaints: list[IO[bytes]] = []

    def start(self, role: str, number: int) -> None:
        complaints = (self.folder / f"{role}-{number}.err").open("ab")
        self._complaints.append(complaints)
        command = [
            sys.executable,
            "-W",
            "error",
            str(HERE / f"{role}.py"),
            self.store,
            self.folder,
            str(number),
            str(self.seed),
        ]
        self.members[role, number] = subprocess.Popen(command, stdout=complaints, stderr=complaints)

    def kill(self, role: str, number: int) -> None:
        member = self.members[role, number]
        member.send_signal(signal.SIGKILL)
        self.exits.append((f"{role}-{number}", member.wait()))

    def stop(self) -> None:
        (self.folder / "stop").touch()
        for (role, number), member in self.members.items():
            self.exits.append((f"{role}-{number}", member.wait(timeout=60)))

    def end(self) -> None:
        for member in self.members.values():
            if member.poll() is None:
                member.kill()
                member.wait()
        for complaints in self._complaints:
            complaints.close()

    def complaints(self) -> str:
        told = {path.name: path.read_text() for path in sorted(self.folder.glob("*.err"))}
        return "\n".join(f"--- {name}\n{text}" for name, text in told.items() if text)


def found_by(engine: trivet.Engine, query: str, how: dict[str, Any], k: int = 5) -> list[str]:
    return [hit.id for hit in engine.search(query, k=k, profile="default", rerankers=[], **how)]


def unique_word(text: str) -> str:
    return re.findall(r"zz\w+zq", text)[0]


def journalled(folder: Path) -> list[Texts]:
    return [outcomes(path) for path in sorted(folder.glob("writer-*.jsonl"))]


def written(folder: Path) -> int:
    """Steps that were acknowledged."""
    return sum(step["state"] == "done" for path in folder.glob("writer-*.jsonl") for step in steps(path))


def every_text(folder: Path) -> set[str]:
    tried = [step["texts"] for path in folder.glob("writer-*.jsonl") for step in steps(path) if step["state"] == "try"]
    return {text for texts in tried for text in texts.values() if text is not None}


def audit(store: Path, folder: Path, rng: random.Random) -> Iterator[str]:
    """Every fault, its kind first: lost, strange, unfound, stale, unsound. Nothing when all is as it was told."""
    may_hold = journalled(folder)
    with trivet.open(store, embedder="hashing") as engine:
        stored = {document.id: document.text for document in engine.documents()}
        yield from missing(stored, may_hold)
        if stored.keys() - {id for known in may_hold for id in known}:
            yield "strange: documents that nobody wrote"
        stats = engine.stats()
        if not stats.documents == stats.passages == len(stored):
            yield f"unsound: {stats.documents} documents and {stats.passages} passages counted, {len(stored)} there"
        engine.wait(timeout=60)
        for id, text in stored.items():
            if (found := found_by(engine, unique_word(text), WORDS_ALONE)) != [id]:
                yield f"unfound: {id} by its word: {found}"
        for id, text in rng.sample(sorted(stored.items()), min(60, len(stored))):
            if (found := found_by(engine, text, MEANING_ALONE, k=1)) != [id]:
                yield f"unfound: {id} by its meaning: {found}"
        replaced = sorted(every_text(folder) - set(stored.values()))
        for text in rng.sample(replaced, min(200, len(replaced))):
            if found := found_by(engine, unique_word(text), WORDS_ALONE):
                yield f"stale: {found} by a word it no longer has"
        for problem in engine.verify().problems:
            yield f"unsound: {problem}"
    with closing(sqlite3.connect(store)) as connection:
        if (told := connection.execute("PRAGMA integrity_check").fetchall()) != [("ok",)]:
            yield f"unsound: {told}"


def missing(stored: dict[str, str], may_hold: list[Texts]) -> Iterator[str]:
    """What was acknowledged and is not there. Of an id that all write to, the last of one of them won."""
    for known in may_hold:
        for id, texts in known.items():
            if id.startswith("shared"):
                texts = set().union(*(other.get(id, set()) for other in may_hold))
            if stored.get(id) not in texts:
                yield f"lost: {id} holds {stored.get(id)!r}, acknowledged: {texts}"
