"""The value types of trivet: documents, queries, rankings, hits, results and the reports of each operation.

All are frozen. In a search, the legs return a ``Ranking`` each, fusion turns them into ``Candidate``s, the engine
fetches the documents and gives ``Hit``s to the rerankers. Legs and fusion see keys only, never texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from trivet.frozen import Deferring

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from trivet.filters import Filter
    from trivet.profile import Profile

    Vector = npt.NDArray[np.float32]

#: The least relevance of a strong and of a likely hit: docs/evidence/relevance.md has what each keeps and lets through.
STRONG, LIKELY = 0.5, 0.2

#: Blue, orange, green, purple: distinct with every common colour blindness, and on dark and light backgrounds.
LEG_COLOURS = {"lexical": "#5fafff", "dense": "#ff875f", "trigram": "#afd75f", "graph": "#af87ff"}
OTHER_COLOUR = "#9e9e9e"
_SHOWN = 60  # characters of a text in a repr
_BAR, _SNIPPET = 120, 240  # pixels and characters of a hit in a notebook

#: The key of a document inside a search: a row number in the embedded store, an id on a server.
Key = int | str

#: Called during a long step with how much of it is done and how much there is.
Progress = Callable[[int, int], None]
#: The same with the name of the step first; 0 for an unknown total.
StepProgress = Callable[[str, int, int], None]


def _short(text: str) -> str:
    """Return the start of a text, on one line, for a repr."""
    line = " ".join(text[: 4 * _SHOWN].split())
    return repr(line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…")


@dataclass(frozen=True, slots=True)
class Document:
    """A record with a text: a note, a memory, a message, a snippet. Its ``kind`` says which.

    Two documents of a collection never have the same ``id``. ``meta`` is JSON-like data that filters can use.
    ``importance`` is from 0 to 1. ``valid_from`` and ``valid_to`` bound the time in which the document is true.
    """

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
    accesses: int = 0  # how often it was recalled, as reported by ``touch``
    expires: datetime | None = None  # from this time on it is hidden, and the next sweep deletes it

    def __repr__(self) -> str:
        return f"<Document {self.id!r} {_short(self.title or self.text)}>"


@dataclass(frozen=True, slots=True)
class Passage:
    """A span of a document that a leg ranks. A short document has one passage.

    ``ordinal`` counts the passages of the document from 0; ``start`` and ``end`` are character positions.
    """

    ordinal: int
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """A typed edge from one document to another, by their ids."""

    source: str
    target: str
    type: str = "see-also"
    weight: float = 1.0


#: The types of links that change what a search shows. All other types are free for the user.
SUPERSEDES, RESOLVED_BY = "supersedes", "resolved-by"


@dataclass(frozen=True, slots=True)
class Succession:
    """A pair of documents of which one directly supersedes the other."""

    old: Key
    old_id: str
    new: Key
    new_id: str
    created: float  # when the new one was created, in epoch seconds


@dataclass(frozen=True, slots=True)
class Successions:
    """The direct successions of some documents. ``cut`` says why some were not read; it is empty if all were."""

    found: tuple[Succession, ...] = ()
    cut: str = ""


@dataclass(frozen=True, slots=True)
class Resolutions:
    """The documents that resolve others: (key, id) by the key of the resolved one. ``cut`` as in ``Successions``."""

    found: Mapping[int, Sequence[tuple[int, str]]]
    cut: str = ""


@dataclass(frozen=True, slots=True)
class Feedback:
    """A judgement of a user: whether a document is a good hit for a query. The latest judgement counts."""

    query: str
    id: str
    good: bool
    at: datetime


@dataclass(frozen=True, slots=True)
class Window:
    """The period that a query names: from ``begin`` on, before ``end``; ``words`` is its text.

    ``named``: it is an exact date, which is meant more strictly than "five days ago" or "last month".
    """

    begin: datetime
    end: datetime
    words: str
    named: bool = False

    def __str__(self) -> str:
        return f"{self.words!r} is {self.begin:%Y-%m-%d} to {self.end:%Y-%m-%d}"


@dataclass(frozen=True, slots=True)
class Understood:
    """What a query asks for. ``text`` is what is searched: without fields and excluded parts."""

    text: str
    avoided: tuple[str, ...] = ()
    where: Filter | None = None
    fields: tuple[str, ...] = ()  # as they were written: ``kind:note``
    identifiers: tuple[str, ...] = ()
    window: Window | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What was found in the query, for the trace."""
        notes = [f"filter {field}" for field in self.fields]
        notes += [f"not {part!r}" for part in self.avoided]
        notes += [f"exactly {name!r}" for name in self.identifiers]
        return (*notes, *([str(self.window)] if self.window else []))


