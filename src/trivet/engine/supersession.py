"""Replace superseded candidates by their newest successors, and find what resolves a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from trivet.engine.request import Plan, Pool
from trivet.graph.supersession import Chains
from trivet.types import Degraded, Key

if TYPE_CHECKING:
    from trivet.stores.contract import Collection, Scope


def follow(collection: Collection, plan: Plan, pool: Pool) -> Pool:
    """Give the place of every superseded candidate to the newest successor that may be seen.

    The whole pool is followed, so that the result does not depend on the page.
    """
    visible = plan.scope
    if plan.exclude:  # an excluded successor may still be passed through; one that the filter hides may not
        visible = collection.filters.recheck(plan.query.where, ())
    chains = _Chains(collection, visible, plan.scope)
    found, degraded = chains.of([int(candidate.key) for candidate in pool.candidates])
    found_as: dict[Key, Key] = {}
    for candidate in pool.candidates:
        found_as.setdefault(found.newest(candidate.key), candidate.key)
    candidates, stands_for = found.follow(pool.candidates, chains.shown)
    return replace(
        pool,
        candidates=candidates,
        stands_for=stands_for,
        found_as=found_as,
        resolve=chains.resolutions,
        degraded=degraded,
    )


class _Chains:
    """Chains of successors in one collection, under a filter."""

    def __init__(self, collection: Collection, visible: Scope | None, shown: Scope | None) -> None:
        """``visible`` documents may be passed through, ``shown`` ones may be hits."""
        self._links, self._visible, self._shown = collection.links, visible, shown

    def shown(self, key: Key) -> bool:
        return self._shown is None or int(key) in self._shown

    def _allowed(self, key: Key) -> bool:
        return self._visible is None or int(key) in self._visible

    def of(self, dids: Sequence[int]) -> tuple[Chains, tuple[Degraded, ...]]:
        read = self._links.successors(dids)
        self._expect([int(item.new) for item in read.found])
        return Chains(read.found, self._allowed), _cut(read.cut)

    def resolutions(self, dids: Sequence[int]) -> tuple[Mapping[int, tuple[str, ...]], tuple[Degraded, ...]]:
        """Map documents to the ids of those that resolve them, in their newest form."""
        read = self._links.resolutions(dids)
        known = {did: id for items in read.found.values() for did, id in items}
        if not known:
            return {}, _cut(read.cut)
        self._expect(list(known))
        newer, degraded = self.of(list(known))
        attached: dict[int, tuple[str, ...]] = {}
        for problem, items in read.found.items():
            ends = dict.fromkeys(int(newer.newest(did)) for did, _ in items)
            kept = [end for end in ends if end != problem and self.shown(end)]
            attached[problem] = tuple(known[end] if end in known else newer.id_of(end) for end in kept)
        return attached, tuple(dict.fromkeys((*_cut(read.cut), *degraded)))

    def _expect(self, dids: Sequence[int]) -> None:
        """Look all of them up at once: a server would be asked about each one otherwise."""
        scopes = (self._visible,) if self._visible is self._shown else (self._visible, self._shown)
        for scope in scopes:
            if scope is not None:
                scope.expect(dids)


def _cut(reason: str) -> tuple[Degraded, ...]:
    """Report that not every link was followed."""
    return (Degraded("links", reason),) if reason else ()
