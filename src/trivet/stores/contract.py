"""The store contract: the protocols that every store implements, and the values that pass through them.

A ``Store`` has collections. A ``Collection`` has parts: documents, links, feedback, settings, filters, a lexical, a
trigram, a vector and a graph index, maintenance, an import log. The engine knows a store by this file alone, and
``tests/contract/`` runs the same tests over every store. How to add one: docs/how-to/add-a-store.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from trivet.errors import SnapshotLostError
from trivet.frozen import quick
from trivet.types import (
    Document,
    Facet,
    Feedback,
    Link,
    Passage,
    Period,
    Progress,
    Resolutions,
    StepProgress,
    Successions,
)

if TYPE_CHECKING:
    from trivet.filters import Filter
    from trivet.text.analysis import Analyzer, ParsedQuery
    from trivet.types import Vector

Found = tuple[float, int, int]  # score, passage, document
Span = tuple[int, int, int, int]  # document, ordinal, start, stop
Adjacent = dict[int, tuple[int | None, int | None]]  # document → the one before and the one after it in its session
Text = tuple[int, int, str, str]  # passage, document, title, text
Answer = TypeVar("Answer")

LOST_TRIES = 3  # attempts to read one snapshot when the server drops the connection

_passage = quick(Passage)


@dataclass(frozen=True, slots=True)
class Model:
    """An embedding model of a collection, and how many of its vectors are stored."""

    mid: int
    id: str
    spec: str
    dim: int
    vectors: int


@dataclass(frozen=True, slots=True)
class State:
    """What a search reads first, in one look-up: the version, the settings, the counts and the model."""

    version: int
    settings: str
    documents: int
    passages: int
    model: Model | None
    token: bytes = b""  # random, one for each version: a restored store repeats the number, but never the token

    @property
    def pending(self) -> int:
        """Passages without a vector of the model."""
        return self.passages - self.model.vectors if self.model else 0


@dataclass(frozen=True, slots=True)
class Counts:
    """The size of what a filter allows."""

    documents: int
    passages: int
    embedded: int  # passages that have a vector of the model that answers
    links: int


@dataclass(frozen=True, slots=True)
class Prepared:
    """A validated document, cut into passages and hashed, ready to be written."""

    document: Document
    hash: bytes
    passages: tuple[tuple[int, int, int, bytes], ...]  # ordinal, start, stop, hash
    meta: str
    links: tuple[Link, ...] | None = None  # None: keep those that are there
    vector: bytes | None = None
    vectors: Mapping[bytes, bytes] = field(default_factory=dict)  # of its passages, by hash: the engine stores them


@dataclass(frozen=True, slots=True)
class Written:
    """What a write did."""

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
    """One change of the settings; profiles as JSON."""

    number: int
    at: datetime
    by: str
    settings: str
    previous: str


@dataclass(frozen=True, slots=True)
class KeyRow:
    """An API key as it is stored: the hash, never the secret."""

    id: str
    name: str
    hash: bytes
    scope: str
    collections: str  # JSON list of names; [] is all
    created: float
    revoked: float | None = None
    filter: str | None = None  # JSON of the filter that it is bound to; None is all documents


def read_again(work: Callable[[], Answer]) -> Answer:
    """Return what ``work`` reads; repeat it when the server dropped the connection in its snapshot."""
    for _ in range(LOST_TRIES - 1):
        with suppress(SnapshotLostError):
            return work()
    return work()


def passage_of(document: Document, span: Span | None) -> Passage:
    """Cut a passage out of its document; the whole text where the span is unknown."""
    if span is None:  # the document was rewritten between ranking and fetching
        return _passage(0, 0, len(document.text), document.text)
    _, ordinal, start, stop = span
    return _passage(ordinal, start, stop, document.text[start:stop])


class Scope(Protocol):
    """The documents that a query may see: a filter and the excluded ids, in the store's own form."""

    def __contains__(self, did: int, /) -> bool:
        """Tell whether the document with this number may be seen."""

    def expect(self, dids: Iterable[int]) -> None:
        """Announce documents that will be asked about one by one, so that a store can look them up at once."""


class LegScope(Scope, Protocol):
    """A scope that the legs apply to whole arrays."""

    def rows(self, dids: Any) -> Any:
        """Return a boolean array: which of an array of document numbers may be seen."""