@dataclass(frozen=True, slots=True)
class Query:
    """A query as the rerankers get it: its text, its filter and its time."""

    text: str
    where: Filter | None = None
    at: datetime | None = None
    understood: Understood | None = None  # fields, negation and times in the text, if the profile asks for them
    terms: Callable[[str], Sequence[str]] | None = field(default=None, compare=False, repr=False)  # text -> terms


@dataclass(frozen=True, slots=True)
class Ranking:
    """The list of documents that one leg found, best first. Keys are unique, higher scores are better.

    ``floor`` is the lowest score that the leg can give (TM2C2 normalises by it), ``unrelated`` the score of a text that
    has nothing to do with the query, ``ceiling`` that of a perfect match: the last two turn a score into an absolute
    strength from 0 to 1. ``suits_query`` is false for a query that the leg was not made for, such as one in Chinese for
    an English model: its ranking is better than none, and should count little beside another.
    """

    leg: str
    keys: tuple[Key, ...] = ()
    scores: tuple[float, ...] = ()
    passages: tuple[int, ...] = ()
    floor: float = 0.0
    unrelated: float = 0.0
    ceiling: float = 1.0
    notes: tuple[str, ...] = ()
    suits_query: bool = True
    seeded: bool = False  # the leg started at what the other legs found
    #: Of the graph leg, for each key: a document, its connection, the next document … up to the key itself.
    paths: Sequence[tuple[Key, ...]] = ()
    _places: dict[Key, int] | None = field(default=None, init=False, repr=False, compare=False)

    @classmethod
    def of(
        cls, leg: str, found: Sequence[tuple[float, int, int]], *, gate: float | None = None, **traits: Any
    ) -> Ranking:
        """Make a ranking of the (score, passage, document) that a store found, without scores below the gate."""
        if gate is not None:
            found = [hit for hit in found if hit[0] >= gate]
        scores, passages, keys = zip(*found, strict=True) if found else ((), (), ())
        return cls(leg=leg, keys=keys, scores=scores, passages=passages, **traits)

    def __len__(self) -> int:
        return len(self.keys)

    def places(self) -> dict[Key, int]:
        """Return the place of each key, counted from 0. It is computed once for all its users."""
        if self._places is None:
            object.__setattr__(self, "_places", dict(zip(self.keys, range(len(self.keys)), strict=True)))
        return self._places or {}

    def strength(self, score: float) -> float:
        """Return the score on an absolute scale from 0 (unrelated) to 1 (a perfect match)."""
        return self._strengths((score,))[0]

    def strengths(self) -> list[float]:
        """Return the strength of each score."""
        return self._strengths(self.scores)

    def _strengths(self, scores: Sequence[float]) -> list[float]:
        unrelated, width = self.unrelated, self.ceiling - self.unrelated
        if width <= 0.0:
            return [0.0] * len(scores)
        shares = [(score - unrelated) / width for score in scores]
        return [1.0 if share > 1.0 else share if share > 0.0 else 0.0 for share in shares]


@dataclass(frozen=True, slots=True)
class Contribution:
    """The part of one leg in a fused score: its rank, raw score, points, weight and share.

    The shares of a hit sum to its fused score.
    """

    leg: str
    rank: int
    raw: float
    normalised: float
    weight: float
    share: float


@dataclass(frozen=True, slots=True)
class Candidate(Deferring):
    """A document of the pool, by its key, with its fused score and what each leg contributed."""

    deferred: ClassVar[tuple[str, ...]] = ("contributions",)

    key: Key
    score: float
    contributions: tuple[Contribution, ...]


@dataclass(frozen=True, slots=True)
class Adjustment:
    """A change of the score of a hit by one reranker, or by its neighbours (``reranker`` is then ``context``)."""

    reranker: str
    before: float
    after: float
    reason: str = ""


#: Metadata with the number of pages of a text, between which stand form feeds → what one is called.
_PAGES = {"pages": "page", "slides": "slide"}
_HEADING_OR_FENCE = re.compile(r"\n(?:(#{1,6})[ \t]+([^\n]*)| {0,3}(`{3,}|~{3,}))")


