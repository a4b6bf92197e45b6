"""Which part is not wanted, and which only looks like it?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivet.understanding.negation import MAX_WORDS, split_negation


@pytest.mark.parametrize(
    ("text", "wanted", "avoided"),
    [
        ("moods of the sea but not storms", "moods of the sea", ("storms",)),
        ("bread recipes excluding rye, with photographs", "bread recipes , with photographs", ("rye",)),
        ("How did it grow (excluding the harbour fees), and what came next?", None, ("the harbour fees",)),
        ("Describe the old town without the cathedral.", "Describe the old town .", ("the cathedral",)),
        ("Tell me about tea, but do not mention milk", "Tell me about tea,", ("milk",)),
        ("songs other than lullabies", "songs", ("lullabies",)),
        ("seal pups -circus", "seal pups", ("circus",)),
        ('seal pups -circus -"sea lion"', "seal pups", ("circus", "sea lion")),
        ("seal pups NOT circus", "seal pups", ("circus",)),
        ("Vögel aber nicht Möwen", "Vögel", ("Möwen",)),
        ("Brot außer Roggenbrot", "Brot", ("Roggenbrot",)),
        ("oiseaux sauf les mouettes", "oiseaux", ("les mouettes",)),
        ("pájaros pero no gaviotas", "pájaros", ("gaviotas",)),
        ("鸟类，不包括海鸥", "鸟类，", ("海鸥",)),
        ("除了海鸥以外的鸟", "鸟", ("海鸥",)),
        ("カモメ以外の鳥", "鳥", ("カモメ",)),
        ("갈매기 제외하고 새", "새", ("갈매기",)),
    ],
)
def test_what_is_cut_out(text: str, wanted: str | None, avoided: tuple[str, ...]) -> None:
    found = split_negation(text)
    assert found.avoided == avoided
    if wanted is not None:
        assert found.wanted == wanted


@pytest.mark.parametrize(
    "text",
    [
        "why does it not start",
        "sort a list without recursion",
        "I do not know what this is",
        "git log -p",
        "tar -xzf backup",
        "find . -name notes",
        "ls src/parts -recursive",
        "-circus",
        "but not storms",
        "state-of-the-art pumps",
        "a well-known -3 offset",
        "除了海鸥还有什么鸟",
        "notwithstanding the weather",
        "",
    ],
)
def test_what_is_left_alone(text: str) -> None:
    assert split_negation(text) == (text, ())


def test_a_part_has_an_end() -> None:
    found = split_negation(f"the sea excluding {' '.join(f'word{n}' for n in range(40))}")
    assert len(found.avoided[0].split()) == MAX_WORDS
    assert "word39" in found.wanted


@given(st.text(max_size=80))
def test_any_text_is_read(text: str) -> None:
    found = split_negation(text)
    assert found.avoided or found.wanted == text
