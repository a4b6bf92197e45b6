"""What do the hits say of each other, and of the question, that no leg has counted?

A leg sees one passage and a bag of words. Side by side there is more: how much of the question each passage holds,
which of its words stand together, whether the turn before or after answers too, whether the session does, who is
speaking. Every number is relative to the other hits, so that it means the same in every collection. Pure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain, pairwise
from math import log
from typing import Any, NamedTuple

from trivet.rerank.reranker import Places
from trivet.types import Hit

NEAR = 2  # places between two words of the question that stand together
HEAD = 20  # hits whose mean is what others are compared with
REACH = 4  # rows between two turns that were added one after the other, or nearly
GRAPH = "graph"  # the leg that knows ways
OTHERS = 3  # of a session's other hits, those that speak for it

#: Metadata by which documents are told to belong to one conversation; what they have of the second list goes with it.
SESSION_KEYS = ("session", "session_id", "thread", "thread_id", "conversation", "conversation_id")
AROUND_KEYS = ("scope", "project", "project_id", "user", "user_id")
SPEAKER_KEYS = ("role", "speaker")
_SESSION = frozenset(SESSION_KEYS)
ASSISTANTS = frozenset({"assistant", "ai", "bot", "model"})

_ASKS_WHEN = re.compile(
    r"\b(when|what (?:date|day|month|year|time)|wann|quand|cu[aá]ndo)\b|什么时候|何时|哪(?:天|年|月)|いつ|언제", re.I
)
_TIME = re.compile(
    r"\b(yesterday|today|tomorrow|tonight|ago|last|next|week|weekend|month|year|(?:mon|tues|wednes|thurs|fri|satur|sun)day|"
    r"january|february|march|april|may|june|july|august|september|october|november|december|"
    r"gestern|heute|morgen|woche|monat|jahr|hier|demain|semaine|mois|année|ayer|mañana|semana|mes|año|"
    r"\d{4}|\d{1,2}(?:st|nd|rd|th))\b|昨天|今天|明天|去年|今年|上周|下周|[年月日]",
    re.I,
)
_ADDRESSES = re.compile(r"\b(you|your|yours|dein\w*|vous|votre|usted|tú)\b|[你您]|あなた", re.I)
_WORD = re.compile(r"\w[\w'-]*")


class Evidence(NamedTuple):
    """One hit's, each about 0 to 1; what does not apply is 0."""

    words: float = 0.0  # how much of the question it holds, rare words counting more; of the best hit's
    runs: float = 0.0  # neighbouring words of the question that stand together; above the head's mean
    names: float = 0.0  # capitalised words of the question; above the head's mean
    neighbour: float = 0.0  # how good is the turn before or after it?
    session: float = 0.0  # how good are the others of its session?
    dated: float = 0.0  # the question asks when, and it speaks of a time
    assistant: float = 0.0  # said by an assistant, not by the one it serves
    addressed: float = 0.0  # and the question asks what was said to "you"
    connected: float = 0.0  # a way leads to it: it need not hold the question's words; of the clearest way's


def evidence(
    hits: Sequence[Hit],
    asked: str,
    content: Sequence[str],
    terms: Callable[[str], Sequence[str]],
    order: Mapping[str, int],
    places: Callable[[Sequence[str], Collection[str]], Mapping[str, Places]] | None = None,
) -> list[Evidence]:
    """``content`` are the question's terms, ``terms`` reads a passage as the index does, ``order`` tells in which order
    documents were added; ``places``, where it is lent, says what ``terms`` would find without reading."""
    if not hits:
        return []
    words, runs, names = _wording(hits, asked, content, terms, places)
    neighbour, session = _company(hits, order)
    connected = _connected(hits)
    asks_when = _ASKS_WHEN.search(asked) is not None
    to_you = _ADDRESSES.search(asked) is not None
    dated = [float(asks_when and _TIME.search(hit.passage.text) is not None) for hit in hits]
    spoken = [float(_by_assistant(hit.document.meta)) for hit in hits]
    addressed = spoken if to_you else [0.0] * len(hits)
    columns = (words, runs, names, neighbour, session, dated, spoken, addressed, connected)
    return [Evidence(*values) for values in zip(*columns, strict=True)]


# --- its words ------------------------------------------------------------------------------------------------------


