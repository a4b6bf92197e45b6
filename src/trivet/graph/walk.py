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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from trivet.graph.edges import Edge
from trivet.graph.mentions import TITLE, Bools, Graph, Ints

HOPS, DECAY = 2, 0.5  # steps, and the factor of the mass for each step after the first
FRONT = 64  # documents that a step goes on from
EXPANDED = 16  # of those, documents whose edges are read
HUB = 50  # documents; a concept that more documents name connects nothing
RAREST = 12  # concepts of a document that are followed
ABOUT, SHARED = 1.0, 0.05  # trust in a concept that is the title of one of the two, and in one that both only name
EDGES = 0.5  # share of a document's mass that goes along edges, if it has edges and concepts

Floats = npt.NDArray[np.float64]
Visible = Callable[[Ints], Bools]


EdgesOf = Callable[[Sequence[int]], Sequence[Edge]]


@dataclass(frozen=True, slots=True)
class Reached:
    """A document that the walk reached. ``path``: a document, its connection, the next document … up to this one."""

    score: float
    did: int
    pid: int
    path: tuple[int | str, ...]


class _Flow(NamedTuple):
    """The mass that moves in one step, as columns: from, to, how much, to which passage, by which concept or edge."""

    source: Ints
    target: Ints
    mass: Floats
    pid: Ints
    concept: npt.NDArray[np.uint64]  # 0: along an edge
    edge: Ints  # place among the labels


@dataclass(slots=True)
class _Step:
    """The documents that one step reached, with their mass."""

    dids: Ints
    mass: Floats
    best: Ints  # place in ``flow`` of the row that brought the most mass
    flow: _Flow


def walk(
    graph: Graph,
    edges_of: EdgesOf,
    seeds: Mapping[int, float],
    visible: Visible | None,
    depth: int,
) -> list[Reached]:
    """Return the best ``depth`` documents that the seeds lead to, best first; other seeds may be among them."""
    dids = np.array(sorted(did for did, mass in seeds.items() if mass > 0.0), dtype=np.int64)
    if visible is not None:
        dids = dids[visible(dids)]
    mass = np.array([seeds[did] for did in dids.tolist()], dtype=np.float64)
    steps: list[_Step] = []
    labels: list[str] = []
    for _ in range(HOPS):
        front = np.sort(_largest(mass, dids, FRONT))
        dids, mass = dids[front], mass[front]
        flow = _flow(graph, edges_of, dids, mass, visible, labels)
        if not len(flow.target):
            break
        steps.append(_arrived(flow))
        dids, mass = steps[-1].dids, steps[-1].mass
    return _reached(graph, steps, depth, labels)


def _flow(
    graph: Graph, edges_of: EdgesOf, dids: Ints, mass: Floats, visible: Visible | None, labels: list[str]
) -> _Flow:
    """Return the mass that these documents give away; append the labels of their edges to ``labels``."""
    along = _along_edges(edges_of, dids[_largest(mass, dids, EXPANDED)].tolist(), visible)
    pairs = _pairs(graph, dids, visible)
    at = np.searchsorted(dids, along.source)
    has_edge, has_concept = np.zeros((2, len(dids)), dtype=np.bool_)
    has_edge[at] = True
    has_concept[pairs.source] = True
    by_edge = mass * np.where(has_concept, EDGES, 1.0)
    by_concept = mass * np.where(has_edge, 1.0 - EDGES, 1.0)
    first = len(labels)
    labels.extend(along.labels)
    return _Flow(
        np.concatenate([dids[pairs.source], along.source]),
        np.concatenate([pairs.target, along.target]),
        np.concatenate([by_concept[pairs.source] * pairs.share, by_edge[at] * along.share]),
        np.concatenate([pairs.pid, graph.first_passages(along.target)]),
        np.concatenate([pairs.concept, np.zeros(len(at), dtype=np.uint64)]),
        np.concatenate([np.zeros(len(pairs.source), dtype=np.int64), first + np.arange(len(at), dtype=np.int64)]),
    )


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
    source = np.array([edge.source for edge in found], dtype=np.int64)
    weight = np.array([edge.weight for edge in found], dtype=np.float64)
    return _AlongEdges(
        source,
        np.array([edge.target for edge in found], dtype=np.int64),
        weight / np.maximum(_sums(source, weight), 1.0),  # a weak edge carries little even if it is the only one
        [edge.label for edge in found],
    )


