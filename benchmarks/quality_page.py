"""Write docs/evidence/results.md from one result file of ``quality.py``; a test compares the two."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trivet.evaluate.significance import holm

PAGE = Path(__file__).parent.parent / "docs/evidence/results.md"
LEGS = ("BM25", "dense")
FAMILIES = ("min-max", "TM2C2", "z-score", "DBSF")
SWEPT = re.compile(r"(?P<family>[\w-]+) (?P<axis>[αk])=(?P<value>[\d.]+)")
SHOWN_ALPHA = "0.5"  # of the others the curves tell
SAMPLED = ("trigram", "chunks")  # asked fewer topics than the others: not ranked among them
BEFORE = "two legs"  # the default before there were stages
SIGNIFICANT = 0.05


def page(results: dict[str, Any], name: str) -> str:
    sets, made = results["sets"], results["made"]
    sections = [
        _INTRO,
        f"Run of commit `{made['commit']}` on {made['at'][:10]}: {made['machine']}, Python {made['python']}.\n"
        f"All numbers: `benchmarks/results/{name}`.\n",
        *([f"{results['note']}\n"] if results.get("note") else []),
        "## What was promised\n",
        *_promises(sets),
        _SYSTEMS,
        *_table(sets),
        *_stages(sets),
        _CURVES,
        *_curves(sets),
        _LEGS,
        *_against_leg(sets),
        _LEFT_OUT,
        *_left_out(sets),
        _REST,
        *_rest(sets),
        "\n## The sets\n",
        *(
            f"- `{one['identity']}`: {one['documents']:,} documents, {one['topics']:,} topics, "
            f"measured at commit `{one['commit']}`." + "".join(f" {note}." for note in one["notes"])
            for one in sets.values()
        ),
        "\n## The systems\n",
        *(f"- {system}: `{results['profiles'][system]}`" for system in shown(sets)),
        *(f"- {stage}: `{profile}`" for stage, profile in results.get("stages", {}).items()),
        "",
    ]
    return "\n".join(sections)


_INTRO = """\
# Results

Made by `make results` (`benchmarks/quality.py --docs`); do not edit. nDCG@10 unless said otherwise; the built-in model;
topics searched within their scope where the set has scopes; test splits. LoCoMo without its adversarial queries.
The sets are not shipped; each is named with a hash of its content.
"""
_SYSTEMS = """
## Every system on every set

▼ significantly below the default on that set, ▲ significantly above (paired randomisation, Holm over all systems of the
set, 5 %); no mark: no difference shown. Rank: mean over the sets of the rank among all systems, those of the next table
included. `trigram` and `chunks` ran on a sample of at most 100 topics a set, chosen by hash; compared on it and
not ranked.
"""
_STAGES = """
## The gain of each stage

The default with one stage changed: one that is on is switched off, or one that is off is switched on. ▼ the
default is significantly better than that on the set, ▲ significantly worse (paired randomisation, Holm over the stages
of the set, 5 %). Against: the mean over the sets of the difference from the default on the same topics. ms: what the
stage adds to a search, the median over topics of {timed}, by the trace of the shipped path with the query's vector
given; other work ran on the machine at the same time. `trigram` ran on a sample of at most 100 topics a set.
"""
_CURVES = """
## Curves over alpha and over k

Mean over the sets; α is the weight of the dense leg, 1 − α that of the lexical leg.
"""
_LEGS = """
## The default against the better leg

Which leg is the better one is known only after the fact. Difference of the default, 95 % bootstrap interval, Holm over
the sets.
"""
_LEFT_OUT = """
## The choice with one set left out

The system with the best mean rank on all other sets, its rank and value on the set left out, and the default's. The
default's own coefficients were learnt from these sets (train splits where there are any, half of the topics otherwise):
the results of the training (`benchmarks/results`) show their gain on topics and on sets left out of it.
"""
_REST = """
## Headroom, single legs, and time

