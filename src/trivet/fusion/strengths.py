"""How strong is every hit of a list, on an absolute scale?

``Ranking.strength`` for a whole list at once: fusion asks it of a hundred hits several times a question.
"""

from __future__ import annotations

from trivet.types import Ranking


def strengths(ranking: Ranking) -> list[float]:
    base = ranking.unrelated
    width = ranking.ceiling - base
    if width <= 0.0:
        return [0.0] * len(ranking.scores)
    values = [(score - base) / width for score in ranking.scores]
    return [1.0 if value > 1.0 else value if value > 0.0 else 0.0 for value in values]