def _pages(document: Document, first: int, end: int) -> str:
    """Return the pages of a part of the text, as ``page 12`` or ``pages 12–13``."""
    name = next((name for key, name in _PAGES.items() if key in document.meta), "")
    if not name:
        return ""
    page = document.text.count("\f", 0, first) + 1
    last = page + document.text[first:end].rstrip().count("\f")
    return f"{name} {page}" if page == last else f"{name}s {page}–{last}"


def _section(document: Document, first: int) -> str:
    """Return the Markdown headings that a place stands under; an empty text where that is only the title."""
    if document.kind in ("code", "data"):
        return ""
    line = document.text.find("\n", first)
    above: dict[int, str] = {}
    fence = ""
    for match in _HEADING_OR_FENCE.finditer("\n" + document.text[: None if line < 0 else line]):
        marks, text, opened = match.groups()
        if opened:
            fence = "" if fence and opened.startswith(fence) else fence or opened
        elif not fence:
            above = {level: known for level, known in above.items() if level < len(marks)}
            above[len(marks)] = text.strip(" \t#\r")
    path = " > ".join(filter(None, above.values()))
    return "" if path == document.title else path


@dataclass(frozen=True, slots=True)
class Hit(Deferring):
    """A found document with its best passage and the explanation of its score.

    ``score`` orders the list: the fused score after the adjustments. ``fused`` is the sum of the contributions.
    ``relevance``, from 0 to 1, is the probability that the document answers the query. It can be compared between
    queries and never increases down the list. ``min_relevance`` is a threshold on it.
    """

    deferred: ClassVar[tuple[str, ...]] = ("passage", "contributions")

    rank: int
    id: str
    score: float
    relevance: float
    document: Document
    passage: Passage
    fused: float = 0.0
    contributions: tuple[Contribution, ...] = ()
    adjustments: tuple[Adjustment, ...] = ()
    stands_for: tuple[str, ...] = ()  # ids that were found and that this document supersedes
    resolved_by: tuple[str, ...] = ()  # ids that its ``resolved-by`` links lead to
    context: tuple[Passage, ...] = ()  # passages before and after it, if the profile asks for neighbours
    path: tuple[str, ...] = ()  # of the graph leg, after the rerankers: a document, a concept or an edge, the next …

    def __repr__(self) -> str:
        return f"<Hit {self.rank} {self.id!r} relevance={self.relevance:.2f} {_short(self.text)}>"

    @property
    def text(self) -> str:
        """The text of the passage, without the form feed at the end of a page."""
        text = self.passage.text
        return text.rstrip() if "\f" in text else text

    @property
    def confidence(self) -> str:
        """The relevance as a word: strong, likely or weak."""
        return "strong" if self.relevance >= STRONG else "likely" if self.relevance >= LIKELY else "weak"

    @property
    def location(self) -> str:
        """Where the passage begins in its document, as ``page 12`` or ``Setup > Limits``; empty where nothing says."""
        document, start, end = self.document, self.passage.start, self.passage.end
        if document.kind == "row" and "row" in document.meta:
            return f"row {document.meta['row']}"
        first = start + len(self.text) - len(self.text.lstrip())
        return ", ".join(filter(None, (_pages(document, first, end), _section(document, first))))

    @property
    def only_leg(self) -> str | None:
        """The name of the leg if only one leg found this hit, else None."""
        return self.contributions[0].leg if len(self.contributions) == 1 else None


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of a search with the time it took."""

    name: str
    ms: float
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Degraded:
    """A part of a search or an operation that could not do its work, and the reason."""

    part: str
    reason: str
    pending: bool = False  # it will be whole after some time, without anybody's help


@dataclass(frozen=True, slots=True)
class Results:
    """The hits of a search, with the profile, the time of each stage and what was degraded.

    It can be iterated and indexed like a list of hits.
    """

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

    def __repr__(self) -> str:
        lines = [f"  {hit.rank} {hit.relevance:.2f} {hit.id!r} {_short(hit.text)}" for hit in self.hits[:10]]
        more = [f"  … {len(self.hits) - 10} more"] if len(self.hits) > 10 else []
        count = "1 hit" if len(self.hits) == 1 else f"{len(self.hits)} hits"
        return "\n".join((f"<Results {_short(self.query)}: {count}", *lines, *more)) + ">"

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame with one row for each hit: its fields, the shares of the legs, the metadata."""
        try:
            from pandas import DataFrame
        except ImportError as error:
            raise ImportError("to_pandas: needs pandas; run `pip install pandas`") from error
        own = ["rank", "id", "relevance", "confidence", "score", "title", "kind", "text", "location", "created"]
        frame = DataFrame([_row(hit) for hit in self.hits])
        return frame if self.hits else frame.reindex(columns=own)

    def _repr_html_(self) -> str:
        """Return the hits as a table for a notebook, each with a bar of what its legs contributed."""
        full = max((sum(max(0.0, one.share) for one in hit.contributions) for hit in self.hits), default=0.0)
        rows = "".join(_html(hit, full) for hit in self.hits) or "<tr><td>no hits</td></tr>"
        legs = dict.fromkeys(one.leg for hit in self.hits for one in hit.contributions)
        legend = " ".join(f'<span style="color:{_colour(leg)}">■</span> {escape(leg)}' for leg in legs)
        parts = "".join(f"<div>degraded: {escape(item.part)}: {escape(item.reason)}</div>" for item in self.degraded)
        below = " · ".join(filter(None, (legend, escape(self.profile))))
        return f"<table>{rows}</table><div>{below}</div>{parts}"