Oracle: the best α for each topic. Only: right hits in the top ten that one leg alone found. False: made-up queries with
a hit at the default's threshold (0: none is set). Times are of `search` with the vector of the query given, and of
embedding it. Other work ran on the machine at the same time, so they do not measure speed; [Speed](speed.md) does.
"""


def value(one: dict[str, Any], system: str) -> float:
    return float(one["systems"][system]["nDCG@10"])


def shown(sets: dict[str, Any]) -> list[str]:
    """Return the systems of the table; of those that differ by the dense weight alone, the one with equal weights."""
    every = next(iter(sets.values()))["systems"]
    return [name for name in every if not (found := SWEPT.fullmatch(name)) or _even(found)]


def _even(found: re.Match[str]) -> bool:
    return found["axis"] == "k" or found["value"] == SHOWN_ALPHA


def mean(sets: dict[str, Any], system: str) -> float:
    return sum(value(one, system) for one in sets.values()) / len(sets)


def ranks(one: dict[str, Any]) -> dict[str, float]:
    """Return the rank of each system on this set, 1 the best; equal ones share their mean rank."""
    values = {system: value(one, system) for system in one["systems"] if system not in SAMPLED}
    found = {}
    for system, mine in values.items():
        above, level = sum(other > mine for other in values.values()), sum(other == mine for other in values.values())
        found[system] = above + (level + 1) / 2
    return found


def mean_ranks(sets: dict[str, Any]) -> dict[str, float]:
    each = [ranks(one) for one in sets.values()]
    return {system: sum(one[system] for one in each) / len(each) for system in each[0]}


def promises(sets: dict[str, Any]) -> list[tuple[str, str, bool]]:
    """Return (target, measured, whether it is met), for the sets that were measured."""
    found: list[tuple[str, str, bool]] = []

    def between(name: str, system: str, low: float, high: float, said: str) -> None:
        if name in sets:
            mine = value(sets[name], system)
            found.append((said, f"{mine:.4f}", low <= mine <= high))

    between("scifact", "BM25", 0.66, 0.70, "BM25 on SciFact 0.66 to 0.70")
    between("locomo", "BM25", 0.42, 1, "BM25 on LoCoMo turns at least 0.42")
    between("scifact", "dense", 0.702, 0.722, "dense on SciFact within 0.01 of 0.712 (float32 model)")
    between("scifact", "default", 0.74, 1, "default on SciFact at least 0.74")
    between("locomo", "default", 0.455, 1, "default on LoCoMo turns at least 0.455")
    best = max(LEGS, key=lambda leg: mean(sets, leg))
    ours = mean(sets, "default")
    for other in ("RRF k=60", best):
        theirs = mean(sets, other)
        found.append((f"default above {other} on the mean over the sets", f"{ours:.4f} / {theirs:.4f}", ours > theirs))
    worse = [name for name, row in against_leg(sets).items() if row["worse"]]
    told = ", ".join(worse) or "none"
    found.append(("default significantly below the better leg on no set", told, not worse))
    if all("stages" in one for one in sets.values()):
        found += _promised_of_stages(sets)
    return found


def _promised_of_stages(sets: dict[str, Any]) -> list[tuple[str, str, bool]]:
    """Return the targets of the graph leg, the second stage, latency and query understanding."""
    found: list[tuple[str, str, bool]] = []

    def at_least(name: str, system: str, measure: str, least: float, said: str) -> None:
        if name in sets:
            mine = float(sets[name]["systems"][system][measure])
            found.append((f"{said} at least {least:g}", f"{mine:.4f}", mine >= least))

    at_least("locomo", "default", "Success@5", 0.65, "default on LoCoMo turns, Success@5")
    at_least("locomo", "default", "Success@10", 0.74, "default on LoCoMo turns, Success@10")
    at_least("scifact", "default", "nDCG@10", 0.755, "default on SciFact")
    at_least("memdaily_zh", "BM25", "nDCG@10", 0.85, "words alone on memdaily_zh")
    if (wiki := sets.get("twowiki_101")) is not None:
        pair = wiki["against_two_legs"]["R@5"]
        values = " / ".join(f"{wiki['systems'][system]['R@5']:.4f}" for system in ("default", BEFORE))
        better = pair["difference"] > 0 and pair["p"] < SIGNIFICANT
        found.append(
            (f"default on twowiki_101, R@5, significantly above {BEFORE}", f"{values}, p {pair['p']:.4f}", better)
        )
    ours, theirs = mean(sets, "default"), mean(sets, BEFORE)
    found.append((f"default above {BEFORE} on the mean over the sets", f"{ours:.4f} / {theirs:.4f}", ours > theirs))
    worse = below_before(sets)
    found.append((f"default significantly below {BEFORE} on no set", ", ".join(worse) or "none", not worse))
    return found


def below_before(sets: dict[str, Any]) -> list[str]:
    """Return the sets on which the default lost by its stages, corrected over the sets."""
    pairs = [one["against_two_legs"]["nDCG@10"] for one in sets.values()]
    corrected = holm([pair["p"] for pair in pairs])
    return [
        name for name, pair, p in zip(sets, pairs, corrected, strict=True) if pair["difference"] < 0 and p < SIGNIFICANT
    ]


def against_leg(sets: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return for each set the default against its better leg, corrected over the sets."""
    rows = {}
    corrected = holm([one["against_default"][one["better_leg"]]["p"] for one in sets.values()])
    for (name, one), p in zip(sets.items(), corrected, strict=True):
        pair = one["against_default"][one["better_leg"]]
        difference = -pair["difference"]
        rows[name] = {
            "leg": one["better_leg"],
            "difference": difference,
            "low": -pair["high"],
            "high": -pair["low"],
            "p": p,
            "worse": difference < 0 and p < SIGNIFICANT,
            "better": difference > 0 and p < SIGNIFICANT,
        }
    return rows


