"""The judged pairs: what they hold, the fitted coefficients, and the floors of precision and recall."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trivet.memory import relation

RESULTS = Path(__file__).parents[2] / "benchmarks/results"


@pytest.fixture
def remembering(script: Any) -> Any:
    return script("remembering")


@pytest.fixture
def newest() -> Path:
    (found,) = RESULTS.glob("remembering-*.json")
    return found


def test_the_set_has_every_label_language_and_domain(remembering: Any) -> None:
    pairs = remembering.pairs()
    assert len({(pair.old, pair.new) for pair in pairs}) == len(pairs) >= 330
    assert min(Counter(pair.label for pair in pairs).values()) >= 66
    assert min(Counter(pair.language for pair in pairs).values()) >= 45
    assert len({pair.domain for pair in pairs}) >= 8
    assert {pair.label for pair in pairs} == set(remembering.LABELS)


def test_pairs_with_the_same_older_statement_are_in_the_same_half(remembering: Any) -> None:
    halves: dict[str, set[bool]] = {}
    for pair in remembering.pairs():
        halves.setdefault(pair.old, set()).add(pair.fit)
    assert all(len(half) == 1 for half in halves.values())


def test_words_alone_keep_their_precision_and_recall(remembering: Any) -> None:
    found = remembering.measured([pair for pair in remembering.pairs() if not pair.fit], None)
    assert found["precision"] >= 0.9
    assert found["recall"] >= 0.78


def test_the_logistic_regression_finds_what_made_the_data(remembering: Any) -> None:
    features = np.random.default_rng(1).uniform(size=(20_000, 2))
    chances = 1 / (1 + np.exp(1.0 - 3.0 * features[:, 0] + 2.0 * features[:, 1]))
    positive = np.random.default_rng(2).uniform(size=20_000) < chances
    assert remembering.logistic(features, positive) == pytest.approx([-1.0, 3.0, -2.0], abs=0.15)


def test_the_source_has_the_fitted_coefficients(newest: Path) -> None:
    for name, value in json.loads(newest.read_text(encoding="utf-8"))["fitted"].items():
        assert np.array_equal(getattr(relation, name), value), f"{name}: run `make remembering` and copy {value}"


def test_the_page_is_that_of_the_results(remembering: Any, newest: Path) -> None:
    found = json.loads(newest.read_text(encoding="utf-8"))
    assert remembering.PAGE.read_text(encoding="utf-8") == remembering.page(found, newest.name)


@pytest.mark.slow
def test_with_the_meaning_precision_and_recall_reach_the_target(remembering: Any) -> None:
    pairs = remembering.pairs()
    meaning = remembering.meanings(pairs)
    found = remembering.results(pairs, meaning)[remembering.WITH_MEANING]["all"]
    assert found["precision"] >= 0.9
    assert found["recall"] >= 0.8
    assert remembering.fitted(pairs, meaning)["ABOUT_BY_MEANING"] == pytest.approx(relation.ABOUT_BY_MEANING, abs=0.02)
