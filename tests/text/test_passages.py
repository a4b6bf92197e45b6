from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivet.errors import InputError
from trivet.text import passages as cutting
from trivet.text.passages import PASSAGE_SIZE, cut, estimate_tokens
from trivet.types import Passage

anything = st.text(st.characters(exclude_categories=()), max_size=400)
#: Text that is full of places to cut at, and of fences that do not close.
markdown = st.lists(
    st.sampled_from(
        ["# Head\n", "word ", "Sentence. ", "\n\n", "\n", "```\n", "~~~py\n", "我们走。", "a" * 30, "  ", "é"]
    )
).map("".join)


def check(text: str, passages: list[Passage], size: int) -> None:
    assert [passage.ordinal for passage in passages] == list(range(len(passages)))
    assert passages[0].start == 0 and passages[-1].end == len(text)
    for passage in passages:
        assert passage.text == text[passage.start : passage.end]
        assert passage.text or not text
        assert estimate_tokens(passage.text) <= size
    for one, following in pairwise(passages):
        assert one.start < following.start <= one.end < following.end


@given(anything | markdown, st.integers(2, 60), st.floats(0, 0.5))
def test_passages_cover_the_text_in_order_and_within_the_size(text: str, size: int, share: float) -> None:
    check(text, cut(text, size=size, overlap=int(share * size)), size)


@given(markdown)
def test_without_overlap_passages_join_to_the_text(text: str) -> None:
    assert "".join(passage.text for passage in cut(text, size=12, overlap=0)) == text


@pytest.mark.parametrize("text", ["", "A short note.", "word " * (PASSAGE_SIZE - 1)])
def test_a_short_text_is_one_passage(text: str) -> None:
    assert cut(text) == [Passage(0, 0, len(text), text)]


def test_a_page_begins_a_passage_and_a_blank_one_belongs_to_the_one_before() -> None:
    text = "\n\fone\n\f\n\ntwo. two.\f \f\nfour\n\f\n"
    assert [passage.text for passage in cut(text)] == ["\n\fone\n\f\n\n", "two. two.\f \f\n", "four\n\f\n"]
    assert [text[passage.start : passage.end] for passage in cut(text)] == [passage.text for passage in cut(text)]


def test_size_0_never_cuts() -> None:
    text = "Sentence. " * 10_000
    assert cut(text, size=0) == [Passage(0, 0, len(text), text)]


def test_a_heading_is_the_best_place_and_starts_clean() -> None:
    text = "# One\n\n" + "First section. " * 12 + "\n\n# Two\n\n" + "Second section. " * 12
    first, second = cut(text, size=60, overlap=10)
    assert second.text.startswith("# Two") and second.start == first.end


def test_a_comment_in_a_fence_is_no_heading_and_the_fence_stays_whole() -> None:
    fence = "```sh\n# install it\n" + "pip install trivet\n" * 8 + "```\n"
    text = "Some words before. " * 12 + "\n\n" + fence + "\nAnd after. " * 12
    passages = cut(text, size=60, overlap=10)
    assert any(fence in passage.text for passage in passages)


def test_a_fence_longer_than_a_passage_is_cut_at_its_lines() -> None:
    text = "```py\n" + "value = compute(value)\n" * 100 + "```\n"
    passages = cut(text, size=50, overlap=5)
    assert len(passages) > 5
    assert all(passage.text.endswith("\n") for passage in passages)


def test_paragraphs_then_sentences() -> None:
    paragraph = "It was late. The train was later. " * 3
    text = f"{paragraph}\n\n{paragraph}\n\n{paragraph}"
    assert all(passage.text.rstrip("\n") == paragraph for passage in cut(text, size=35, overlap=0))
    sentences = cut(paragraph, size=20, overlap=0)
    assert len(sentences) > 1 and all(passage.text.endswith(". ") for passage in sentences)


def test_neighbours_overlap_by_a_sentence() -> None:
    text = " ".join(f"This is sentence number {n}." for n in range(40))
    passages = cut(text, size=60, overlap=12)
    for one, following in pairwise(passages):
        shared = text[following.start : one.end]
        assert shared.startswith("This is sentence") and estimate_tokens(shared) <= 14


def test_chinese_is_cut_after_its_sentences() -> None:
    text = "我喜欢在北京的胡同里散步。今天的天气很好！" * 60
    passages = cut(text)
    assert len(passages) > 1
    assert all(passage.text[-1] in "。！" for passage in passages)
    assert max(len(passage.text) for passage in passages) <= PASSAGE_SIZE // 2


def test_one_endless_line_is_cut_too() -> None:
    text = "x" * 1_000_000
    check(text, cut(text), PASSAGE_SIZE)


def test_the_estimate_counts_what_a_model_would() -> None:
    assert estimate_tokens("The cat sat on the mat.") == 7
    assert estimate_tokens("    return 42") == 5
    assert estimate_tokens("北京") == 4
    assert estimate_tokens("") == 0


@pytest.mark.parametrize(("size", "overlap"), [(-1, None), (10, 6), (10, -1)])
def test_impossible_sizes_are_refused(size: int, overlap: int | None) -> None:
    with pytest.raises(InputError, match="passage"):
        cut("text", size=size, overlap=overlap)


@given(anything | markdown | st.text(" \n\t aZ9.é中🙂"), st.integers(1, 40), st.integers(0, 20))
def test_the_reach_counts_the_tokens_one_by_one(text: str, size: int, start: int) -> None:
    left, start = size, min(start, len(text))
    expected = len(text)
    for token in cutting._TOKEN.finditer(text, start):
        left -= 2 if token[0] >= "\u2e80" else 1
        if left < 0:
            expected = max(token.start(), start + 1)
            break
    assert cutting._reach(text, start, size) == expected
