from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivet.rerank.folding import fold


@pytest.mark.parametrize(
    ("text", "folded"),
    [("", ""), (" \t\n", ""), ("  A  b\nC ", "a b c"), ("Ｗｉｄｅ", "wide"), ("ẞ", "ss"), ("İ", "i̇")],
)
def test_fold(text: str, folded: str) -> None:
    assert fold(text) == folded


@given(st.text(st.characters(max_codepoint=127)))
def test_the_short_way_for_ascii_is_the_long_way(text: str) -> None:
    assert fold(text) == fold(text + " é")[:-1].rstrip()


@given(st.text(), st.text())
def test_white_space_between_does_not_matter(one: str, other: str) -> None:
    assert fold(f"{one} {other}") == fold(f"  {one}\n\t{other} ")
