"""Virtual environments of the engines, one each, made from the registry once and kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from corpus import CACHE
from peers.registry import ALWAYS, ENVIRONMENTS

FOLDER = CACHE / "peers"
STAMP = ".installed"


class UnavailableError(Exception):
    """An engine that could not be installed, with the reason."""


def python_of(module: str) -> Path:
    """Return the Python that can import this engine; for trivet, the current one."""
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
