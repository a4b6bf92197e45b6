"""Compare trivet with other engines on the same work, in one run on this machine.

    python -m peers --data ../shared/data --size 10k 89k scifact --docs        (from benchmarks/, or: make bench-peers)

Each engine, with each of its settings in ``registry.py``, is built, queried, opened cold, written to, and read while it
is written to; every step is a process with a limit of time and memory. Then it runs the queries of the judged set. The
result file is written after every step, so that a stopped run keeps its results; ``--only`` and ``--size`` add to it.
``--carry`` takes an engine's row from an earlier result file where this run does not measure it; a row says at which
commit it was measured, and so does the page where that is another one.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
import time
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
from corpus import SIZES, corpus
from peers import bandwidth, page, running
from peers.environments import UnavailableError, python_of
from peers.registry import ENVIRONMENTS, Row, rows
from peers.targets import number
from speed import machine

RESULTS = Path(__file__).parent.parent / "results"
STEPS = ("build", "ask", "cold", "write", "mixed")
AGAIN: dict[str, tuple[str, ...]] = {  # steps done in three processes, of which the one with the middle number is told
    "ask": ("none", "p50_ms"),
    "cold": ("open_to_answer_ms",),
    "write": ("p50_ms",),
}
TIMES = 3
LONG = 30.0  # seconds: a step that takes longer is done once


class Run:
    """One result file that grows."""

    def __init__(self, target: Path, limits: running.Limits, work: Path, carried: Path | None = None) -> None:
        self.target, self.limits, self.work = target, limits, work
        known = json.loads(target.read_text()) if target.exists() else {}
        self.results: dict[str, Any] = {"machine": machine(), "rows": {}, "judged": {}, **known}
        self.results["bandwidth"] = bandwidth.measured()
        if carried is not None:
            self._carry(json.loads(carried.read_text()))

    def _carry(self, earlier: dict[str, Any]) -> None:
        """Add the rows of an earlier run, each with its commit, where this run has none."""
        commit = earlier["machine"]["commit"]
        for size, measured in earlier["rows"].items():
            kept = self.results["rows"].setdefault(size, {})
            for name, row in measured.items():
                kept.setdefault(name, {"commit": commit, **row})
        for name, found in earlier["judged"].items():
            self.results["judged"].setdefault(name, {"commit": commit, **found})

    def measure(self, row: Row, size: str) -> None:
        """Run every step of one engine over one corpus."""
        kept = self.results["rows"].setdefault(size, {})
        found = kept[row.name] = {
            "when": _now(),
            "load_before": round(os.getloadavg()[0], 2),
            "commit": machine()["commit"],
        }
        folder = self._folder(row, size)
        try:
            python = python_of(row.module)
            for step in STEPS:
                found[step] = self._step(python, row, size, step, folder)
                self._keep()
                _tell(f"{size} · {row.name} · {step}: {json.dumps(found[step])}")
                if step == "build" and "failed" in found[step]:
                    break
        except UnavailableError as error:
            found["unavailable"] = str(error)
            self._keep()
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def judge(self, row: Row) -> None:
        """Measure nDCG@10 of an engine's hybrid search on the judged set."""
        folder = self._folder(row, "judged")
        try:
            answer = self._step(python_of(row.module), row, "scifact", "judged", folder)
            found = (
                {"nDCG@10": page.ndcg(answer["run"], corpus("scifact").answers["judged"])}
                if "run" in answer
                else answer
            )
        except UnavailableError as error:
            found = {"failed": str(error)}
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        self.results["judged"][row.name] = {"commit": machine()["commit"], **found}
        self._keep()
        _tell(f"scifact · {row.name}: {json.dumps(found)}")

    def _step(self, python: Path, row: Row, size: str, step: str, folder: Path) -> dict[str, Any]:
        told = ENVIRONMENTS[row.module].told if row.module in ENVIRONMENTS else ("trivet",)
        order = {
            "module": row.module,
            "setting": row.setting,
            "corpus": size,
            "step": step,
            "folder": str(folder),
            "packages": told,
        }
        started = time.perf_counter()
        several = [running.run(python, order, self.limits)]
        if step in AGAIN and time.perf_counter() - started < LONG:
            several += [running.run(python, order, self.limits) for _ in range(TIMES - 1)]
        if any("failed" in one for one in several):
            return next(one for one in several if "failed" in one)
        middle = sorted(several, key=lambda one: number(one, *AGAIN[step]) or inf) if step in AGAIN else several
        return {**middle[len(middle) // 2], "times": len(several)}

    def _folder(self, row: Row, size: str) -> Path:
        return self.work / re.sub(r"\W+", "-", f"{row.name}-{size}")

    def _keep(self) -> None:
        self.target.parent.mkdir(parents=True, exist_ok=True)
        half = self.target.with_suffix(".half")
        half.write_text(json.dumps(self.results, indent=1, ensure_ascii=False) + "\n")
        half.replace(self.target)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _tell(line: str) -> None:
    print(f"{datetime.now(UTC):%H:%M:%S} {line}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder with docs_snippets and scifact")
    parser.add_argument(
        "--size", nargs="+", choices=(*SIZES, "scifact"), default=["10k", "89k", "scifact"], help="which corpora"
    )
    parser.add_argument("--only", nargs="+", default=[], help="engines, by name or module; all otherwise")
    parser.add_argument("--carry", type=Path, help="an earlier result file, for the rows that this run does not have")
    parser.add_argument("--out", type=Path, help="the result file; results/peers-COMMIT.json otherwise")
    parser.add_argument("--build-limit", type=float, default=1500, help="seconds a build may take")
    parser.add_argument("--step-limit", type=float, default=600, help="seconds any other step may take")
    parser.add_argument("--memory-limit", type=float, default=12, help="GB an engine's processes may take")
    parser.add_argument("--work", type=Path, help="where the engines keep their files; a temporary folder otherwise")
    parser.add_argument(
        "--docs", action="store_true", help="write docs/evidence/benchmarks.md and its pictures from the result file"
    )
    args = parser.parse_args()
    chosen = rows(args.only)
    if not args.data.exists():
        print(f"skipped: there is no {args.data}; give the folder of the data sets with --data", file=sys.stderr)
        return 0
    for size in args.size:
        corpus(size, args.data)
    target = args.out or RESULTS / f"peers-{machine()['commit']}.json"
    work = Path(tempfile.mkdtemp(prefix="trivet-peers-", dir=args.work))
    try:
        limits = running.Limits(args.build_limit, args.step_limit, args.memory_limit)
        run = Run(target, limits, work, args.carry)
        for size in args.size:
            for row in chosen:
                run.judge(row) if size == "scifact" else run.measure(row, size)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    if args.docs:
        page.write(target)
    print(page.summary(json.loads(target.read_text())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
