"""Every store holds a caller who is bound to a filter to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from engine.test_tenants_model import Play
from trivet.engine.keys import Keys
from trivet.errors import InputError, TakenError

OWN, HERS = {"tenant": "alice"}, {"tenant": "bob"}


@pytest.mark.parametrize("seed", [101, 102])
def test_everyone_sees_what_the_model_says(open_at: Callable[..., Any], seed: int) -> None:
    play = Play(open_at(), seed, callers=4)
    for number in range(40):
        play.step()
        if number % 4 == 3:
            play.check()
    play.check()


def test_what_was_said_of_an_id_does_not_come_back_with_it(open_at: Callable[..., Any]) -> None:
    whole = open_at()
    mine, hers = whole.within(OWN), whole.within(HERS)
    hers.add("Hers.", id="one")
    hers.feedback("her question", "one")
    with pytest.raises(TakenError, match="cannot be used here"):
        mine.add("Mine.", id="one")
    hers.delete("one")
    mine.add("Mine.", id="one")
    assert mine.feedbacks() == []


def test_links_to_what_is_hidden_stay(open_at: Callable[..., Any]) -> None:
    whole = open_at()
    mine = whole.within(OWN)
    whole.within(HERS).add("Hers.", id="hers")
    mine.add([{"text": "One.", "id": "one"}, {"text": "Two.", "id": "two"}])
    whole.link("one", "hers")
    assert mine.add({"text": "One.", "id": "one", "links": ["two"]}).updated == 1
    assert [link.target for link in mine.links("one")] == ["two"]
    assert sorted(link.target for link in whole.links("one")) == ["hers", "two"]


def test_an_unknown_field_is_told_by_what_the_caller_sees(open_at: Callable[..., Any]) -> None:
    whole = open_at()
    mine = whole.within(OWN)
    whole.within(HERS).add("Hers.", id="hers", meta={"secretkey": 1})
    assert list(mine.search("hers", where="secretkey=1")) == []  # as in an empty store: there is nothing to know
    mine.add("Mine.", id="mine", meta={"ownkey": 1})
    for call in (lambda: mine.search("mine", where="secretkey=1"), lambda: mine.page("secretkey=1")):
        with pytest.raises(InputError, match="no document has a field 'secretkey'") as told:
            call()
        assert "ownkey" in str(told.value)
        assert str(told.value).count("secretkey") == 1


def test_a_cursor_tells_no_number(open_at: Callable[..., Any]) -> None:
    whole = open_at()
    whole.add([{"text": f"Hers {number}.", "meta": HERS} for number in range(5)])
    mine = whole.within(OWN)
    mine.add([{"text": f"Mine {number}.", "id": f"m{number}"} for number in range(5)])
    first = mine.page(limit=3)
    assert not str(first.next).isdigit()
    assert [document.id for document in mine.page(after=first.next)] == ["m3", "m4"]
    with pytest.raises(InputError, match="`next`"):
        mine.page(after="3")


def test_a_key_keeps_its_filter(open_at: Callable[..., Any]) -> None:
    with Keys(open_at().url) as keys:
        bound, text = keys.create("alice", "write", where=["tenant=alice", "level>=2"])
        plain, other = keys.create("all")
        assert keys.find(text) == bound
        assert keys.find(other) == plain
        assert {key.name: key.where for key in keys.list()} == {"alice": bound.where, "all": None}
        assert keys.any_in_use()
