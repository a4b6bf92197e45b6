from __future__ import annotations

import json
from importlib import resources

import pytest
from tokenizers import Tokenizer

from trivet.models.encoders.word_pieces import WordPieceTokenizer, shares

from .tokenizer_texts import texts


def shipped() -> str:
    return resources.files("trivet.data").joinpath("reader/tokenizer.json").read_text(encoding="utf-8")


def both(limit: int) -> tuple[WordPieceTokenizer, Tokenizer]:
    library = Tokenizer.from_str(shipped())
    library.enable_truncation(limit)
    return WordPieceTokenizer(shipped(), limit), library


@pytest.mark.parametrize("limit", [512, 25])
def test_the_tokens_are_those_of_the_library(limit: int) -> None:
    ours, library = both(limit)
    for text in texts(5_000):
        assert ours.encode(text).ids == library.encode(text).ids, text


@pytest.mark.parametrize("limit", [512, 24, 25])
def test_the_tokens_of_a_pair_are_those_of_the_library(limit: int) -> None:
    ours, library = both(limit)
    found = texts(2_000)
    for first, second in zip(found, reversed(found), strict=True):
        expected = library.encode(first, second)
        pair = ours.encode(first, second)
        assert (pair.ids, pair.type_ids) == (expected.ids, expected.type_ids), (first, second)
        assert pair.attention_mask == expected.attention_mask


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [(4, 5, (4, 5)), (4, 20, (4, 6)), (20, 4, (6, 4)), (9, 9, (5, 5)), (30, 40, (5, 5)), (40, 30, (5, 5))],
)
def test_the_longer_text_is_cut_first(first: int, second: int, kept: tuple[int, int]) -> None:
    assert shares(first, second, 10) == kept


def test_known_words_are_forgotten_when_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trivet.models.encoders.word_pieces.KEPT_WORDS", 3)
    ours, library = both(64)
    assert ours.encode("one two three four five").ids == library.encode("one two three four five").ids
    assert len(ours._known) <= 3


def test_a_tokenizer_that_works_otherwise_is_refused() -> None:
    read = json.loads(shipped())
    read["normalizer"]["lowercase"] = False
    with pytest.raises(ValueError, match="only lower-cased word pieces"):
        WordPieceTokenizer(json.dumps(read), 512)
