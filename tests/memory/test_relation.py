"""The relation of two statements: examples of each, and the judged pairs by words alone."""

from __future__ import annotations

from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivet.memory import relation
from trivet.memory.relation import probability, relate, scaled


@pytest.mark.parametrize(
    ("old", "new", "name", "changed"),
    [
        ("Raw readings are kept for 24 months.", "Raw readings are kept for 13 months.", "contradicting", "24 → 13"),
        ("The gateway listens on port 8443.", "The gateway listens on port 9443.", "contradicting", "8443 → 9443"),
        ("The lease allows pets.", "The lease does not allow pets.", "contradicting", "negated"),
        ("Peter owes Maria 200 euros.", "Maria owes Peter 200 euros.", "contradicting", ""),
        ("图书馆周日开放。", "图书馆周日不开放。", "contradicting", "negated"),
        ("The daily stand-up is at 9:15.", "The daily stand-up was moved to 10:00.", "updated", "9:15 → 10:00"),
        ("Die Mülltonne wird montags geleert.", "Die Mülltonne wird jetzt dienstags geleert.", "updated",
         "montags → jetzt dienstags"),
        ("Priya leads the migration project.", "The migration project is led by Priya.", "same", ""),
        ("备用钥匙放在门口的鞋柜里。", "门口鞋柜里有一把备用钥匙。", "same", ""),
        ("Anna's office is in room 12.", "Ben's office is in room 14.", "related", ""),
        ("The gateway listens on 8443.", "The gateway restarts nightly.", "related", ""),
        ("The user likes tea.", "The user likes coffee.", "related", ""),
        ("The stand-up is at 9:15.", "Aunt Ruth lives in Bergen.", "unrelated", ""),
    ],
)  # fmt: skip
def test_examples(old: str, new: str, name: str, changed: str) -> None:
    found = relate(old, new)
    assert (found.name, found.changed) == (name, changed)
    assert found.reported == (name in ("same", "updated", "contradicting"))


def test_meaning_tells_a_paraphrase_from_another_attribute() -> None:
    old, new = "Nadia is afraid of dogs.", "Dogs scare Nadia a lot."
    assert relate(old, new, 0.9).name == "same"
    assert not relate(old, new, 0.1).reported


def test_probability_is_by_hand() -> None:
    assert probability((-1.0, 2.0, 0.5), (1.0, 0.0)) == 1 / (1 + exp(-1.0))
    with pytest.raises(ValueError, match="longer"):
        probability((0.0, 1.0), (1.0, 1.0))


def test_a_cosine_is_scaled_from_that_of_unrelated_texts() -> None:
    assert scaled(0.75, 0.5) == 0.5
    assert (scaled(0.2, 0.5), scaled(1.1, 0.5), scaled(1.0, 1.0)) == (0.0, 1.0, 0.0)


@given(st.text(max_size=80), st.text(max_size=80), st.none() | st.floats(0, 1))
def test_any_two_texts_have_a_relation(old: str, new: str, meaning: float | None) -> None:
    found = relate(old, new, meaning)
    assert found.name in (*relation.VERBS, relation.UNRELATED)
    assert 0.0 < found.probability < 1.0


@given(st.text(max_size=80), st.floats(0, 1), st.floats(0, 1))
def test_a_closer_meaning_is_never_less_probable(text: str, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert relate("The gateway listens on 8443.", text, low).probability <= (
        relate("The gateway listens on 8443.", text, high).probability
    )
