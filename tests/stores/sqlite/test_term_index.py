"""Passages are found by their terms in the same way on disk and in memory."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trivet.errors import StoreError
from trivet.stores.contract import Found
from trivet.stores.sqlite import term_index, term_search
from trivet.stores.sqlite.scope import Scope
from trivet.stores.sqlite.term_index import TermIndex
from trivet.stores.sqlite.term_search import MAX_TERMS, TermSearch
from trivet.text.analysis import Analyzer

from .passage_list import PassageList

ENGLISH = Analyzer("en")
VOCABULARY = [
    f"{first}{second}" for first in ("bra", "cle", "dro", "fli", "gru") for second in ("ndo", "mpu", "stka", "vix")
]
WATCHED = 0.5  # seconds between two looks of tantivy at the newest commit

Open = Callable[..., TermIndex]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Open:
    """``opened(passages, tail_limit)``: an index that has caught up with them."""

    def make(passages: PassageList, tail_limit: int, name: str = "words") -> TermIndex:
        monkeypatch.setattr(term_index, "TAIL_LIMIT", tail_limit)
        index = TermIndex(tmp_path / name, passages, ENGLISH.line, ENGLISH.id)
        index.catch_up(passages.version)
        return index

    return make


def ask(index: TermIndex, text: str, match: str = "any", depth: int = 1000, scope: Scope | None = None) -> list[Found]:
    return TermSearch(index).bm25(ENGLISH.query(text), match, depth, scope)[0]


def dids(found: list[Found]) -> set[int]:
    return {did for _, _, did in found}


def made_up(count: int, seed: int = 0) -> PassageList:
    """Texts of unequal length over few words, so that every query finds many and scores differ."""
    rng = random.Random(seed)
    passages = PassageList()
    passages.add_all([" ".join(rng.choices(VOCABULARY, k=rng.randint(3, 30))) for _ in range(count)])
    return passages


def having(passages: PassageList, terms: list[str], every: bool = False) -> set[int]:
    test = all if every else any
    return {did for did, _, text in passages.passages.values() if test(term in text.split() for term in terms)}


QUERIES = [
    [VOCABULARY[0]],
    VOCABULARY[3:5],
    VOCABULARY[6:9],
    [VOCABULARY[2], VOCABULARY[19], VOCABULARY[11], "absentia"],
]


@pytest.mark.parametrize("on_disk", ["all", "half", "none"])
@pytest.mark.parametrize("terms", QUERIES)
def test_the_documents_with_any_or_all_of_the_words_are_found(opened: Open, on_disk: str, terms: list[str]) -> None:
    passages = made_up(150)
    index = opened(passages, tail_limit=0 if on_disk != "none" else 10_000)
    if on_disk == "half":
        passages = extended(index, passages, 150)
        assert len(index.tail) == 150
    assert dids(ask(index, " ".join(terms))) == having(passages, terms)
    assert dids(ask(index, " ".join(terms), match="all")) == having(passages, terms, every=True)


def extended(index: TermIndex, passages: PassageList, count: int) -> PassageList:
    """More passages, kept in the tail."""
    term_index.TAIL_LIMIT = 10_000  # the fixture puts it back
    rng = random.Random(99)
    passages.add_all([" ".join(rng.choices(VOCABULARY, k=rng.randint(3, 30))) for _ in range(count)])
    index.catch_up(passages.version)
    return passages


@pytest.mark.parametrize("terms", QUERIES[:3])
def test_memory_and_disk_score_alike(opened: Open, terms: list[str]) -> None:
    """Not to the last digit: tantivy rounds lengths above 40 words and counts its checkpoint as a document."""
    passages = made_up(300)
    disk, memory = opened(passages, 0, "disk"), opened(passages, 10_000, "memory")
    assert len(disk.tail) == 0
    assert memory.searcher is None
    by_disk, by_memory = ask(disk, " ".join(terms)), ask(memory, " ".join(terms))
    scores = {did: score for score, _, did in by_disk}
    assert {did: score for score, _, did in by_memory} == pytest.approx(scores, rel=0.02)
    order = [did for _, _, did in by_memory]
    for first, second in pairwise(order):  # where the difference is more than the rounding, the order is the same
        assert scores[first] > scores[second] - 0.02 * scores[second]


def test_half_on_disk_and_half_in_memory_rank_as_one(opened: Open) -> None:
    passages = made_up(200)
    mixed = opened(passages, 0, "mixed")
    extended(mixed, passages, 200)
    whole = opened(passages, 0, "whole")
    expected = {did: score for score, _, did in ask(whole, "brando clempu")}
    found = {did: score for score, _, did in ask(mixed, "brando clempu")}
    assert found == pytest.approx(expected, rel=0.2)  # the disk's part is weighed by how rare a word is on disk
    assert len(mixed.tail) == 200


@pytest.mark.parametrize("tail_limit", [0, 10_000])
def test_the_best_depth_are_cut_from_the_whole_order(opened: Open, tail_limit: int) -> None:
    index = opened(made_up(200), tail_limit)
    everything = ask(index, "brando clempu drostka")
    for depth in (1, 7, 50):
        assert [hit[0] for hit in ask(index, "brando clempu drostka", depth=depth)] == pytest.approx(
            [hit[0] for hit in everything[:depth]]
        )


# --- phrases ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tail_limit", [0, 10_000])
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('"red fox"', {1, 4}),
        ('"red fox" jumps', {1, 4}),
        ('"fox red"', {2}),
        ('"red fox" "blue bird"', {4}),
        ('"blue bird" "red fox"', {4}),
        ('"red"', {1, 2, 3, 4}),
        ('"red" "blue"', {3, 4}),
        ('"red" "blue bird"', {4}),
        ('"bird" "red fox"', {4}),
        ('"no such phrase"', set()),
        ('"red fox', {1, 2, 3, 4, 6}),
    ],
)
@pytest.mark.parametrize("match", ["any", "auto"])
def test_quoted_phrases_must_occur(opened: Open, tail_limit: int, query: str, expected: set[int], match: str) -> None:
    passages = PassageList()
    passages.add_all(
        [
            "a red fox jumps over",
            "a fox red as rust",
            "red and blue and a fox far away from any bird",
            "the red fox saw a blue bird",
            "a blue bird sings",
            "fox",
        ]
    )
    index = opened(passages, tail_limit)
    assert dids(ask(index, query, match)) == expected


@pytest.mark.parametrize("tail_limit", [0, 10_000])
def test_a_phrase_does_not_run_over_the_end_of_a_title_or_a_text(opened: Open, tail_limit: int) -> None:
    passages = PassageList()
    passages.add(1, "fox and hound", title="The red")
    passages.add(2, "red", title="fox")
    index = opened(passages, tail_limit)
    assert dids(ask(index, "fox")) == {1, 2}
    assert dids(ask(index, '"hound red"')) == set()


# --- AND, then OR -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tail_limit", [0, 10_000])
def test_all_words_first_and_any_word_when_that_starves(opened: Open, tail_limit: int) -> None:
    passages = PassageList()
    passages.add_all(["heron nest"] * 3 + ["heron"] * 5 + ["nest"] * 5)
    index = opened(passages, tail_limit)
    found, _, notes = TermSearch(index).bm25(ENGLISH.query("heron nest"), "auto", 3, None)
    assert (dids(found), notes) == ({1, 2, 3}, ("all words",))
    found, _, notes = TermSearch(index).bm25(ENGLISH.query("heron nest"), "auto", 4, None)
    assert notes == ("any word",)
    assert len(found) == 4
    assert dids(found) >= {1, 2, 3}


@pytest.mark.parametrize("tail_limit", [0, 10_000], ids=["disk", "memory"])
def test_a_weight_is_worth_as_much_on_disk_as_in_memory(opened: Open, tail_limit: int) -> None:
    index = opened(made_up(40), tail_limit)
    one, other = VOCABULARY[0], VOCABULARY[5]
    plain = {did: score for score, _, did in ask(index, one)}
    both = {did: score for score, _, did in ask(index, f"{one} {other}")}
    query = replace(ENGLISH.query(f"{one} {other}"), weights=((ENGLISH.query(one).terms[0], 3.0),))
    found, ceiling, _ = TermSearch(index).bm25(query, "any", 1000, None)
    for score, _, did in found:
        assert score == pytest.approx(both[did] + 2.0 * plain.get(did, 0.0), rel=1e-5)
    assert max(score for score, _, _ in found) < ceiling


@pytest.mark.parametrize("tail_limit", [0, 10_000], ids=["disk", "memory"])
def test_a_missing_word_gives_its_place_to_the_nearest(opened: Open, tail_limit: int) -> None:
    passages = PassageList()
    passages.add_all(["a lantern in the hall", "lanterns and lamps", "a kettle"])
    index = opened(passages, tail_limit)
    lenient = replace(ENGLISH.query("latnern hall"), lenient=True)
    found, _, notes = TermSearch(index).bm25(lenient, "auto", 10, None)
    assert [did for _, _, did in found] == [1, 2]
    assert "did you mean 'lantern' for 'latnern'?" in notes
    assert dids(ask(index, "latnern")) == set()


def test_a_perfect_match_scores_below_the_ceiling(opened: Open) -> None:
    passages = made_up(100)
    for tail_limit in (0, 10_000):
        index = opened(passages, tail_limit, f"words{tail_limit}")
        found, ceiling, _ = TermSearch(index).bm25(ENGLISH.query("brando clempu"), "any", 10, None)
        assert 0 < found[0][0] <= ceiling


@pytest.mark.parametrize("tail_limit", [0, 10_000])
def test_of_a_very_long_query_the_rarest_terms_are_asked(opened: Open, tail_limit: int) -> None:
    passages = PassageList()
    passages.add_all([f"common unique{number}" for number in range(2 * MAX_TERMS)])
    index = opened(passages, tail_limit)
    asked = " ".join(["common", *(f"unique{number}" for number in range(MAX_TERMS + 40)), "nowhere"])
    found, _, notes = TermSearch(index).bm25(ENGLISH.query(asked), "any", 1000, None)
    assert len(found) == MAX_TERMS
    assert notes == (f"the {MAX_TERMS} rarest of {len(ENGLISH.query(asked).terms)} terms", "any word")


@pytest.mark.parametrize("tail_limit", [0, 10_000])
def test_a_quoted_word_of_a_very_long_query_must_occur_however_common(opened: Open, tail_limit: int) -> None:
    passages = PassageList()
    others = [f"unique{number}" for number in range(MAX_TERMS + 40)]
    passages.add_all([f"common unique{number}" for number in range(50)] + others)
    index = opened(passages, tail_limit)
    asked = " ".join(['"common"', *others])
    assert dids(ask(index, asked)) == set(range(1, 51))
    assert dids(ask(index, asked.replace("common", "absent"))) == set()


# --- removal ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tail_limit", [0, 3, 10_000])
def test_what_is_removed_is_not_found_and_what_is_added_is(opened: Open, tail_limit: int) -> None:
    passages = PassageList()
    index = opened(passages, tail_limit)
    rng = random.Random(3)
    for step in range(60):
        if passages.passages and rng.random() < 0.4:
            passages.remove(rng.choice(list(passages.passages)))
        passages.add(step + 1, f"heron number{step}")
        if rng.random() < 0.5:
            index.catch_up(passages.version)
            assert dids(ask(index, "heron")) == {did for did, _, _ in passages.passages.values()}
            assert index.size == len(passages.passages)
    fresh = opened(passages, tail_limit)
    assert dids(ask(fresh, "heron")) == {did for did, _, _ in passages.passages.values()}
    assert fresh.size == len(passages.passages)


@pytest.mark.parametrize("tail_limit", [0, 10_000])
def test_what_came_and_went_between_two_looks_leaves_no_trace(opened: Open, tail_limit: int) -> None:
    passages = PassageList()
    passages.add(1, "heron")
    index = opened(passages, tail_limit)
    passages.remove(passages.add(2, "heron"))
    index.catch_up(passages.version)
    assert dids(ask(index, "heron")) == {1}
    assert index.size == 1


@pytest.mark.parametrize("tail_limit", [0, 10_000])
def test_what_goes_while_the_index_is_reading_is_not_miscounted(opened: Open, tail_limit: int) -> None:
    class Busy(PassageList):
        """Another process removes a passage between any two looks of this one."""

        def passages_after(self, pid: int, limit: int) -> list[tuple[int, int, str, str]]:
            found = super().passages_after(pid, limit)
            if self.victims:
                self.remove(self.victims.pop())
            return found

        def count_after(self, pid: int) -> int:
            found = super().count_after(pid)
            if self.victims:
                self.remove(self.victims.pop())
            return found

        victims: list[int]

    passages = Busy()
    passages.victims = []
    passages.add_all([f"heron number{number}" for number in range(40)])
    passages.victims = list(range(1, 30, 3))
    index = opened(passages, tail_limit)
    while passages.victims:
        passages.add(100 + passages.version, "heron late")
        index.catch_up(passages.version)
    index.catch_up(passages.version)
    assert dids(ask(index, "heron")) == {did for did, _, _ in passages.passages.values()}
    assert index.size == len(passages.passages)


def test_a_rewritten_document_is_found_by_its_new_words_only(opened: Open) -> None:
    """Its number stays the same: the old passage must not answer for it."""
    passages = PassageList()
    first = passages.add(1, "heron")
    index = opened(passages, 0)
    passages.remove(first)
    passages.add(1, "stork")
    index.catch_up(passages.version)
    assert dids(ask(index, "heron")) == set()
    assert dids(ask(index, "stork")) == {1}


def test_the_average_length_is_that_of_the_passages_there_are(opened: Open) -> None:
    passages = PassageList()
    index = opened(passages, 0)
    pid = 0
    for _ in range(6):  # the same document rewritten: its earlier lengths must not add up
        if pid:
            passages.remove(pid)
        pid = passages.add(1, "one two three four")
        index.catch_up(passages.version)
    assert index.average_length() == pytest.approx(4.0)


# --- scope ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tail_limit", [0, 10_000])
@pytest.mark.parametrize("allowed", [1, 5, 64, 65, 700])
def test_the_scope_is_applied_before_the_cut(
    opened: Open, tail_limit: int, allowed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The allowed documents are the last of the list: a cut before the filter finds none."""
    monkeypatch.setattr(term_search, "FEW_ALLOWED", 64)  # up to here part of the query, from here on sifted
    count = 900
    passages = PassageList()
    passages.add_all(["heron " + "filler " * (number // 10) for number in range(count)])
    index = opened(passages, tail_limit)
    scope = Scope.of(list(range(count - allowed + 1, count + 1)), count)
    everything = [hit for hit in ask(index, "heron", depth=count) if hit[2] in scope]
    assert len(everything) == allowed
    for depth in (1, 10):
        found = ask(index, "heron", depth=depth, scope=scope)
        assert [hit[0] for hit in found] == pytest.approx([hit[0] for hit in everything[:depth]])
        assert dids(found) <= set(range(count - allowed + 1, count + 1))


@pytest.mark.parametrize("tail_limit", [0, 10_000])
def test_an_empty_scope_finds_nothing(opened: Open, tail_limit: int) -> None:
    index = opened(made_up(50), tail_limit)
    assert ask(index, "brando", scope=Scope.of([], 50)) == []


@pytest.mark.parametrize("tail_limit", [0, 10_000])
def test_a_scope_leaves_the_scores_as_they_are(opened: Open, tail_limit: int) -> None:
    index = opened(made_up(100), tail_limit)
    free = {did: score for score, _, did in ask(index, "brando clempu")}
    kept = sorted(free)[::2]
    scoped = {did: score for score, _, did in ask(index, "brando clempu", scope=Scope.of(kept, 100))}
    assert scoped == pytest.approx({did: free[did] for did in kept})


@pytest.mark.parametrize("tail_limit", [0, 10_000])
def test_long_documents_count_once_and_do_not_crowd_others_out(opened: Open, tail_limit: int) -> None:
    passages = PassageList()
    for _ in range(200):
        passages.add(1, "heron heron heron")
    for did in range(2, 12):
        passages.add(did, "heron and quite some other words besides it")
    found = ask(opened(passages, tail_limit), "heron", depth=10)
    assert len(found) == 10
    assert found[0][2] == 1
    assert len(dids(found)) == 10


# --- keeping ----------------------------------------------------------------------------------------------------------


def test_a_second_index_reads_what_the_first_wrote(opened: Open) -> None:
    passages = made_up(80)
    opened(passages, 0)

    class Untouchable(PassageList):
        def passages_after(self, pid: int, limit: int) -> list[tuple[int, int, str, str]]:
            assert pid == 80, "the index was not used"
            return []

    records = Untouchable()
    records.passages, records.version, records._last = passages.passages, passages.version, passages._last
    records.checkpoints = passages.checkpoints
    assert dids(ask(opened(records, 0), "brando")) == having(passages, ["brando"])


def test_files_of_a_later_commit_are_not_read_before_they_were_checked(opened: Open) -> None:
    passages = made_up(80)
    reader, writer = opened(passages, 0), opened(passages, 0)
    passages.add_all(["brando"])
    writer.catch_up(passages.version)
    time.sleep(2.5 * WATCHED)
    assert reader._index.searcher().num_docs == 81  # the passages and the checkpoint


def test_an_index_of_another_identity_is_not_used(opened: Open, tmp_path: Path) -> None:
    passages = made_up(30)
    opened(passages, 0)
    french = Analyzer("fr")
    index = TermIndex(tmp_path / "words", passages, french.line, french.id)
    assert index.size == 0
    index.catch_up(passages.version)
    assert index.size == 30
    assert TermIndex(tmp_path / "words", passages, french.line, french.id).size == 30
    assert TermIndex(tmp_path / "words", passages, ENGLISH.line, ENGLISH.id).size == 0


def test_discard_forgets_and_the_next_look_reads_again(opened: Open, tmp_path: Path) -> None:
    passages = made_up(30)
    index = opened(passages, 0)
    index.discard()
    assert not (tmp_path / "words").exists()
    assert ask(index, "brando") == []
    index.catch_up(passages.version)
    assert dids(ask(index, "brando")) == having(passages, ["brando"])


def test_a_records_that_cannot_be_read_is_no_damage_of_the_index(opened: Open, tmp_path: Path) -> None:
    """The store was closed or the disk failed for a moment: building the whole index anew is not the answer."""

    class Failing(PassageList):
        failing = False

        def passages_after(self, pid: int, limit: int) -> list[tuple[int, int, str, str]]:
            if self.failing:
                raise StoreError("store: closed")
            return super().passages_after(pid, limit)

    passages = Failing()
    passages.add_all([f"heron number{number}" for number in range(40)])
    index = opened(passages, 0)
    passages.add(41, "late heron")
    passages.failing = True
    with pytest.raises(StoreError):
        index.catch_up(passages.version)
    assert TermIndex(tmp_path / "words", passages, ENGLISH.line, ENGLISH.id).size == 40
    passages.failing = False
    index.catch_up(passages.version)
    assert len(dids(ask(index, "heron"))) == 41


def test_progress_is_told(tmp_path: Path) -> None:
    passages = made_up(700)
    told: list[tuple[int, int]] = []
    TermIndex(tmp_path / "words", passages, ENGLISH.line, ENGLISH.id).catch_up(
        passages.version, lambda done, total: told.append((done, total))
    )
    assert told[-1] == (700, 700)


def test_searches_go_on_while_another_thread_writes(opened: Open) -> None:
    passages = made_up(20)
    index = opened(passages, 5)
    failures: list[BaseException] = []
    stop = threading.Event()

    def search() -> None:
        try:
            while not stop.is_set():
                assert dids(ask(index, "brando")) <= {did for did, _, _ in list(passages.passages.values())}
                TermSearch(index).likeliest(["brando"], 5, None)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(60):
        passages.add(1000 + number, "brando new")
        index.catch_up(passages.version)
    stop.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert {1000 + number for number in range(60)} <= dids(ask(index, "brando"))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=30), max_size=8), st.text(max_size=30))
