"""Which documents do the others' best lead to?

A *seeded* leg: asked after the first wave, with the heads of its rankings. A head counts by its rank and by how strong
it is on an absolute scale, so the mass that is walked with, and every score here, is at most 1, and what the walk
reaches is never more certain than what it began with. Documents whose title the question names are seeds too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from trivet.legs.question import Question, ranking
from trivet.types import Ranking

if TYPE_CHECKING:
    from trivet.graph.block import Graph as Blocks
    from trivet.graph.walk import Tie

HEADS = 4  # of each ranking
ASKED = 0.2  # of the mass, for documents whose title is in the question
FAINT = 0.03  # of the mass; where no document gets that much, nothing is connected, however the list is normalised
CEILING = 0.5  # half of all that set out came here: as connected as a document can be


class Connections(Protocol):
    def graph(self, version: int) -> Blocks:
        """Who names what, in everything the store held at that version."""

    def ties(self, dids: Sequence[int], version: int) -> Sequence[Tie]:
        """What these documents are tied to."""


@dataclass(frozen=True, slots=True)
class Graph:
    concepts: Callable[[str], Iterable[str]]
    connections: Connections
    name: str = "graph"

    def rank(self, question: Question, depth: int) -> Ranking:
        from trivet.graph.walk import walk

        graph = self.connections.graph(question.version)
        seeds = self._seeds(question, graph)
        if not seeds:
            return Ranking(self.name, notes=("nothing to begin at",))
        reached = walk(
            graph,
            lambda dids: self.connections.ties(dids, question.version),
            seeds,
            None if question.scope is None else question.scope.rows,
            depth,
        )
        if not reached or reached[0].score < FAINT:
            return Ranking(self.name, notes=("no clear way from the seeds",))
        found = [item for item in reached if question.gate is None or item.score >= question.gate]
        listed = ranking(
            self.name,
            [(item.score, item.pid, item.did) for item in found],
            ceiling=CEILING,
            notes=(f"from {len(seeds)} seeds",),
        )
        return replace(listed, paths=tuple(item.path for item in found))

    def _seeds(self, question: Question, graph: Blocks) -> dict[int, float]:
        """Document → mass, in all at most 1."""
        titled = self._titled(question, graph)
        share = 1.0 - ASKED if titled else 1.0
        seeds = {int(key): mass * share for key, mass in question.seeds}
        for did in titled:
            seeds[did] = seeds.get(did, 0.0) + ASKED / len(titled)
        return seeds

    def _titled(self, question: Question, graph: Blocks) -> list[int]:
        """Documents whose title the question names, where that is not a crowd."""
        import numpy as np

        from trivet.concepts import digest
        from trivet.graph.block import TITLE
        from trivet.graph.walk import HUB

        asked = np.array(sorted({digest(key) for key in self.concepts(question.text)}), dtype=np.uint64)
        naming = graph.naming(asked[graph.frequency(asked) <= HUB])
        dids = np.unique(naming.did[(naming.mark & TITLE) > 0])
        if question.scope is not None:
            dids = dids[question.scope.rows(dids)]
        return [int(did) for did in dids] if len(dids) <= HUB else []


def heads(rankings: Sequence[Ranking]) -> tuple[tuple[Any, float], ...]:
    """Where a walk begins: the first few of each ranking, each with its mass; in all at most 1."""
    mass: dict[Any, float] = {}
    whole = sum(1.0 / rank for listed in rankings for rank in range(1, min(HEADS, len(listed)) + 1))
    for listed in rankings:
        for rank, (key, score) in enumerate(zip(listed.keys[:HEADS], listed.scores[:HEADS], strict=True), start=1):
            mass[key] = mass.get(key, 0.0) + listed.strength(score) / rank / whole
    return tuple(mass.items())
