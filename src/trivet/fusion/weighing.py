"""Weights per query: lower the weight of a leg that its own ranking shows to be out of place.

The weights of a profile are the prior. ``by_query`` changes them in two cases, each known from how a leg works and not
from judged queries: the model of the dense leg does not read the script of the query, or the rankings are too short for
the full weight of the graph leg. A leg of weight 0 stays at 0.

A model that shifts the balance of lexical and dense by their score curves does not hold on families of sets that it
was not fitted to (ADR 38), so there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import log

from trivet.plugins import Registry
from trivet.types import Ranking

LEXICAL, DENSE, GRAPH = "lexical", "dense", "graph"
LONG = 100  # hits: the depth at which the weight of the graph leg was chosen
#: Largest share of a dense leg whose model cannot read the script of the query. The scores on memdaily_zh are equal
#: from 0.02 to 0.2.
UNSUITED_SHARE = 0.1

#: ``(query text, rankings, the profile's weights) -> the weights of this query``
Weighing = Callable[[str, Sequence[Ranking], Mapping[str, float]], Mapping[str, float]]

WEIGHINGS: Registry[Weighing] = Registry(
    "weighing",
    "trivet.weighings",
    {"fixed": "trivet.fusion.weighing:fixed", "query": "trivet.fusion.weighing:by_query"},
)


def fixed(text: str, rankings: Sequence[Ranking], weights: Mapping[str, float]) -> Mapping[str, float]:
    """Return the weights of the profile."""
    return weights


def by_query(text: str, rankings: Sequence[Ranking], weights: Mapping[str, float]) -> Mapping[str, float]:
    """Return the weights of the profile, with less for a dense leg in a foreign script and a graph of short lists."""
    return _graph(rankings, _balance(rankings, weights))


def _graph(rankings: Sequence[Ranking], weights: Mapping[str, float]) -> Mapping[str, float]:
    """Lower the weight of the graph leg by the log of the length where the other rankings are short.

    The best hit of a short list is only a few standard deviations above the rest, so a full graph weight would lift a
    neighbour above the hit that it was reached from.
    """
    longest = max((len(ranking) for ranking in rankings if ranking.leg != GRAPH), default=0)
    if not weights.get(GRAPH) or longest >= LONG or not longest:  # alone, it has no list beside it
        return weights
    return {**weights, GRAPH: weights[GRAPH] * log(1 + longest) / log(1 + LONG)}


def _balance(rankings: Sequence[Ranking], weights: Mapping[str, float]) -> Mapping[str, float]:
    """Move weight from the dense to the lexical leg where the dense model cannot read the script of the query."""
    found = {ranking.leg: ranking for ranking in rankings if len(ranking)}
    if not {LEXICAL, DENSE} <= found.keys() or not weights[LEXICAL] or not weights[DENSE] or found[DENSE].suits_query:
        return weights
    total = weights[LEXICAL] + weights[DENSE]
    share = min(UNSUITED_SHARE, weights[DENSE] / total)
    return {**weights, LEXICAL: total * (1.0 - share), DENSE: total * share}
