"""Does the newest stand in the place of what it supersedes, once, whatever the links look like?"""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from trivet.memory.succession import Chains
from trivet.types import Candidate, Contribution, Key, Succession


def chains(*pairs: str, refused: str = "", age: str = "abcdefgh") -> Chains:
    """``ab``: b supersedes a. Keys are letters' codes; later in ``age`` is younger."""
    links = [Succession(ord(old), old, ord(new), new, float(age.index(new))) for old, new in pairs]
    return Chains(links, lambda key: chr(int(key)) not in refused)


def end(found: Chains, letter: str) -> str:
    return chr(int(found.newest(ord(letter))))


def pool(letters: str) -> list[Candidate]:
    return [
        Candidate(ord(letter), 1.0 / (at + 1), (Contribution("lexical", at + 1, 1, 1, 1, 1.0 / (at + 1)),))
        for at, letter in enumerate(letters)
    ]


def everything(key: Key) -> bool:
    return True


def test_a_chain_is_followed_to_its_end() -> None:
    found = chains("ab", "bc", "cd")
    assert [end(found, letter) for letter in "abcd"] == ["d", "d", "d", "d"]


def test_of_two_successors_the_newer_one_counts() -> None:
    assert end(chains("ab", "ac"), "a") == "c"
    assert end(chains("ab", "ac", age="acb"), "a") == "b"


def test_of_successors_of_the_same_moment_the_choice_is_settled_by_id() -> None:
    links = [Succession(1, "a", 2, "b", 5.0), Succession(1, "a", 3, "c", 5.0)]
    for order in (links, links[::-1]):
        assert Chains(order, everything).newest(1) == 3


def test_in_a_circle_the_newest_stands_for_all_and_for_those_that_lead_into_it() -> None:
    found = chains("ab", "bc", "ca", "da")
    assert [end(found, letter) for letter in "abcd"] == ["c", "c", "c", "c"]
    assert end(chains("aa"), "a") == "a"


def test_a_successor_that_is_not_allowed_is_not_stepped_to() -> None:
    assert end(chains("ab", "bc", refused="c"), "a") == "b"
    assert end(chains("ab", "bc", refused="b"), "a") == "a"
    assert end(chains("ab", "ac", refused="c"), "a") == "b"


def test_the_place_and_the_score_are_those_of_what_was_found() -> None:
    followed, stands_for = chains("bd").follow(pool("abc"), everything)
    assert [(chr(int(item.key)), item.score) for item in followed] == [("a", 1.0), ("d", 0.5), ("c", 1 / 3)]
    assert followed[1].contributions == pool("abc")[1].contributions
    assert stands_for == {ord("d"): ("b",)}


def test_a_successor_is_there_once_at_the_best_place_of_its_line() -> None:
    followed, stands_for = chains("ab", "bc").follow(pool("xbca"), everything)
    assert [chr(int(item.key)) for item in followed] == ["x", "c"]
    assert followed[1].score == 0.5
    assert stands_for == {ord("c"): ("b", "a")}


def test_what_is_left_out_by_name_takes_its_predecessors_with_it() -> None:
    followed, stands_for = chains("ab").follow(pool("ax"), lambda key: key != ord("b"))
    assert [chr(int(item.key)) for item in followed] == ["x"]
    assert stands_for == {}


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("abcdefgh")), max_size=20), st.randoms())
def test_whatever_the_links_everyone_has_one_end_and_the_order_they_come_in_is_nothing(
    pairs: list[tuple[str, str]], shuffle: random.Random
) -> None:
    joined = sorted({old + new for old, new in pairs})
    one = chains(*joined)
    shuffle.shuffle(joined)
    other = chains(*joined)
    for letter in "abcdefgh":
        assert end(one, letter) == end(other, letter)
        assert end(one, end(one, letter)) == end(one, letter), "what stands for others stands for itself"
    followed, _ = one.follow(pool("abcdefgh"), everything)
    keys = [item.key for item in followed]
    assert len(set(keys)) == len(keys)
    assert {end(one, letter) for letter in "abcdefgh"} == {chr(int(key)) for key in keys}
    assert [item.score for item in followed] == sorted((item.score for item in followed), reverse=True)


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=30), st.permutations(range(13)))
def test_the_end_is_the_same_in_whatever_order_it_is_asked(pairs: list[tuple[int, int]], order: list[int]) -> None:
    """What was remembered of one document is right for another: each is asked of chains that know nothing yet."""
    links = [Succession(old, str(old), new, str(new), float(new)) for old, new in pairs]
    found = Chains(links, everything)
    assert [found.newest(key) for key in order] == [Chains(links, everything).newest(key) for key in order]


def test_a_long_chain_is_walked_once() -> None:
    """Not once a document, and no step looks through all steps before it."""
    count = 20_000
    found = Chains([Succession(at, str(at), at + 1, str(at + 1), float(at)) for at in range(count)], everything)
    assert {found.newest(key) for key in range(count)} == {count}