def test_any_text_can_be_kept_and_asked(tmp_path_factory: pytest.TempPathFactory, texts: list[str], query: str) -> None:
    passages = PassageList()
    passages.add_all(texts)
    index = TermIndex(tmp_path_factory.mktemp("any") / "words", passages, ENGLISH.line, ENGLISH.id)
    index._advance(wait=False, progress=None) if texts else None
    index.catch_up(passages.version)
    memory = TermIndex(tmp_path_factory.mktemp("any") / "words", passages, ENGLISH.line, ENGLISH.id)
    memory.catch_up(passages.version)
    for text in (query, *texts):
        for match in ("any", "all", "auto"):
            assert dids(ask(index, text, match)) == dids(ask(memory, text, match)), (text, match)


def test_a_writer_that_dies_twice_leaves_the_answer_to_the_tail(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk tantivy says only that its writer was killed: that must not cost the search its words."""
    passages = made_up(40)

    def killed(*_: object) -> None:
        raise ValueError("An error occurred in a thread: 'An index writer was killed..'")

    with monkeypatch.context() as patch:
        patch.setattr(TermIndex, "_write_missing", killed)
        index = opened(passages, 5)
        assert dids(ask(index, VOCABULARY[0])) == having(passages, [VOCABULARY[0]])
    passages.add(999, f"{VOCABULARY[0]} with room again")
    index.catch_up(passages.version)
    assert dids(ask(index, VOCABULARY[0])) == having(passages, [VOCABULARY[0]])
