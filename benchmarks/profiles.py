"""Measure `default` and `careful` beside plain systems on public sets (`make profiles`).

Every topic (with ``--topics`` a sample) goes through ``search``; the reader has no time limit here, so the figures do
not depend on the machine. The times are of the shipped settings, medians over a sample of topics in the same run. A
difference is significant by a paired randomisation test at 5 %, Holm over the sets. docs/evidence/profiles.md is made
from the result file.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

from recorded import kept_scores, sampled
from trivet.evaluate import Lab, load, score
from trivet.evaluate.evaluation import made
from trivet.evaluate.significance import holm, paired
from trivet.profile import PROFILES, Profile

HERE = Path(__file__).parent
RESULTS, PAGE = HERE / "results", HERE.parent / "docs/evidence/profiles.md"
MEASURES = ("nDCG@10", "Success@1", "Success@5", "Success@10", "R@5")
MAIN = MEASURES[0]
PLAIN, DEFAULT, CAREFUL = "z-score α=0.5", "default", "careful"
#: Folder -> what is left out, and whether a topic is searched within its scope.
SETS: Mapping[str, tuple[tuple[str, ...], bool]] = {
    "adi": ((), True),
    "beam_100k": ((), True),
    "cosqa": ((), True),
    "cranfield": ((), True),
    "entailmentbank": ((), True),
    "hotpotqa_200": ((), True),
    "lihua_world": ((), True),
    "locomo": (("adversarial",), True),
    "longmemeval_oracle_turn": ((), True),
    "longmemeval_s_heads": ((), False),
    "negconstraint": ((), True),
    "scifact": ((), True),
    "twowiki_101": ((), True),
}
STRATA = ("locomo", "longmemeval_oracle_turn")
TIMED = 40  # topics
NO_LIMIT = {"budget_ms": 600_000.0}
BARE = Profile(name="bare", normalize="zscore")


def systems() -> dict[str, Profile]:
    """Return the systems in the order of the table."""
    steps = [
        {"name": step.name, **step.options, **(NO_LIMIT if step.name == "reader" else {})}
        for step in PROFILES[CAREFUL].rerankers
    ]
    return {
        "BM25": BARE.with_changes({"weights": {"lexical": 1, "dense": 0}}),
        "dense": BARE.with_changes({"weights": {"lexical": 0, "dense": 1}}),
        "RRF k=60": BARE.with_changes({"fusion": "rrf", "rrf_k": 60}),
        PLAIN: BARE,
        DEFAULT: PROFILES[DEFAULT],
        CAREFUL: PROFILES[CAREFUL].with_changes({"rerankers": steps}),
    }


def measure(folder: Path, cache: str | None, most: int) -> dict[str, Any]:
    """Return the figures of one set, or of ``most`` of its topics."""
    without, scoped = SETS[folder.name]
    dataset = load(folder, without=without, scoped=scoped)
    if most and len(dataset.topics) > most:
        dataset = sampled(dataset, most)
    with Lab.fill(dataset, cache=cache) as lab:
        with kept_scores(lab, cache, folder.name):
            values = {name: score(lab.run(profile), dataset.qrels, MEASURES) for name, profile in systems().items()}
        times = {name: _median_ms(lab, PROFILES[name], dataset.topics) for name in (DEFAULT, CAREFUL)}
    strata = sorted({topic.stratum for topic in dataset.topics}) if folder.name in STRATA else []
    found = {
        "identity": dataset.identity + ("" if scoped else " without scopes"),
        "topics": len(dataset.topics),
        "systems": {name: {m: round(mean(each[m].values()), 4) for m in MEASURES} for name, each in values.items()},
        "times": times,
        "strata": {
            stratum: {
                name: round(mean(values[name][MAIN][t.id] for t in dataset.topics if t.stratum == stratum), 4)
                for name in (PLAIN, DEFAULT, CAREFUL)
            }
            for stratum in strata
        },
    }
    for name, base in ((DEFAULT, PLAIN), (CAREFUL, PLAIN), (CAREFUL, DEFAULT)):
        pair = paired(values[base][MAIN], values[name][MAIN])
        found[f"{name} against {base}"] = [round(pair.difference, 4), round(pair.p, 5)]
    return found


def _median_ms(lab: Lab, profile: Profile, topics: Sequence[Any]) -> float:
    """Return the median time of searches that were not made before, with the shipped settings."""
    taken, blanks = [], " " * (1 + time.time_ns() % 199)  # another text than an earlier run left in the caches
    for topic in topics[:TIMED]:
        begun = time.perf_counter()
        lab.engine.search(f"{topic.text}{blanks}", where=topic.where, profile=profile, at=topic.at or lab._now)
        taken.append(1000 * (time.perf_counter() - begun))
    return round(median(taken), 1)


PAGE_TEXT = """# Profiles

Made by `make profiles` (`benchmarks/profiles.py --docs`); do not edit. Commit `{commit}` on {date}: {machine}, Python
{python}. All numbers: `benchmarks/results/{file}`.

