"""No text, filter, profile, file or request makes a call fail, hang or show what a filter hides."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

from robust.account import Account, Scale
from robust.targets import TARGETS
from robust.watch import ENDED

PATIENCE = 3_600.0  # seconds for all inputs of one target


def run(account: Account, scale: Scale, folder: Path, rng: random.Random) -> None:
    if importlib.util.find_spec("atheris") is None:
        account.note("atheris is not installed here: the parsers are fuzzed by chance instead")
    jobs = [("fuzzer", name, scale.parser_inputs) for name in TARGETS]
    jobs += [("searching", "searches", scale.searches), ("requesting", "requests", scale.requests)]
    waiting = [(module, name, wanted, rng.randrange(1 << 31)) for module, name, wanted in jobs]
    running: dict[str, tuple[int, float, subprocess.Popen[bytes]]] = {}
    while waiting or running:
        while waiting and len(running) < (os.cpu_count() or 1):
            module, name, wanted, seed = waiting.pop(0)
            command = [sys.executable, "-m", f"robust.{module}", name, str(wanted), str(seed), str(folder)]
            with (folder / f"{name}.err").open("wb") as errors:
                process = subprocess.Popen(command, stdout=errors, stderr=errors, cwd=folder)
            running[name] = wanted, time.monotonic() + PATIENCE, process
        time.sleep(0.2)
        for name, (wanted, until, process) in list(running.items()):
            if process.poll() is None and time.monotonic() < until:
                continue
            code = process.poll()
            process.kill()
            process.wait()
            del running[name]
            _settle(account, folder, name, wanted, code)


def _settle(account: Account, folder: Path, name: str, wanted: int, code: int | None) -> None:
    faults = folder / f"{name}.faults"
    found = [json.loads(line) for line in faults.read_text().splitlines()] if faults.exists() else []
    for fault in found:
        account.fault(fault["kind"], f"{fault['said']} on {fault['input'][:300]}")
    count = folder / f"{name}.count"
    told = json.loads(count.read_text()) if count.exists() else {"inputs": 0, "refused": 0}
    account.add("inputs", told["inputs"])
    account.tell(f"fuzz: {name}: {told['inputs']:,} inputs, {told['refused']:,} refused, {len(found)} faults")
    if code not in (0, ENDED):
        kind = "hung" if code is None else "crashed"
        account.fault(kind, f"the fuzzer of {name} ended with {code}: {(folder / f'{name}.err').read_text()[-800:]}")
    elif told["inputs"] < wanted:
        account.fault("crashed", f"the fuzzer of {name} made {told['inputs']:,} of {wanted:,} inputs")
