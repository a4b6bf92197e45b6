"""What are the nouns?

Frozen values that flow forward through one query: legs give ``Ranking``s, fusion turns them into ``Candidate``s, the
engine fetches their documents and hands ``Hit``s to the rerankers. Ids flow, text waits: legs and fusion see keys only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from trivet.filters import Filter
    from trivet.profile import Profile
    from trivet.understanding.understood import Understood

    Vector = npt.NDArray[np.float32]

#: What legs and fusion know a document by: a row number in the embedded store, an id in a server.
Key = int | str


@dataclass(frozen=True, slots=True)
class Document:
    """A memory, an episode, a snippet: one record, told apart by its ``kind``."""

    id: str
    text: str
    title: str = ""
    kind: str = "note"
    meta: Mapping[str, Any] = field(default_factory=dict)
    importance: float = 0.5
    created: datetime | None = None
    updated: datetime | None = None
    accessed: datetime | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    accesses: int = 0  # how often it was recalled, as far as ``touch`` was told
    expires: datetime | None = None  # from this moment on nobody sees it, and the next sweep forgets it


@dataclass(frozen=True, slots=True)
class Passage:
    """The span of a document that a leg ranks; a short document is its own single passage."""

    ordinal: int
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """A typed edge from one document to another."""

    source: str
    target: str
    type: str = "see-also"
    weight: float = 1.0


#: The types of link that change what a search shows; others are the caller's own.
SUPERSEDES, RESOLVED_BY = "supersedes", "resolved-by"


@dataclass(frozen=True, slots=True)
class Succession:
    """One document directly supersedes another, as a store knows them."""

    old: Key
    old_id: str
    new: Key
    new_id: str
    created: float  # the newer one's, in epoch seconds


@dataclass(frozen=True, slots=True)
class Successions:
    """Who directly supersedes whom; ``cut`` says why there are more that were not read, and is empty otherwise."""

    found: tuple[Succession, ...] = ()
    cut: str = ""


@dataclass(frozen=True, slots=True)
class Resolutions:
    """Document → (key, id) of what resolves it, by id; ``cut`` as in ``Successions``."""

    found: Mapping[int, Sequence[tuple[int, str]]]
    cut: str = ""


@dataclass(frozen=True, slots=True)
class Feedback:
    """Was this document a good answer to this question? One verdict a question and document: the latest."""

    query: str
    id: str
    good: bool
    at: datetime


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked, under which filter, and when. No limit in it: that is the profile's."""

    text: str
    where: Filter | None = None
    at: datetime | None = None
    understood: Understood | None = None  # what was made of the text, where the profile asks for it
    terms: Callable[[str], Sequence[str]] | None = field(default=None, compare=False, repr=False)  # the analyser's


