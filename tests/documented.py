"""Runs the code blocks of a Markdown page and compares what they print with what the page shows."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
LEFT_OUT = "…"  # in an output that a page shows: any text, and alone on a line any lines
TOLERANCE = 0.05  # of a number in an output: the model rounds differently on other processors

#: Runs the blocks in order: Python in one namespace, shell commands in the same folder. Prints each block's output.
DRIVER = """
import contextlib, io, json, subprocess, sys
names, outputs = {"__name__": "__main__"}, []
for language, code in json.load(sys.stdin):
    if language == "python":
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(code, "<page>", "exec"), names)
        outputs.append(printed.getvalue())
    else:
        command = ["bash", "-euo", "pipefail", "-c", code]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{code}\\nended with {done.returncode}: {done.stderr}")
        outputs.append(done.stdout)
json.dump(outputs, sys.stdout)
"""


@dataclass(frozen=True)
class Block:
    """A code block, and the output that the page shows for it, if it shows one."""

    language: str
    code: str
    output: str | None = None


def blocks(text: str, *languages: str) -> list[Block]:
    """Return the blocks of these languages; a ``text`` block right behind one is its output."""
    fence = re.compile(
        rf"^```({'|'.join(languages)})\n(.*?)^```\n(?:\s*^```text\n(.*?)^```\n)?", flags=re.DOTALL | re.MULTILINE
    )
    return [Block(*found.groups()) for found in fence.finditer(text)]


def run(found: list[Block], folder: Path) -> list[str]:
    """Run the blocks in ``folder``, which is the home folder too, and return what each printed."""
    tools = folder / ".bin"
    tools.mkdir(exist_ok=True)
    command = tools / "trivet"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m trivet "$@"\n')
    command.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TRIVET_")}
    environment |= {"HOME": str(folder), "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", DRIVER],
        cwd=folder,
        env=environment,
        input=json.dumps([(block.language, block.code) for block in found]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    outputs: list[str] = json.loads(done.stdout)
    return outputs


def matches(shown: str, printed: str) -> bool:
    """Return whether ``printed`` is what the page shows: the same words, the same numbers within the tolerance."""
    parts = [re.escape(part) for part in re.split(rf"^{LEFT_OUT}$", shown.strip(), flags=re.MULTILINE)]
    pattern = r"[\s\S]*?".join(parts).replace(re.escape(LEFT_OUT), r".*?")
    pattern = re.sub(r"\d+\\\.\d+", r"(\\d+\\.\\d+)", pattern)
    found = re.fullmatch(pattern, printed.strip())
    if found is None:
        return False
    numbers = re.findall(r"\d+\.\d+", shown)
    return all(abs(float(one) - float(other)) <= TOLERANCE for one, other in zip(numbers, found.groups(), strict=True))


def check(page: str, folder: Path, *languages: str) -> None:
    """Run a page's blocks in ``folder`` and compare every output that the page shows."""
    found = blocks((ROOT / page).read_text(encoding="utf-8"), *languages)
    assert found, page
    for block, printed in zip(found, run(found, folder), strict=True):
        if block.output is not None:
            assert matches(block.output, printed), f"{page} shows\n{block.output}\nbut this was printed:\n{printed}"
