"""What is BM25 of a passage as an expression, and which are the best of some rows?"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from trivet.stores.contract import Found
from trivet.stores.postgres import terms
from trivet.stores.postgres.postings import K1, B


def score(weights: Mapping[str, float], average: float) -> tuple[str, list[str]]:
    """BM25 of a passage ``p`` by its ``tsvector``, and the expression's parameters."""
    norm = f"({K1 * (1.0 - B):.9g} + {K1 * B / max(1.0, average):.9g} * p.length)"
    parts, lexemes = [], []
    for term, weight in weights.items():
        count = f"width_bucket(ts_rank('{{1,1,1,1}}', p.words, %s::tsquery), '{_STEPS}'::real[])"
        parts.append(f"(SELECT {(K1 + 1.0) * weight:.9g} * n / (n + {norm}) FROM (SELECT {count} AS n OFFSET 0) t)")
        lexemes.append(terms.lexeme(term))
    return " + ".join(parts) or "0.0", lexemes


def best(rows: Sequence[tuple[Any, ...]], depth: int) -> list[Found]:
    """The best passage of each of the best ``depth`` documents.

    Sorted here: an index gives its rows in the order of its own, rounded scores, and the planner believes it.
    """
    found: dict[int, Found] = {}
    for score, pid, did in sorted(rows, key=lambda row: (-row[0], row[2], row[1])):
        found.setdefault(did, (float(score), pid, did))
        if len(found) == depth:
            break
    return list(found.values())


def _steps(most: int = 48) -> str:
    """Where ``ts_rank`` of one word goes from one count of it to the next.

    With all weights 1 it is the sum of 1/i² over the word's places, divided by the limit of that sum: so the number of
    places can be read off it. Counts past ``most`` are too close to tell and hardly matter, BM25 being saturated.
    """
    sums = [0.0]
    for count in range(1, most + 1):
        sums.append(sums[-1] + 1.0 / (count * count))
    middles = [(low + high) / 2 / 1.64493406685 for low, high in itertools.pairwise(sums)]
    return "{" + ",".join(f"{middle:.7f}" for middle in middles) + "}"


_STEPS = _steps()
