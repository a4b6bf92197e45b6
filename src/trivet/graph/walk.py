"""A random walk with restart over the graph: the documents that the seeds lead to.

Personalised PageRank from the seeds outwards, for ``HOPS`` steps. Each step goes on from the ``FRONT`` documents with
the most mass; with more, the mass is too thin to differ from noise. In each step a document gives its mass away in two
ways: along its edges (links, neighbours in a session, rare metadata values), and through the concepts that it names,
rarest first, to the other documents that name them. A document with the concept as its *title* is what the other one is
about. Any other document that shares a concept gets a twentieth of that, and only if both have a title: messages of a
conversation share names without being about them. Documents that are not visible are neither reached nor passed.

The constants were chosen on the even half of the topics of eight public datasets (docs/explanation/graph.md); the
scores are about the same around them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from trivet.graph.edges import Edge
from trivet.graph.mentions import TITLE, Bools, Ints, MentionGraph

HOPS, DECAY = 2, 0.5  # steps, and the factor of the mass for each step after the first
FRONT = 64  # documents that a step goes on from
EXPANDED = 16  # of those, documents whose edges are read
HUB = 50  # documents; a concept that more documents name connects nothing
RAREST = 12  # concepts of a document that are followed
ABOUT, SHARED_CONCEPT = (
    1.0,
    0.05,
)  # trust in a concept that is the title of one of the two, and in one that both only name
EDGES = 0.5  # share of a document's mass that goes along edges, if it has edges and concepts

Floats = npt.NDArray[np.float64]
Visible = Callable[[Ints], Bools]
EdgesOf = Callable[[Sequence[int]], Sequence[Edge]]
Path = tuple[int | str, ...]

_LARGEST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Reached:
    """The documents that a walk reached, best first, as columns of Python values."""

    dids: tuple[int, ...]
    scores: tuple[float, ...]
    pids: tuple[int, ...]
    paths: Paths

    def __len__(self) -> int:
        return len(self.dids)


class _Flow(NamedTuple):
    """The mass that moves in one step, as columns: from, to, how much, to which passage, along which connection."""

    source: Ints  # place among the documents walked from
    target: Ints
    mass: Floats
    pid: Ints
    connection: Ints  # place among the connections of the step: first its concepts, then its edges


@dataclass(slots=True)
class _Step:
    """The documents that one step reached, with their mass, and the rows of the flow that brought it."""

    walked: Ints  # the documents walked from
    concepts: Any  # keys of the concepts that were followed
    labels: list[str]  # of the edges that were followed
    flow: _Flow
    order: Ints  # the rows of the flow by target, then by source
    first: Ints  # where in ``order`` the rows of each target begin
    dids: Ints
    mass: Floats

    def best(self, dids: Ints) -> Ints:
        """Return for each of these documents the row that brought the most mass; of equal ones the oldest source's."""
        groups = np.searchsorted(self.dids, dids)
        starts = self.first[groups]
        counts = np.append(self.first, len(self.order))[groups + 1] - starts
        before = np.cumsum(counts) - counts
        rows = self.order[np.repeat(starts - before, counts) + np.arange(int(counts.sum()))]
        mass = self.flow.mass[rows]
        most = np.flatnonzero(mass == np.repeat(np.maximum.reduceat(mass, before), counts))
        return rows[most[np.searchsorted(most, before)]]


class Paths(Sequence[Path]):
    """The path to each document that was reached: a document, its connection, the next document … up to this one.

    A path is made when it is read: it explains a hit, and no score depends on it.
    """

    def __init__(self, graph: MentionGraph, steps: Sequence[_Step], hops: Ints, rows: Ints) -> None:
        """``hops``: the step that brought each document the most mass; ``rows``: the row of its flow that did."""
        self._graph, self._steps, self._hops, self._rows = graph, steps, hops, rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, at: Any) -> Any:
        return self.of(range(len(self)))[at]

    def __iter__(self) -> Iterator[Path]:
        return iter(self[:])

    def of(self, places: Sequence[int]) -> list[Path]:
        """Return the paths at these places, all at once."""
        at = np.array(places, dtype=np.int64)
        found: dict[int, Path] = {}
        for hop in range(len(self._steps)):
            chosen = at[self._hops[at] == hop]
            if len(chosen):
                paths = _paths(self._graph, self._steps[: hop + 1], self._rows[chosen])
                found.update(zip(chosen.tolist(), paths, strict=True))
        return [found[place] for place in at.tolist()]


