"""Write docs/reference/cli.md from the help of the commands: `make docs`. A test checks that the page is up to date."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from pathlib import Path

from trivet.cli import application

TARGET = Path(__file__).parent.parent / "docs/reference/cli.md"
app = application(())  # what `typer` describes: all commands
HEAD = "<!-- made by `make docs` from the commands' own help; do not edit -->\n\n"


def page() -> str:
    """Return the page."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("TRIVET_")}
    command = [sys.executable, "-m", "typer", __file__, "utils", "docs", "--name", "trivet"]
    text = subprocess.run(command, env=plain, capture_output=True, text=True, check=True).stdout
    text = html.unescape(text)
    text = re.sub(r"\[bold\](Examples?)\[/\]\n((?:\[dim\]\$\[/\].*\n?)+)", _example, text)
    text = re.sub(r"\[/?(?:bold|dim|cyan|green|yellow|red)?\]", "", text)
    return HEAD + re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _example(found: re.Match[str]) -> str:
    lines = [re.sub(r"^\[dim\]\$\[/\]", "$", line) for line in found[2].strip().splitlines()]
    return "**Examples**:\n\n```console\n" + "\n".join(lines).replace("\\[", "[") + "\n```\n"


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
    print(f"wrote {TARGET.name}", file=sys.stderr)