class Rechecked:
    """A scope that looks each document up once, in the current snapshot."""

    def __init__(self, allowed: Callable[[Sequence[int]], set[int]], left_out: frozenset[int]) -> None:
        """``allowed`` returns those of some documents that the filter allows."""
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


class Documents(Protocol):
    """The documents of a collection and their passages.

    A document has a number (``did``) and a passage has one (``pid``); numbers only grow and are never used twice.
    """

    swept: Callable[[list[int]], None]  # called with the numbers of the documents that a sweep has removed

    def write(self, batch: Sequence[Prepared], mid: int | None, within: Filter | None = None) -> Written:
        """Add or replace documents, in one transaction; ``mid`` is the model of the vectors that came with them."""

    def remember(
        self,
        item: Prepared,
        mid: int | None,
        same: Callable[[Document], bool],
        likely: Sequence[int],
        named: bool,
        importance: Callable[[float], float],
        within: Filter | None = None,
    ) -> tuple[str, Written | None]:
        """Add a document, or reinforce one that is ``same``, in one transaction; return its id and what was written.

        ``likely`` are numbers of documents to compare besides those with the same hash. ``named``: the id is the
        caller's, and a document of that id that is not ``same`` is replaced. ``importance`` gives the new importance
        of the one that is reinforced; then nothing was written and None is returned.
        """

    def amend(
        self, id: str, mid: int | None, change: Callable[[Document], Prepared], within: Filter | None = None
    ) -> Written:
        """Replace a document by ``change(document)`` in one transaction; ``NotFoundError`` where there is none."""

    def remove(self, where: Filter, feedback: bool = False) -> list[int]:
        """Delete what the filter allows, in one transaction; return the numbers of what was deleted.

        ``feedback``: delete the feedback on it too. Otherwise it stays, because the id may come back.
        """

    def sweep(self) -> list[int]:
        """Remove expired documents with their feedback; return their numbers."""

    def touch(self, ids: Sequence[str], within: Filter | None = None) -> int:
        """Count an access of these documents, with its time; return how many there were."""

    def numbers(self, ids: Sequence[str]) -> dict[str, int]:
        """Map the ids that exist to the numbers of their documents."""

    def fetch(self, dids: Sequence[int]) -> dict[int, Document]:
        """Read documents by number."""

    def spans(self, pids: Sequence[int]) -> dict[int, Span]:
        """Map passages that exist to (document, ordinal, start, stop)."""

    def first_spans(self, dids: Sequence[int]) -> dict[int, Span]:
        """Map documents to the span of their first passage."""

    def hashes(self, pids: Sequence[int]) -> dict[int, tuple[int, bytes]]:
        """Map passages that exist to the number of their document and the hash of their text."""

    def passages(self, dids: Sequence[int]) -> list[tuple[int, int, int, int, int, bytes]]:
        """Return (pid, did, ordinal, start, stop, hash) of the passages of these documents, in order."""

    def scan(self, where: Filter | None = None) -> Iterator[Document]:
        """Read every document that the filter allows, in the order of their numbers."""

    def page(self, where: Filter | None, after: int, limit: int) -> list[tuple[int, Document]]:
        """Read up to ``limit`` documents whose numbers come after ``after``, with their numbers, in order."""

    def texts(self, limit: int, where: Filter | None = None) -> list[tuple[str, str]]:
        """Return (id, text) of up to ``limit`` documents that have a text, the oldest first."""

    def counts(self, where: Filter | None = None) -> Counts:
        """Count the documents, passages, vectors and links that the filter allows."""

    def fields(self, where: Filter | None = None) -> list[str]:
        """Return the metadata keys of the documents that the filter allows."""

    def facets(self, where: Filter | None, values: int, most: int) -> list[Facet]:
        """Count the commonest values of the kind and of up to ``most`` metadata keys."""

    def timeline(self, where: Filter | None, column: str, step: str | None) -> tuple[str, list[Period]]:
        """Count documents by day, month or year of a time column; None picks the step. Return the step and counts."""

    def order_of(self, did: int) -> int:
        """Return a number that grows with the time a document was first added."""

    def adjacent(self, dids: Sequence[int], version: int) -> Adjacent | None:
        """Map documents to the turns before and after them in their session, in the order of adding.

        The rules are in ``trivet.text.conversation``: documents of different owners are in different sessions. A
        neighbour is None where the session ends, and where the turn there is an assistant's. Documents that have
        neither are left out; the result is None where no document of the collection is in a session in this version.
        """


