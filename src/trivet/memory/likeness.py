"""Does this say nearly what that says, and what might be done about it?

By words: how many of them the two have in common. What was changed tells what happened: nothing but additions are the
same statement told more fully ("update"), a word or two exchanged, another order or a "not" are a statement that is no
longer so ("supersede"). A suggestion is all it is; nothing is merged.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from trivet import deadline
from trivet.rerank.folding import fold
from trivet.types import Document

UPDATE, SUPERSEDE, KEEP_BOTH = "update", "supersede", "keep both"

LOOKED_AT = 20_000  # characters: enough to tell a copy
ALIKE_WORDS = 0.6  # of the words of both, in common
ALIKE_SENTENCE = 0.75  # the same sentence with something else in it; below it, another sentence about the same thing
ALIKE_MEANING = 0.8  # strength of the cosine, 0 unrelated to 1 the same

_WORD = re.compile(r"\w+")
_NEGATIONS = frozenset(_WORD.findall("not no never none without cannot nor nicht kein keine nie ohne pas non sin sans"))
_SMALL = frozenset(
    _WORD.findall("a an the is are was were be it its this that of in on at to for and or with by from as does do did")
)


def words(text: str) -> list[str]:
    return _WORD.findall(fold(text[:LOOKED_AT]).replace("n't", " not"))


def in_common(one: list[str], other: list[str]) -> float:
    """Dice's coefficient: 1 for the same words, in whatever order, 0 for none in common."""
    total = len(one) + len(other)
    return 2 * (Counter(one) & Counter(other)).total() / total if total else 0.0


def same_scope(one: Document, other: Document) -> bool:
    return (one.kind, one.meta) == (other.kind, other.meta)


def same(one: Document, other: Document) -> bool:
    """The same memory: text and title up to case, width and white space, of the same kind, about the same things (all
    of its metadata) and valid at the same time."""
    bounds = (one.valid_from, one.valid_to) == (other.valid_from, other.valid_to)
    return bounds and same_scope(one, other) and _folded(one) == _folded(other)


def copies(texts: Iterable[tuple[str, str]]) -> list[tuple[str, ...]]:
    """Which ids say the same, of (id, text): groups of two or more, in the order they came."""
    groups: dict[str, list[str]] = {}
    for id, text in texts:
        deadline.check()
        groups.setdefault(fold(text), []).append(id)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def _folded(document: Document) -> tuple[str, str]:
    return fold(document.title), fold(document.text)


def compare(new: Document, old: Document, meaning: float = 0.0) -> tuple[float, str] | None:
    """(similarity, suggestion), or None when they are not alike; ``meaning`` is how strong their cosine is."""
    fresh, known = words(f"{new.title} {new.text}"), words(f"{old.title} {old.text}")
    alike = in_common(fresh, known)
    if alike < ALIKE_WORDS and meaning < ALIKE_MEANING:
        return None
    return max(alike, meaning), _suggestion(new, old, fresh, known, alike)


def _suggestion(new: Document, old: Document, fresh: list[str], known: list[str], alike: float) -> str:
    if not same_scope(new, old):  # it belongs to someone, or something, else
        return KEEP_BOTH
    added, gone = set(fresh) - set(known), set(known) - set(fresh)
    changed = (added - _SMALL and gone - _SMALL) or (added | gone) & _NEGATIONS
    if changed or (alike == 1.0 and fresh != known):  # the same words in another order
        return SUPERSEDE if alike >= ALIKE_SENTENCE else KEEP_BOTH
    # told in other words altogether: a reader has to say whether it is the same
    return UPDATE if alike >= ALIKE_WORDS else KEEP_BOTH
