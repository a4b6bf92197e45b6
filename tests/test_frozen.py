"""``quick`` and ``quick_replace`` make the same values as the constructor of the class and ``dataclasses.replace``."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, asdict, fields, replace
from typing import Any

import pytest

from trivet.frozen import quick, quick_deferred, quick_replace
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


def _later(rank: int = 1) -> Hit:
    """The hit of ``VALUES`` with its deferred fields empty."""
    whole = VALUES[-1]
    given = [getattr(whole, field.name) for field in fields(Hit) if field.name not in Hit.deferred]
    made: Hit = quick_deferred(Hit)(rank, *given[1:], lambda hit: (PASSAGE, (ACCOUNT,)))
    return made


def test_a_value_with_deferred_fields_is_a_value_like_any_other() -> None:
    whole = VALUES[-1]
    assert _later() == whole and whole == _later() and _later() != _later(rank=2)
    assert repr(_later()) == repr(whole)
    assert pickle.loads(pickle.dumps(_later())) == whole
    assert copy.copy(_later()) == copy.deepcopy(_later()) == whole
    assert replace(_later(), rank=9) == replace(whole, rank=9)
    assert asdict(_later()) == asdict(whole)
    with pytest.raises(FrozenInstanceError):
        _later().rank = 9  # type: ignore[misc]


def test_deferred_fields_are_made_once_and_only_when_they_are_read() -> None:
    made: list[int] = []

    def fill(candidate: Candidate) -> tuple[tuple[Contribution, ...]]:
        made.append(int(candidate.key))
        return ((ACCOUNT,),)

    candidate = quick_deferred(Candidate)(7, 0.5, fill)
    assert candidate.key == 7 and made == []
    assert candidate.contributions is candidate.contributions and candidate.contributions == (ACCOUNT,)
    assert made == [7]


def test_a_name_that_is_no_field_is_an_error() -> None:
    for value in (_later(), VALUES[-1]):
        with pytest.raises(AttributeError, match="'Hit' object has no attribute 'reliance'"):
            value.reliance  # noqa: B018
        assert not hasattr(value, "_nothing")


def test_a_copy_keeps_what_its_original_defers() -> None:
    copied = quick_replace(Hit, "rank", "path")
    assert copied(_later(), 4, ("x",)) == copied(VALUES[-1], 4, ("x",)) == replace(VALUES[-1], rank=4, path=("x",))
    changed = replace(_later(), contributions=())  # made whole
    assert copied(changed, 4, ("x",)).contributions == ()


def test_every_field_has_to_be_given() -> None:
    with pytest.raises(TypeError, match="text"):
        quick(Passage)(0, 0, 4)  # type: ignore[call-arg]


def test_a_copy_has_other_values_of_the_fields_that_were_named() -> None:
    hit = VALUES[-1]
    copied = quick_replace(Hit, "rank", "path")(hit, 4, ("x",))
    assert copied == replace(hit, rank=4, path=("x",)) and hit.rank == 1
    with pytest.raises(TypeError):
        quick_replace(Hit, "rank")(hit)
