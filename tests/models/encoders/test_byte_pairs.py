from __future__ import annotations

import json
from functools import cache

import pytest
from tokenizers import Tokenizer

from trivet.models.embedders import granite
from trivet.models.encoders.byte_pairs import BytePairTokenizer, pack

from .tokenizer_texts import FRAGMENTS, texts


@cache
def built_in() -> str:
    return granite.read_pack(granite.pack_bytes())[1]


def both(limit: int) -> tuple[BytePairTokenizer, Tokenizer]:
    library = Tokenizer.from_str(built_in())
    library.enable_truncation(limit)
    return BytePairTokenizer(pack(built_in()), limit), library


@pytest.mark.parametrize("limit", [512, 24])
def test_the_tokens_are_those_of_the_library(limit: int) -> None:
    ours, library = both(limit)
    for text in texts(5_000):
        assert ours.encode(text).ids == library.encode(text).ids, text


def test_a_word_is_tokenised_the_same_when_it_is_known() -> None:
    ours, library = both(512)
    for _ in range(2):
        for text in FRAGMENTS:
            assert ours.encode(text).ids == library.encode(text).ids


def test_words_after_the_limit_are_not_looked_at() -> None:
    ours, _ = both(8)
    assert ours.encode("word " * 100).ids[-1] == 2
    assert len(ours.encode("one two " * 5 + "neverseen").ids) == 8
    assert " neverseen" not in ours._known


def test_known_words_are_forgotten_when_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trivet.models.encoders.byte_pairs.KEPT_WORDS", 3)
    ours, library = both(64)
    assert ours.encode("one two three four five").ids == library.encode("one two three four five").ids
    assert len(ours._known) <= 3


def test_a_pair_is_refused() -> None:
    ours, _ = both(8)
    with pytest.raises(ValueError, match="single texts"):
        ours.encode("a", "b")


def test_a_tokenizer_that_works_otherwise_is_refused() -> None:
    read = json.loads(built_in())
    for change in ({"normalizer": {"type": "Lowercase"}}, {"pre_tokenizer": {"type": "Whitespace"}}):
        with pytest.raises(ValueError, match="only byte pairs"):
            pack(json.dumps(read | change))
