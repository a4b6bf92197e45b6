"""Weights per query by the score curves of the legs: a logistic model that was part of the default until ADR 38.

The balance of lexical and dense is a number from 0 to 1, and nDCG@10 as a function of it is known at 21 points of each
topic. The model is logistic in eight features; gradient ascent maximises the mean over the sets of the smoothed nDCG
at the chosen balance. ``generalisation.py`` fits it without the family that it judges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np

from trivet.types import Ranking

BALANCES = np.linspace(0, 1, 21)
TENTH = 9  # index of the tenth hit
PENALTY, STEPS, RATE = 1e-3, 600, 0.05


@dataclass(frozen=True, slots=True)
class Curves:
    """The topics of one set: their features, and nDCG@10 at every balance."""

    features: Any  # topics × 8
    values: Any  # topics × balances


@dataclass(frozen=True, slots=True)
class Model:
    """The coefficients, the intercept first, and mean and deviation of each feature."""

    weights: Any
    means: Any
    deviations: Any

    def judged(self, curves: Curves) -> Any:
        """Return nDCG@10 of each topic at the balance that the model chooses."""
        shift = self.weights[0] + (curves.features - self.means) / self.deviations @ self.weights[1:]
        return _at(curves.values, 1 / (1 + np.exp(-shift)))[0]


def features(text: str, lexical: Ranking, dense: Ranking) -> tuple[float, ...]:
    """Return best, tenth and spread of each leg's absolute strengths, the length of the query and its question mark."""
    return (*_curve(lexical), *_curve(dense), log(1 + len(text.split())), float("?" in text))


def _curve(ranking: Ranking) -> tuple[float, float, float]:
    values = [ranking.strength(score) for score in ranking.scores]
    return values[0], values[TENTH] if len(values) > TENTH else 0.0, float(np.std(values))


def learn(sets: Sequence[Curves]) -> Model:
    """Return the model fitted to these sets; every set has the same weight."""
    seen = np.concatenate([item.features for item in sets])
    values = np.concatenate([_smoothed(item.values) for item in sets])
    share = np.concatenate([np.full(len(item.features), 1 / len(item.features) / len(sets)) for item in sets])
    means, deviations = seen.mean(0), seen.std(0)
    rows = np.concatenate([np.ones((len(seen), 1)), (seen - means) / deviations], axis=1)
    weights = first = second = np.zeros(rows.shape[1])
    # Adam, slowing to a halt: at a constant rate it circles the top, and where it stops is a matter of rounding
    for step in range(1, STEPS + 1):
        balance = 1 / (1 + np.exp(-rows @ weights))
        slope = _at(values, balance)[1]
        gradient = PENALTY * np.r_[0, weights[1:]] - rows.T @ (share * slope * balance * (1 - balance))
        first, second = 0.9 * first + 0.1 * gradient, 0.99 * second + 0.01 * gradient**2
        rate = RATE * (1 - step / STEPS)
        weights = weights - rate * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.99**step)) + 1e-6)
    return Model(weights, means, deviations)


def _at(values: Any, balance: Any) -> tuple[Any, Any]:
    """Interpolate between the known points; return values and slopes."""
    place = np.clip(balance, 0, 1) * (len(BALANCES) - 1)
    left = np.minimum(place.astype(int), len(BALANCES) - 2)
    rows = np.arange(len(values))
    low, high = values[rows, left], values[rows, left + 1]
    return low + (high - low) * (place - left), (high - low) * (len(BALANCES) - 1)


def _smoothed(values: Any) -> Any:
    """Smooth nDCG over the balances with a Gaussian: it jumps where two documents change places."""
    kernel = np.exp(-0.5 * (np.arange(-6, 7) / 2.5) ** 2)
    padded = np.pad(values, ((0, 0), (6, 6)), mode="edge")
    return np.stack([padded[:, at : at + 13] @ (kernel / kernel.sum()) for at in range(values.shape[1])], axis=1)
