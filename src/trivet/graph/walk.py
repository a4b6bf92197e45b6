"""Where do the seeds lead?

Personalised PageRank, walked from the seeds outwards for ``HOPS`` steps and cut to the ``FRONT`` likeliest documents of
each: past that the mass is too thin to be told from noise. In each step a document gives its mass to what it is
tied to (links, neighbours in a session, rare metadata) and, through the concepts it names, rarest first, to the
documents that name them too. A document whose *title* is the concept is what the other one talks about; any other
document that shares a concept is trusted with a twentieth of that, and only where both have a title: turns of a
conversation share names without being about them. What is not visible is neither reached nor walked through.

The constants were chosen on the even half of the topics of eight public sets (docs/GRAPH.md), which are level around
them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from trivet.graph.block import TITLE, Bools, Graph, Ints

HOPS, DECAY = 2, 0.5  # steps, and what a document two steps away is worth beside one step
FRONT = 64  # documents a step goes out from
TIED = 16  # of those, how many are asked for their ties
HUB = 50  # documents; what more than these name connects nothing
RAREST = 12  # concepts of a document that are followed
ABOUT, SHARED = 1.0, 0.05  # trust in a concept that is the title of one of the two, and in one both only name
TIES = 0.5  # of a document's mass, where it has ties and concepts both

Floats = npt.NDArray[np.float64]
Visible = Callable[[Ints], Bools]


class Tie(NamedTuple):
    """Two documents that belong together, whatever they say, and how: "next in session", "part-of"."""

    source: int
    target: int
    weight: float
    label: str


@dataclass(frozen=True, slots=True)
class Reached:
    """A document at the end of a walk. ``path``: a document, how it is connected, the next one … down to this one."""

    score: float
    did: int
    pid: int
    path: tuple[int | str, ...]


class _Flow(NamedTuple):
    """Mass on its way: from, to, how much, the passage it arrives at, and by which concept or tie."""

    source: Ints
    target: Ints
    mass: Floats
    pid: Ints
    concept: npt.NDArray[np.uint64]  # 0: by a tie
    tie: Ints


@dataclass(slots=True)
class _Step:
    """One hop: who was reached, with how much, by which way most of all."""

    dids: Ints
    mass: Floats
    best: Ints  # place in ``flow``
    flow: _Flow


def walk(
    graph: Graph,
    ties: Callable[[Sequence[int]], Sequence[Tie]],
    seeds: Mapping[int, float],
    visible: Visible | None,
    depth: int,
) -> list[Reached]:
    """The ``depth`` documents the seeds lead to, best first; a seed that another seed leads to is one of them."""
    dids = np.array(sorted(did for did, mass in seeds.items() if mass > 0.0), dtype=np.int64)
    if visible is not None:
        dids = dids[visible(dids)]
    mass = np.array([seeds[did] for did in dids.tolist()], dtype=np.float64)
    steps: list[_Step] = []
    labels: list[str] = []
    for _ in range(HOPS):
        front = np.sort(_largest(mass, dids, FRONT))
        dids, mass = dids[front], mass[front]
        flow = _out(graph, ties, dids, mass, visible, labels)
        if not len(flow.target):
            break
        steps.append(_arrived(flow))
        dids, mass = steps[-1].dids, steps[-1].mass
    return _reached(graph, steps, depth, labels)


def _out(
    graph: Graph,
    ties: Callable[[Sequence[int]], Sequence[Tie]],
    dids: Ints,
    mass: Floats,
    visible: Visible | None,
    labels: list[str],
) -> _Flow:
    tied = _tied(ties, dids[_largest(mass, dids, TIED)].tolist(), visible)
    pairs = _pairs(graph, dids, visible)
    at = np.searchsorted(dids, tied.source)
    both, named = np.zeros((2, len(dids)), dtype=np.bool_)
    both[at] = True
    named[pairs.source] = True
    by_tie = mass * np.where(named, TIES, 1.0)
    by_name = mass * np.where(both, 1.0 - TIES, 1.0)
    first = len(labels)
    labels.extend(tied.labels)
    return _Flow(
        np.concatenate([dids[pairs.source], tied.source]),
        np.concatenate([pairs.target, tied.target]),
        np.concatenate([by_name[pairs.source] * pairs.share, by_tie[at] * tied.share]),
        np.concatenate([pairs.pid, graph.first_passages(tied.target)]),
        np.concatenate([pairs.concept, np.zeros(len(at), dtype=np.uint64)]),
        np.concatenate([np.zeros(len(pairs.source), dtype=np.int64), first + np.arange(len(at), dtype=np.int64)]),
    )


class _Tied(NamedTuple):
    source: Ints
    target: Ints
    share: Floats  # of what its source gives away
    labels: list[str]


def _tied(ties: Callable[[Sequence[int]], Sequence[Tie]], dids: Sequence[int], visible: Visible | None) -> _Tied:
    found = [tie for tie in ties(dids) if tie.source != tie.target and tie.weight > 0.0] if dids else []
    if visible is not None and found:
        seen = visible(np.array([tie.target for tie in found], dtype=np.int64)).tolist()
        found = [tie for tie, shown in zip(found, seen, strict=True) if shown]
    source = np.array([tie.source for tie in found], dtype=np.int64)
    weight = np.array([tie.weight for tie in found], dtype=np.float64)
    return _Tied(
        source,
        np.array([tie.target for tie in found], dtype=np.int64),
        weight / np.maximum(_sums(source, weight), 1.0),  # faint ties, be they alone, carry little
        [tie.label for tie in found],
    )


class _Pairs(NamedTuple):
    source: Ints  # place among the documents walked from
    target: Ints
    pid: Ints
    concept: npt.NDArray[np.uint64]
    share: Floats  # of what its source gives away


def _pairs(graph: Graph, dids: Ints, visible: Visible | None) -> _Pairs:
    """Every document these lead to through a concept."""
    source, keys, marks = graph.keys_by(dids)
    unique, place = np.unique(keys, return_inverse=True)
    frequency = graph.frequency_of(unique)
    useful = (frequency > 1) & (frequency <= HUB)
    kept = _rarest(source, place, frequency[place], useful[place])
    source, marks = source[kept], marks[kept]
    followed, place = np.unique(place[kept], return_inverse=True)
    unique, frequency = unique[followed], frequency[followed]
    naming = graph.naming_of(unique)
    if visible is not None:
        naming = naming.only(visible(naming.did))
    order = np.argsort(naming.source, kind="stable")
    counts = np.bincount(naming.source, minlength=len(unique))
    many = counts[place]
    ends = np.cumsum(counts)
    edges = np.repeat(np.arange(len(place)), many)
    # the edges of a concept stand side by side: from its first one on
    other = order[np.repeat((ends - counts)[place] - (np.cumsum(many) - many), many) + np.arange(len(edges))]
    about = ((marks[edges] & TITLE) | (naming.mark[other] & TITLE)) > 0
    both = graph.titled(dids)[source[edges]] & naming.titled[other]
    trust = np.where(about, ABOUT, np.where(both, SHARED, 0.0))
    real = (trust > 0.0) & (naming.did[other] != dids[source[edges]])
    edges, other, trust = edges[real], other[real], trust[real]
    # a concept's say is its rarity, times the best trust it leads to; a document's concepts share its mass by that
    best = np.zeros(len(place))
    np.maximum.at(best, edges, trust)
    say = best * np.log(max(graph.documents, 2) / frequency[place])
    say = np.where(best > 0.0, np.maximum(say, 1e-6), 0.0)  # in a collection of a few documents nothing is rare
    # and no more of it goes out than the best of them is trusted with
    trusted = np.zeros(len(dids))
    np.maximum.at(trusted, source, best)
    share = (say * trusted[source] / _total(source, say, len(dids)))[edges] * trust / _total(edges, trust, len(place))
    return _Pairs(source[edges], naming.did[other], naming.pid[other], graph.hashes_of(unique)[place[edges]], share)


def _rarest(source: Ints, place: Ints, frequency: Ints, useful: Bools) -> Ints:
    """The edges to follow: of each document the ``RAREST`` concepts."""
    at = np.flatnonzero(useful)
    at = at[np.lexsort((place[at], frequency[at], source[at]))]
    first = np.searchsorted(source[at], source[at])
    return at[np.arange(len(at)) - first < RAREST]


def _arrived(flow: _Flow) -> _Step:
    order = np.argsort(flow.target, kind="stable")
    targets = flow.target[order]
    first = np.flatnonzero(np.concatenate([[True], targets[1:] != targets[:-1]]))
    counts = np.diff(np.append(first, len(targets)))
    groups = np.repeat(np.arange(len(first)), counts)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = groups
    # the best way to each: the most mass, then the oldest source
    largest = np.maximum.reduceat(flow.mass[order], first)
    likely = order[flow.mass[order] == largest[groups]]
    likely = likely[np.lexsort((flow.source[likely], place[likely]))]
    best = likely[np.searchsorted(place[likely], np.arange(len(first)))]
    mass: Floats = np.bincount(place, weights=flow.mass, minlength=len(first)).astype(np.float64)
    return _Step(targets[first], mass, best, flow)


def _reached(graph: Graph, steps: list[_Step], depth: int, labels: Sequence[str]) -> list[Reached]:
    if not steps:
        return []
    dids = np.unique(np.concatenate([step.dids for step in steps]))
    parts = np.zeros((len(steps), len(dids)))
    for hop, step in enumerate(steps):
        parts[hop, np.searchsorted(dids, step.dids)] = step.mass * DECAY**hop
    total = parts.sum(0)
    top = _largest(total, dids, depth)
    found: dict[int, Reached] = {}
    for hop in range(len(steps)):
        at = top[parts[:, top].argmax(0) == hop]
        pids, paths = _paths(graph, steps[: hop + 1], dids[at], labels)
        ends = zip(total[at].tolist(), dids[at].tolist(), pids, paths, strict=True)
        found.update((did, Reached(score, did, pid, path)) for score, did, pid, path in ends)
    return [found[did] for did in dids[top].tolist()]


def _paths(
    graph: Graph, steps: Sequence[_Step], dids: Ints, labels: Sequence[str]
) -> tuple[list[int], list[tuple[int | str, ...]]]:
    """For each of these documents, reached with the last step: the passage, and the way back to where it began."""
    edges = _edges(steps[-1], dids)
    pids: list[int] = steps[-1].flow.pid[edges].tolist()
    ways: list[list[list[int | str]]] = [[[did] for did in dids.tolist()]]
    for step in reversed(steps):
        edges = _edges(step, dids)
        concepts, ties = step.flow.concept[edges], step.flow.tie[edges].tolist()
        names = graph.written_all(concepts[concepts > 0])
        dids = step.flow.source[edges]
        by = [names[concept] if concept else labels[tie] for concept, tie in zip(concepts.tolist(), ties, strict=True)]
        ways.append([[did, name] for did, name in zip(dids.tolist(), by, strict=True)])
    return pids, [tuple(part for piece in path for part in piece) for path in zip(*reversed(ways), strict=True)]


def _edges(step: _Step, dids: Ints) -> Ints:
    """The best way to each."""
    return step.best[np.searchsorted(step.dids, dids)]


def _largest(mass: Floats, dids: Ints, count: int) -> Ints:
    """Places of the largest, best first; of equal ones the oldest document."""
    if len(mass) <= count:
        return np.lexsort((dids, -mass))
    likely = np.flatnonzero(mass >= np.partition(mass, len(mass) - count)[len(mass) - count])
    return likely[np.lexsort((dids[likely], -mass[likely]))][:count]


def _total(groups: Ints, values: Floats, count: int) -> Any:
    """For each value: the sum of its group, of which there are ``count``; 1 where that is nothing."""
    total = np.bincount(groups, weights=values, minlength=count)
    return np.where(total > 0.0, total, 1.0)[groups]


def _sums(keys: Ints, values: Floats) -> Any:
    """The same, for groups that have any number for a name."""
    if not len(keys):
        return np.ones(0)
    names, groups = np.unique(keys, return_inverse=True)
    return _total(groups, values, len(names))
