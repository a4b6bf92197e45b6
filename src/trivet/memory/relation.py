"""The relation of a newer statement to an older one: same, updated, contradicting, related or unrelated.

Two logistic functions of what ``statements`` finds decide. The first says whether the newer statement says the same as
the older one or replaces it; the second, which of the two. ``benchmarks/remembering.py`` fits them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

from trivet.memory.statements import Difference, difference

SAME, UPDATED, CONTRADICTING, RELATED, UNRELATED = "same", "updated", "contradicting", "related", "unrelated"

#: What a newer statement does to the older one, for people.
VERBS = {
    SAME: "says the same as",
    UPDATED: "updates",
    CONTRADICTING: "contradicts",
    RELATED: "is similar to",
}

# Fitted to the half `fit` of benchmarks/remember/pairs.tsv: the constant, then one coefficient for each feature.
ABOUT_BY_WORDS = (-2.26, 4.37, 2.11, -1.55, -2.05)
ABOUT_BY_MEANING = (-3.23, 2.7, 1.92, -1.67, -1.81, 3.72)
REPLACES = (-0.86, 1.22, 1.77, 2.56, 1.78)
# Least probability at which a pair is reported, without and with the meaning, and at which it is a replacement.
BY_WORDS, BY_MEANING, REPLACED = 0.48, 0.54, 0.58
SAME_TOPIC = 0.2  # overlap from which two statements are related; the scaled cosine separates them less well


@dataclass(frozen=True, slots=True)
class Relation:
    """How a newer statement relates to an older one."""

    name: str
    probability: float  # that the newer one says the same or replaces the older one
    changed: str = ""  # what changed, as "24 → 13"
    omits: bool = False  # the older one has a number that the newer one lacks

    @property
    def reported(self) -> bool:
        return self.name in (SAME, UPDATED, CONTRADICTING)


def relate(old: str, new: str, meaning: float | None = None) -> Relation:
    """Return the relation of ``new`` to ``old``; ``meaning`` is their scaled cosine, None if it is unknown."""
    found = difference(old, new)
    about = probability(ABOUT_BY_WORDS if meaning is None else ABOUT_BY_MEANING, about_features(found, meaning))
    certain = found.other_number or about >= (BY_WORDS if meaning is None else BY_MEANING)
    if found.list_item or not certain:
        return Relation(RELATED if found.overlap >= SAME_TOPIC else UNRELATED, about)
    if found.swapped or probability(REPLACES, replaces_features(found)) >= REPLACED:
        return Relation(UPDATED if found.changes else CONTRADICTING, about, changed(found), found.omits)
    return Relation(SAME, about, omits=found.omits)


def scaled(cosine: float, unrelated: float) -> float:
    """Return a cosine scaled from 0 (that of unrelated texts) to 1."""
    return min(1.0, max(0.0, (cosine - unrelated) / (1.0 - unrelated))) if unrelated < 1.0 else 0.0


def about_features(found: Difference, meaning: float | None) -> tuple[float, ...]:
    """Return what the first decision is made from, each from 0 to 1.

    Words in common, those beyond the beginning, exchanges that no word of change explains, another subject, and the
    meaning, squared because only high values tell.
    """
    exchanges = 0.0 if found.changes else min(len(found.exchanges), 2) / 2
    by_words = (found.overlap, min(found.beyond, 3) / 3, exchanges, float(found.other_subject))
    return by_words if meaning is None else (*by_words, meaning**2)


def replaces_features(found: Difference) -> tuple[float, ...]:
    """Return what the second decision is made from, each from 0 to 1.

    Other numbers, a negation, a word of change, and how much of the wording is kept around an exchange.
    """
    wording = found.in_order if found.exchanges else 0.0
    return float(found.numbers is not None), float(found.negated), float(found.changes), wording


def probability(coefficients: tuple[float, ...], features: tuple[float, ...]) -> float:
    """Return the logistic function of the features."""
    constant, *rest = coefficients
    return 1 / (1 + exp(-constant - sum(a * b for a, b in zip(rest, features, strict=True))))


def changed(found: Difference) -> str:
    """Return what changed, as "24 → 13": a number first, else the first exchange."""
    exchange = found.numbers or next(iter(found.exchanges), None)
    if exchange is None:
        return "negated" if found.negated else ""
    return f"{exchange.old} → {exchange.new}"