def _row(hit: Hit) -> dict[str, Any]:
    document = hit.document
    row: dict[str, Any] = {name: getattr(hit, name) for name in ("rank", "id", "relevance", "confidence", "score")}
    row |= {"title": document.title, "kind": document.kind, "text": hit.text, "location": hit.location}
    row |= {"created": document.created, **{f"share.{one.leg}": one.share for one in hit.contributions}}
    return row | {f"meta.{key}": value for key, value in document.meta.items()}


def _html(hit: Hit, full: float) -> str:
    """Return the row of a hit; ``full`` is the share that fills the bar."""
    bar = "".join(
        f'<span title="{escape(one.leg)} {one.share:.3f}" style="display:inline-block;height:0.8em;'
        f'width:{max(0.0, one.share) / full * _BAR if full > 0 else 0:.1f}px;background:{_colour(one.leg)}"></span>'
        for one in hit.contributions
    )
    text = hit.text if len(hit.text) <= _SNIPPET else f"{hit.text[: _SNIPPET - 1]}…"
    name = escape(hit.document.title or hit.id)
    cells = (f"{hit.rank}", f"{hit.relevance:.2f} {hit.confidence}", bar)
    plain = "".join(f'<td style="white-space:nowrap;vertical-align:top">{cell}</td>' for cell in cells)
    return f'<tr>{plain}<td style="text-align:left"><b title="{escape(hit.id)}">{name}</b><br>{escape(text)}</td></tr>'


def _colour(leg: str) -> str:
    return LEG_COLOURS.get(leg, OTHER_COLOUR)


