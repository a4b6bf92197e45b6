"""What does the engine ask of a store?

The values that pass between them, and the protocols that SQLite, PostgreSQL and Qdrant answer. The engine, the spine
and the backlog know a store by this file alone; ``tests/contract/`` holds every store to the same behaviour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from trivet.errors import SnapshotLostError
from trivet.twins import quick
from trivet.types import Document, Facet, Feedback, Link, Passage, Period, Resolutions, Successions

if TYPE_CHECKING:
    from trivet.analysis import Analyzer, ParsedQuery
    from trivet.filters import Filter
    from trivet.types import Vector

Found = tuple[float, int, int]  # score, passage, document
Span = tuple[int, int, int, int]  # document, ordinal, start, stop
Text = tuple[int, int, str, str]  # passage, document, title, text
Progress = Callable[[int, int], None]
Steps = Callable[[str, int, int], None]  # what is being done, how much of it is done, of how much
Answer = TypeVar("Answer")

LOST_TRIES = 3  # readings of one state, where the server hangs up in the middle of each

_passage = quick(Passage)


@dataclass(frozen=True, slots=True)
class Model:
    mid: int
    id: str
    spec: str
    dim: int
    vectors: int


@dataclass(frozen=True, slots=True)
class State:
    """What a search reads first, in one look-up: is there news, what are the settings, which model answers?"""

    version: int
    settings: str
    documents: int
    passages: int
    model: Model | None
    token: bytes = b""  # of this version: a restored store gives the version again, but never the token

    @property
    def pending(self) -> int:
        """Passages the model has not embedded yet."""
        return self.passages - self.model.vectors if self.model else 0


@dataclass(frozen=True, slots=True)
class Counts:
    """How much of a collection a filter allows."""

    documents: int
    passages: int
    embedded: int  # passages that have a vector of the model that answers
    links: int


@dataclass(frozen=True, slots=True)
class Prepared:
    """A checked document, cut and hashed, ready to be written."""

    document: Document
    hash: bytes
    passages: tuple[tuple[int, int, int, bytes], ...]  # ordinal, start, stop, hash
    meta: str
    links: tuple[Link, ...] | None = None  # None: not said, those that are there stay
    vector: bytes | None = None


@dataclass(frozen=True, slots=True)
class Written:
    added: int
    updated: int
    unchanged: int
    pids: tuple[int, ...] = ()  # new passages

    def __add__(self, other: Written) -> Written:
        return Written(
            self.added + other.added,
            self.updated + other.updated,
            self.unchanged + other.unchanged,
            self.pids + other.pids,
        )


@dataclass(frozen=True, slots=True)
class Change:
    """One change of the settings, its profiles as they are stored."""

    number: int
    at: datetime
    by: str
    settings: str
    previous: str


@dataclass(frozen=True, slots=True)
class KeyRow:
    """An API key as it is kept: the secret is not, only its hash."""

    id: str
    name: str
    hash: bytes
    scope: str
    collections: str  # JSON: the names it is bound to, [] for all
    created: float
    revoked: float | None = None
    filter: str | None = None  # JSON: the documents it is bound to; None for all


def read_again(work: Callable[[], Answer]) -> Answer:
    """Return what ``work`` reads; call it again where the server hung up in the middle of its snapshot."""
    for _ in range(LOST_TRIES - 1):
        with suppress(SnapshotLostError):
            return work()
    return work()


def passage_of(document: Document, span: Span | None) -> Passage:
    """The text is kept once, with the document; a passage is where in it."""
    if span is None:  # its document was rewritten between ranking and fetching
        return _passage(0, 0, len(document.text), document.text)
    _, ordinal, start, stop = span
    return _passage(ordinal, start, stop, document.text[start:stop])


class Scope(Protocol):
    """Which documents a question may see: a filter and the excluded ids, in the store's own form."""

    def __contains__(self, did: int, /) -> bool: ...

    def expect(self, dids: Iterable[int]) -> None:
        """These will be asked after one by one: a store that has to look them up does it once."""