@dataclass(frozen=True, slots=True)
class Ranking:
    """One leg's best-first list. Keys are unique, ranks are 1-based, higher is better.

    ``floor`` is the scorer's guaranteed minimum (TM2C2 normalises by it), ``unrelated`` the score of a text that has
    nothing to do with the query and ``ceiling`` that of a perfect match: the last two turn a raw score into an
    absolute strength in [0, 1]. ``at_home`` is false where the leg answers a question it was not made for, such as an
    English model one in Chinese: its list is better than none and worth little beside another.
    """

    leg: str
    keys: tuple[Key, ...] = ()
    scores: tuple[float, ...] = ()
    passages: tuple[int, ...] = ()
    floor: float = 0.0
    unrelated: float = 0.0
    ceiling: float = 1.0
    notes: tuple[str, ...] = ()
    at_home: bool = True
    #: For each key of a walk: a document, how it is connected, the next one … down to the key itself.
    paths: tuple[tuple[Key, ...], ...] = ()
    _places: dict[Key, int] | None = field(default=None, init=False, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.keys)

    def places(self) -> dict[Key, int]:
        """Where does each key stand? Counted from 0; made once, for fusion, page and relevance all ask."""
        if self._places is None:
            object.__setattr__(self, "_places", dict(zip(self.keys, range(len(self.keys)), strict=True)))
        return self._places or {}

    def strength(self, score: float) -> float:
        """How strong is this raw score on an absolute scale, 0 (unrelated) to 1 (perfect)?"""
        width = self.ceiling - self.unrelated
        if width <= 0.0:
            return 0.0
        return min(1.0, max(0.0, (score - self.unrelated) / width))


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one leg gave one hit; the shares of a hit sum to its fused score."""

    leg: str
    rank: int
    raw: float
    normalised: float
    weight: float
    share: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """A fused key with its account."""

    key: Key
    score: float
    contributions: tuple[Contribution, ...]


@dataclass(frozen=True, slots=True)
class Adjustment:
    """What one reranker did to a hit's score."""

    reranker: str
    before: float
    after: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Hit:
    """One answer with its explanation.

    ``score`` orders the list (fused, then adjusted by the rerankers); ``fused`` is what the contributions sum to;
    ``relevance`` in [0, 1] is absolute evidence of a match, comparable between queries: thresholds work on it.
    """

    rank: int
    id: str
    score: float
    relevance: float
    document: Document
    passage: Passage
    fused: float = 0.0
    contributions: tuple[Contribution, ...] = ()
    adjustments: tuple[Adjustment, ...] = ()
    stands_for: tuple[str, ...] = ()  # what was found and is superseded by it
    resolved_by: tuple[str, ...] = ()  # what its ``resolved-by`` links lead to
    context: tuple[Passage, ...] = ()  # what stands around the passage, where the profile asks for neighbours
    path: tuple[str, ...] = ()  # how the graph leg came here: a document, a concept or tie, the next document …

    @property
    def text(self) -> str:
        return self.passage.text

    @property
    def only_leg(self) -> str | None:
        """The leg that alone found this hit, if it was one alone."""
        return self.contributions[0].leg if len(self.contributions) == 1 else None


@dataclass(frozen=True, slots=True)
class Stage:
    """One timed step of a query."""

    name: str
    ms: float
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Degraded:
    """Something that should have answered and did not, with its reason."""

    part: str
    reason: str


@dataclass(frozen=True, slots=True)
class Results:
    """Hits, what made them, how long each stage took, and what was left out."""

    query: str
    hits: tuple[Hit, ...]
    profile: str
    trace: tuple[Stage, ...] = ()
    degraded: tuple[Degraded, ...] = ()
    candidates: int = 0

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, index: int) -> Hit:
        return self.hits[index]


class Embedder(Protocol):
    """A model that turns text into vectors: what ``embedders/`` holds and a caller may bring."""

    @property
    def id(self) -> str:
        """Names the model and everything that changes its vectors; vectors are keyed by it."""

    @property
    def spec(self) -> str:
        """What ``trivet.open(embedder=…)`` takes to load it again."""

    @property
    def dim(self) -> int: ...

    @property
    def unrelated(self) -> float:
        """The cosine two unrelated texts typically have under this model."""

    def embed_queries(self, texts: list[str]) -> Vector:
        """(n, dim) float32, L2-normalised rows (an all-zero row where a text has nothing to embed)."""

    def embed_passages(self, texts: list[str]) -> Vector: ...


class Scorer(Protocol):
    """A model that reads a question and a passage together: what ``scorers/`` holds and a caller may bring.

    One that takes long to load may have an ``open()`` beside these: it is called before the first passage.
    """

    @property
    def id(self) -> str:
        """Names the model and everything that changes its scores; remembered scores are keyed by it."""

    @property
    def spec(self) -> str:
        """What ``trivet.open(scorer=…)`` takes to load it again."""

    @property
    def batch(self) -> int:
        """How many passages it is best asked for at once; between two batches the clock is looked at."""

    def scores(self, query: str, passages: list[str]) -> list[float]:
        """One number a passage, higher is better; comparable within one question, on any scale."""


