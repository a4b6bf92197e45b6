"""The account of a robust run: what was done, and what was not as promised.

Every part of the suite counts into one account. Faults have a kind; a kind that is promised to be zero and is not
fails the run. The last line that is printed is the whole of it.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from dataclasses import dataclass, field

#: What never happens, in the order it is told.
PROMISED = {
    "lost": "acknowledged and not there",
    "strange": "there and never written",
    "wrong": "another answer than the truth gives",
    "silent": "damage that nobody told of",
    "leaked": "shown against the filter, or memory and handles not given back",
    "crashed": "an error that is not a TrivetError, or a dead process",
    "hung": "longer than it may take",
}
SHOWN = 5  # faults of a kind that are told
LONGEST = 1_800  # characters of one; of a traceback the end says what it was


@dataclass(frozen=True, slots=True)
class Scale:
    """How much of everything: ``make test-robust`` and the form for CI."""

    name: str
    kills: int
    flips: int  # of each file of the truth
    projection_flips: int  # of each file of the indexes
    fillings: int  # of a disk
    crowd_seconds: float
    backups: int
    queries: int
    parser_inputs: int  # of each parser, by atheris
    searches: int  # whole searches with a filter, by hypothesis
    requests: int  # HTTP requests, by hypothesis
    jumps: int  # of the clock
    histories: int  # of a store that is backed up, restored, copied and replaced
    flip_seconds: float  # of documents that change their tenant while others search
    attacks: int  # hostile HTTP requests
    erasures: int  # of documents that were written and searched in every way


FULL = Scale("full", 200, 600, 6, 24, 600, 20, 100_000, 78_000, 10_000, 10_000, 300, 120, 120.0, 20_000, 60)
SHORT = Scale("short", 25, 60, 1, 4, 30, 3, 3_000, 3_000, 400, 400, 40, 8, 8.0, 600, 4)
TINY = Scale("tiny", 2, 3, 0, 1, 2, 1, 60, 50, 10, 10, 5, 1, 1.0, 20, 1)  # for the suite's own test


@dataclass
class Account:
    counts: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def add(self, what: str, number: int = 1) -> None:
        self.counts[what] += number

    def fault(self, kind: str, told: str) -> None:
        """``told`` says where; the first few of a kind are printed."""
        kind = {"unfound": "wrong", "stale": "wrong", "unsound": "wrong"}.get(kind, kind)
        if kind not in PROMISED:
            kind, told = "wrong", f"{kind}: {told}"
        self.faults[kind] += 1
        if self.faults[kind] <= SHOWN:
            self.tell(f"FAULT {kind}: {told if len(told) <= LONGEST else f'{told[:200]} … {told[200 - LONGEST :]}'}")

    def note(self, told: str) -> None:
        """Something a reader of the last line should know: what was left out, or done another way."""
        self.notes.append(told)
        self.tell(told)

    def tell(self, told: str) -> None:
        print(f"[{time.monotonic() - self.began:6.0f} s] {told}", file=sys.stderr, flush=True)

    @property
    def ok(self) -> bool:
        return not any(self.faults.values())

    def last_line(self, name: str) -> str:
        """One line: everything that was done, then everything that was promised not to happen."""
        done = [f"{what} {number:,}" for what, number in self.counts.items()]
        promised = [f"{kind} {self.faults[kind]}" for kind in PROMISED]
        verdict = "as promised" if self.ok else "NOT AS PROMISED"
        return f"robust ({name}): {', '.join(done)}; {', '.join(promised)}; {verdict}"
