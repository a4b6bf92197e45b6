"""Run the shell commands of a page of the documentation, in order and in one shell, up to the first that fails.

    python tools/run_page.py docs/how-to/operate-postgresql.md --folder /tmp/page --give notes.jsonl

The folder must not exist: it is the home and the working folder, and gets the files that are given. The servers that a
page starts keep running; end them by the files in that folder. PostgreSQL refuses root: run it as a plain user.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

_BLOCK = re.compile(r"^( *)```sh\n(.*?)^\1```", flags=re.MULTILINE | re.DOTALL)


def script(page: str, ports: tuple[str, str] | None = None) -> str:
    """Return the commands of a page as one script; ``ports`` replaces the first two digits of a port of four."""
    blocks = [re.sub(rf"^{indent}", "", code, flags=re.MULTILINE) for indent, code in _BLOCK.findall(page)]
    text = "".join(f"echo '--- block {number}'\n{code}" for number, code in enumerate(blocks, 1))
    return re.sub(rf"\b{ports[0]}(\d\d)\b", rf"{ports[1]}\1", text) if ports else text


def run(page: Path, folder: Path, given: list[Path], ports: tuple[str, str] | None = None) -> int:
    """Run the commands of a page in a new folder, and return the exit status."""
    folder.mkdir(parents=True)
    for file in given:
        shutil.copy(file, folder)
    (folder / ".psqlrc").write_text("\\set ON_ERROR_STOP 1\n")  # psql goes on after an error otherwise
    (folder / "page.sh").write_text("set -eo pipefail\n" + script(page.read_text(encoding="utf-8"), ports))
    command, environment = ["bash", "page.sh"], {**os.environ, "HOME": str(folder)}
    return subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, check=False).returncode


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path)
    parser.add_argument("--folder", type=Path, required=True, help="new, short: sockets are in it")
    parser.add_argument("--give", type=Path, action="append", default=[], help="a file that the page reads")
    parser.add_argument("--ports", nargs=2, metavar=("OLD", "NEW"), help="the first two digits, where those are taken")
    asked = parser.parse_args(arguments)
    return run(asked.page, asked.folder.resolve(), asked.give, tuple(asked.ports) if asked.ports else None)


if __name__ == "__main__":
    sys.exit(main())