nDCG@10 of test splits{most} with the built-in model, searched within the scopes of a set where it has them
(longmemeval_s_heads without: one store for all users). LoCoMo without its adversarial queries. The reader of `careful`
has no time limit here. ▲ significantly above plain z-score fusion, ▼ significantly below it.

{table}

`careful` against `default`: {careful_wins}.

## Success

{success}

## Strata

{strata}

## Time

Median milliseconds of a search with the shipped settings, 40 topics; the query is embedded too.

{times}

## Sets

{sets}
"""


def page(results: Mapping[str, Any], file: str) -> str:
    """Return docs/evidence/profiles.md."""
    sets, names = results["sets"], list(systems())
    marks = {name: _marks(sets, f"{name} against {PLAIN}") for name in (DEFAULT, CAREFUL)}
    rows = [["set", "topics", *names]]
    for key, one in sets.items():
        cells = [f"{one['systems'][name][MAIN]:.3f}{marks.get(name, {}).get(key, '')}" for name in names]
        rows.append([key, f"{one['topics']:,}", *cells])
    rows.append(["**mean**", "", *(f"**{mean(one['systems'][n][MAIN] for one in sets.values()):.4f}**" for n in names)])
    between = _marks(sets, f"{CAREFUL} against {DEFAULT}")
    wins = [f"{key} {sets[key][f'{CAREFUL} against {DEFAULT}'][0]:+.3f}{mark}" for key, mark in between.items() if mark]
    success = [["set", *(f"{name}, {m}" for name in (PLAIN, DEFAULT, CAREFUL) for m in MEASURES[1:4])]]
    success += [
        [key, *(f"{one['systems'][n][m]:.3f}" for n in (PLAIN, DEFAULT, CAREFUL) for m in MEASURES[1:4])]
        for key, one in sets.items()
    ]
    strata = [["set", "stratum", PLAIN, DEFAULT, CAREFUL]]
    strata += [
        [key, stratum, *(f"{found[name]:.3f}" for name in (PLAIN, DEFAULT, CAREFUL))]
        for key, one in sets.items()
        for stratum, found in one["strata"].items()
    ]
    times = [
        ["set", DEFAULT, CAREFUL],
        *([key, *(f"{one['times'][n]:.0f}" for n in (DEFAULT, CAREFUL))] for key, one in sets.items()),
    ]
    about = results["made"]
    return PAGE_TEXT.format(
        commit=about["commit"],
        date=about["at"][:10],
        most=f" (of more than {results['topics']:,} topics, a sample of as many, chosen by hash)"
        if results["topics"]
        else "",
        machine=about["machine"],
        python=about["python"],
        file=file,
        table=_table(rows),
        careful_wins=", ".join(wins) or "no significant difference",
        success=_table(success),
        strata=_table(strata),
        times=_table(times),
        sets="\n".join(f"- `{one['identity']}`" for one in sets.values()),
    )


def _marks(sets: Mapping[str, Any], key: str) -> dict[str, str]:
    """Return a mark for each set: significantly above, below, or nothing."""
    corrected = holm([one[key][1] for one in sets.values()])
    pairs = zip(sets.items(), corrected, strict=True)
    return {name: (" ▲" if one[key][0] > 0 else " ▼") if p < 0.05 else "" for (name, one), p in pairs}


def _table(rows: Sequence[Sequence[str]]) -> str:
    head, *rest = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([head, "|---" * len(rows[0]) + "|", *rest])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path, help="folder of the evaluation sets")
    parser.add_argument("--cache", help="folder of the cached vectors")
    parser.add_argument("--parts", type=Path, default=HERE / "cache/profiles", help="sets that are measured already")
    parser.add_argument("--only", nargs="*", default=list(SETS))
    parser.add_argument("--docs", action="store_true", help="write the result file and docs/evidence/profiles.md")
    parser.add_argument("--topics", type=int, default=0, help="at most so many of a set, chosen by hash; 0: all")
    options = parser.parse_args()
    options.parts.mkdir(parents=True, exist_ok=True)
    for name in options.only:
        part = options.parts / f"{name}.json"
        if not part.exists() and (options.data / name).is_dir():
            part.write_text(json.dumps(measure(options.data / name, options.cache, options.topics)), encoding="utf-8")
            print(part.read_text(encoding="utf-8"), flush=True)
    found = {
        name: json.loads(part.read_text(encoding="utf-8"))
        for name in SETS
        if (part := options.parts / f"{name}.json").exists()
    }
    results = {
        "made": made(),
        "topics": options.topics,
        "profiles": {name: str(profile) for name, profile in systems().items()},
        "sets": found,
    }
    if options.docs:
        for old in RESULTS.glob("profiles-*.json"):
            old.unlink()
        file = RESULTS / f"profiles-{results['made']['commit']}.json"
        file.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(page(results, file.name), encoding="utf-8")


if __name__ == "__main__":
    main()