class Links(Protocol):
    """Links between documents, by id. ``supersedes`` and ``resolved-by`` links change what a search shows."""

    def add(self, links: Sequence[Link], within: Filter | None = None) -> None:
        """Add links between documents that exist; ``NotFoundError`` names one that does not."""

    def remove(self, source: str, target: str, kind: str | None, within: Filter | None = None) -> int:
        """Remove the links from one document to another, of one type or of all; return how many there were."""

    def of(self, id: str | None = None, where: Filter | None = None) -> list[Link]:
        """Return the links from and to a document, or all; only those between documents that the filter allows."""

    def superseded(self, ids: Sequence[str] | None, limit: int, where: Filter | None = None) -> list[tuple[str, str]]:
        """Return (id, id of the document that supersedes it), of these ids or of all."""

    def any_followed(self) -> bool:
        """Tell whether there is any link that a search follows."""

    def successors(self, dids: Sequence[int]) -> Successions:
        """Follow the chains of superseding documents that begin at these."""

    def resolutions(self, dids: Sequence[int]) -> Resolutions:
        """Find the documents that resolve these."""


class FeedbackLog(Protocol):
    """Judgements of hits: was this document a good answer to that query."""

    def add(self, given: Feedback, within: Filter | None = None) -> None:
        """Record a judgement in place of an earlier one; ``NotFoundError`` where there is no such document."""

    def restore(self, given: Sequence[Feedback], within: Filter | None = None) -> int:
        """Take over judgements with their times; return how many were new."""

    def remove(self, query: str | None, id: str | None, within: Filter | None = None) -> int:
        """Delete the judgements on a query, a document, or both; return how many there were."""

    def read(self, where: Filter | None = None) -> list[Feedback]:
        """Return all judgements in order of time, also those on documents that were deleted."""


class SettingsLog(Protocol):
    """The settings of a collection, and who changed them."""

    def change(self, change: Callable[[str], str], by: str = "") -> str:
        """Replace the settings by ``change(current)`` in one transaction; return the new ones."""

    def history(self, limit: int) -> Sequence[Change]:
        """Return the last changes, the latest first."""

    def find(self, number: int) -> Change | None:
        """Return one change by its number, if it is still kept."""


class Filters(Protocol):
    """Filters in the form that the indexes of the store apply."""

    def check_fields(self, where: Filter, within: Filter | None = None) -> None:
        """Refuse a field that no document has; with ``within``, that no document within it has."""

    def scope(
        self, where: Filter | None, exclude: Sequence[str], version: int, within: Filter | None = None
    ) -> LegScope | None:
        """Return what every leg applies; None when every document may be seen.

        ``within`` is the filter of a bound caller. Every field of ``where`` must occur in a document within it.
        """

    def recheck(self, where: Filter | None, exclude: Sequence[str]) -> Scope | None:
        """Return the same scope looked up document by document in the current snapshot: rankings may be older."""

    def only(self, did: int) -> LegScope:
        """Return the scope of one document."""


class LexicalIndex(Protocol):
    """Terms of the passages, ranked by BM25."""

    def search(
        self, query: ParsedQuery, match: str, depth: int, scope: Any, version: int
    ) -> tuple[list[Found], float, tuple[str, ...]]:
        """Return the best passage of each document, the score of a perfect match, and notes for the trace."""

    def positions(self, pids: Sequence[int], terms: Iterable[str]) -> Mapping[int, Any]:
        """Map passages to the terms in their title and the positions of each term in their text.

        A passage that is not in the result is one whose positions are not kept: the caller reads its text.
        """

    def is_current(self, state: State) -> bool:
        """Tell whether the index is up to date, or nearly: a search only has to read it."""


class TrigramIndex(Protocol):
    """Trigrams of the passages, ranked by the word similarity of pg_trgm."""

    def search(
        self, keywords: str, threshold: float, depth: int, scope: Any, version: int
    ) -> tuple[list[Found], tuple[str, ...]]:
        """Return documents with at least this word similarity to the keywords, and notes for the trace."""

    def is_current(self, state: State) -> bool:
        """Tell whether the index is up to date, or nearly: a search only has to read it."""


