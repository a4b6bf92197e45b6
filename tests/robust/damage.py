"""Damage to any file of the store is reported or repaired, and never trusted.

The truth: a flipped bit, a page of zeroes, a cut: the store is refused, or ``verify`` says what is wrong, or nothing
of what is stored changed. Its log: the same, or the last commit is missing as after a power cut, whole. The indexes:
every search answers as before, before anybody asks ``verify``.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

from robust import patient
from robust.account import Account, Scale
from stores.sqlite import heal

PATIENCE = 60.0  # seconds to start, and ten for each case: a damaged log is looked at for one before it is refused
HEALED = ("truncated", "emptied", "overwritten", "deleted", "garbled", "flipped")


def run(account: Account, scale: Scale, folder: Path, rng: random.Random) -> None:
    patient.build(folder / "whole")
    for file, ways in patient.CASES.items():
        for way in ways:
            wanted = scale.flips if way == "flipped" else max(3, scale.flips // 4)
            _examine(account, folder, file, way, wanted, rng.randrange(1 << 30))
        account.tell(f"damage: {file}: {account.counts['damages']:,} cases so far")
    if scale.projection_flips:
        _heal(account, scale, folder / "healing", rng.randrange(1 << 30))


def _examine(account: Account, folder: Path, file: str, way: str, wanted: int, seed: int) -> None:
    """In a process of its own, so that one that dies or never ends is told apart."""
    done = 0
    while done < wanted:
        command = [sys.executable, "-m", "robust.patient", str(folder), file, way, str(done), str(wanted), str(seed)]
        try:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE + 10 * wanted, check=False)
            told, code, errors = ran.stdout, ran.returncode, ran.stderr
        except subprocess.TimeoutExpired as error:
            told, code, errors = (error.stdout or b"").decode(), None, "no end"
        cases = [json.loads(line) for line in told.splitlines()]
        for case in cases:
            account.add("damages")
            account.add(f"of them {case['outcome']}" if case["outcome"] in ("told", "harmless", "torn") else "faulty")
            if case["outcome"] not in ("told", "harmless", "torn"):
                account.fault(case["outcome"], f"{way} {file}, seed {case['seed']}: {case['said']}")
        done += len(cases)
        if code != 0:
            account.fault("hung" if code is None else "crashed", f"{way} {file}, case {done}: {errors[-800:]}")
            done += 1


def _heal(account: Account, scale: Scale, folder: Path, seed: int) -> None:
    for way in HEALED if scale.projection_flips > 1 else ("flipped", "truncated"):  # `make test` has every way once
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        attempts = scale.projection_flips if way in ("flipped", "garbled") else 1
        command = [sys.executable, str(Path(heal.__file__)), str(folder), way, "", str(attempts), f"{seed}/"]
        try:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)
        except subprocess.TimeoutExpired:
            account.fault("hung", f"{way} index files")
            continue
        cases = ran.stdout.strip().splitlines()
        account.add("damages", len(cases) - 1)
        account.add("of them healed", len(cases) - 1)
        if ran.returncode or cases[-1:] != ["all healed"]:
            kind = "wrong" if "AssertionError" in ran.stderr else "crashed"
            account.fault(kind, f"{cases[-1:]}: {ran.stderr[-1200:]}")
        account.tell(f"damage: indexes {way}: {len(cases) - 1} cases")