def walk(
    graph: MentionGraph,
    edges_of: EdgesOf,
    seeds: Mapping[int, float],
    visible: Visible | None,
    depth: int,
) -> Reached:
    """Return the best ``depth`` documents that the seeds lead to, best first; other seeds may be among them."""
    dids = np.array(sorted(did for did, mass in seeds.items() if mass > 0.0), dtype=np.int64)
    if visible is not None:
        dids = dids[visible(dids)]
    mass = np.array([seeds[did] for did in dids.tolist()], dtype=np.float64)
    steps: list[_Step] = []
    for _ in range(HOPS):
        if len(dids) > FRONT:
            front = np.sort(_largest(mass, dids, FRONT))
            dids, mass = dids[front], mass[front]
        step = _step(graph, edges_of, dids, mass, visible)
        if step is None:
            break
        steps.append(step)
        dids, mass = step.dids, step.mass
    return _reached(graph, steps, depth)


def _step(graph: MentionGraph, edges_of: EdgesOf, dids: Ints, mass: Floats, visible: Visible | None) -> _Step | None:
    """Return where the mass of these documents goes; None where it goes nowhere."""
    along = _along_edges(edges_of, dids[_largest(mass, dids, EXPANDED)].tolist(), visible)
    pairs = _pairs(graph, dids, visible)
    at = np.searchsorted(dids, along.source)
    has_edge, has_concept = np.zeros((2, len(dids)), dtype=np.bool_)
    has_edge[at] = True
    has_concept[pairs.source] = True
    by_edge = mass * np.where(has_concept, EDGES, 1.0)
    by_concept = mass * np.where(has_edge, 1.0 - EDGES, 1.0)
    flow = _Flow(
        np.concatenate([pairs.source, at]),
        np.concatenate([pairs.target, along.target]),
        np.concatenate([by_concept[pairs.source] * pairs.share, by_edge[at] * along.share]),
        np.concatenate([pairs.pid, graph.first_passages(along.target)]),
        np.concatenate([pairs.connection, len(pairs.concepts) + np.arange(len(at))]),
    )
    if not len(flow.target):
        return None
    order = _ordered(flow.target, flow.source)
    targets = flow.target[order]
    begins = _begins(targets)
    first = np.flatnonzero(begins)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.cumsum(begins) - 1
    total: Floats = np.bincount(place, weights=flow.mass, minlength=len(first)).astype(np.float64, copy=False)
    return _Step(dids, pairs.concepts, along.labels, flow, order, first, targets[first], total)


class _AlongEdges(NamedTuple):
    """The edges of some documents, as columns."""

    source: Ints
    target: Ints
    share: Floats  # of what its source gives away
    labels: list[str]


def _along_edges(edges_of: EdgesOf, dids: Sequence[int], visible: Visible | None) -> _AlongEdges:
    found = [edge for edge in edges_of(dids) if edge.source != edge.target and edge.weight > 0.0] if dids else []
    if visible is not None and found:
        shown = visible(np.array([edge.target for edge in found], dtype=np.int64)).tolist()
        found = [edge for edge, is_shown in zip(found, shown, strict=True) if is_shown]
    sources, targets, weights, labels = map(list, zip(*found, strict=True)) if found else ([], [], [], [])
    source, weight = np.array(sources, dtype=np.int64), np.array(weights, dtype=np.float64)
    return _AlongEdges(
        source,
        np.array(targets, dtype=np.int64),
        weight / np.maximum(_sums(source, weight), 1.0),  # a weak edge carries little even if it is the only one
        labels,
    )


class _Pairs(NamedTuple):
    """Pairs of documents that share a concept, as columns, by source, then by concept, the rarest first."""

    source: Ints  # place among the documents walked from
    target: Ints
    pid: Ints
    connection: Ints  # place in ``concepts``
    share: Floats  # of what its source gives away
    concepts: Any  # keys of the concepts, once for each document that they are followed from


def _pairs(graph: MentionGraph, dids: Ints, visible: Visible | None) -> _Pairs:
    """Return the documents that these lead to through a concept."""
    source, keys, marks, frequency = _rarest(*graph.keys_by(dids), graph)
    naming = graph.naming_of(keys)
    if visible is not None:
        naming = naming.only(visible(naming.did))
    edges = naming.source
    about = ((marks[edges] | naming.mark) & TITLE) > 0
    both = graph.titled(dids)[source][edges] & naming.titled
    trust = np.where(about, ABOUT, np.where(both, SHARED_CONCEPT, 0.0))
    real = np.flatnonzero((trust > 0.0) & (naming.did != dids[source][edges]))
    edges, trust = edges[real], trust[real]
    # The concepts of a document share its mass by their weight: the rarity times the best trust they lead to.
    best = np.zeros(len(keys))
    np.maximum.at(best, edges, trust)
    weight = best * np.log(max(graph.documents, 2) / frequency)
    weight = np.where(best > 0.0, np.maximum(weight, 1e-6), 0.0)  # in a collection of a few documents nothing is rare
    # A document gives away the share of its mass that is its best trust, and no more.
    trusted = np.zeros(len(dids))
    np.maximum.at(trusted, source, best)
    share = (weight * trusted[source] / _total(source, weight, len(dids)))[edges]
    share = share * trust / _total(edges, trust, len(keys))
    return _Pairs(source[edges], naming.did[real], naming.pid[real], edges, share, keys)


