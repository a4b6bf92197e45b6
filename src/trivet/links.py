"""What was found is superseded or resolved: what stands in its place, and what is attached to it?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from trivet.memory.succession import Chains
from trivet.types import Degraded, Key

if TYPE_CHECKING:
    from trivet.inquiry import Answers, Asked
    from trivet.stores.contract import Shelf


def follow(shelf: Shelf, asked: Asked, answers: Answers) -> None:
    """What is superseded gives its place to the newest that may be seen; in the whole pool, whatever the page."""
    within = asked.scope
    if asked.exclude:  # left out by name is another matter than not allowed
        within = shelf.recheck(asked.query.where, ())

    def allowed(key: Key) -> bool:
        return within is None or int(key) in within

    def shown(key: Key) -> bool:
        return asked.scope is None or int(key) in asked.scope

    def told(cut: str) -> None:
        if cut and (note := Degraded("links", cut)) not in answers.degraded:
            answers.degraded.append(note)

    def expect(dids: Sequence[int]) -> None:
        """One question for all of them: a server would be asked about each otherwise."""
        for scope in (within, asked.scope) if asked.exclude else (within,):
            if scope is not None:
                scope.expect(dids)

    def chains(dids: Sequence[int]) -> Chains:
        read = shelf.successors(dids)
        told(read.cut)
        expect([int(item.new) for item in read.found])
        return Chains(read.found, allowed)

    found = chains([int(candidate.key) for candidate in answers.pool])
    for candidate in answers.pool:
        answers.found_as.setdefault(found.newest(candidate.key), candidate.key)
    answers.pool, answers.stands_for = found.follow(answers.pool, shown)
    answers.resolved = lambda dids: _resolved(shelf, dids, chains, shown, told, expect)


def _resolved(
    shelf: Shelf,
    dids: Sequence[int],
    chains: Callable[[Sequence[int]], Chains],
    shown: Callable[[Key], bool],
    told: Callable[[str], None],
    expect: Callable[[Sequence[int]], None],
) -> dict[int, tuple[str, ...]]:
    """What resolves these documents, in its newest form."""
    read = shelf.resolutions(dids)
    told(read.cut)
    known = {did: id for items in read.found.values() for did, id in items}
    if not known:
        return {}
    expect(list(known))
    newer = chains(list(known))
    attached: dict[int, tuple[str, ...]] = {}
    for problem, items in read.found.items():
        ends = dict.fromkeys(int(newer.newest(did)) for did, _ in items)
        kept = [end for end in ends if end != problem and shown(end)]
        attached[problem] = tuple(known[end] if end in known else newer.id_of(end) for end in kept)
    return attached
