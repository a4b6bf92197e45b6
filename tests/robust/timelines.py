"""Backups, restores, copies and replaced files in random order: every state finds what it holds, and nothing else.

A model in Python knows what each file must hold. Every text has a word that no other text ever had, so a word of a
lost timeline, or of an overwritten text, must find nothing, and a word of the present exactly its document.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trivet
from robust.account import Account, Scale
from trivet.engine import Engine
from trivet.errors import StoreReplacedError
from trivet.stores.indexes import graph_index
from trivet.stores.sqlite import term_index, vector_index

STEPS = 24  # of one history
MOST_VALUES = 12  # documents, and lost words, of a check
MODELS = ("hashing:64", "hashing:48", "hashing:96")
WORDS: dict[str, Any] = {"weights": {"lexical": 1.0, "dense": 0.0, "graph": 0.0}, "understanding": "plain"}
TRIGRAMS: dict[str, Any] = {**WORDS, "weights": {"trigram": 1.0, "lexical": 0.0, "dense": 0.0, "graph": 0.0}}
MEANING: dict[str, Any] = {**WORDS, "weights": {"lexical": 0.0, "dense": 1.0, "graph": 0.0}}


@dataclass
class History:
    """One store and what was saved of it, with what each must hold."""

    account: Account
    folder: Path
    rng: random.Random
    texts: dict[str, str] = field(default_factory=dict)  # id → text, as the store must have it
    saved: dict[Path, dict[str, str]] = field(default_factory=dict)
    ever: set[str] = field(default_factory=set)  # every word that was ever written
    told: list[str] = field(default_factory=list)
    number: int = 0

    @property
    def store(self) -> Path:
        return self.folder / "memory.db"

    def open(self) -> Engine:
        return trivet.open(self.store, embedder=None if self.store.exists() else MODELS[0])

    def text(self) -> str:
        self.number += 1
        word = f"{self.folder.name}x{self.number}q{self.rng.randrange(10**6)}".replace("-", "")
        self.ever.add(word)
        return f"{word} is kept by Person {word.title()}"

    # --- what is done -----------------------------------------------------------------------------------------------

    def add(self, memory: Engine) -> None:
        fresh = {f"d{self.rng.randrange(200)}": self.text() for _ in range(self.rng.choice((1, 1, 3, 12, 40)))}
        memory.add([{"id": id, "text": text} for id, text in fresh.items()])
        self.texts |= fresh

    def patch(self, memory: Engine) -> None:
        if self.texts:
            id = self.rng.choice(sorted(self.texts))
            self.texts[id] = self.text()
            memory.patch(id, text=self.texts[id])

    def delete(self, memory: Engine) -> None:
        gone = self.rng.sample(sorted(self.texts), min(len(self.texts), self.rng.choice((1, 5, 20))))
        memory.delete(gone)
        for id in gone:
            del self.texts[id]

    def reembed(self, memory: Engine) -> None:
        memory.reembed(self.rng.choice(MODELS))

    def rebuild(self, memory: Engine) -> None:
        memory.rebuild()

    def to_disk(self, memory: Engine) -> None:
        shelf: Any = memory._collection
        memory.prepare()
        shelf.graph.update()
        shelf.graph.opened.open().settle()
        if (model := shelf.state().model) is not None:
            shelf.vectors.index(model).catch_up(shelf.state().version)
            shelf.vectors.index(model).compact()

    def backup(self, memory: Engine) -> None:
        target = self.folder / f"backup-{len(self.saved)}.db"
        memory.backup(target)
        self.saved[target] = dict(self.texts)

    def copy(self) -> None:
        """A copy of the closed file that nobody told trivet of."""
        target = self.folder / f"copy-{len(self.saved)}.db"
        shutil.copyfile(self.store, target)
        self.saved[target] = dict(self.texts)

    def restore(self) -> None:
        if not self.saved:
            return
        source = self.rng.choice(sorted(self.saved))
        how = self.rng.choice(("command", "by hand", "replaced"))
        self.told.append(f"{how} from {source.name}")
        if how == "command":
            trivet.restore(source, self.store)
        elif how == "by hand":
            for suffix in ("", "-wal", "-shm"):
                Path(f"{self.store}{suffix}").unlink(missing_ok=True)
            shutil.copyfile(source, self.store)
        else:
            draft = self.folder / "draft.db"
            shutil.copyfile(source, draft)
            draft.replace(self.store)
        self.texts = dict(self.saved[source])
        self.account.add("restores")

    def restore_open(self) -> None:
        """Replaced under an open store: the next call is refused, and nothing is acknowledged."""
        if not self.saved:
            return
        source = self.rng.choice(sorted(self.saved))
        with self.open() as memory:
            memory.search("anything", **WORDS)
            draft = self.folder / "draft.db"
            shutil.copyfile(source, draft)
            draft.replace(self.store)
            for suffix in ("-wal", "-shm"):
                Path(f"{self.store}{suffix}").unlink(missing_ok=True)
            try:
                memory.add(self.text(), id="late")
            except StoreReplacedError:
                pass
            else:
                self.fault("lost", "a write was acknowledged after the file was replaced")
        self.texts = dict(self.saved[source])
        self.account.add("restores")

    # --- what must hold ---------------------------------------------------------------------------------------------

    def fault(self, kind: str, told: str) -> None:
        self.account.fault(kind, f"{self.folder.name}: {told}; steps: {'; '.join(self.told[-12:])}")

    def check(self, memory: Engine) -> None:
        stored = {document.id: document.text for document in memory.documents()}
        if stored != self.texts:
            kind = "lost" if set(self.texts.items()) - set(stored.items()) else "strange"
            self.fault(kind, f"{len(stored)} documents in place of {len(self.texts)}, or other texts")
        memory.wait(timeout=60)
        for id in self.rng.sample(sorted(self.texts), min(len(self.texts), MOST_VALUES)):
            text = self.texts[id]
            for leg, asked, how in (("words", text.split()[0], WORDS), ("meaning", text, MEANING)):
                found = [hit.id for hit in memory.search(asked, k=1, **how)]
                if found != [id]:
                    self.fault("wrong", f"{id} is not found by its {leg}: {found}")
            if id not in [hit.id for hit in memory.search(text.split()[0], k=5, **TRIGRAMS)]:
                self.fault("wrong", f"{id} is not found by its spelling")
        here = {text.split()[0] for text in self.texts.values()}
        for word in self.rng.sample(sorted(self.ever - here), min(len(self.ever - here), MOST_VALUES)):
            if found := [hit.id for hit in memory.search(word, k=3, **WORDS)]:
                self.fault("wrong", f"a word of another timeline finds {found}")
            for hit in memory.search(word, k=3, **MEANING):
                if self.texts.get(hit.id) != hit.text:
                    self.fault("strange", f"{hit.id} shows a text of another timeline")
        self.account.add("states compared")

    def run(self) -> None:
        within: tuple[Callable[[Engine], None], ...] = (
            *(self.add, self.add, self.add, self.patch, self.delete, self.backup),
            *(self.reembed, self.rebuild, self.to_disk, self.to_disk),
        )
        outside = (self.copy, self.restore, self.restore, self.restore_open)
        for _ in range(STEPS // 4):
            with self.open() as memory:
                for step in self.rng.choices(within, k=3):
                    self.told.append(step.__name__)
                    step(memory)
                    if self.rng.random() < 0.4:
                        self.check(memory)
            closed = self.rng.choice(outside)
            self.told.append(closed.__name__)
            closed()
            with self.open() as memory:
                if self.rng.random() < 0.5:
                    self.add(memory)
                self.check(memory)
        with self.open() as memory:
            for problem in memory.verify().problems:
                if "another timeline" not in problem:  # what lay there is told once, and was deleted
                    self.fault("wrong", problem)


def run(account: Account, scale: Scale, folder: Path, rng: random.Random) -> None:
    kept = term_index.TAIL_LIMIT, vector_index.SNAPSHOT_FROM, graph_index.TAIL_LIMIT
    term_index.TAIL_LIMIT, vector_index.SNAPSHOT_FROM, graph_index.TAIL_LIMIT = (
        16,
        16,
        16,
    )  # every index is on disk early
    try:
        for number in range(scale.histories):
            place = folder / f"history-{number}"
            place.mkdir()
            History(account, place, random.Random(rng.random())).run()
            account.add("histories")
            if account.ok:
                shutil.rmtree(place, ignore_errors=True)
    finally:
        term_index.TAIL_LIMIT, vector_index.SNAPSHOT_FROM, graph_index.TAIL_LIMIT = kept
