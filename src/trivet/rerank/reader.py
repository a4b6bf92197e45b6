"""Reranks with the built-in reader, a small cross-encoder that reads the query and a passage together.

    score = z + part * (talk * weight + (1 - talk) * weight_others) * log(1 + exp(r - UNRELATED))

    z     the score of the hit, in standard deviations of the hits that are read
    r     the logit that the reader returns for the hit, from about -11 to 11
    talk  the share of the hits that are turns of a conversation, or texts in the first or second person
    part  1, or ``assistants`` for what a language model wrote

Only the part of r above ``UNRELATED`` counts: of two passages about something else the reader does not know which is
nearer, and where it finds nothing for the query, the order stays. In a conversation it has more weight, because the
legs see a short turn without what it is about (ADR 40 has the figures). Turns of an assistant have less, because they
repeat what a person said and read like an answer to almost any question about their subject. The sum is brought back to
the scale of the scores, and hits that were not read stay after those that were.

A turn is read with its date and the turn before it, a long passage in the window that has most terms of the query.
Reading ends early when the last ``PATIENCE`` hits are about something else. A reader that is too slow or fails never
fails the search: ``degraded`` names what was left unread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log1p
from typing import ClassVar

from trivet.rerank.learned import deviation
from trivet.rerank.reranker import Reranked, Reranker, Tools, moved, option, renumbered
from trivet.rerank.scoring import Scores
from trivet.text.conversation import SESSION_KEYS, SPEAKER_KEYS, by_assistant
from trivet.text.document_dates import time_of
from trivet.text.scripts import written_in
from trivet.text.turns import is_personal, turn_in_context, with_speaker
from trivet.text.window import best_window
from trivet.types import Adjustment, Degraded, Hit, Query

LANGUAGE, SCRIPTS = "en", ("LATIN",)  # of the texts that it was trained on
MOSTLY = 0.5  # share of talk from which the candidates are talk
#: Hits in a row that are about something else, after which the others are not read: 2 in 1,000 topics of four sets lost
#: a right hit by that, and 1 in 10 pairs is saved.
PATIENCE = 8
UNRELATED = -4.0  # logit below which it hardly counts by how much
ELSEWHERE = -7.0  # logit below which a passage is surely about something else


@dataclass(frozen=True)
class Reader(Reranker):
    """Adds what the built-in reader says of a hit to its score."""

    name: ClassVar[str] = "reader"

    weight: float = option(0.6, "weight of the reader among talk", low=0.0, high=10.0)
    weight_others: float = option(0.2, "weight of the reader among other texts", low=0.0, high=10.0)
    assistants: float = option(0.5, "part of this weight for what an assistant wrote", low=0.0, high=1.0)
    most: int = option(30, "number of first hits to read among talk", low=1, high=200)
    most_others: int = option(12, "number of first hits to read among other texts", low=1, high=200)
    characters: int = option(600, "characters to read of a passage", low=100, high=10_000)
    budget_ms: float = option(400.0, "time limit for reading in one search, in ms", low=1.0, high=600_000.0)

    def rerank(self, hits: Sequence[Hit], query: Query) -> list[Hit]:
        return self.apply(hits, query, Tools()).hits

    def apply(self, hits: Sequence[Hit], query: Query, tools: Tools) -> Reranked:
        pool = renumbered(hits)
        if not pool or not query.text.strip():
            return Reranked(pool, note="nothing to read")
        if reason := _unreadable(query.text, tools):
            return Reranked(pool, (Degraded(self.name, f"the order is kept: {reason}"),))
        assert tools.reader is not None
        talk = _talk(pool[: self.most])
        first = pool[: self.most if talk >= MOSTLY else self.most_others]
        scores = Scores(tools.reader, query.text, shown(first, query, tools, self.characters))
        problem = scores.run(self.budget_ms, enough)
        degraded = (Degraded(self.name, problem),) if problem else ()
        read = scores.leading()
        found = self._ordered(pool, read, talk)
        return Reranked(found, degraded, scores.note, {hit.id: given for hit, given in zip(pool, read, strict=False)})

    def _ordered(self, pool: list[Hit], read: list[float], talk: float) -> list[Hit]:
        """Order the hits that were read by their mixed scores; keep the others as they are, after them."""
        first, rest = pool[: len(read)], pool[len(read) :]
        weight = talk * self.weight + (1.0 - talk) * self.weight_others
        parts = [
            weight * counted(given) * (self.assistants if by_assistant(hit.document.meta) else 1.0)
            for hit, given in zip(first, read, strict=True)
        ]
        mixed = mix([hit.score for hit in first], parts, deviation(first) if first else 1.0)
        marked = [self._marked(*row) for row in zip(first, mixed, read, strict=True)]
        return renumbered([*sorted(marked, key=lambda hit: -hit.score), *rest])

    def _marked(self, hit: Hit, score: float, read: float) -> Hit:
        """Return the hit with its new score; what was read is shown even where the score stays."""
        note = Adjustment(self.name, hit.score, score, f"logit {read:+.1f}")
        return moved(hit, hit.rank, score, (*hit.adjustments, note))


def counted(read: float) -> float:
    """Return how far a logit is above ``UNRELATED``; never below 0, and without a step there."""
    return log1p(exp(read - UNRELATED))


def mix(scores: Sequence[float], parts: Sequence[float], unit: float) -> list[float]:
    """Return the scores with the reader's parts, on the scale of ``scores``: the same least and greatest value.

    A part is in standard deviations; ``unit`` is one of them.
    """
    if not scores:
        return []
    mixed = [score / (unit or 1.0) + part for score, part in zip(scores, parts, strict=True)]
    least, width = min(mixed), max(mixed) - min(mixed) or 1.0
    low, span = min(scores), max(scores) - min(scores) or 1.0
    return [low + span * (value - least) / width for value in mixed]


def enough(read: Sequence[float]) -> bool:
    """Return whether the last hits that were read are all about something else."""
    return len(read) >= PATIENCE and max(read[-PATIENCE:]) < ELSEWHERE


def shown(hits: Sequence[Hit], query: Query, tools: Tools, characters: int) -> list[str]:
    """Return what the reader sees of each hit."""
    terms = tools.terms or (lambda text: text.lower().split())
    wanted = frozenset(query.terms(query.text) if query.terms is not None else terms(query.text))
    turns = [hit for hit in hits if _is_turn(hit.document.meta)]
    before = tools.before(turns) if turns and tools.before is not None else {}
    return [_shown(hit, before.get(hit.id), wanted, terms, characters) for hit in hits]


def _shown(
    hit: Hit, before: str | None, wanted: frozenset[str], terms: Callable[[str], Sequence[str]], characters: int
) -> str:
    text, document = best_window(hit.passage.text, wanted, terms, characters), hit.document
    if _is_turn(document.meta):
        moment = time_of(document)
        return turn_in_context(with_speaker(speaker_of(document.meta), text), before or "", moment and moment.date())
    return f"{document.title}\n{text}" if document.title else text


def _is_turn(meta: Mapping[str, object]) -> bool:
    return any(key in meta for key in SESSION_KEYS) and any(key in meta for key in SPEAKER_KEYS)


def _talk(hits: Sequence[Hit]) -> float:
    """Return the share of the hits that are talk."""
    return sum(_is_turn(hit.document.meta) or is_personal(hit.passage.text) for hit in hits) / len(hits)


def speaker_of(meta: Mapping[str, object]) -> str:
    """Return who wrote a turn; empty if its metadata does not say."""
    return next((str(meta[key]) for key in SPEAKER_KEYS if key in meta), "")


def _unreadable(text: str, tools: Tools) -> str:
    """Return why the reader cannot read for this query; empty if it can."""
    if tools.reader is None:
        return "this search has no reader"
    if tools.language != LANGUAGE:
        return f"the reader reads English, and the collection's language is {tools.language!r}"
    if not written_in(text, SCRIPTS):
        return "the reader reads English, and the query is in another script"
    return ""