class Rechecked:
    """A scope that looks its documents up in the state that is read, each once."""

    def __init__(self, allowed: Callable[[Sequence[int]], set[int]], left_out: frozenset[int]) -> None:
        """``allowed`` tells which of some documents the filter allows."""
        self._allowed, self._left_out = allowed, left_out
        self._known: dict[int, bool] = {}

    def expect(self, dids: Iterable[int]) -> None:
        wanted = [did for did in dict.fromkeys(dids) if did not in self._known]
        if wanted:
            found = self._allowed(wanted)
            self._known.update((did, did in found and did not in self._left_out) for did in wanted)

    def __contains__(self, did: int) -> bool:
        self.expect([did])
        return self._known[did]


class Proposing(Protocol):
    """A store that proposes passages for the trigram leg to compare."""

    def find_trigrams(self, terms: Sequence[str], depth: int, scope: Any, version: int) -> list[Found]: ...
    def passage_texts(self, pids: Sequence[int]) -> dict[int, str]: ...


@runtime_checkable
class Scoring(Protocol):
    """A store whose server compares spellings itself."""

    def find_alike(
        self, keywords: str, threshold: float, depth: int, scope: Any, version: int
    ) -> tuple[list[Found], tuple[str, ...]]: ...


class Follower(Protocol):
    """Somebody else who indexes what is being written."""

    def end(self) -> None:
        """Say that everything is written."""

    def finish(self) -> str:
        """Say so, and wait until everything that is stored is in the index; what went wrong, or nothing."""

    def stop(self) -> None:
        """End it at once."""


@runtime_checkable
class Following(Protocol):
    """A collection whose index another process can advance while this one writes."""

    def follower(self) -> Follower | None:
        """None: there is no core to spare. ``OSError``: it cannot be started."""

    def tidy_vectors(self) -> None:
        """Bring the snapshot of the vectors up to date: what is left to do here meanwhile."""


@runtime_checkable
class Locking(Protocol):
    """A collection whose indexes are files, which one process at a time may write."""

    def check_locks(self) -> None:
        """``StoreError`` where a process that is stopped holds a lock: no index can be built now."""


@runtime_checkable
class Receiving(Protocol):
    """A collection that knows which imports would change nothing (``trivet.receipts``)."""

    def mark(self) -> tuple[int, int]: ...
    def receipt(self, key: str) -> dict[str, Any] | None: ...
    def keep_receipt(self, key: str, told: Mapping[str, Any], since: tuple[int, int], writes: int) -> None: ...


