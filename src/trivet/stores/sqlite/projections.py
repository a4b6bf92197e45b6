"""Which indexes has this collection, and are they up to date?

Each is opened when somebody first asks for it, and may be thrown away at any time. The graph, which takes longest to
read, is read in the background, out of the way of whoever asks meanwhile.
"""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from trivet import deadline
from trivet.errors import ModelReplacedError, TrivetError
from trivet.receipts import Receipts
from trivet.stores.contract import Model, State, Steps
from trivet.stores.sqlite.scopes import Scopes
from trivet.stores.sqlite.sources import Vectors
from trivet.stores.sqlite.waiting import check_not_stopped

if TYPE_CHECKING:
    from trivet.stores.sqlite.graph import GraphIndex
    from trivet.stores.sqlite.indexer import Indexer
    from trivet.stores.sqlite.meaning import VectorIndex
    from trivet.stores.sqlite.store import SqliteStore
    from trivet.stores.sqlite.terms import TermIndex
    from trivet.stores.sqlite.words import Progress

_MODELS = "SELECT mid, id, spec, dim, vectors FROM models WHERE cid = ?"
PAUSE, PATIENCE = 0.002, 50  # seconds, and how many such the background waits for a search before it goes on


class Projections(Scopes):
    def __init__(self, store: SqliteStore, cid: int, uid: str, name: str, config: Mapping[str, Any]) -> None:
        super().__init__(store, cid, uid, name, config)
        self._reading = threading.Event()
        self._looked = False
        self._asked = 0  # searches that are being answered
        self._words: TermIndex | None = None
        self._trigrams: TermIndex | None = None
        self._graph: GraphIndex | None = None
        self._meanings: dict[int, VectorIndex] = {}
        self.receipts = Receipts(self._folder / "imports", self._uid)
        self._counting, self._embedded = threading.Lock(), 0  # how often vectors were added from here

    def _forget(self) -> None:
        super()._forget()
        with self._lock:
            self._words = self._trigrams = self._graph = None
            self._meanings = {}

    @deadline.lifted()  # opened for all who ask, not for this request alone
    def words(self) -> TermIndex:
        from trivet.stores.sqlite.terms import TermIndex

        with self._lock:
            if self._words is None:
                identity = f"{self.analyzer.id}/{self._uid}"
                self._words = TermIndex(
                    self._folder / "words", self, self.analyzer.line, identity, halves=self.analyzer.halves
                )
            return self._words

    @deadline.lifted()  # opened for all who ask, not for this request alone
    def trigrams(self) -> TermIndex:
        from trivet.stores.sqlite.terms import TermIndex

        with self._lock:
            if self._trigrams is None:
                self._trigrams = TermIndex(
                    self._folder / "trigrams", self, _trigram_line, f"pg_trgm/1/{self._uid}", positions=False
                )
            return self._trigrams

    @deadline.lifted()  # opened for all who ask, not for this request alone
    def concepts(self) -> GraphIndex:
        from trivet.stores.sqlite.graph import GraphIndex

        with self._lock:
            if self._graph is None:
                identity = f"{self.analyzer.id}/{self._uid}"
                self._graph = GraphIndex(self._folder / "graph", self, identity, self.analyzer.stop_words)
            return self._graph

    @deadline.lifted()  # opened for all who ask, not for this request alone
    def meaning(self, model: Model) -> VectorIndex:
        from trivet.stores.sqlite.meaning import VectorIndex

        with self._lock:
            if model.mid not in self._meanings:
                source = Vectors(self, model.mid)
                self._meanings[model.mid] = VectorIndex(
                    self._folder / f"meaning-{model.mid}", source, model.dim, f"{model.id}/{self._uid}"
                )
            return self._meanings[model.mid]

    def _look_at_projections(self) -> None:
        """Open what lies on disk before the first write: later, one that is ahead of a restored backup could not be
        told from one that is not."""
        if self._looked:
            return
        self._looked = True
        if (self._folder / "words").exists():
            self.words()
        if (self._folder / "trigrams").exists():
            self.trigrams()
        if (self._folder / "graph").exists():
            self.concepts()
        model = self.state().model
        if model is not None and (self._folder / f"meaning-{model.mid}").exists():
            self.meaning(model)

    def tidy(self, progress: Progress | None = None, graph: bool = False) -> None:
        """Bring the projections on disk up to date now, so that no search has to wait for it."""
        self.tidy_words(progress)
        self.tidy_vectors()
        if graph or self._graph is not None:  # in use
            self._connect()

    def tidy_words(self, progress: Progress | None = None) -> None:
        self.words().catch_up(self.state().version, progress)

    def tidy_vectors(self) -> None:
        state = self.state()
        if state.model is not None and state.model.vectors:
            meaning = self.meaning(state.model)
            meaning.catch_up(state.version)
            meaning.compact(at_least=1_000)

    def follower(self) -> Indexer | None:
        """Another process that indexes words while this one writes, where there is a core for it."""
        from trivet.stores.sqlite.indexer import Indexer, cores

        return Indexer(self.store.path, self.name) if cores() > 1 else None

    def check_locks(self) -> None:
        """Refuse to build indexes while a stopped process holds a lock of one; nothing is changed."""
        check_not_stopped([*self._folder.glob("*.lock"), *self._folder.glob("*/lock")])

    def verify(self, progress: Steps | None = None) -> tuple[list[str], dict[str, int]]:
        """What is wrong with the rows or the projections, and how many of each were looked at."""
        problems = self.problems()
        if problems:  # an import that is repeated may mend them
            self.receipts.forget()
        found, compared = self._compare(progress)
        state, indexed = self._catch_up(found)
        checked = {"documents": state.documents, "passages": state.passages, "words": indexed}
        if indexed != state.passages and not found:
            found.append(f"words: {indexed:,} passages indexed, {state.passages:,} stored; run rebuild")
        if state.model is not None:
            checked["vectors"] = state.model.vectors
        self.receipts.keep_only((state.version, state.token.hex()))
        return [*problems, *found], checked | compared

    def _compare(self, progress: Steps | None) -> tuple[list[str], dict[str, int]]:
        """What the projections hold, before anything is brought up to date, against the truth."""
        self._look_at_projections()
        found: list[str] = []
        compared: dict[str, int] = {}
        for index in self._opened():
            if damaged := _damage(index):
                found += damaged
                continue
            report = partial(progress, f"comparing {index.name}") if progress is not None else None
            with contextlib.suppress(ModelReplacedError):  # its vectors are of no use to anybody any more
                differences = index.compare(report)
                compared[index.name] = differences.compared
                found += differences.problems(self.ids_of, self.name)
        return found, {name: compared[name] for name in ("trigrams", "graph") if name in compared}

    def _opened(self) -> list[TermIndex | GraphIndex | VectorIndex]:
        every = (self._words, self._trigrams, self._graph, *self._meanings.values())
        return [index for index in every if index is not None]

    def _catch_up(self, found: list[str]) -> tuple[State, int]:
        """Bring words and vectors up to date, unless something is wrong with them: nothing is mended in silence."""
        words = self.words()
        for _ in range(10):  # until nobody wrote in between: two moments must not be compared
            state = self.state()
            if not found:
                words.catch_up(state.version)
            indexed = words.size
            if self.state().version == state.version:
                break
        else:
            indexed = state.passages  # no quiet moment: there is nothing to compare
        if state.model is not None and not found:
            self.meaning(state.model).catch_up(state.version)
        return state, indexed

    def projection_problems(self) -> list[str]:
        """Damaged files of the projections that are on disk, and what was not used when it was opened."""
        self._look_at_projections()
        return [told for index in self._opened() for told in _damage(index)]

    def discard_projections(self) -> None:
        """Forget and delete every projection; the next search builds them from the truth."""
        with self._lock:
            for index in self._opened():
                index.discard()
            self._words = self._trigrams = self._graph = None
            self._meanings.clear()
        shutil.rmtree(self._folder, ignore_errors=True)

    # --- forgetting ---------------------------------------------------------------------------------------------------

    def rewrite_projections(self, progress: Progress | None = None) -> None:
        """Write every index that is on disk anew without removed passages, and delete what belongs to nobody."""
        for index in self._term_indexes():
            index.rewrite(progress)
        for snapshot in self._snapshots():
            snapshot.rewrite()
        self.receipts.forget()  # they name ids

    def settle_projections(self) -> None:
        """Bring every index that is on disk up to date there; ``Timeout`` when another process is at one."""
        for index in self._term_indexes():
            index.settle()
        for snapshot in self._snapshots():
            snapshot.rewrite()

    def applied(self) -> list[int]:
        """Return for each index on disk the last removal that it has applied."""
        found = [index.applied for index in (*self._term_indexes(), *self._snapshots())]
        return [number for number in found if number is not None]

    def _term_indexes(self) -> list[TermIndex]:
        made = (("words", self.words), ("trigrams", self.trigrams))
        return [index() for name, index in made if (self._folder / name).exists()]

    def _snapshots(self) -> list[VectorIndex | GraphIndex]:
        found: list[VectorIndex | GraphIndex] = []
        models = {row[0]: Model(*row) for row in self._all(_MODELS, (self.cid,))}
        for folder in self._folder.glob("meaning-*"):
            model = models.get(int(folder.name.rpartition("-")[2]))
            if model is None:
                shutil.rmtree(folder, ignore_errors=True)  # of a model that was replaced
            else:
                found.append(self.meaning(model))
        return [*found, *([self.concepts()] if (self._folder / "graph").exists() else [])]

    # --- in the background ------------------------------------------------------------------------------------------

    def read_connections(self) -> None:
        """Bring the graph up to date in the background."""
        if not self._reading.is_set():
            self._reading.set()
            self.store.start(self._read_connections)

    def _read_connections(self) -> None:
        try:
            with contextlib.suppress(TrivetError):  # closed meanwhile: the next process does it
                self._connect(self._give_way)
        finally:
            self._reading.clear()

    def _connect(self, give_way: Callable[[], None] | None = None) -> None:
        index = self.concepts()
        index.catch_up(self.state().version, give_way=give_way)
        index.settle(at_least=1_000)

    @contextlib.contextmanager
    def asking(self) -> Iterator[None]:
        """Somebody waits for an answer meanwhile: what runs in the background gives way."""
        with self._lock:
            self._asked += 1
        try:
            yield
        finally:
            with self._lock:
                self._asked -= 1

    def _give_way(self) -> None:
        """Python runs one thread at a time and hands over every 5 ms: a search that meets a busy thread hundreds of
        times would take seconds. So the background stands still while somebody asks, though not for ever."""
        for _ in range(PATIENCE):
            if not self._asked:
                return
            time.sleep(PAUSE)


def _damage(index: TermIndex | GraphIndex | VectorIndex) -> list[str]:
    unused = [told if "run rebuild" in told else f"{told}; run rebuild" for told in index.deleted]
    return [*unused, *index.problems()]


def dense(trigram: str) -> str:
    """A trigram as one word: the index splits at blanks, and no trigram of letters and digits holds an underscore."""
    return trigram.replace(" ", "_")


def _trigram_line(text: str) -> str:
    from trivet.trigrams import trigrams

    return " ".join(dense(trigram) for trigram in dict.fromkeys(trigrams(text)))
