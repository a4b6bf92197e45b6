"""Runs the examples of the frameworks and the code of their how-to page."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/how-to/use-with-a-framework.md"


def run_example(framework: str) -> None:
    """Run the example of a framework."""
    runpy.run_path(str(ROOT / f"examples/with_{framework}.py"), run_name="__main__")


def run_section(heading: str) -> dict[str, Any]:
    """Run the Python of a section of the page in the current folder; return its names."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    names: dict[str, Any] = {}
    for code in re.findall(r"^```python\n(.*?)^```", section, flags=re.DOTALL | re.MULTILINE):
        exec(compile(code, str(PAGE), "exec"), names)
    return names
