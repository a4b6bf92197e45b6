"""Explanations of one document (``Engine.explain``): its rank and score in every leg, or why it is no hit.

Each leg is asked about this one document, however far down it is. The explanation that every hit carries is made where
its score is: the contributions in ``fusion/pool.py``, the adjustments in ``rerank/reranker.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from trivet.engine.hits import walk_paths
from trivet.profile import MAX_K
from trivet.types import Explanation, Hit, LegVerdict, Ranking

if TYPE_CHECKING:
    from trivet.engine.request import Plan, Retrieved
    from trivet.legs.leg import Leg
    from trivet.stores.contract import Collection
    from trivet.types import Results


class Explainer:
    """Explains documents for a search that has been run."""

    def __init__(self, collection: Collection, plan: Plan, retrieved: Retrieved, weights: Mapping[str, float]) -> None:
        self._collection, self._plan, self._retrieved, self._weights = collection, plan, retrieved, weights
        self._setup, self._profile = plan.setup, plan.setup.profile

    def explain(self, query: str, id: str, did: int, results: Results) -> Explanation:
        """Return the explanation of the document with this id and number."""
        hit = next((hit for hit in results.hits if hit.id == id), None)
        successor = next((hit for hit in results.hits if id in hit.stands_for), None)
        verdicts = tuple(self._verdict(leg, did) for leg in self._plan.legs)
        reason = self._reason(hit, successor, did, verdicts)
        return Explanation(query, id, hit.rank if hit else None, verdicts, self._setup.name, hit, reason)

    def _verdict(self, leg: Leg, did: int) -> LegVerdict:
        weight, depth = self._weights[leg.name], self._setup.depths[leg.name]
        ranking = next((ranking for ranking in self._retrieved.rankings if ranking.leg == leg.name), Ranking(leg.name))
        if did in ranking.keys:
            at = ranking.keys.index(did)
            path = self._path(ranking, did) if ranking.paths else ""
            found = ranking.scores[at]
            return LegVerdict(leg.name, weight, at + 1, found, depth, ranking.strength(found), path)
        if failed := next((item.reason for item in self._retrieved.degraded if item.part == leg.name), ""):
            return LegVerdict(leg.name, weight, None, None, depth, note=f"did not answer: {failed}")
        query = self._retrieved.leg_queries[leg.name]
        score: float | None
        if leg.seeded:  # it reaches documents through others: ask for all that it reaches
            single = leg.rank(replace(query, gate=None), MAX_K)
            score = dict(zip(single.keys, single.scores, strict=True)).get(did)
        else:
            alone = self._collection.filters.only(did)  # the same leg, asked about this one document
            single = leg.rank(replace(query, scope=alone, gate=None, match="any"), 1)
            score = single.scores[0] if single.keys else None
        if score is None:
            nothing = "not reached" if leg.seeded else "does not match"
            return LegVerdict(leg.name, weight, None, None, depth, note=nothing)
        gate = self._profile.gates.get(leg.name)
        if query.scope is not None and did not in query.scope:
            note = "left out by the filter or the exclusion"
        else:
            note = f"below the gate {gate:g}" if gate is not None and score < gate else f"not among the best {depth}"
        return LegVerdict(leg.name, weight, None, score, depth, single.strength(score), note)

    def _reason(self, hit: Hit | None, successor: Hit | None, did: int, verdicts: Sequence[LegVerdict]) -> str:
        if hit is not None:
            place = f", in the place of {', '.join(map(repr, hit.stands_for))}" if hit.stands_for else ""
            lifted = "" if hit.contributions else f", found by no leg: context {hit.adjustments[0].reason}"
            return f"rank {hit.rank}{place}{lifted}"
        if successor is not None:
            return f"superseded: {successor.id!r} is shown in its place, at rank {successor.rank}"
        queries = self._retrieved.leg_queries.values()
        if any(query.scope is not None and did not in query.scope for query in queries):
            return "left out by the filter or the exclusion"
        if not any(verdict.rank for verdict in verdicts):
            return "no leg has it among its best"
        limit = f"the best {self._profile.k} above relevance {self._profile.min_relevance:g}"
        return f"found, but not among {limit} after fusion and reranking"

    def _path(self, ranking: Ranking, did: int) -> str:
        """Return how the graph walk reached the document."""
        with self._collection.snapshot():
            scope = self._collection.filters.recheck(self._plan.query.where, self._plan.exclude)
            documents = self._collection.documents.fetch([did])
            return " → ".join(walk_paths(self._collection, [ranking], [did], documents, scope).get(did, ()))
