"""Supersession: the document that is shown in the place of one that newer documents supersede.

It is found by steps from each document to its newest direct successor, until there is none. A document has at most one
next step, so all documents of a chain have the same end. If the steps run in a circle, the document of the circle that
was created last is the end. A successor that the filter does not allow is ignored: the end is the newest document that
the caller may see.

Everyone who may write may write links, so one search follows a limited number of them (``walk``) and reports where it
stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from trivet.types import SUPERSEDES, Candidate, Key, Succession, Successions

Allowed = Callable[[Key], bool]
#: ``(documents, most) -> (their direct successions, links read)``, at most ``most`` links. The two numbers differ where
#: a link names a document that is not in the collection.
Step = Callable[[Sequence[int], int], tuple[list[Succession], int]]

#: Links of one kind that one search reads. SQLite reads 10,000 in 10 ms level by level, in 90 ms one by one.
MAX_LINKS = 10_000
#: Links in a row that are followed on a server: two queries each, 0.6 ms on one machine. SQLite takes 9 µs, unlimited.
MAX_STEPS = 1_000
TOO_MANY = (
    f"the candidates have more than {MAX_LINKS:,} {{kind}} links; only the first {MAX_LINKS:,} were followed, "
    "so the hits may be out of date"
)
TOO_LONG = (
    "a chain of more than {steps:,} documents that supersede each other; only the first {steps:,} were followed, so "
    "the hits may be out of date"
)


def walk(start: Sequence[int], step: Step, steps: int | None = None) -> Successions:
    """Return the successions of ``start`` and of their successors, level by level, within the limits.

    Every document is read once, so the work is linear in the links, even if they form circles.
    """
    found: list[Succession] = []
    steps = MAX_LINKS if steps is None else steps
    waiting = list(dict.fromkeys(start))
    seen, left = set(waiting), MAX_LINKS
    for depth in range(steps + 1):  # the last round only shows whether the chain goes on
        if not waiting:
            break
        rows, read = step(waiting, left + 1)
        if rows and depth == steps:
            return Successions(tuple(found), TOO_LONG.format(steps=steps))
        if read > left:
            return Successions((*found, *rows[:left]), TOO_MANY.format(kind=SUPERSEDES))
        found += rows
        left -= read
        waiting = [did for did in dict.fromkeys(int(row.new) for row in rows) if did not in seen]
        seen.update(waiting)
    return Successions(tuple(found))


class Chains:
    """The successions among some documents, under one filter."""

    def __init__(self, found: Iterable[Succession], allowed: Allowed) -> None:
        self._next: dict[Key, Key] = {}
        self._age: dict[Key, tuple[float, str]] = {}
        self._ids: dict[Key, str] = {}
        self._end: dict[Key, Key] = {}
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
        """Return the id of a document that is part of a succession."""
        return self._ids[key]

    def newest(self, key: Key) -> Key:
        """Return the end of the chain of ``key``. Ends are cached, so no step is taken twice."""
        path: dict[Key, None] = {}
        at = key
        while at not in self._end and at not in path:
            path[at] = None
            if (following := self._next.get(at)) is None:
                self._end[at] = at
            else:
                at = following
        if at not in self._end:
            steps = list(path)
            self._end[at] = max(steps[steps.index(at) :], key=lambda member: self._age[member])
        self._end.update(dict.fromkeys(path, self._end[at]))
        return self._end[at]

    def follow(self, pool: Sequence[Candidate], shown: Allowed) -> tuple[list[Candidate], dict[Key, tuple[str, ...]]]:
        """Return the pool with every superseded candidate replaced, and the superseded ids by their replacement.

        A replacement that several candidates lead to has the best of their places. A replacement that ``shown`` refuses
        is dropped with its predecessors: a caller who excludes the newest must not get an older one instead.
        """
        kept: dict[Key, Candidate] = {}
        stands_for: dict[Key, list[str]] = {}
        for candidate in pool:
            key = self.newest(candidate.key)
            if key != candidate.key:
                if not shown(key):
                    continue
                stands_for.setdefault(key, []).append(self._ids[candidate.key])
            if key not in kept:
                kept[key] = candidate if key == candidate.key else replace(candidate, key=key)
        return list(kept.values()), {key: tuple(ids) for key, ids in stands_for.items()}
