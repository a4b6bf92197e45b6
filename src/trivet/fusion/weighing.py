"""How much are words and meaning worth for this question?

A profile's weights are right on average. For one question the legs' own score curves say more: a meaning leg whose best
passage stands far above the rest has found something, a word leg whose best document holds little of the question has
not. ``by_query`` moves the balance between the two by a logistic model over eight such features; the sum of the two
weights stays, a leg at weight 0 stays at 0, and other legs are left alone.

The coefficients were learnt by ``benchmarks/weighing.py``, which names the splits and tells what they are worth on sets
they were not learnt from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import exp, fsum, log, sqrt

from trivet.fusion.strengths import strengths
from trivet.types import Ranking

WORDS, MEANING, WAYS = "lexical", "dense", "graph"
LONG = 100  # hits: the depth that the weight of ways was chosen at
TENTH = 9  # the tenth hit: where a list has stopped being about the answer

#: What is known of a question, in the order of ``features``: its mean and deviation over the training topics, and what
#: one deviation adds to the log-odds of meaning.
FEATURES = (
    "words_best",
    "words_tenth",
    "words_spread",
    "meaning_best",
    "meaning_tenth",
    "meaning_spread",
    "length",
    "question_mark",
)
MEANS = (0.4207, 0.219, 0.0541, 0.605, 0.4067, 0.0641, 2.4936, 0.5346)
DEVIATIONS = (0.1593, 0.1156, 0.0279, 0.1532, 0.1596, 0.025, 0.4238, 0.4988)
COEFFICIENTS = (-0.28, 0.29, -0.54, 0.7, -0.63, 0.43, -0.22, -0.66)
NOT_AT_HOME = 0.1  # the share of a meaning leg that does not read the script; memdaily_zh is level from 0.02 to 0.2
INTERCEPT = 0.29

Weighing = Callable[[str, Sequence[Ranking], Mapping[str, float]], Mapping[str, float]]


def fixed(text: str, rankings: Sequence[Ranking], weights: Mapping[str, float]) -> Mapping[str, float]:
    """The profile's weights, whatever is asked."""
    return weights


def by_query(text: str, rankings: Sequence[Ranking], weights: Mapping[str, float]) -> Mapping[str, float]:
    """The profile's weights, shifted between words and meaning for this question; a short list's way counts less."""
    return _ways(rankings, _balance(text, rankings, weights))


def _ways(rankings: Sequence[Ranking], weights: Mapping[str, float]) -> Mapping[str, float]:
    """The best of a short list stands few deviations above the rest, and what a way adds would outdo the match that it
    began at. So the weight of ways is whole where the others' lists are long, and falls with the log of the length."""
    longest = max((len(ranking) for ranking in rankings if ranking.leg != WAYS), default=0)
    if not weights.get(WAYS) or longest >= LONG:
        return weights
    return {**weights, WAYS: weights[WAYS] * log(max(1, longest)) / log(LONG)}


def _balance(text: str, rankings: Sequence[Ranking], weights: Mapping[str, float]) -> Mapping[str, float]:
    found = {ranking.leg: ranking for ranking in rankings if len(ranking)}
    total = weights.get(WORDS, 0.0) + weights.get(MEANING, 0.0)
    if not {WORDS, MEANING} <= found.keys() or not weights[WORDS] or not weights[MEANING]:
        return weights  # one leg has nothing to be weighed against
    if not found[MEANING].at_home:
        share = min(NOT_AT_HOME, weights[MEANING] / total)
        return {**weights, WORDS: total * (1.0 - share), MEANING: total * share}
    shift = INTERCEPT + fsum(
        coefficient * (value - mean) / deviation
        for coefficient, value, mean, deviation in zip(
            COEFFICIENTS, features(text, found[WORDS], found[MEANING]), MEANS, DEVIATIONS, strict=True
        )
    )
    share = 1.0 / (1.0 + weights[WORDS] / weights[MEANING] * exp(-shift))
    return {**weights, WORDS: total * (1.0 - share), MEANING: total * share}


def features(text: str, words: Ranking, meaning: Ranking) -> tuple[float, ...]:
    """What the two score curves and the question itself tell; every strength is absolute, 0 to 1."""
    return (*_curve(words), *_curve(meaning), log(1 + len(text.split())), float("?" in text))


def _curve(ranking: Ranking) -> tuple[float, float, float]:
    """The best hit, the tenth, and how far the hits lie apart."""
    values = strengths(ranking)
    mean = fsum(values) / len(values)
    spread = sqrt(fsum([(value - mean) ** 2 for value in values]) / len(values))
    return values[0], values[TENTH] if len(values) > TENTH else 0.0, spread


#: Profile.weighing → how.
WEIGHINGS: dict[str, Weighing] = {"fixed": fixed, "query": by_query}
