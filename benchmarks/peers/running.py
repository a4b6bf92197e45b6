"""Run one step of one engine in its own process group, and end it at its limit of time or memory."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

HERE = Path(__file__).parent.parent
MIXED = 60.0  # seconds for a step of ten: an engine whose threads wait for each other is not waited for
EVERY = 0.1  # seconds between two looks at the memory of a process and its children


@dataclass(frozen=True)
class Limits:
    """``build_s`` for a build, ``step_s`` for any other step, ``memory_gb`` for all of an engine's processes."""

    build_s: float
    step_s: float
    memory_gb: float

    def seconds(self, step: str) -> float:
        if step == "mixed":
            return min(MIXED, self.step_s)
        return self.build_s if step in ("build", "judged") else self.step_s


def run(python: Path, order: dict[str, Any], limits: Limits) -> dict[str, Any]:
    """Return the result of a step, or ``{"failed": reason}``."""
    allowed = limits.seconds(order["step"])
    environment = {**os.environ, "PYTHONPATH": str(HERE), "TOKENIZERS_PARALLELISM": "false"}
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as complained:
        process = subprocess.Popen(
            [str(python), "-m", "peers.worker", json.dumps(order)],
            cwd=HERE,
            env=environment,
            stdout=said,
            stderr=complained,
            start_new_session=True,
        )
        try:
            stopped, most = _watched(process, allowed, limits.memory_gb)
        finally:
            _end(process)
        said.seek(0)
        complained.seek(0)
        lines, errors = said.read().splitlines(), complained.read().splitlines()
    if stopped:
        return {"failed": stopped, "memory_peak_mb": most}
    if process.returncode:
        code = process.returncode
        why = f"killed by signal {-code}" if code < 0 else _last(errors) or f"ended with {code}"
        return {"failed": why, "memory_peak_mb": most}
    result: dict[str, Any] = json.loads(lines[-1])
    if "memory_mb" in result:
        result["memory_mb"]["peak"] = max(result["memory_mb"]["peak"], most)
    return result


def _watched(process: subprocess.Popen[str], allowed: float, memory_gb: float) -> tuple[str, float]:
    """Wait for the process to end or to reach a limit; return the reason (or nothing) and the peak memory in MB."""
    started, most = time.monotonic(), 0.0
    while process.poll() is None:
        most = max(most, _resident_mb(process.pid))
        if most > memory_gb * 1000:
            return f"over {memory_gb:g} GB of memory", round(most, 1)
        if time.monotonic() - started > allowed:
            return f"over {allowed:,.0f} s", round(most, 1)
        time.sleep(EVERY)
    return "", round(most, 1)


def _resident_mb(pid: int) -> float:
    try:
        first = psutil.Process(pid)
        return sum(each.memory_info().rss for each in (first, *first.children(recursive=True))) / 1e6
    except psutil.Error:  # it has ended meanwhile
        return 0.0


def _end(process: subprocess.Popen[str]) -> None:
    """End the process group that was started here."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _last(errors: list[str]) -> str:
    """Return the last line of the error, without the paths of this machine."""
    told = [line.strip() for line in errors if line.strip()]
    return told[-1].replace(str(HERE.parent), "…")[:300] if told else ""
