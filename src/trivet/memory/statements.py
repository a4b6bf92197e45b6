"""What two statements have in common and where they differ, by their words alone.

A word is compared without case, accents and inflection (a common beginning), a number by its digits, and Chinese by
characters. Nothing here decides: ``relation`` does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice, takewhile
from typing import NamedTuple

from trivet.text.stop_words import STOP_WORDS
from trivet.text.tokens import comparable, pieces_of, raw_tokens
from trivet.text.tokens import fold as without_accents

COMPARED_WORDS = 200  # of a text; the alignment takes quadratic time
STATEMENT_WORDS = 40  # at most, as in the judged pairs; two characters of Chinese count as a word
SENTENCES = 30  # of a longer document, each compared with a statement
SHORTEST = 4  # words of a sentence that states something: "Dr." is a part of one
BEGINNING = 4  # letters that two forms of one word share at least
SAME_SENTENCE = 0.6  # share of words in the same order from which two statements have one wording
SAME_FORM = 0.75  # share of the longer form that is the common beginning: allergic, allergy

_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])|\n+")
_NUMERALS = "零〇一二两三四五六七八九十百千万半"
_CHARACTER = re.compile(rf"[{_NUMERALS}]+|.")
_HAN_STOP_WORDS = frozenset("的了在是有和也要都很就把被由会能可以这那个")
# Not of all languages at once: "car" is a small word in French.
_STOP_WORDS = STOP_WORDS["en"] | STOP_WORDS["de"] | _HAN_STOP_WORDS
_COUNTED = (
    "zero one two three four five six seven eight nine ten eleven twelve",
    "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
)
_DIGITS = {word: str(value) for names in _COUNTED for value, word in enumerate(names.split())}
_TIME = re.compile(r"\d{1,2}:\d\d")
_NOT = re.compile(r"n['’]t\b")  # isn't
_NEGATION = re.compile(
    r"\b(?:not|no|never|none|nothing|without|cannot|neither|nor|nicht|kein\w*|nie|niemals|ohne|weder|pas|sans|sin)\b"
    r"|[不没無无未免]"
)
# Verbs of lists: "likes tea" and "likes coffee" both hold.
_LIST = re.compile(
    r"\b(?:likes?|loves?|enjoys?|hates?|dislikes?|plays?|speaks?|owns?|knows?|collects?|visited|allergic|interested|"
    r"mag|liebt|hasst|spielt|spricht|besitzt|kennt|sammelt|allergisch|interessiert|gern)\b|喜欢|爱|讨厌|会|过敏|去过"
)
# Words that tell of a change: they stand in a later state and not in a first statement.
_CHANGE = re.compile(
    r"\b(?:no longer|any ?more|used to|now|nowadays|instead|since|as of|again|back|meanwhile|recently|formerly|"
    r"previously|mov(?:ed|es|ing)|relocated|switched|migrated|chang(?:ed|es)|replac(?:ed|es)|renamed|transferred|"
    r"promoted|raised|lowered|reduced|increased|decreased|upgraded|downgraded|updated|postponed|rescheduled|delayed|"
    r"extended|shortened|renewed|cancell?ed|stopped|quit|g[ai]ven? up|dropped|left|retired|resigned|closed|reopened|"
    r"became|become|turned o[nf]+|finished|completed|repaired|fixed|sold|died|married|divorced|took over|added|removed|"
    r"nicht mehr|jetzt|nun|inzwischen|mittlerweile|neuerdings|seit|statt|sondern|wieder|umgezogen|"
    r"ausgezogen|gezogen|verschoben|verlegt|gewechselt|umgestellt|geändert|ersetzt|erhöht|gesenkt|gestiegen|gesunken|"
    r"verlängert|gekündigt|aufgehört|eingestellt|abgeschafft|ab (?:sofort|jan|feb|mär|apr|mai|jun|jul|aug|sep|okt|nov|"
    r"dez)\w*)\b"
    r"|不再|已经|现在|目前|如今|改[为到成签用装]|搬[到去]|迁移|换[成了到]|调[到整]|涨到|降[到至为]|升[到级]|戒|取消|停[止用]|离职|退休|修好"
    r"|从.{1,8}[起始]"
)


class Word(NamedTuple):
    """A word as it is compared (``key``) and as it was written."""

    key: str
    written: str
    spaced: bool = True  # a blank follows it, unlike a Chinese character


class Exchange(NamedTuple):
    """Words of the older statement and the words of the newer one in their place, as written."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Difference:
    """What two statements share and what differs."""

    overlap: float  # 0 to 1: content words in common, the mean of Dice's coefficient and the share of the shorter
    beyond: int  # content words in common after the words that both begin with: about more than the same subject
    exchanges: tuple[Exchange, ...]  # places where each has content words that the other lacks
    other_subject: bool  # each begins with a content word of its own, or an early and a late exchange is all
    list_item: bool  # one exchange beside a verb of lists, and nothing else differs
    other_number: bool  # the same sentence with another number in its second half
    numbers: Exchange | None  # the first number of each that the other lacks, where both have one
    omits: bool  # the older one has a number that the newer one lacks
    negated: bool  # one has a negation and the other has none
    swapped: bool  # the same words, two of them in each other's place
    changes: bool  # the newer one has a word of change that the older one lacks
    in_order: float  # 0 to 1: words in common that stand in the same order


