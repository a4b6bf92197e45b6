"""Rerankers by name: the registry, the options and what a class tells of itself."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from math import nan

import pytest

from trivet.errors import InputError
from trivet.rerank import RERANKERS, build, describe
from trivet.rerank.composite import Composite
from trivet.rerank.dedup import Dedup
from trivet.rerank.exact import Exact
from trivet.rerank.importance import Importance


def test_built_by_name_with_defaults_or_settings() -> None:
    assert build("importance") == Importance(floor=0.7)
    assert build("importance", {"floor": 0.5}) == Importance(floor=0.5)
    assert build("composite", {"form": "multiplicative"}) == Composite(form="multiplicative")
    assert build("dedup", {"limit": 5}) == Dedup(limit=5)
    assert build("exact", {"bonus": 0}) == Exact(bonus=0)


def test_a_reranker_is_registered_under_its_own_name() -> None:
    assert [kind.name for _, kind in RERANKERS.items()] == RERANKERS.names()
    with pytest.raises(InputError, match=r"'other' is <class .*Exact'>; register a subclass of Reranker whose name is"):
        RERANKERS.add("other", Exact)
    with pytest.raises(InputError, match="'other' is 3; register a subclass of Reranker"):
        RERANKERS.add("other", 3)  # type: ignore[arg-type]


def test_a_class_says_what_the_search_has_to_know_of_it() -> None:
    kinds = dict(RERANKERS.items())
    assert [name for name, kind in kinds.items() if kind.drops_only] == ["dedup"]
    assert [name for name, kind in kinds.items() if kind.requires] == ["avoid", "temporal"]
    assert [name for name, kind in kinds.items() if kind.needs_scorer] == ["cross_encoder"]
    assert {name: kind.sees for name, kind in kinds.items() if kind.sees} == {"learned": 60, "temporal": 100}


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("importanse", {}, "reranker: 'importanse' is unknown; known: exact, importance, composite, dedup"),
        ("importance", {"flor": 1}, "reranker 'importance' has no option 'flor'; known: floor"),
        ("importance", {"floor": 1.5}, r"reranker 'importance': floor is 1\.5; allowed: a number from 0 to 1"),
        ("importance", {"floor": nan}, "floor is nan; allowed: a number from 0 to 1"),
        ("importance", {"floor": "0.7"}, r"floor is '0\.7'; allowed"),
        ("importance", {"floor": True}, "floor is True; allowed"),
        ("composite", {"form": "geometric"}, "form is 'geometric'; allowed: one of additive, multiplicative"),
        ("composite", {"half_life": 0}, "half_life is 0; allowed: a number from 0.01 to 36500"),
        ("composite", {"recency": -0.1}, r"recency is -0\.1; allowed: a number from 0 to 1"),
        ("dedup", {"limit": 2.5}, r"limit is 2\.5; allowed: a whole number"),
        ("exact", {"bonus": 3}, r"bonus is 3; allowed: a number from 0 to 0\.5"),
    ],
)
def test_what_is_not_allowed_is_refused_by_field_and_value(name: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        build(name, options)


def test_made_by_hand_it_is_checked_too() -> None:
    with pytest.raises(InputError, match="floor is 2"):
        Importance(floor=2)


def test_a_reranker_is_a_frozen_value() -> None:
    with pytest.raises(FrozenInstanceError):
        build("exact").bonus = 0.2  # type: ignore[attr-defined]
    assert hash(build("exact")) == hash(Exact())


def test_description_covers_every_setting() -> None:
    described = describe()
    assert list(described) == list(RERANKERS)
    for name, options in described.items():
        assert build(name, {key: option.default for key, option in options.items()}) == build(name)
        assert all(option.about for option in options.values())
