"""The window of a long text has most of the wanted terms, is no longer than asked, and a short text stays whole."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trivet.text.window import PIECE, best_window, cut

TEXT = (
    "The pump was replaced in March. The new one is quieter. Nobody has complained since. "
    "The greenhouse door sticks when it rains. Plane its lower edge. The radio in hall three is broken. "
)


def words(text: str) -> list[str]:
    return text.lower().replace(".", " ").split()


def test_the_window_is_where_the_terms_are() -> None:
    assert best_window(TEXT, {"door", "rains"}, words, 60) == "The greenhouse door sticks when it rains."


def test_the_first_of_equal_windows_is_taken_and_filled_up() -> None:
    assert best_window(TEXT, {"nothing"}, words, 60) == "The pump was replaced in March. The new one is quieter."


def test_a_short_text_is_returned_whole() -> None:
    assert best_window("One. Two.", {"two"}, words, 100) == "One. Two."


def test_a_term_that_occurs_twice_counts_once() -> None:
    text = "Door door door door door. Then at last a door with rain behind it and nothing else at all."
    assert "rain" in best_window(text, {"door", "rain"}, words, 70)


@given(st.text(alphabet=st.sampled_from("ab .!?\n。"), max_size=1500), st.integers(50, 400))
def test_no_window_is_longer_than_the_size_and_one_piece(text: str, size: int) -> None:
    window = best_window(text, {"ab"}, words, size)
    assert window.strip() in text
    assert len(window) <= max(size, 2 * PIECE)


@given(st.text(max_size=1500))
def test_the_pieces_are_the_text(text: str) -> None:
    pieces = cut(text)
    assert "".join(pieces) == text
    assert all(0 < len(piece) <= 2 * PIECE for piece in pieces)
