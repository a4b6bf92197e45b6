"""Where does each engine live? In a virtual environment of its own, made from the registry once and kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from corpus import CACHE
from peers.registry import ALWAYS, ENVIRONMENTS

FOLDER = CACHE / "peers"
STAMP = ".installed"


class UnavailableError(Exception):
    """It could not be installed, and why."""


def python_of(module: str) -> Path:
    """The python that can import this engine; ours is the one that runs this."""
    if module not in ENVIRONMENTS:
        return Path(sys.executable)
    environment = ENVIRONMENTS[module]
    home = FOLDER / module
    python = home / "bin/python"
    wanted = "\n".join((*ALWAYS, *environment.packages, "--no-deps", *environment.alone))
    stamp = home / STAMP
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    if not python.exists():
        _run([sys.executable, "-m", "venv", str(home)])
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*install, *ALWAYS, *environment.packages])
    if environment.alone:
        _run([*install, "--no-deps", *environment.alone])
    stamp.write_text(wanted)
    return python


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
        raise UnavailableError(errors[-1] if errors else f"{command[0]} ended with {done.returncode}")