class VectorIndex(Protocol):
    """Vectors of the passages, by model; the model that searches use is in ``State``."""

    def search(self, vector: Vector, model: Model, depth: int, scope: Any, version: int) -> list[Found]:
        """Return the passages nearest by cosine, one for each document."""

    def is_current(self, state: State) -> bool:
        """Tell whether the index is up to date, or nearly: a search only has to read it."""

    def add_model(self, id: str, spec: str, dim: int, answers: bool) -> Model:
        """Register a model; ``answers`` makes it the model of the collection."""

    def model_id(self, mid: int) -> str:
        """Return the id of a registered model, or an empty text."""

    def remove_other_models(self, mid: int) -> None:
        """Delete every model but this one, with its vectors."""

    def missing(self, mid: int) -> int:
        """Count the passages without a vector of this model."""

    def next_missing(self, mid: int, after: int, limit: int) -> list[Text]:
        """Return (pid, did, title, text) of passages after ``after`` without a vector of this model."""

    def known(self, mid: int, pids: Sequence[int] | None = None) -> list[tuple[int, bytes]]:
        """Return (pid, vector) for passages without a vector, copied from another passage with the same text."""

    def add(self, mid: int, vectors: Sequence[tuple[int, bytes]]) -> None:
        """Store vectors as (pid, little-endian float32 bytes)."""

    def of_documents(self, mid: int, dids: Sequence[int]) -> dict[int, bytes]:
        """Map documents of one passage to its vector."""

    def by_hash(self, mid: int, dids: Sequence[int]) -> dict[int, dict[bytes, bytes]]:
        """Map documents to the vectors of their passages, by the hash of the passage."""

    def embedding_lock(self) -> AbstractContextManager[bool]:
        """Take the right to embed missing passages; gives False where another process has it."""


class GraphIndex(Protocol):
    """Mentions of concepts in documents, and the edges between documents."""

    def mentions(self, version: int) -> Any:
        """Return the mentions up to this version (``trivet.graph.mentions.Graph``)."""

    def edges(self, dids: Sequence[int], version: int, sessions: bool = True) -> list[Any]:
        """Return the edges of these documents (``trivet.graph.walk.Edge``): links, shared values, sessions."""

    def is_current(self, state: State) -> bool:
        """Tell whether the index is up to date, or nearly: a search only has to read it."""

    def update_in_background(self) -> None:
        """Bring the index up to date in a thread of the store."""


class Indexer(Protocol):
    """A second process that indexes passages while this one writes them."""

    def end(self) -> None:
        """Say that everything is written."""

    def finish(self) -> str:
        """Wait until everything written is indexed; return what went wrong, or an empty text."""

    def stop(self) -> None:
        """End the process now."""


class Maintenance(Protocol):
    """Updates, checks and repairs of the indexes."""

    def update(self, progress: Progress | None = None, graph: bool = False, vectors: bool = True) -> None:
        """Bring the indexes up to date now, so that no search has to; the graph where asked for or in use.

        Without ``vectors``, all but the vector index: a store that keeps vectors elsewhere uses this one for the rest.
        """

    def update_lexical(self, progress: Progress | None = None) -> None:
        """Bring the lexical index up to date now."""

    def update_vectors(self) -> None:
        """Bring the vector index up to date now."""

    def indexer(self) -> Indexer | None:
        """Start a process that indexes meanwhile; None where the store needs none. ``OSError`` where it fails."""

    def check_locks(self) -> None:
        """Raise ``StoreError`` where a stopped process holds a lock, so that no index can be written."""

    def compact(self, progress: Progress | None = None) -> int:
        """Rewrite the indexes without removed passages and prune the log of removals; return its length."""

    def verify(self, progress: StepProgress | None = None) -> tuple[list[str], dict[str, int]]:
        """Compare the indexes with the records; return the problems, and how many of each thing were compared."""

    def discard(self) -> None:
        """Delete every index; the next search builds them again."""


class ImportLog(Protocol):
    """Imports that would change nothing if they were repeated (``trivet.stores.import_log``)."""

    def mark(self) -> tuple[int, int]:
        """Return a mark of this moment, for ``keep``."""

    def find(self, key: str) -> dict[str, Any] | None:
        """Return what was kept for an import, if the collection has not changed since."""

    def keep(self, key: str, value: Mapping[str, Any], since: tuple[int, int], writes: int) -> None:
        """Keep a value for an import, unless somebody else wrote since the mark.

        ``writes`` is how many writes the import itself has made since then.
        """