def _promises(sets: dict[str, Any]) -> list[str]:
    rows = ["| what | measured | |", "|---|---|---|"]
    return rows + [f"| {what} | {told} | {'met' if ok else '**missed**'} |" for what, told, ok in promises(sets)]


def _table(sets: dict[str, Any]) -> list[str]:
    placed = mean_ranks(sets)
    head = ["| |", *(f" {name} |" for name in sets), " mean | rank |"]
    rows = ["".join(head), "|---|" + "---|" * (len(sets) + 2)]
    for system in shown(sets):
        cells = [f"{value(one, system):.3f}{_mark(one, system)}" for one in sets.values()]
        label = f"**{system}**" if system == "default" else system
        place = f"{placed[system]:.1f}" if system in placed else "–"
        rows.append(f"| {label} | {' | '.join(cells)} | {mean(sets, system):.4f} | {place} |")
    return rows


def _mark(one: dict[str, Any], system: str) -> str:
    pair = one["against_default"].get(system)
    return "" if pair is None else _arrow(pair)


def _arrow(pair: dict[str, Any]) -> str:
    if pair["p_holm"] >= SIGNIFICANT:
        return ""
    return " ▲" if pair["difference"] > 0 else " ▼"


def _stages(sets: dict[str, Any]) -> list[str]:
    measured = {name: one for name, one in sets.items() if "stages" in one}
    if not measured:
        return []
    timed = next(((name, one["costs"]) for name, one in measured.items() if one.get("costs")), None)
    rows = [
        _STAGES.format(timed=timed[0] if timed else "no set: none was timed"),
        "| |" + "".join(f" {name} |" for name in measured) + " mean | against | ms |",
        "|---|" + "---|" * (len(measured) + 3),
        "| **default** | "
        + " | ".join(f"{value(one, 'default'):.3f}" for one in measured.values())
        + f" | {mean(measured, 'default'):.4f} | | |",
    ]
    for stage in next(iter(measured.values()))["stages"]:
        found = [one["stages"][stage] for one in measured.values()]
        cells = " | ".join(f"{one['nDCG@10']:.3f}{_arrow(one)}" for one in found)
        means = [sum(one[what] for one in found) / len(found) for what in ("nDCG@10", "difference")]
        cost = f"{timed[1][stage]:.1f}" if timed else "–"
        rows.append(f"| {stage} | {cells} | {means[0]:.4f} | {means[1]:+.4f} | {cost} |")
    return rows


