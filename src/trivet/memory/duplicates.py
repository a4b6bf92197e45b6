"""Duplicates and near-duplicates: whether two documents are one, and what the caller may do about it.

A near-duplicate says the same as an older document, or replaces it (``relation``). A short document is also compared
with the title and with each sentence of a longer one. It is only a suggestion; nothing is merged.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from trivet.concurrency import deadline
from trivet.memory import relation
from trivet.memory.statements import is_short, sentences
from trivet.text.tokens import comparable
from trivet.types import Document

UPDATE, SUPERSEDE, KEEP_BOTH = "update", "supersede", "keep both"
SUGGESTIONS = {relation.SAME: UPDATE, relation.UPDATED: SUPERSEDE, relation.CONTRADICTING: SUPERSEDE}

COMPARED = 20_000  # characters of a text; enough to recognise a copy
SIMILAR_WORDS = 0.6  # share of common words from which a longer document, or a sentence of one, is similar
SIMILAR_MEANING = 0.9  # scaled cosine from which two documents are similar, whatever their words say

_WORD = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+")  # a word, or a Chinese character


@dataclass(frozen=True, slots=True)
class Comparison:
    """How a new document relates to an older one."""

    similarity: float  # 0 to 1: the share of common words or the scaled cosine, whichever is higher
    suggestion: str
    relation: str
    changed: str = ""  # as "24 → 13"
    statement: str = ""  # the text, the title or the sentence of the older document that was compared


def words(text: str) -> list[str]:
    """Return the folded words of a text, contractions of "not" written out."""
    return _WORD.findall(comparable(text[:COMPARED]).replace("n't", " not"))


def in_common(one: list[str], other: list[str]) -> float:
    """Return Dice's coefficient: 1 for the same words in any order, 0 for no common word."""
    total = len(one) + len(other)
    return 2 * (Counter(one) & Counter(other)).total() / total if total else 0.0


def same_scope(one: Document, other: Document) -> bool:
    """Return whether kind and metadata are equal."""
    return (one.kind, one.meta) == (other.kind, other.meta)


def same(one: Document, other: Document) -> bool:
    """Return whether two documents are the same memory.

    Title and text are equal up to case, width and white space; kind, metadata and validity are equal.
    """
    bounds = (one.valid_from, one.valid_to) == (other.valid_from, other.valid_to)
    return bounds and same_scope(one, other) and _folded(one) == _folded(other)


def copies(texts: Iterable[tuple[str, str]]) -> list[tuple[str, ...]]:
    """Return groups of two or more ids with the same folded text, of (id, text), in their order."""
    groups: dict[str, list[str]] = {}
    for id, text in texts:
        deadline.check()
        groups.setdefault(comparable(text), []).append(id)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def _folded(document: Document) -> tuple[str, str]:
    return comparable(document.title), comparable(document.text)


def compare(new: Document, old: Document, meaning: float | None = None) -> Comparison | None:
    """Return how ``new`` relates to ``old``, or None if it neither says the same nor replaces it.

    ``meaning`` is their scaled cosine, None if it is unknown.
    """
    texts = (_whole(old), _whole(new))
    found = [_compared(*part, None) for part in _statements(old, new) if part != texts and _same_wording(*part)]
    if all(map(is_short, texts)):
        found.append(_compared(*texts, meaning))
    elif _same_wording(*texts):
        found.append(_compared(*texts, None))
    told = [(each, comparison) for each, comparison in found if each.reported]
    if told:
        each, comparison = max(told, key=lambda pair: pair[1].similarity)
        kept = each.name == relation.SAME and each.omits  # an update would lose a number
        suggestion = KEEP_BOTH if kept or not same_scope(new, old) else SUGGESTIONS[each.name]
        return replace(comparison, suggestion=suggestion, similarity=max(comparison.similarity, meaning or 0.0))
    if meaning is not None and meaning >= SIMILAR_MEANING:  # other words: a person has to decide
        return Comparison(meaning, KEEP_BOTH, relation.RELATED, statement=_whole(old))
    return None


def _whole(document: Document) -> str:
    return f"{document.title}\n{document.text}".strip()[:COMPARED]


def _same_wording(old: str, new: str) -> bool:
    """Return whether most words are in common; in a longer text, some are by chance."""
    return in_common(words(old), words(new)) >= SIMILAR_WORDS


def _statements(old: Document, new: Document) -> list[tuple[str, str]]:
    """Return (older, newer) texts: a short document with each statement of the other one."""
    whole_old, whole_new = _whole(old), _whole(new)
    found = [(part, whole_new) for part in _parts(old)] if is_short(whole_new) else []
    return found + ([(whole_old, part) for part in _parts(new)] if is_short(whole_old) else [])


def _parts(document: Document) -> list[str]:
    """Return the title and the sentences of a document."""
    return [*sentences(document.title), *sentences(document.text[:COMPARED])]


def _compared(old: str, new: str, meaning: float | None) -> tuple[relation.Relation, Comparison]:
    found = relation.relate(old, new, meaning)
    return found, Comparison(in_common(words(old), words(new)), KEEP_BOTH, found.name, found.changed, old)
