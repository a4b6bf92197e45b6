"""The demo of ``examples/demo.py``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


@pytest.mark.slow
def test_the_demo(clean_place: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "TRIVET_EMBEDDER"}
    done = subprocess.run(
        [sys.executable, str(DEMO)], capture_output=True, encoding="utf-8", env=environment, timeout=250, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.count("\n## ") == 10
    # of the two notes with the same content, the one that ranks lower is removed
    copies = ("note-led-codes-pasted", "note-stilt-led-codes")
    assert sum(f"removed as a duplicate of a hit above: {id}" in done.stdout for id in copies) == 1
    assert "no hits" in done.stdout
    assert "\x1b" not in done.stdout
    assert (clean_place / ".demo" / "notes.db").exists()
