"""Every command and Python block of the tutorial runs, and prints what the page shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from documented import LEFT_OUT, check, matches

PAGES = sorted(path.name for path in (Path(__file__).parent.parent / "docs/tutorial").glob("*.md"))

pytestmark = pytest.mark.slow  # about 100 s: `make test-slow`


@pytest.mark.parametrize("page", [name for name in PAGES if name != "index.md"])
def test_a_lesson_runs_as_it_is_written(page: str, tmp_path: Path) -> None:
    check(f"docs/tutorial/{page}", tmp_path, "python", "sh")


def test_there_are_three_lessons() -> None:
    assert len(PAGES) == 4


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("1 door", "1 door\n", True),
        ("1 door", "2 door", False),
        ("relevance 0.93", "relevance 0.91", True),
        ("relevance 0.93", "relevance 0.53", False),
        (f"1 {LEFT_OUT} door", "1 0.7 door", True),
        (f"1 door\n{LEFT_OUT}\n2 pump", "1 door\n  a\n  b\n2 pump", True),
        (f"1 door\n{LEFT_OUT}\n2 pump", "1 door\n  a\n3 pump", False),
    ],
)
def test_outputs_are_compared(shown: str, printed: str, same: bool) -> None:
    assert matches(shown, printed) is same
