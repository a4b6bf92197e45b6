"""``quick`` and ``quick_replace`` make the same values as the constructor of the class and ``dataclasses.replace``."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest

from trivet.frozen import quick, quick_replace
from trivet.types import Candidate, Contribution, Document, Hit, Passage

DOCUMENT = Document("a", "text", "title", "note", {"n": 1}, 0.5, None, None, None, None, None, 3)
PASSAGE = Passage(0, 0, 4, "text")
ACCOUNT = Contribution("lexical", 1, 2.0, 0.5, 1.0, 0.5)
VALUES: list[Any] = [
    DOCUMENT,
    PASSAGE,
    ACCOUNT,
    Candidate(7, 0.5, (ACCOUNT,)),
    Hit(1, "a", 0.5, 0.9, DOCUMENT, PASSAGE, 0.5, (ACCOUNT,), (), ("b",), ("c",), (PASSAGE,), ("d", "e")),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_it_is_a_value_like_any_other(value: Any) -> None:
    made = quick(type(value))(*(getattr(value, field.name) for field in fields(value)))
    assert type(made) is type(value)
    assert made == value
    assert repr(made) == repr(value)
    assert pickle.loads(pickle.dumps(made)) == value
    first = fields(value)[0].name
    assert replace(made, **{first: 9}) == replace(value, **{first: 9})
    with pytest.raises(FrozenInstanceError):
        setattr(made, first, 9)


def test_every_field_has_to_be_given() -> None:
    with pytest.raises(TypeError, match="text"):
        quick(Passage)(0, 0, 4)  # type: ignore[call-arg]


def test_a_copy_has_other_values_of_the_fields_that_were_named() -> None:
    hit = VALUES[-1]
    copied = quick_replace(Hit, "rank", "path")(hit, 4, ("x",))
    assert copied == replace(hit, rank=4, path=("x",)) and hit.rank == 1
    with pytest.raises(TypeError):
        quick_replace(Hit, "rank")(hit)
