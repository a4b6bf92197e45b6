"""The graph leg: a random walk from the best candidates of the other legs.

It is seeded: it runs after the others. A seed counts by its rank and by its strength on an absolute scale, so the
seeds' mass and every score here are at most 1: what the walk reaches is never more certain than where it began.
Documents whose title the query names are seeds too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from trivet.legs.leg import LegContext, LegQuery
from trivet.types import Degraded, Ranking

if TYPE_CHECKING:
    from trivet.graph.mentions import MentionGraph
    from trivet.stores.contract import Collection, GraphIndex, State

SEEDS = 4  # best candidates of each ranking that become seeds
TITLED = 0.2  # share of the mass for documents whose title is in the query
FAINT = 0.03  # of the mass: if no document gets that much, nothing is connected
CEILING = 0.5  # of the mass: the most that a document can get


@dataclass(frozen=True, slots=True)
class Graph:
    """A random walk over mentions and edges, from the best candidates of the other legs."""

    collection: Collection
    index: GraphIndex
    name: ClassVar[str] = "graph"
    seeded: ClassVar[bool] = True
    incomplete: ClassVar[str] = ""

    @classmethod
    def build(cls, context: LegContext) -> Graph | Degraded:
        index = context.collection.graph
        if index is None:
            return Degraded("graph", "this store keeps no graph index")
        return cls(context.collection, index)

    def is_current(self, state: State) -> bool:
        return self.index.is_current(state)

    def rank(self, query: LegQuery, depth: int) -> Ranking:
        from trivet.graph.walk import walk

        graph = self.index.mentions(query.version)
        seeds = self._seeds(query, graph)
        if not seeds:
            return Ranking(self.name, notes=("no seeds",))
        reached = walk(
            graph,
            lambda dids: self.index.edges(dids, query.version, query.sessions),
            seeds,
            None if query.scope is None else query.scope.rows,
            depth,
        )
        if not reached or reached.scores[0] < FAINT:
            return Ranking(self.name, notes=("nothing is connected with the seeds",))
        enough = len(reached) if query.gate is None else sum(score >= query.gate for score in reached.scores)
        return Ranking(
            self.name,
            reached.dids[:enough],
            reached.scores[:enough],
            reached.pids[:enough],
            ceiling=CEILING,
            notes=(f"from {len(seeds)} seeds",),
            seeded=True,
            paths=reached.paths if enough == len(reached) else reached.paths[:enough],
        )

    def _seeds(self, query: LegQuery, graph: MentionGraph) -> dict[int, float]:
        """Map documents to their mass; at most 1 in all."""
        titled = self._titled(query, graph)
        share = 1.0 - TITLED if titled else 1.0
        seeds = {int(key): mass * share for key, mass in query.seeds}
        for did in titled:
            seeds[did] = seeds.get(did, 0.0) + TITLED / len(titled)
        return seeds

    def _titled(self, query: LegQuery, graph: MentionGraph) -> list[int]:
        """Return the documents whose title the query names, unless they are many."""
        import numpy as np

        from trivet.graph.mentions import TITLE
        from trivet.graph.walk import HUB
        from trivet.text.concepts import concepts, digest

        named = concepts(query.text, stop_words=self.collection.analyzer.stop_words)
        keys = np.array(sorted({digest(key) for key in named}), dtype=np.uint64)
        naming = graph.naming(keys[graph.frequency(keys) <= HUB])
        dids = np.unique(naming.did[(naming.mark & TITLE) > 0])
        if query.scope is not None:
            dids = dids[query.scope.rows(dids)]
        return [int(did) for did in dids] if len(dids) <= HUB else []


def heads(rankings: Sequence[Ranking]) -> tuple[tuple[Any, float], ...]:
    """Return the seeds of a walk: the first few of each ranking with their mass, at most 1 in all."""
    mass: dict[Any, float] = {}
    whole = sum(1.0 / rank for listed in rankings for rank in range(1, min(SEEDS, len(listed)) + 1))
    for listed in rankings:
        for rank, (key, score) in enumerate(zip(listed.keys[:SEEDS], listed.scores[:SEEDS], strict=True), start=1):
            mass[key] = mass.get(key, 0.0) + listed.strength(score) / rank / whole
    return tuple(mass.items())