def words(text: str) -> list[Word]:
    """Return the words of a text in reading order."""
    return list(islice(_words(raw_tokens(_NOT.sub(" not", text))), COMPARED_WORDS))


def sentences(text: str) -> list[str]:
    """Return the sentences of a text that are long enough to state something, at most ``SENTENCES``."""
    parts = (part.strip() for part in _SENTENCE_END.split(text))
    return list(islice((part for part in parts if len(words(part)) >= SHORTEST), SENTENCES))


def is_short(text: str) -> bool:
    """Return whether a text is a statement rather than a longer document."""
    return sum(1.0 if word.spaced else 0.5 for word in words(text)) <= STATEMENT_WORDS


def difference(old: str, new: str) -> Difference:
    """Compare the words of two statements."""
    old_folded, new_folded = comparable(_NOT.sub(" not", old)), comparable(_NOT.sub(" not", new))
    by_words = _Aligned(words(old), words(new))
    numbers = by_words.numbers()
    return Difference(
        overlap=by_words.overlap(),
        beyond=by_words.beyond(),
        exchanges=by_words.exchanges,
        other_subject=by_words.other_subject(),
        list_item=by_words.one_exchange and numbers is None and _in_both(_LIST, old_folded, new_folded),
        other_number=by_words.other_number(),
        numbers=numbers,
        omits=any(map(_is_number, by_words.gone)),
        negated=bool(_NEGATION.search(old_folded)) != bool(_NEGATION.search(new_folded)),
        swapped=by_words.swapped(),
        changes=not set(_CHANGE.findall(new_folded)) <= set(_CHANGE.findall(old_folded)),
        in_order=by_words.in_order,
    )