@dataclass(frozen=True, slots=True)
class Added:
    """What became of an ``add``. Everything counted here is durable and can be found by its words."""

    ids: tuple[str, ...] = field(default=(), repr=False)
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    duplicates: int = 0  # ids given twice in one call: the later one won
    pending: int = 0  # passages of the collection that wait to be embedded
    degraded: tuple[Degraded, ...] = ()
    redacted: Mapping[str, int] = field(default_factory=dict)  # kind of secret → how many were taken out

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class Similar:
    """A document that says nearly what was just remembered, and what might be done about it."""

    id: str
    similarity: float  # 0 to 1; 1: the same words
    text: str
    suggestion: str  # "update", "supersede" or "keep both"


@dataclass(frozen=True, slots=True)
class Remembered:
    """What became of a ``remember``: stored, or a document that was there is reinforced."""

    id: str
    stored: bool
    reinforced: bool
    similar: tuple[Similar, ...] = ()
    redacted: tuple[str, ...] = ()  # kinds of secrets that were taken out
    degraded: tuple[Degraded, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """Documents in the order they were first added; ``next`` is where the following page begins, if there is one."""

    documents: tuple[Document, ...]
    next: str | None = None

    def __iter__(self) -> Iterator[Document]:
        return iter(self.documents)

    def __len__(self) -> int:
        return len(self.documents)


@dataclass(frozen=True, slots=True)
class Facet:
    """What values a field has, and how many documents each; the commonest first."""

    field: str
    documents: int  # that have the field at all
    distinct: int
    values: tuple[tuple[Any, int], ...]


@dataclass(frozen=True, slots=True)
class Period:
    """How many documents fall into a day, a month or a year: ``2026-03``."""

    period: str
    documents: int


@dataclass(frozen=True, slots=True)
class Timeline:
    field: str
    step: str  # "day", "month" or "year"
    periods: tuple[Period, ...]  # those with documents, in order


@dataclass(frozen=True, slots=True)
class Standing:
    """Which documents are no longer, or not alone, what they say."""

    superseded: tuple[tuple[str, str], ...]  # (id, what directly supersedes it)
    copies: tuple[tuple[str, ...], ...]  # ids that say the same, up to case, width and white space
    looked_at: int  # documents that copies were looked for among


@dataclass(frozen=True, slots=True)
class SettingsChange:
    """One change of a collection's settings: who made it, when, and what they became."""

    number: int  # 1 for the collection's first change
    at: datetime
    by: str
    profile: Profile
    previous: Profile | None  # None: what was there could not be read


@dataclass(frozen=True, slots=True)
class LegVerdict:
    """What one leg says of one document for one question."""

    leg: str
    weight: float
    rank: int | None  # None: not among the leg's best ``depth``
    score: float | None  # None: the leg does not match it at all
    depth: int
    strength: float = 0.0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a document is, or is not, an answer."""

    query: str
    id: str
    rank: int | None
    verdicts: tuple[LegVerdict, ...]
    profile: str
    hit: Hit | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Stats:
    path: str
    collection: str
    documents: int
    passages: int
    embedded: int
    pending: int
    links: int
    model: str | None
    language: str
    bytes_store: int
    bytes_index: int
    profile: str
    fields: tuple[str, ...] = ()
    embed_error: str = ""
    scorer: str | None = None  # which reads question and passage together, where one is set


@dataclass(frozen=True, slots=True)
class Report:
    """What ``verify`` found; ``ok`` when there is nothing to mend."""

    problems: tuple[str, ...]
    checked: Mapping[str, int]

    @property
    def ok(self) -> bool:
        return not self.problems


@dataclass(frozen=True, slots=True)
class Restored:
    """What ``restore`` put in place of a store, or where there was none."""

    path: str
    bytes: int
    collections: tuple[str, ...]
    documents: int
    replaced: bool  # was there a store?


@dataclass(frozen=True, slots=True)
class Compacted:
    """What ``compact`` gave back; bytes are those of the store with its log and its indexes."""

    bytes_before: int
    bytes_after: int
    pruned: int  # rows of the log of removed passages
    expired: int  # documents whose time had passed, forgotten first


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What became of a ``forget``. ``compacted`` is None where the bytes wait for ``compact``."""

    documents: int
    compacted: Compacted | None = None


@dataclass(frozen=True, slots=True)
class Saved:
    """A backup: where it is, how large, and what is in it."""

    path: str
    bytes: int
    collections: tuple[str, ...]
