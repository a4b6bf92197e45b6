"""The small index of a filter returns what the large one returns."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from trivet.stores.contract import Found
from trivet.stores.sqlite import filtered_index, term_index
from trivet.stores.sqlite.scope import Scope
from trivet.stores.sqlite.term_index import TermIndex
from trivet.stores.sqlite.term_search import TermSearch
from trivet.text.analysis import Analyzer

from .passage_list import PassageList

ENGLISH = Analyzer("en")
RARE = [
    f"{first}{second}{third}"
    for first in ("bra", "cle", "dro", "fli")
    for second in ("ndo", "mpu", "stka", "vix", "lor")
    for third in ("k", "m", "p", "t", "x")
]

Open = Callable[[PassageList], TermSearch]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Open:
    """An index on disk that has read all there is."""
    monkeypatch.setattr(term_index, "TAIL_LIMIT", 0)

    def make(passages: PassageList) -> TermSearch:
        index = TermIndex(tmp_path / "words", passages, ENGLISH.line, ENGLISH.id, halves=ENGLISH.halves)
        index.catch_up(passages.version)
        return TermSearch(index)

    return make


def made_up(count: int, longest: int = 30, each: int = 1) -> PassageList:
    """``each`` passages a document; titles, and lengths on both sides of what a byte holds exactly."""
    rng = random.Random(count)
    passages = PassageList()
    for did in range(1, count + 1):
        for _ in range(each):
            text = " ".join(rng.choices(RARE, k=rng.randint(1, longest)))
            passages.add(did, text, title=rng.choice(["", rng.choice(RARE)]))
    return passages


def every(nth: int, count: int) -> Scope:
    return Scope(np.arange(count + 1) % nth == 1)


def ask(index: TermSearch, query: str, scope: Scope, depth: int, match: str = "any") -> list[Found]:
    return index.bm25(ENGLISH.query(query), match, depth, scope)[0]


def is_small(index: TermSearch, scope: Scope) -> bool:
    return scope in index._filtered and index._filtered[scope][1] is not None


@pytest.mark.parametrize("match", ["any", "all", "auto"])
@pytest.mark.parametrize("depth", [5, 1000])
@pytest.mark.parametrize("longest", [30, 400])
def test_both_give_the_same_documents_with_the_same_scores(opened: Open, longest: int, depth: int, match: str) -> None:
    index = opened(made_up(400, longest, each=2))
    for query in (RARE[0], " ".join(RARE[3:9]), f"{RARE[1]} absentia {RARE[7]}", f'"{RARE[2]}" {RARE[9]}'):
        scope = every(10, 400)
        large = ask(index, query, scope, depth, match)
        assert not is_small(index, scope)
        for _ in range(filtered_index.MIN_SEARCHES):
            small = ask(index, query, scope, depth, match)
        assert is_small(index, scope)
        # tantivy counts its checkpoint as a document when it says how rare a word is
        assert [score for score, _, _ in small] == pytest.approx([score for score, _, _ in large], rel=1e-2)
        if depth == 1000:  # nothing cut off among equals
            assert {hit[2] for hit in small} == {hit[2] for hit in large}


def test_a_wide_scope_and_a_phrase_are_left_to_the_large_index(opened: Open) -> None:
    index = opened(made_up(100))
    wide, few = every(2, 100), every(20, 100)
    for _ in range(5):
        ask(index, RARE[0], wide, 10)
        ask(index, f'"{RARE[0]} {RARE[1]}"', few, 10)
    assert not is_small(index, wide) and not is_small(index, few)


def test_what_is_removed_or_rewritten_or_new_is_seen(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write makes another scope; until the index on disk has read it, memory answers beside the small index."""
    passages = made_up(100)
    index = opened(passages)
    monkeypatch.setattr(term_index, "TAIL_LIMIT", 512)
    passages.remove(21)
    passages.remove(41)
    passages.add(41, "novelword " + RARE[0])  # document 41, rewritten
    index.index.catch_up(passages.version)
    scope = every(20, 100)
    for _ in range(filtered_index.MIN_SEARCHES + 1):
        found = {did for _, _, did in ask(index, " ".join(RARE), scope, 100)}
        assert found == {1, 41, 61, 81}
        assert [did for _, _, did in ask(index, "novelword", scope, 100)] == [41]
    assert is_small(index, scope)


def test_an_index_that_has_moved_on_makes_another(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    passages = made_up(100)
    index = opened(passages)
    scope = every(20, 200)
    for _ in range(filtered_index.MIN_SEARCHES):
        ask(index, RARE[0], scope, 100)
    passages.add(141, f"{RARE[0]} {RARE[0]}")
    index.index.catch_up(passages.version)  # onto the disk, for the tail holds none
    assert 141 in {did for _, _, did in ask(index, RARE[0], scope, 100)}


def test_long_documents_are_left_to_the_large_index(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filtered_index, "MOST_PASSAGES", 20)
    index = opened(made_up(100, each=5))
    scope = every(20, 100)
    expected = ask(index, RARE[0], scope, 100)
    for _ in range(filtered_index.MIN_SEARCHES + 1):
        assert ask(index, RARE[0], scope, 100) == expected
    assert scope in index._filtered and not is_small(index, scope)


def test_few_are_kept(opened: Open) -> None:
    index = opened(made_up(200))
    scopes = [Scope.of([number], 200) for number in range(1, filtered_index.KEPT + 4)]
    for scope in scopes:
        for _ in range(filtered_index.MIN_SEARCHES):
            ask(index, RARE[0], scope, 10)
    assert (
        len(index._filtered) == filtered_index.KEPT and is_small(index, scopes[-1]) and not is_small(index, scopes[0])
    )


def test_where_the_terms_are_damaged_the_large_index_answers(opened: Open, tmp_path: Path) -> None:
    index = opened(made_up(100))
    scope = every(20, 100)
    expected = ask(index, RARE[0], scope, 100)
    for file in (tmp_path / "words").glob("forward-*.units"):
        file.write_bytes(bytes(file.stat().st_size))
    for _ in range(filtered_index.MIN_SEARCHES + 1):
        assert ask(index, RARE[0], scope, 100) == expected
    assert not is_small(index, scope)