class Table(Protocol):
    """A table of pandas, polars or pyarrow: what these have in common."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


class Embedder(Protocol):
    """A model that turns text into vectors."""

    @property
    def id(self) -> str:
        """The model and everything that changes its vectors. Vectors are stored under it."""

    @property
    def spec(self) -> str:
        """The text that loads the same model again, as the ``embedder`` of ``trivet.open``."""

    @property
    def dim(self) -> int:
        """The length of a vector."""

    @property
    def unrelated(self) -> float:
        """The cosine similarity that two unrelated texts typically have."""

    def embed_queries(self, texts: list[str]) -> Vector:
        """Return one float32 row for each text, of L2 norm 1; a row of zeros for a text without content."""

    def embed_passages(self, texts: list[str]) -> Vector:
        """Return the vectors of passages in the same form."""


class Scorer(Protocol):
    """A model that reads a query and a passage together, such as a cross-encoder.

    A scorer that takes long to load may also have a method ``open()``, which is called before the first passage.
    """

    @property
    def id(self) -> str:
        """The model and everything that changes its scores. Scores are cached under it."""

    @property
    def spec(self) -> str:
        """The text that loads the same model again, as the ``scorer`` of ``trivet.open``."""

    @property
    def batch(self) -> int:
        """The number of passages that are best scored at once. The time limit is checked between batches."""

    def scores(self, query: str, passages: list[str]) -> list[float]:
        """Return one score for each passage, on any scale. Higher is better. Scores are compared within one query."""


@dataclass(frozen=True, slots=True)
class Added:
    """The result of an ``add``. Everything counted here is on disk and can be found by the lexical leg."""

    ids: tuple[str, ...] = field(default=(), repr=False)
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    duplicates: int = 0  # ids that were given twice in one call; the later document is kept
    pending: int = 0  # passages of the collection that are not embedded yet
    degraded: tuple[Degraded, ...] = ()
    redacted: Mapping[str, int] = field(default_factory=dict)  # kind of secret -> how many were removed

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class Similar:
    """A document that says nearly the same as what was just remembered or contradicts it, and what to do about it."""

    id: str
    similarity: float  # 0 to 1; 1 is the same words
    text: str
    suggestion: str  # "update", "supersede" or "keep both"
    relation: str = "related"  # of the new document to it: "same", "updated", "contradicting" or "related"
    changed: str = ""  # what changed, as "24 → 13"
    statement: str = ""  # the sentence, title or whole text of it that was compared


@dataclass(frozen=True, slots=True)
class Remembered:
    """The result of a ``remember``: the document was stored, or an existing one was reinforced."""

    id: str
    stored: bool
    reinforced: bool
    similar: tuple[Similar, ...] = ()
    redacted: tuple[str, ...] = ()  # kinds of secrets that were removed
    degraded: tuple[Degraded, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """A page of documents in the order of adding. ``next`` is where the next page starts; None on the last page."""

    documents: tuple[Document, ...]
    next: str | None = None

    def __iter__(self) -> Iterator[Document]:
        return iter(self.documents)

    def __len__(self) -> int:
        return len(self.documents)


@dataclass(frozen=True, slots=True)
class Facet:
    """The values of a field with the number of documents of each, the most frequent first."""

    field: str
    documents: int  # that have the field
    distinct: int
    values: tuple[tuple[Any, int], ...]


@dataclass(frozen=True, slots=True)
class Period:
    """The number of documents of a day, a month or a year, such as ``2026-03``."""

    period: str
    documents: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """The number of documents per day, month or year of a time field."""

    field: str
    step: str  # "day", "month" or "year"
    periods: tuple[Period, ...]  # those with documents, in order


@dataclass(frozen=True, slots=True)
class Redundancy:
    """The documents that newer ones supersede, and the groups of duplicates."""

    superseded: tuple[tuple[str, str], ...]  # (id, id of a document that directly supersedes it)
    copies: tuple[tuple[str, ...], ...]  # ids of the same text, up to case, width and white space
    looked_at: int  # documents that were compared


#: Deprecated: use ``Redundancy``.
Standing = Redundancy


@dataclass(frozen=True, slots=True)
class SettingsChange:
    """One change of the settings of a collection: when, by whom, and to what."""

    number: int  # from 1
    at: datetime
    by: str
    profile: Profile
    previous: Profile | None  # None if the settings before could not be read


@dataclass(frozen=True, slots=True)
class LegVerdict:
    """How one leg ranks one document for one query."""

    leg: str
    weight: float
    rank: int | None  # None: not among the best ``depth`` of the leg
    score: float | None  # None: no match
    depth: int
    strength: float = 0.0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a search finds a document, or why not."""

    query: str
    id: str
    rank: int | None
    verdicts: tuple[LegVerdict, ...]
    profile: str
    hit: Hit | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Stats:
    """The size and the state of a collection."""

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
    scorer: str | None = None  # its id, if one is set
    advice: str = ""  # where the texts are not in the language of the collection or of its model


@dataclass(frozen=True, slots=True)
class Report:
    """The result of ``verify``: the problems, and how many of each kind of thing were checked."""

    problems: tuple[str, ...]
    checked: Mapping[str, int]

    @property
    def ok(self) -> bool:
        """Whether there is no problem."""
        return not self.problems


@dataclass(frozen=True, slots=True)
class Restored:
    """The result of ``restore``: the store that was put in place."""

    path: str
    bytes: int
    collections: tuple[str, ...]
    documents: int
    replaced: bool  # whether there was a store before


@dataclass(frozen=True, slots=True)
class Compacted:
    """The result of ``compact``. Bytes are those of the store with its log and its indexes."""

    bytes_before: int
    bytes_after: int
    pruned: int  # rows that were removed from the log of removed passages
    expired: int  # documents that were deleted because they had expired


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The result of a ``forget``. ``compacted`` is None if the bytes are erased by the next ``compact``."""

    documents: int
    compacted: Compacted | None = None


@dataclass(frozen=True, slots=True)
class Saved:
    """The result of a backup: where it is, how large it is, and which collections it contains."""

    path: str
    bytes: int
    collections: tuple[str, ...]