def _wording(
    hits: Sequence[Hit],
    question: str,
    content: Sequence[str],
    terms: Callable[[str], Sequence[str]],
    known: Callable[[Sequence[str], Collection[str]], Mapping[str, Places]] | None,
) -> tuple[list[float], list[float], list[float]]:
    wanted = dict.fromkeys(content)
    named = {term for word in _capitalised(question) for term in terms(word)}
    sought = {*wanted, *named}
    found = known([hit.id for hit in hits], sought) if known is not None and sought else {}
    pairs = list(pairwise(wanted))
    held: list[list[str]] = []
    runs: list[float] = []
    names: list[float] = []
    for hit in hits:
        title, places = found[hit.id] if hit.id in found else _places(hit, sought, terms)
        held.append([term for term in wanted if term in places or term in title])
        together = sum(
            _stand_together(places[one], places[other]) for one, other in pairs if one in places and other in places
        )
        runs.append(together / len(pairs) if pairs else 0.0)
        names.append(sum(term in places or term in title for term in named) / len(named) if named else 0.0)
    frequency = Counter(chain.from_iterable(held))
    # how rare a word is among these hits: it is them that it has to tell apart
    rarity = {term: log(1.0 + (len(hits) - count + 0.5) / (count + 0.5)) for term, count in frequency.items()}
    covered = [sum(rarity[term] for term in terms_held) for terms_held in held]
    best = max(covered)
    return [value / best if best else 0.0 for value in covered], _above_head(runs), _above_head(names)


def _places(hit: Hit, sought: Collection[str], terms: Callable[[str], Sequence[str]]) -> Places:
    """Which of these terms the title has, and where each stands in the passage."""
    places: dict[str, list[int]] = {}
    for place, term in enumerate(terms(hit.passage.text)):
        if term in sought:
            places.setdefault(term, []).append(place)
    return set(terms(hit.document.title)).intersection(sought) if hit.document.title else set(), places


def _capitalised(question: str) -> list[str]:
    """Names, most likely: the first word is written so in any case."""
    words = list(_WORD.finditer(question))
    return [word.group() for word in words[1:] if word.group()[0].isupper()]


def _stand_together(one: Sequence[int], other: Sequence[int]) -> bool:
    return any(0 < right - left <= NEAR for left in one for right in other)


def _above_head(values: Sequence[float]) -> list[float]:
    mean = sum(values[:HEAD]) / len(values[:HEAD])
    return [value - mean for value in values]


# --- its company ----------------------------------------------------------------------------------------------------


def _company(hits: Sequence[Hit], order: Mapping[str, int]) -> tuple[list[float], list[float]]:
    """The best of the two turns next to it, and the mean of its session's best others; of the best hit's score."""
    neighbour, session = [0.0] * len(hits), [0.0] * len(hits)
    groups: dict[tuple[Any, ...], list[int]] = {}
    for at, hit in enumerate(hits):
        if key := session_of(hit.document.meta):
            groups.setdefault(key, []).append(at)
    if not groups:
        return neighbour, session
    low = min(hit.score for hit in hits)
    width = max(hit.score for hit in hits) - low or 1.0
    worth = [(hit.score - low) / width for hit in hits]
    for members in groups.values():
        ranked = sorted(members, key=lambda at: -worth[at])[: OTHERS + 1]
        for at in members:
            session[at] = sum([worth[other] for other in ranked if other != at][:OTHERS]) / OTHERS
        placed = sorted((order[hits[at].id], at) for at in members if hits[at].id in order)
        for (before, one), (after, other) in pairwise(placed):
            if after - before <= REACH:
                neighbour[one] = max(neighbour[one], worth[other])
                neighbour[other] = max(neighbour[other], worth[one])
    return neighbour, session


def _connected(hits: Sequence[Hit]) -> list[float]:
    ways = [max([item.raw for item in hit.contributions if item.leg == GRAPH], default=0.0) for hit in hits]
    clearest = max(ways)
    return [way / clearest if clearest > 0 else 0.0 for way in ways]


def session_of(meta: Mapping[str, Any]) -> tuple[Any, ...]:
    """What tells its conversation; empty where it is part of none."""
    if _SESSION.isdisjoint(meta):
        return ()
    return tuple((key, str(meta[key])) for key in (*SESSION_KEYS, *AROUND_KEYS) if key in meta)


def _by_assistant(meta: Mapping[str, Any]) -> bool:
    return any(str(meta[key]).lower() in ASSISTANTS for key in SPEAKER_KEYS if key in meta)
