"""Write docs/evidence/loading.md from one result file of ``loading.py``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent / "docs/evidence/loading.md"
MOST = 0.05  # of its first import's time an import of what has not changed may take
REPEATED = ("a file, by words", "a folder, by words", "a file, embedded")


def row(name: str, told: dict[str, Any]) -> str:
    cells = (f"{told['documents']:,}", f"{told['documents_per_s']:,}", f"{told['wall_s']:g}", f"{told['cpu_s']:g}")
    return f"| {name} | {' | '.join(cells)} | {told['cores']:g} |"


def stages(results: dict[str, Any]) -> list[str]:
    lines = ["| stage, alone | documents | a second | wall s | CPU s | cores |", "|---|---|---|---|---|---|"]
    lines += [row(name, told) for name, told in results["stages"].items()]
    return [*lines, row("embed, built-in model", results["embed"])]


def whole(results: dict[str, Any]) -> list[str]:
    lines = [
        "| the whole, vectors given | documents | a second | wall s | CPU s | cores | peak MB | second process, MB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, part in (("with a second process", "whole"), ("in one process", "alone")):
        told = results[part]
        second = f"{told['second_peak_mb']:,}" if part == "whole" else "none"
        lines.append(f"{row(name, told)} {told['peak_mb']:,} | {second} |")
    return lines


def again(results: dict[str, Any]) -> list[str]:
    lines = [
        "| `trivet import` of | documents | first, s | again, s | of it start, s | share of the work |",
        "|---|---|---|---|---|---|",
    ]
    for name in REPEATED:
        told = results["again"][name]
        first, second = told["first"], told["again"]
        times = f"{first['wall_s']:g} | {second['wall_s']:g} | {told['start_s']:g}"
        lines.append(f"| {name} | {first['documents']:,} | {times} | {share(told):.1%} |")
    return lines


def share(told: dict[str, Any]) -> float:
    """Return the time of the second import relative to the first, without the start of the command."""
    first, second, start = told["first"]["wall_s"], told["again"]["wall_s"], told["start_s"]
    return float(max(0.0, second - start) / (first - start))


def targets(results: dict[str, Any]) -> list[str]:
    found = {name: share(results["again"][name]) for name in REPEATED}
    return [
        f"{name}: {value:.1%} of the first ({'met' if value < MOST else 'missed'})" for name, value in found.items()
    ]


def met(results: dict[str, Any]) -> bool:
    return all(share(results["again"][name]) < MOST for name in REPEATED)


def page(results: dict[str, Any], name: str) -> str:
    machine = results["machine"]
    lines = [
        "# Loading many documents",
        "",
        "Made by `make bench-load` (`benchmarks/loading.py --docs`); do not edit. Compare within a run.",
        "",
        f"Corpus `{results['corpus']}` of the peers' benchmark. Commit `{machine['commit']}`, {machine['when'][:10]}: "
        f"{machine['cpu']}, {machine['cores']} cores, load before {machine['load_before']}, Python "
        f"{machine['python']}. All numbers: `benchmarks/results/{name}`.",
        "",
        "## Stage by stage",
        "",
        *stages(results),
        "",
        "*Cores* are CPU seconds over wall seconds. Analysis is part of lexical indexing; it is also listed alone.",
        "",
        "## All together",
        "",
        *whole(results),
        "",
        "From the lines of a file to a store with its lexical index and its vector file. One process reads, checks, "
        "cuts, hashes and writes batches of 1,000, each in one transaction. From 4,000 passages on, a second process "
        "reads the committed passages, analyses them and updates the lexical index. No text is sent between them: both "
        "use the records. So a load that is killed loses nothing that it acknowledged; the second process ends with "
        "it. Nothing is read further ahead than one batch. With one core, or a small load, there is no second process; "
        "if it cannot be started, `Added.degraded` says so. On two cores more processes do not help: both are busy.",
        "",
        "A load that was stopped continues when it is started again: a document with the same id and content is not "
        "written or embedded again. Several calls can be one load: `with engine.loading() as load:`, then "
        "`load.add(…)` as often as you like, and `load.finish()`.",
        "",
        "## The same import again",
        "",
        *again(results),
        "",
        "Start is the time of a command that only reads (`trivet stats`). A complete import leaves an import log with "
        "the indexes: what was read (lines by the hash of their bytes, other files by size, inode and both times), "
        "the options, and the version of the collection. While all three are the same, it is not read again. After any "
        "other write, or without a log, every document is compared by its content. There is no log for a pipe, for "
        "lines without an id or with an access time, for feedback, for `--triples`, and for files changed within the "
        "last two seconds.",
        "",
    ]
    return "\n".join(lines)
