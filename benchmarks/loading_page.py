"""What does loading cost, on paper? docs/LOADING.md, made from one result file of ``loading.py``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent / "docs/LOADING.md"
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
    """What the second import takes of the first one's time; to start a command is no work of either."""
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
        f"{machine['python']}. All numbers: [results/{name}](../benchmarks/results/{name}).",
        "",
        "## Stage by stage",
        "",
        *stages(results),
        "",
        "*Cores* are CPU seconds by wall seconds. Analysis is part of indexing words; it stands alone to be seen.",
        "",
        "## All together",
        "",
        *whole(results),
        "",
        "From the lines of a file to a store with its index of words and its snapshot of vectors. One process reads, "
        "checks, cuts, hashes and writes batches of 1,000, each one transaction; from 4,000 passages on a second "
        "process reads what is committed, analyses it and advances the index of words. No text travels between them: "
        "the truth is what both look at, so a load that is killed loses nothing that it has told of, and its second "
        "process ends with it. Nothing is read further ahead than one batch. Where there is one core, or the load is "
        "small, there is no second process; where it cannot be started, `Added.degraded` says so. To check and cut in "
        "further processes is not worth it on two cores: both are busy.",
        "",
        "A load that was stopped goes on from there when it is started again: what is stored under the same id with "
        "the same content is neither written nor embedded again. A load in pieces of your own is one load too: `with "
        "engine.loading() as load:`, then `load.add(…)` as often as you like, and `load.finish()`.",
        "",
        "## The same import again",
        "",
        *again(results),
        "",
        "Start is the time of a command that only looks (`trivet stats`). An import that was stored as a whole leaves "
        "a receipt beside the indexes: what was read (lines by the hash of their bytes, other files by size, inode and "
        "both times), with which options, and at which version of the collection. While all three are the same it is "
        "not read again. After any other write, or without a receipt, every document is compared by its content. There "
        "is none for a pipe, for lines without an id or with the time of a recall, for feedback, for `--triples`, and "
        "for files changed within the last two seconds.",
        "",
    ]
    return "\n".join(lines)