def _rarest(source: Ints, keys: Any, marks: Any, graph: MentionGraph) -> tuple[Ints, Any, Any, Ints]:
    """Return the mentions of the ``RAREST`` rarest concepts of each document, with the frequency of each concept."""
    frequency = graph.frequency_of(keys)
    at = np.flatnonzero((frequency > 1) & (frequency <= HUB))
    # one number a mention is sorted several times as fast as three: its source, its frequency, then its concept
    packed = (source[at] * (HUB + 1) + frequency[at]) << 32 | graph.ranks_of(keys[at])
    at = at[np.argsort(packed)]
    first = np.searchsorted(source[at], source[at])
    at = at[np.arange(len(at)) - first < RAREST]
    return source[at], keys[at], marks[at], frequency[at]


def _ordered(target: Ints, source: Ints) -> Ints:
    """Return the rows ordered by target, source and place: one sort of one number each, several times as fast."""
    rows, sources = len(target).bit_length(), FRONT.bit_length()
    if int(target.max()) > _LARGEST >> (rows + sources):
        return np.lexsort((source, target))
    packed = (target << (rows + sources)) | (source << rows) | np.arange(len(target))
    packed.sort()
    return packed & ((1 << rows) - 1)


def _begins(values: Ints) -> Bools:
    """Return which of these sorted values differ from the one before."""
    begins = np.empty(len(values), dtype=np.bool_)
    begins[:1] = True
    np.not_equal(values[1:], values[:-1], out=begins[1:])
    return begins


def _reached(graph: MentionGraph, steps: list[_Step], depth: int) -> Reached:
    if not steps:
        return Reached((), (), (), Paths(graph, steps, np.zeros(0, np.int64), np.zeros(0, np.int64)))
    dids = np.sort(np.concatenate([step.dids for step in steps]))
    dids = dids[_begins(dids)]
    parts = np.zeros((len(steps), len(dids)))
    for hop, step in enumerate(steps):
        parts[hop, np.searchsorted(dids, step.dids)] = step.mass * DECAY**hop
    total = parts.sum(0)
    top = _largest(total, dids, depth)
    hops = parts[:, top].argmax(0)
    found, (rows, pids) = dids[top], np.zeros((2, len(top)), dtype=np.int64)
    for hop, step in enumerate(steps):
        at = np.flatnonzero(hops == hop)
        if len(at):
            rows[at] = step.best(found[at])
            pids[at] = step.flow.pid[rows[at]]
    paths = Paths(graph, steps, hops, rows)
    return Reached(tuple(found.tolist()), tuple(total[top].tolist()), tuple(pids.tolist()), paths)


def _paths(graph: MentionGraph, steps: Sequence[_Step], rows: Ints) -> list[Path]:
    """Return the path from its seed to each document that these rows of the last step's flow lead to."""
    dids = steps[-1].flow.target[rows]
    pieces: list[list[list[int | str]]] = [[[did] for did in dids.tolist()]]
    for step in reversed(steps):
        rows = rows if step is steps[-1] else step.best(dids)
        dids = step.walked[step.flow.source[rows]]
        names = _names(graph, step, step.flow.connection[rows].tolist())
        pieces.append([[did, name] for did, name in zip(dids.tolist(), names, strict=True)])
    return [tuple(part for piece in path for part in piece) for path in zip(*reversed(pieces), strict=True)]


def _names(graph: MentionGraph, step: _Step, connections: Sequence[int]) -> list[str]:
    """Return the name of each of these connections of a step."""
    count = len(step.concepts)
    concepts = {at: step.concepts[at] for at in connections if at < count}
    hashes = graph.hashes_of(np.array(list(concepts.values()), dtype=step.concepts.dtype))
    names = graph.written_all(hashes)
    named = dict(zip(concepts, map(names.__getitem__, hashes.tolist()), strict=True))
    return [named[at] if at < count else step.labels[at - count] for at in connections]


def _largest(mass: Floats, dids: Ints, count: int) -> Ints:
    """Return the places of the ``count`` largest, best first; of equal ones the oldest document first."""
    if len(mass) <= count:
        return np.lexsort((dids, -mass))
    likely = np.flatnonzero(mass >= np.partition(mass, len(mass) - count)[len(mass) - count])
    return likely[np.lexsort((dids[likely], -mass[likely]))][:count]


def _total(groups: Ints, values: Floats, count: int) -> Any:
    """Return for each value the sum of its group, of which there are ``count``; 1 where the sum is 0."""
    total = np.bincount(groups, weights=values, minlength=count)
    return np.where(total > 0.0, total, 1.0)[groups]


def _sums(keys: Ints, values: Floats) -> Any:
    """Return for each value the sum of its group, for groups that are named by any number."""
    if not len(keys):
        return np.ones(0)
    names, groups = np.unique(keys, return_inverse=True)
    return _total(groups, values, len(names))