class _Pairs(NamedTuple):
    """Pairs of documents that share a concept, as columns."""

    source: Ints  # place among the documents walked from
    target: Ints
    pid: Ints
    concept: npt.NDArray[np.uint64]
    share: Floats  # of what its source gives away


def _pairs(graph: Graph, dids: Ints, visible: Visible | None) -> _Pairs:
    """Return the documents that these lead to through a concept."""
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
    # the rows of a concept are next to each other in ``order``, from its first one on
    other = order[np.repeat((ends - counts)[place] - (np.cumsum(many) - many), many) + np.arange(len(edges))]
    about = ((marks[edges] & TITLE) | (naming.mark[other] & TITLE)) > 0
    both = graph.titled(dids)[source[edges]] & naming.titled[other]
    trust = np.where(about, ABOUT, np.where(both, SHARED, 0.0))
    real = (trust > 0.0) & (naming.did[other] != dids[source[edges]])
    edges, other, trust = edges[real], other[real], trust[real]
    # The concepts of a document share its mass by their weight: the rarity times the best trust they lead to.
    best = np.zeros(len(place))
    np.maximum.at(best, edges, trust)
    weight = best * np.log(max(graph.documents, 2) / frequency[place])
    weight = np.where(best > 0.0, np.maximum(weight, 1e-6), 0.0)  # in a collection of a few documents nothing is rare
    # A document gives away the share of its mass that is its best trust, and no more.
    trusted = np.zeros(len(dids))
    np.maximum.at(trusted, source, best)
    share = (weight * trusted[source] / _total(source, weight, len(dids)))[edges]
    share = share * trust / _total(edges, trust, len(place))
    return _Pairs(source[edges], naming.did[other], naming.pid[other], graph.hashes_of(unique)[place[edges]], share)


def _rarest(source: Ints, place: Ints, frequency: Ints, useful: Bools) -> Ints:
    """Return the places of the ``RAREST`` rarest concepts of each document."""
    at = np.flatnonzero(useful)
    at = at[np.lexsort((place[at], frequency[at], source[at]))]
    first = np.searchsorted(source[at], source[at])
    return at[np.arange(len(at)) - first < RAREST]


def _arrived(flow: _Flow) -> _Step:
    """Sum the mass by target."""
    order = np.argsort(flow.target, kind="stable")
    targets = flow.target[order]
    first = np.flatnonzero(np.concatenate([[True], targets[1:] != targets[:-1]]))
    counts = np.diff(np.append(first, len(targets)))
    groups = np.repeat(np.arange(len(first)), counts)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = groups
    # the best row of each target: the most mass, then the oldest source
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
    """Return the passage of each of these documents, which the last step reached, and the path from its seed."""
    edges = _edges(steps[-1], dids)
    pids: list[int] = steps[-1].flow.pid[edges].tolist()
    pieces: list[list[list[int | str]]] = [[[did] for did in dids.tolist()]]
    for step in reversed(steps):
        edges = _edges(step, dids)
        concepts, places = step.flow.concept[edges], step.flow.edge[edges].tolist()
        names = graph.written_all(concepts[concepts > 0])
        dids = step.flow.source[edges]
        by = [names[concept] if concept else labels[at] for concept, at in zip(concepts.tolist(), places, strict=True)]
        pieces.append([[did, name] for did, name in zip(dids.tolist(), by, strict=True)])
    return pids, [tuple(part for piece in path for part in piece) for path in zip(*reversed(pieces), strict=True)]


def _edges(step: _Step, dids: Ints) -> Ints:
    """Return the row of the flow that brought the most mass to each document."""
    return step.best[np.searchsorted(step.dids, dids)]


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
