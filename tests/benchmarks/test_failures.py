"""Every loss is assigned to the position of the relevant document."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def failures(script: Any) -> Any:
    return script("failures")


def topic(failures: Any, place: int | None, *legs: str, loss: float = 1.0) -> Any:
    return failures.Topic("1", "?", loss, place, legs, "right", "first")


@pytest.mark.parametrize(
    ("place", "legs", "kind"),
    [
        (None, (), "no leg has it"),
        (None, ("dense",), "below the tenth, only dense has it"),
        (40, ("dense", "lexical"), "below the tenth"),
        (10, ("dense",), "fourth to tenth"),
        (3, ("dense",), "second or third"),
        (1, ("dense",), "first, but not the others"),
    ],
)
def test_every_place_has_its_class(failures: Any, place: int | None, legs: tuple[str, ...], kind: str) -> None:
    assert topic(failures, place, *legs).kind == kind


def test_the_largest_loss_is_first_and_shares_are_of_all_loss(failures: Any) -> None:
    found = failures.classes([topic(failures, 2, loss=0.25), topic(failures, None), topic(failures, 3, loss=0.75)])
    assert list(found) == ["second or third", "no leg has it"] or list(found) == ["no leg has it", "second or third"]
    table = failures.table(found, 4)
    assert "| second or third | 2 | 0.2500 | 50% |" in table
    assert table.endswith("| all of 4 topics | 3 | 0.5000 | |")