class _Aligned:
    """The words of two statements: those without a counterpart, and the edits from one to the other."""

    def __init__(self, old: list[Word], new: list[Word]) -> None:
        self.old, self.new = old, new
        self.old_keys, self.new_keys = [word.key for word in old], [word.key for word in new]
        self.old_content, self.new_content = _content(self.old_keys), _content(self.new_keys)
        self.gone, self.added = _unmatched(self.old_content, self.new_content)
        matcher = SequenceMatcher(None, self.old_keys, self.new_keys)
        self.in_order = matcher.ratio()
        self.edits = [edit[1:] for edit in matcher.get_opcodes() if edit[0] != "equal"]
        places = (Exchange(_written(old[i:j], self.gone), _written(new[k:m], self.added)) for i, j, k, m in self.edits)
        self.exchanges = tuple(place for place in places if place.old and place.new)

    @property
    def one_exchange(self) -> bool:
        return len(self.edits) == len(self.exchanges) == 1

    @property
    def early(self) -> bool:
        """Whether the first edit is in the first half of the older statement, where the subject is."""
        return bool(self.edits) and self.edits[0][0] < len(self.old) / 2

    def overlap(self) -> float:
        old, new = len(self.old_content), len(self.new_content)
        common = old - len(self.gone)
        return (2 * common / (old + new) + common / min(old, new)) / 2 if old and new else 0.0

    def beyond(self) -> int:
        both = zip(self.old_keys, self.new_keys, strict=False)
        beginning = [one for one, _ in takewhile(lambda pair: pair[0] == pair[1], both)]
        return (Counter(self.old_content) - Counter(self.gone) - Counter(beginning)).total()

    def other_subject(self) -> bool:
        starts = bool(self.gone and self.added) and (self.old_content[0], self.new_content[0]) == (
            self.gone[0],
            self.added[0],
        )
        template = len(self.edits) == len(self.exchanges) > 1 and self.in_order >= SAME_SENTENCE
        return starts or (template and self.early)

    def other_number(self) -> bool:
        if not self.one_exchange or self.early:
            return False
        i, j, k, m = self.edits[0]
        return all(map(_is_number, self.old_keys[i:j] + self.new_keys[k:m]))

    def numbers(self) -> Exchange | None:
        old, new = _number(self.old, self.gone), _number(self.new, self.added)
        return Exchange(old, new) if old and new else None

    def swapped(self) -> bool:
        if len(self.old) != len(self.new):
            return False
        moved = [pair for pair in zip(self.old_keys, self.new_keys, strict=True) if pair[0] != pair[1]]
        return len(moved) == 2 and moved[0] == moved[1][::-1]


def _words(raws: Iterable[str]) -> Iterator[Word]:
    for raw in raws:
        if _TIME.fullmatch(raw):
            yield Word(raw.removeprefix("0"), raw)
            continue
        for piece in pieces_of(raw):
            if piece.grams:
                yield from (Word(part, part, spaced=False) for part in _CHARACTER.findall(piece.surface))
            else:
                yield Word(_key(piece.surface), raw)


def _key(surface: str) -> str:
    if surface.isdecimal():
        return surface.lstrip("0") or "0"
    return _DIGITS.get(surface) or without_accents(surface)


def _content(keys: list[str]) -> list[str]:
    return [key for key in keys if key not in _STOP_WORDS and not _NEGATION.fullmatch(key)] or keys


def _is_number(key: str) -> bool:
    return key[:1].isdecimal() or key.startswith(tuple(_NUMERALS))


def _same_word(one: str, other: str) -> bool:
    """Return whether two words are forms of one word."""
    if one == other + "s" or other == one + "s":
        return True
    pairs = zip(one, other, strict=False)
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return one.isalpha() and other.isalpha() and common >= max(BEGINNING, SAME_FORM * max(len(one), len(other)))


def _unmatched(old: Sequence[str], new: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words of each that have no counterpart in the other, in their order; equal words are paired first."""
    gone, added = _without(old, new), _without(new, old)
    for word in list(gone):
        start = word[:2]
        found = next((other for other in added if other.startswith(start) and _same_word(word, other)), None)
        if found is not None:
            gone.remove(word)
            added.remove(found)
    return gone, added


def _without(found: Sequence[str], others: Sequence[str]) -> list[str]:
    left, kept = Counter(others), []
    for word in found:
        if left[word] > 0:
            left[word] -= 1
        else:
            kept.append(word)
    return kept


def _in_both(pattern: re.Pattern[str], old: str, new: str) -> bool:
    return not set(pattern.findall(old)).isdisjoint(pattern.findall(new))


def _number(found: Sequence[Word], unmatched: Sequence[str]) -> str:
    """Return the first number that the other statement lacks, as written; empty if there is none."""
    return next((word.written for word in found if _is_number(word.key) and word.key in unmatched), "")


def _written(found: Sequence[Word], unmatched: Sequence[str]) -> str:
    """Return the words of a place as written, from the first to the last that the other statement lacks."""
    at = [n for n, word in enumerate(found) if word.key in unmatched]
    shown = found[at[0] : at[-1] + 1] if at else ()
    once = [word for n, word in enumerate(shown) if n == 0 or word.written != shown[n - 1].written]  # eu-west-1 is one
    return "".join(f"{word.written} " if word.spaced else word.written for word in once).strip()
