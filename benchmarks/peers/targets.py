"""The targets of the comparison, and whether each is met.

Each target compares one number of ours with the best of the peers that do the whole work in the same run: hybrid, at a
dense recall@50 of at least 0.97 against exact (with the filter where there is one, and without hits that it forbids).
A target without a measured number says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from peers.registry import ROWS, Row

ENOUGH = 0.97  # of the exact top 50
FASTER = 3.0
TWO_LEGS, OF_TWENTY, DEFAULT = "trivet, two legs", "trivet, two legs of 20", "trivet"
Measured = dict[str, Any]  # one row of the result file


@dataclass(frozen=True)
class Verdict:
    """``value`` is a ratio (theirs / ours: more is better) or a plain number, ``limit`` what it has to reach."""

    what: str
    value: float | None
    limit: float
    higher: bool
    told: str

    @property
    def met(self) -> bool | None:
        if self.value is None:
            return None
        return self.value >= self.limit if self.higher else self.value <= self.limit


def number(row: Measured | None, *path: str) -> float | None:
    """Return a number of a row; None where the step failed or was not run."""
    found: Any = row
    for name in path:
        if not isinstance(found, dict) or name not in found:
            return None
        found = found[name]
    return float(found) if isinstance(found, int | float) else None


def p50(row: Measured | None, where: str = "none") -> float | None:
    return number(row, "ask", where, "p50_ms")


def write(row: Measured | None) -> float | None:
    """Return p50 of write-to-searchable; None where some writes were never found."""
    return None if number(row, "write", "not_found") else number(row, "write", "p50_ms")


def whole(row: Measured | None, where: str = "none") -> bool:
    """Return whether a row has enough recall and lets no forbidden document through."""
    recall = number(row, "ask", where, "dense", "recall")
    return recall is not None and recall >= ENOUGH and not number(row, "ask", where, "not_allowed")


def best(
    measured: dict[str, Measured],
    read: Callable[[Measured], float | None],
    where: str = "none",
    among: tuple[Row, ...] = ROWS,
) -> tuple[str, float] | None:
    """Return the peer with the lowest value, among those that do the whole work."""
    able = [row.name for row in among if row.hybrid and not row.ours and whole(measured.get(row.name), where)]
    values = [(value, name) for name in able if (value := read(measured[name])) is not None]
    return (min(values)[1], min(values)[0]) if values else None


def verdicts(results: dict[str, Any]) -> Iterator[Verdict]:
    for size in ("89k", "1M"):
        measured = results["rows"].get(size, {})
        if not measured:
            continue
        for ours in (TWO_LEGS, OF_TWENTY, DEFAULT):
            if ours == OF_TWENTY and ours not in measured:  # the same work as the one above, for those that do less
                continue
            for where, said in (("none", "hybrid p50"), ("one_percent", "p50 under 1 %"), ("half", "p50 under 50 %")):
                yield _ratio(f"{size}: {said}, {ours}", measured, ours, lambda row, w=where: p50(row, w), where, FASTER)
            if ours == OF_TWENTY:
                continue
            yield _ratio(f"{size}: build, {ours}", measured, ours, lambda row: number(row, "build", "s"), "none", 1.0)
            yield _ratio(f"{size}: write to searchable, {ours}", measured, ours, write, "none", 1.0)
            yield from _alone(size, ours, measured.get(ours))


def _ratio(
    what: str,
    measured: dict[str, Measured],
    ours: str,
    read: Callable[[Measured], float | None],
    where: str,
    limit: float,
) -> Verdict:
    mine = read(measured[ours]) if ours in measured else None
    theirs = best(measured, read, where)
    if mine is None or theirs is None:
        return Verdict(what, None, limit, True, "not measured")
    unit = "s" if "build" in what else "ms"
    told = f"{mine:,.1f} {unit} beside {theirs[1]:,.1f} {unit} of {theirs[0]}"
    if not whole(measured[ours], where):
        return Verdict(what, None, limit, True, f"{told}; our recall is under {ENOUGH}")
    return Verdict(what, theirs[1] / mine, limit, True, told)


def _alone(size: str, ours: str, row: Measured | None) -> Iterator[Verdict]:
    """Return the targets that do not depend on peers."""
    if size == "89k":
        cold = number(row, "cold", "open_to_answer_ms")
        yield Verdict(f"89k: cold open to first answer (ms), {ours}", cold, 1000, False, "")
    else:
        yield Verdict(f"1M: memory while asked (MB), {ours}", number(row, "ask", "memory_mb", "peak"), 1500, False, "")
        if ours == TWO_LEGS:
            yield Verdict("1M: hybrid p50 (ms), trivet, two legs", p50(row), 10, False, "")
    for where in ("none", "one_percent", "half"):
        recall = number(row, "ask", where, "dense", "recall")
        yield Verdict(f"{size}: dense recall@50, filter {where}, {ours}", recall, ENOUGH, True, "")