class Shelf(Protocol):
    """One collection. Safe to use from many threads.

    What reads text or counts something for a caller takes the caller's filter as ``where``, and what changes something
    for one takes it as ``within``: outside of it nothing is seen, changed or known to exist. ``scoped.py`` holds an
    engine that is bound to a filter to that. A document whose time has passed (``expires``) is seen by no reader, also
    where there is no filter.
    """

    @property
    def name(self) -> str: ...
    @property
    def config(self) -> Mapping[str, Any]: ...
    @property
    def analyzer(self) -> Analyzer: ...
    @property
    def store(self) -> Store: ...
    @property
    def read_only(self) -> bool: ...

    swept: Callable[[list[int]], None]  # told the row numbers of documents that a sweep has forgotten

    # state, settings and models
    def snapshot(self) -> AbstractContextManager[None]:
        """Let this thread read one state of the collection until the block ends, whatever is written meanwhile."""

    def state(self) -> State: ...
    def knows_version(self, version: int, token: bytes) -> bool:
        """Tell whether this state, of what was made elsewhere from this collection, is in the collection's past."""

    def counts(self, where: Filter | None = None) -> Counts: ...
    def change_settings(self, change: Callable[[str], str], by: str = "") -> str: ...
    def settings_history(self, limit: int) -> Sequence[Change]: ...
    def settings_change(self, number: int) -> Change | None: ...
    def add_model(self, identifier: str, spec: str, dim: int, answers: bool) -> Model: ...
    def model_id(self, mid: int) -> str: ...
    def forget_other_models(self, mid: int) -> None: ...

    # records
    def write(self, batch: Sequence[Prepared], mid: int | None, within: Filter | None = None) -> Written: ...
    def remember(
        self,
        item: Prepared,
        mid: int | None,
        same: Callable[[Document], bool],
        likely: Sequence[int],
        named: bool,
        importance: Callable[[float], float],
        within: Filter | None = None,
    ) -> tuple[str, Written | None]: ...
    def amend(
        self,
        identifier: str,
        mid: int | None,
        change: Callable[[Document], Prepared],
        within: Filter | None = None,
    ) -> Written: ...
    def remove(self, where: Filter, judged: bool = False) -> list[int]:
        """Delete what the filter allows, in one transaction; the row numbers of what there was.

        ``judged``: with the feedback on it, which otherwise stays, because the id may come back.
        """

    def sweep(self) -> list[int]:
        """Remove the documents whose time has passed, feedback and all; the row numbers of what there was."""

    def link(self, links: Sequence[Link], within: Filter | None = None) -> None:
        """Connect documents that are here; ``NotFoundError`` names one that is not."""

    def unlink(self, source: str, target: str, kind: str | None, within: Filter | None = None) -> int: ...
    def links_of(self, identifier: str | None = None, where: Filter | None = None) -> list[Link]: ...
    def touch(self, ids: Sequence[str], within: Filter | None = None) -> int: ...
    def judge(self, given: Feedback, within: Filter | None = None) -> None: ...
    def restore_feedback(self, given: Sequence[Feedback], within: Filter | None = None) -> int: ...
    def forget_feedback(self, query: str | None, identifier: str | None, within: Filter | None = None) -> int: ...
    def feedbacks(self, where: Filter | None = None) -> list[Feedback]: ...

    # reading
    def dids(self, ids: Sequence[str]) -> dict[str, int]: ...
    def fetch(self, dids: Sequence[int]) -> dict[int, Document]: ...
    def fetch_spans(self, pids: Sequence[int]) -> dict[int, Span]: ...
    def hashes(self, pids: Sequence[int]) -> dict[int, tuple[int, bytes]]:
        """Map the number of each passage that is here to its document's, and to the hash of its text."""

    def first_passages(self, dids: Sequence[int]) -> dict[int, Span]: ...
    def documents(self, where: Filter | None = None) -> Iterator[Document]: ...
    def page(self, where: Filter | None, after: int, limit: int) -> list[tuple[int, Document]]: ...
    def facets(self, where: Filter | None, values: int, most: int) -> list[Facet]: ...
    def timeline(self, where: Filter | None, column: str, step: str | None) -> tuple[str, list[Period]]: ...
    def superseded(
        self, ids: Sequence[str] | None, limit: int, where: Filter | None = None
    ) -> list[tuple[str, str]]: ...
    def texts(self, limit: int, where: Filter | None = None) -> list[tuple[str, str]]: ...
    def fields(self, where: Filter | None = None) -> list[str]:
        """The keys of the metadata that any document the filter allows has."""

    # filters and links that change recall
    def check_fields(self, where: Filter, within: Filter | None = None) -> None:
        """Refuse a field that no document has; where there is a ``within``, that none within it has."""

    def scope(
        self, where: Filter | None, exclude: Sequence[str], version: int, within: Filter | None = None
    ) -> Scope | None:
        """What every leg applies; None when everything may answer. ``within`` is the filter that the caller is bound
        to: the fields of ``where`` must be known within it, and its own need not be known at all."""

    def recheck(self, where: Filter | None, exclude: Sequence[str]) -> Scope | None:
        """The same, looked up document by document in the state of the snapshot: what was ranked may have changed."""

    def only(self, did: int) -> Scope: ...
    def has_chains(self, version: int) -> bool: ...
    def successors(self, dids: Sequence[int]) -> Successions: ...
    def resolutions(self, dids: Sequence[int]) -> Resolutions: ...

    # finding: what the legs ask
    def find_words(
        self, query: ParsedQuery, match: str, depth: int, scope: Any, version: int
    ) -> tuple[list[Found], float, tuple[str, ...]]: ...
    @property
    def spelling(self) -> Proposing | Scoring: ...
    def find_near(self, vector: Vector, model: Model, depth: int, scope: Any, version: int) -> list[Found]: ...
    def is_current(self, leg: str, state: State) -> bool: ...

    # embedding
    def unembedded(self, mid: int) -> int: ...
    def next_pending(self, mid: int, after: int, limit: int) -> list[Text]: ...
    def known_vectors(self, mid: int, pids: Sequence[int] | None = None) -> list[tuple[int, bytes]]: ...
    def add_vectors(self, mid: int, vectors: Sequence[tuple[int, bytes]]) -> None: ...
    def sole_vectors(self, mid: int, dids: Sequence[int]) -> dict[int, bytes]: ...
    def passages_of(self, dids: Sequence[int]) -> list[tuple[int, int, int, int, int, bytes]]:
        """(pid, did, ordinal, start, stop, hash) of these documents' passages, in order."""

    def vectors_of(self, mid: int, dids: Sequence[int]) -> dict[int, dict[bytes, bytes]]: ...
    def embedding(self) -> AbstractContextManager[bool]: ...

    # care
    def tidy(self, progress: Progress | None = None, graph: bool = False) -> None: ...
    def read_connections(self) -> None:
        """Bring the graph up to date in the background, where there is one."""

    def tidy_words(self, progress: Progress | None = None) -> None: ...
    def compact(self, progress: Progress | None = None) -> int:
        """Make the indexes anew without what was removed, and prune the log of removals; how many rows it had."""

    def verify(self, progress: Steps | None = None) -> tuple[list[str], dict[str, int]]: ...
    def discard_projections(self) -> None: ...


