"""Something newer supersedes this document: which one is shown in its place?

The newest: from each document one step to its newest direct successor, until there is none. Every document has at most
one next step, so all that lead to the same end agree on it. Where the steps run in a circle, documents supersede each
other and the one created last stands for all of them. A successor that the filter does not allow is not stepped to:
within a scope, and at a moment, the newest is the newest of what may be seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from trivet.types import Candidate, Key, Succession

Allowed = Callable[[Key], bool]


class Chains:
    """The successions among some documents, under one filter."""

    def __init__(self, found: Iterable[Succession], allowed: Allowed) -> None:
        self._next: dict[Key, Key] = {}
        self._age: dict[Key, tuple[float, str]] = {}
        self._ids: dict[Key, str] = {}
        self._ends: dict[Key, Key] = {}
        for item in found:
            self._ids[item.old] = item.old_id
            if item.old == item.new or not allowed(item.new):
                continue
            self._age[item.new] = (item.created, item.new_id)
            best = self._next.get(item.old)
            if best is None or self._age[item.new] > self._age[best]:
                self._next[item.old] = item.new
            self._ids[item.new] = item.new_id

    def id_of(self, key: Key) -> str:
        return self._ids[key]

    def newest(self, key: Key) -> Key:
        """The end of its steps. It is remembered for all of them: a chain of n is walked once, not n times."""
        path: dict[Key, None] = {}  # in order, and quick to look into
        end = key
        while end not in self._ends and end not in path:
            path[end] = None
            if (following := self._next.get(end)) is None:
                break
            end = following
        else:
            if end in self._ends:
                end = self._ends[end]
            else:
                circle = list(path)[list(path).index(end) :]
                end = max(circle, key=lambda member: self._age[member])
        self._ends.update(dict.fromkeys(path, end))
        return end

    def follow(self, pool: Sequence[Candidate], shown: Allowed) -> tuple[list[Candidate], dict[Key, tuple[str, ...]]]:
        """The pool with every superseded candidate replaced in its place, and key → the ids it stands for.

        Nothing is there twice: the best place counts. What is left out by name (``shown``) leaves its predecessors
        out as well: who has the newest already must not be given an older one for it.
        """
        kept: dict[Key, Candidate] = {}
        stands_for: dict[Key, tuple[str, ...]] = {}
        for candidate in pool:
            key = self.newest(candidate.key)
            if key != candidate.key:
                if not shown(key):
                    continue
                stands_for[key] = (*stands_for.get(key, ()), self._ids[candidate.key])
            if key not in kept:
                kept[key] = candidate if key == candidate.key else replace(candidate, key=key)
        return list(kept.values()), stands_for