class Collection(Protocol):
    """One collection of a store. Safe to use from many threads.

    Methods that read text or counts for a caller take the caller's filter as ``where``; methods that change something
    take it as ``within``. Outside of it nothing is seen, changed or known to exist. Expired documents are seen by no
    reader, with or without a filter.
    """

    @property
    def name(self) -> str:
        """Its name within the store."""

    @property
    def config(self) -> Mapping[str, Any]:
        """What it was created with: language, passage size."""

    @property
    def analyzer(self) -> Analyzer:
        """The analyser of its language."""

    @property
    def store(self) -> Store:
        """The store it is in."""

    @property
    def read_only(self) -> bool:
        """Whether the store was opened for reading only."""

    @property
    def bound(self) -> Filter | None:
        """The filter that this view of the collection is bound to; None for the whole collection."""

    @property
    def documents(self) -> Documents: ...
    @property
    def links(self) -> Links: ...
    @property
    def feedback(self) -> FeedbackLog: ...
    @property
    def settings(self) -> SettingsLog: ...
    @property
    def filters(self) -> Filters: ...
    @property
    def lexical(self) -> LexicalIndex: ...
    @property
    def trigrams(self) -> TrigramIndex: ...
    @property
    def vectors(self) -> VectorIndex: ...
    @property
    def graph(self) -> GraphIndex | None:
        """The graph index; None where the store has none."""

    @property
    def maintenance(self) -> Maintenance: ...
    @property
    def imports(self) -> ImportLog | None:
        """The import log; None where the store has none."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Let this thread read one state of the collection until the block ends, whatever is written meanwhile."""

    def state(self) -> State:
        """Read the version, the settings, the counts and the model."""

    def knows_version(self, version: int, token: bytes) -> bool:
        """Tell whether this version is in the collection's past: one of a restored backup may not be."""

    def searching(self) -> AbstractContextManager[None]:
        """Mark a running search, so that work in the background gives way to it."""


class KeyTable(Protocol):
    """The API keys of a store; ``trivet.engine.keys`` knows what they mean."""

    def add(self, row: KeyRow) -> None:
        """Add a key."""

    def rows(self) -> list[KeyRow]:
        """Return all keys, revoked ones too."""

    def find(self, id: str) -> KeyRow | None:
        """Return one key by its id."""

    def revoke(self, id: str, at: float) -> None:
        """Mark a key as revoked."""

    def any(self) -> bool:
        """Tell whether there ever was a key: then nobody is let in without one."""

    def any_in_use(self) -> bool:
        """Tell whether there is a key that is not revoked."""

    def close(self) -> None:
        """Close the connection."""


class Store(Protocol):
    """The collections at one address."""

    @property
    def path(self) -> Any:
        """The address as it may be shown, without a password."""

    @property
    def url(self) -> str:
        """The address that opens it again."""

    def collection(self, name: str, config: Mapping[str, Any], settings: str) -> Collection:
        """Return the collection of that name, created if it is new; None in ``config`` means not given."""

    def names(self) -> list[str]:
        """Return the names of its collections."""

    def drop(self, name: str) -> None:
        """Delete a collection with everything in it."""

    def problems(self) -> list[str]:
        """Check the records; return what is damaged."""

    def sizes(self) -> tuple[int, int]:
        """Return the bytes of the records and of the indexes."""

    def space(self) -> dict[str, int]:
        """Return what these bytes are for, by part; it may read the whole store."""

    def cursor_key(self) -> bytes:
        """Return random bytes of this store, never shown, that mask document numbers (``engine/cursors.py``)."""

    def reclaim(self) -> None:
        """Give the space of deleted documents back, as far as the store can."""

    def files(self) -> set[Path]:
        """Return the files that belong to it, none on a server; nothing else may be written there."""

    def backup(self, target: Path, progress: Progress | None = None) -> int:
        """Copy the store as it is now to a file while it is used; return its bytes.

        A server raises ``InputError``: it has its own backups.
        """

    def redistribute(self, name: str, by: str) -> bool:
        """Divide a collection between the workers of a cluster by its ``documents``, or not (``collections``).

        Return False where it is so already. Other stores than PostgreSQL raise ``InputError``.
        """

    def close(self) -> None:
        """Close it, after the threads that work for it have ended."""
