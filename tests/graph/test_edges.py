"""The rules of edges: what a session is, who can be a neighbour, which values are shared."""

from __future__ import annotations

from typing import Any

import pytest

from trivet.graph.edges import LONGEST, MOST_VALUES, follows, session_key, shared_values


@pytest.mark.parametrize(
    ("meta", "key"),
    [
        ({"session": "s1"}, "session"),
        ({"thread": 0}, "thread"),
        ({"session": "", "chat": "c"}, "chat"),
        ({"session": ["s1"]}, None),
        ({"topic": "s1"}, None),
    ],
)
def test_the_key_of_a_session(meta: dict[str, Any], key: str | None) -> None:
    assert session_key(meta) == key


def test_the_turns_of_an_assistant_are_skipped() -> None:
    assert follows({}, {"role": "user"}) and not follows({}, {"role": "Assistant"})


def test_sessions_of_two_projects_are_two() -> None:
    assert follows({"project": "a"}, {"project": "a"}) and follows({"project": "a"}, {})
    assert not follows({"project": "a"}, {"project": "b"})


def test_values_that_two_documents_can_share() -> None:
    meta = {"ticket": "T-1", "page": {"name": "home"}, "year": 2020, "date": "2020-01-01", "session": "s", "text": "x"}
    assert shared_values(meta) == [("ticket", "T-1"), ("page.name", "home"), ("text", "x")]
    assert shared_values({"text": "x" * (LONGEST + 1), "empty": ""}) == []
    assert len(shared_values({f"k{number}": "v" for number in range(20)})) == MOST_VALUES
