"""Something newer supersedes this document: which one is shown in its place?

The newest: from each document one step to its newest direct successor, until there is none. Every document has at most
one next step, so all that lead to the same end agree on it. Where the steps run in a circle, documents supersede each
other and the one created last stands for all of them. A successor that the filter does not allow is not stepped to:
within a scope, and at a moment, the newest is the newest of what may be seen.

Whoever may write may write links, so one search follows a bounded number of them (``walk``) and says where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from trivet.types import SUPERSEDES, Candidate, Key, Succession, Successions

Allowed = Callable[[Key], bool]
#: One step from these documents: their direct successions, and how many links were read for them, ``most`` at most. The
#: two differ where a link names a document that is not here.
Step = Callable[[Sequence[int], int], tuple[list[Succession], int]]

#: Links of one kind that one search reads. 10,000 take SQLite 10 ms in wide levels and 90 ms one after the other.
MAX_LINKS = 10_000
#: Links in a row on a server, which is asked twice for each: 0.6 ms on one machine. SQLite takes 9 µs and needs none.
MAX_STEPS = 1_000
TOO_MANY = (
    f"more than {MAX_LINKS:,} {{kind}} links lead on from what was found; only the first {MAX_LINKS:,} were followed, "
    "so what is shown may be out of date"
)
TOO_LONG = (
    "a chain of more than {steps:,} documents that supersede each other; only the first {steps:,} were followed, so "
    "what is shown may be out of date"
)


def walk(start: Sequence[int], step: Step, steps: int | None = None) -> Successions:
    """Collect the successions among ``start`` and everything that follows, level by level, within the bounds.

    Every document is asked for once, so the work is linear in the links, in circles too.
    """
    found: list[Succession] = []
    steps = MAX_LINKS if steps is None else steps
    waiting = list(dict.fromkeys(start))
    seen, left = set(waiting), MAX_LINKS
    for depth in range(steps + 1):  # the last one only tells whether the chain goes on
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
        return self._ids[key]

    def newest(self, key: Key) -> Key:
        """Return the end of the steps from ``key``. No step is taken twice, however many keys are asked for."""
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
        """The pool with every superseded candidate replaced in its place, and key → the ids it stands for.

        Nothing is there twice: the best place counts. What is left out by name (``shown``) leaves its predecessors
        out as well: who has the newest already must not be given an older one for it.
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
