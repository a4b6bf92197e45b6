"""The rules by which documents are neighbours apart from their text: sessions, rare metadata values, links.

*Neighbours in a session* are documents with the same value under a session key and under each scope key that both have
(``text/conversation.py``; the numbers of sessions may start anew in every project). Their order is that of ``created``,
and of adding where that is the same. The turns of an assistant are skipped: it repeats what it was told, and beside a
right turn its own is a wrong answer (LongMemEval and BEAM: 0.02 and 0.04 nDCG@10).

Each store reads the rows in its own way and applies these rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from trivet.filters import flatten
from trivet.text.conversation import (
    GRAPH_SCOPE_KEYS,
    GRAPH_SESSION_KEYS,
    GRAPH_SPEAKER_KEYS,
    is_skipped,
)

#: Keys whose values many documents share in a large collection, and a few by chance in a small one.
NOT_SHARED = frozenset((*GRAPH_SESSION_KEYS, *GRAPH_SCOPE_KEYS, "role", "speaker", "sender", "triples"))
NEAR = 6  # documents of the session read on each side, in the order of adding; the nearest by time is among them
RARE = 8  # documents; a value that more of them have tells nothing
MOST_VALUES = 8  # values of a document's metadata that are looked up
LONGEST = 200  # characters of a value; a longer one is text
# Weight of a shared value, beside 1 for a neighbour in a session and a link's own weight. Alone it is too weak to bring
# a hit: at 0.25 the authors' other papers cost the ACL abstracts 0.004 nDCG@10.
SHARED_VALUE = 0.05
MOST_LINKS = 64  # of one document in one direction
HEAVIEST = 5.0  # a link's weight above this counts as this


class Edge(NamedTuple):
    """A connection of two documents that does not depend on their text, such as "part-of" or "next in session"."""

    source: int
    target: int
    weight: float
    label: str


def session_key(meta: Mapping[str, Any]) -> str | None:
    """Return the metadata key that names the document's session; None where it is in none."""
    return next(
        (name for name in GRAPH_SESSION_KEYS if isinstance(meta.get(name), str | int) and meta[name] != ""), None
    )


def follows(meta: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Tell whether a document of the same session can be the neighbour of the one with this metadata."""
    if is_skipped(other.get(name) for name in GRAPH_SPEAKER_KEYS):
        return False
    return all(meta[name] == other[name] for name in GRAPH_SCOPE_KEYS if name in meta and name in other)


def shared_values(meta: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the first few (key, value) that two documents could share; texts only: numbers repeat by chance."""
    found: list[tuple[str, str]] = []
    for name, content in meta.items():
        if name in NOT_SHARED:
            continue
        scalars = ((name, content),) if isinstance(content, str) else flatten({name: content}) if content else ()
        for key, value in scalars:
            if isinstance(value, str) and 0 < len(value) <= LONGEST and not value[:4].isdigit():
                found.append((key, value))
                if len(found) == MOST_VALUES:
                    return found
    return found
