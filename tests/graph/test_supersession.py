"""A superseded document is replaced by the newest of its chain, once, for any links."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivet.graph.supersession import MAX_LINKS, MAX_STEPS, Chains, walk
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


# --- against a reference ----------------------------------------------------------------------------------------------


def naive(links: Sequence[Succession], refused: set[int], start: int) -> int:
    """The end of one document's steps, found by taking them one after the other, as the module says it."""
    seen = [start]
    while True:
        following = [(link.created, link.new_id, link.new) for link in links
                     if link.old == seen[-1] and link.new != link.old and link.new not in refused]  # fmt: skip
        if not following:
            return seen[-1]
        new = int(max(following)[2])
        if new in seen:
            circle = seen[seen.index(new) :]
            return int(max((link.created, link.new_id, link.new) for link in links if link.new in circle)[2])
        seen.append(new)


@given(
    st.lists(st.tuples(st.integers(0, 14), st.integers(0, 14)), max_size=40),
    st.lists(st.integers(0, 3), min_size=15, max_size=15),
    st.sets(st.integers(0, 14), max_size=5),
    st.permutations(range(15)),
)
def test_the_end_of_every_document_is_that_of_a_step_by_step_reading(
    pairs: list[tuple[int, int]], created: list[int], refused: set[int], order: list[int]
) -> None:
    """Circles, branches, links to itself and documents that may not be seen; asked for in any order."""
    links = [Succession(old, f"{old:02}", new, f"{new:02}", float(created[new])) for old, new in pairs]
    found = Chains(links, lambda key: key not in refused)
    assert {key: found.newest(key) for key in order} == {key: naive(links, refused, key) for key in order}


# --- the cost ---------------------------------------------------------------------------------------------------------


class Counted(dict[Any, Any]):
    """Counts the look-ups."""

    asked = 0

    def get(self, key: Any, default: Any = None) -> Any:
        self.asked += 1
        return super().get(key, default)


def linked(pairs: Sequence[tuple[int, int]]) -> list[Succession]:
    return [Succession(old, str(old), new, str(new), float(new)) for old, new in pairs]


@pytest.mark.parametrize("closed", [False, True], ids=["chain", "ring"])
def test_every_step_is_taken_once_however_many_ask(closed: bool) -> None:
    size = 5_000
    pairs = [(number, number + 1) for number in range(size)] + ([(size, 0)] if closed else [])
    found = Chains(linked(pairs), everything)
    found._next = counted = Counted(found._next)
    assert {found.newest(number) for number in range(size + 1)} == {size}
    assert counted.asked <= size + 1


class Graph:
    """A store's links in memory: what ``walk`` asks, and how much it was given."""

    def __init__(self, pairs: Sequence[tuple[int, int]]) -> None:
        self.following: dict[int, list[Succession]] = {}
        for link in linked(pairs):
            self.following.setdefault(int(link.old), []).append(link)
        self.read = self.steps = 0
        self.asked: list[int] = []

    def step(self, olds: Sequence[int], most: int) -> tuple[list[Succession], int]:
        rows = [link for old in olds for link in self.following.get(old, ())][:most]
        self.asked += olds
        self.steps += 1
        self.read += len(rows)
        return rows, len(rows)


SHAPES = {
    "chain": [(number, number + 1) for number in range(5_000)],
    "ring": [(number, (number + 1) % 5_000) for number in range(5_000)],
    "many supersede one": [(0, number) for number in range(1, 5_001)],
    "one supersedes many": [(number, 0) for number in range(1, 5_001)],
    "clump": [(old, 300 + new) for old in range(300) for new in range(300)],
    "three layers": [(layer * 100 + old, layer * 100 + 100 + new)
                     for layer in range(2) for old in range(100) for new in range(100)],
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("start", [1, 300])
def test_a_walk_asks_for_every_document_once_and_stays_within_its_bounds(shape: str, start: int) -> None:
    graph = Graph(SHAPES[shape])
    walked = walk(list(range(start)), graph.step, MAX_STEPS)
    assert len(set(graph.asked)) == len(graph.asked)
    assert graph.read <= MAX_LINKS + 1
    assert graph.steps <= MAX_STEPS + 1
    assert len(walked.found) <= MAX_LINKS
    reachable = {link for rows in graph.following.values() for link in rows if link.old in set(graph.asked)}
    assert walked.cut or set(walked.found) == reachable


def test_a_chain_as_long_as_is_allowed_is_followed_to_its_end_and_a_longer_one_is_told() -> None:
    whole = walk([0], Graph([(number, number + 1) for number in range(MAX_STEPS)]).step, MAX_STEPS)
    assert (len(whole.found), whole.cut) == (MAX_STEPS, "")
    longer = walk([0], Graph([(number, number + 1) for number in range(MAX_STEPS + 1)]).step, MAX_STEPS)
    assert len(longer.found) == MAX_STEPS
    assert "only the first 1,000 were followed" in longer.cut


def test_as_many_links_as_are_allowed_are_read_and_one_more_is_told() -> None:
    whole = walk([0], Graph([(0, number) for number in range(1, MAX_LINKS + 1)]).step)
    assert (len(whole.found), whole.cut) == (MAX_LINKS, "")
    more = walk([0], Graph([(0, number) for number in range(1, MAX_LINKS + 2)]).step)
    assert len(more.found) == MAX_LINKS
    assert "more than 10,000 supersedes links" in more.cut


def test_a_link_that_names_nothing_here_counts_as_read() -> None:
    read: list[int] = []

    def step(olds: Sequence[int], most: int) -> tuple[list[Succession], int]:
        read.append(most)
        return [], min(most, 50_000)

    assert walk([1], step).cut
    assert read == [MAX_LINKS + 1]