def _curves(sets: dict[str, Any]) -> list[str]:
    """Return the families and constants that were measured at more than one value."""
    swept: dict[str, dict[str, str]] = {}
    for system in next(iter(sets.values()))["systems"]:
        if found := SWEPT.fullmatch(system):
            swept.setdefault(found["family"], {})[found["value"]] = system
    families = {family: points for family, points in swept.items() if family in FAMILIES and len(points) > 1}
    alphas = list(next(iter(families.values())))
    rows = ["| | " + " | ".join(alphas) + " |", "|---|" + "---|" * len(alphas)]
    for family, points in families.items():
        rows.append(f"| {family} | {' | '.join(f'{mean(sets, system):.4f}' for system in points.values())} |")
    ks = swept["RRF"]
    rows += ["", "| | " + " | ".join(f"k={k}" for k in ks) + " |", "|---|" + "---|" * len(ks)]
    rows.append("| RRF | " + " | ".join(f"{mean(sets, system):.4f}" for system in ks.values()) + " |")
    return rows


def _against_leg(sets: dict[str, Any]) -> list[str]:
    rows = [
        "| set | better leg | its value | default | difference | interval | p | |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, row in against_leg(sets).items():
        told = "below" if row["worse"] else "above" if row["better"] else "no difference shown"
        rows.append(
            f"| {name} | {row['leg']} | {value(sets[name], row['leg']):.4f} | {value(sets[name], 'default'):.4f} | "
            f"{row['difference']:+.4f} | {row['low']:+.4f} to {row['high']:+.4f} | {row['p']:.4f} | {told} |"
        )
    return rows


def chosen_without(sets: dict[str, Any], among: Callable[[str], bool] = lambda system: True) -> dict[str, str]:
    """Return for each set the system with the best mean rank on all the others."""
    found = {}
    for name in sets:
        placed = mean_ranks({other: one for other, one in sets.items() if other != name})
        placed = {system: place for system, place in placed.items() if among(system)}
        found[name] = min(placed, key=lambda system: placed[system])
    return found


def _left_out(sets: dict[str, Any]) -> list[str]:
    rows = [
        "| left out | chosen | its rank there | its value | default's rank | default |",
        "|---|---|---|---|---|---|",
    ]
    chosen = chosen_without(sets)
    for name, system in chosen.items():
        one = sets[name]
        placed = ranks(one)
        rows.append(
            f"| {name} | {system} | {placed[system]:g} | {value(one, system):.4f} | {placed['default']:g} | "
            f"{value(one, 'default'):.4f} |"
        )
    systems = len(ranks(next(iter(sets.values()))))
    fixed = chosen_without(sets, among=lambda system: system != "default")
    return [
        *rows,
        "",
        f"Of {systems} systems: {_counted(chosen)}. Of those with fixed weights: {_counted(fixed)}.",
    ]


def _counted(chosen: dict[str, str]) -> str:
    return ", ".join(f"{system} {times} times" for system, times in Counter(chosen.values()).most_common())


def _rest(sets: dict[str, Any]) -> list[str]:
    rows = [
        "| set | default | oracle | only words / meaning / of | false | p50 / p95 ms | embed ms |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, one in sets.items():
        found = one["findings"]
        only = found["only"]
        false = "–" if found["false_nonsense"] is None else f"{found['false_nonsense']:.2f}"
        embed = "–" if found["embed_ms"] is None else f"{found['embed_ms']:.1f}"
        rows.append(
            f"| {name} | {value(one, 'default'):.4f} | {one['headroom']['oracle']:.4f} | "
            f"{only.get('lexical', 0)} / {only.get('dense', 0)} / {found['right']} | {false} | "
            f"{found['p50_ms']:.1f} / {found['p95_ms']:.1f} | {embed} |"
        )
    return rows