class KeyTable(Protocol):
    """Where the API keys of a store are kept; ``trivet.keys`` knows what they mean."""

    def add(self, row: KeyRow) -> None: ...
    def rows(self) -> list[KeyRow]: ...
    def find(self, identifier: str) -> KeyRow | None: ...
    def revoke(self, identifier: str, at: float) -> None: ...
    def any(self) -> bool: ...
    def any_in_use(self) -> bool: ...
    def close(self) -> None: ...


@runtime_checkable
class Copying(Protocol):
    """A store that can copy itself, all of one moment, while it is used."""

    def backup(self, target: Path, progress: Progress | None = None) -> int: ...


class Store(Protocol):
    """Where collections are kept."""

    @property
    def path(self) -> Any:
        """What a person knows it by; never a password."""

    @property
    def url(self) -> str:
        """What opens it again."""

    def shelf(self, name: str, config: Mapping[str, Any], settings: str) -> Shelf:
        """The collection of that name, made if it is new; ``config`` is what was asked for, None where nothing was."""

    def names(self) -> list[str]: ...
    def drop(self, name: str) -> None: ...
    def problems(self) -> list[str]: ...
    def sizes(self) -> tuple[int, int]:
        """Bytes of the truth, and of what can be made from it again."""

    def cursor_key(self) -> bytes:
        """Random bytes of this store that no caller is told: row numbers are masked with them (``cursors.py``)."""

    def reclaim(self) -> None:
        """Give the space of what was deleted back, as far as the store can."""

    def files(self) -> set[Path]:
        """Files that are its own, none on a server: nothing else may be written there."""

    def close(self) -> None: ...
