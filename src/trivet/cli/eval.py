"""``trivet eval``: measure how well profiles find the relevant documents of a dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.console import Group, RenderableType
from rich.text import Text

from trivet.cli import bars, evaluation, options, output, output_files, tables
from trivet.cli.evaluation import DatasetOptions, ProfileOptions, Trial
from trivet.cli.options import flag, option, option_groups
from trivet.cli.output import Screen, clean, plural

if TYPE_CHECKING:
    from trivet.evaluate import Evaluation, Headroom, Paired

STRATUM_BAR = 24  # cells


@option_groups
def eval_(
    dataset: evaluation.DatasetName,
    profiles: ProfileOptions,
    source: DatasetOptions,
    measure: Annotated[
        list[str] | None,
        option("--measure -m", "NAME", "nDCG@10, R@5, Success@1, RecallAll@5, RR… Repeat for more; the first decides."),
    ] = None,
    run: evaluation.Runs = None,
    headroom: Annotated[
        bool, flag("--headroom", "Show what the best weights for each single query would gain.")
    ] = False,
    fast: Annotated[bool, flag("--fast", "Run each leg once for all profiles: the same hits, no times.")] = False,
    save: Annotated[
        Path | None,
        option(
            "--save",
            "DIR",
            "Write JSON for compare and gate; the name has commit, profile and dataset.",
            output_files.PANEL,
        ),
    ] = None,
    slim: Annotated[
        bool, flag("--slim", "Leave hits and texts out of the JSON; only ids stay.", output_files.PANEL)
    ] = False,
    run_out: Annotated[
        str | None,
        option(
            "--run-out",
            "FILE",
            "Write a TREC run; for several profiles name a folder/, or a file with {profile} in its name.",
            output_files.PANEL,
        ),
    ] = None,
    report: output_files.Report = None,
    json: options.Json = False,
) -> None:
    """Run every query of a test collection and score the hits: measures, strata, and what measures do not show."""
    from trivet.evaluate import MEASURES, compare

    measures = evaluation.check_measures(measure or MEASURES)
    chosen = profiles.profiles() if profiles.profile or not run else {}
    runs = evaluation.read_runs(run, source, chosen)
    loaded = source.load(dataset)
    trial = Trial(loaded, source, chosen, measures, runs, fast, headroom)
    if save:
        output_files.check_folder(save, "--save")
    if run_out:
        output_files.check_trec_ids(loaded)
    files = output_files.trec_files(run_out, trial.names)
    output_files.check_file(report, "--report")
    evaluations, headrooms = trial.evaluate()
    for item in evaluations:
        if save:
            output_files.announce(item.save(save, answers=not slim))
        if item.name in files:
            item.run.write(files[item.name])
            output_files.announce(files[item.name])
    comparisons = [compare(evaluations, measures[0])] if report and len(evaluations) > 1 else []
    shown = headrooms.get("default") or next(iter(headrooms.values()), None)  # the page shows one per dataset
    output_files.write_report(report, f"trivet eval {dataset}", evaluations, comparisons, headroom=shown)
    ranking = rank(evaluations, measures[0])
    if json:
        output.print_json(
            {
                "dataset": evaluations[0].dataset,
                "documents": len(loaded.documents),
                "evaluations": [item.to_dict(answers=not slim) for item in evaluations],
                "best": ranking.best if ranking else None,
                "pairs": ranking.pairs if ranking else [],
                "headroom": headrooms,
            }
        )
        return
    screen = output.stdout()
    screen.show(_view(evaluations, ranking, headrooms, screen, len(loaded.documents)))


# --- which profile is best --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ranking:
    """The profile with the highest mean, and the paired tests of every two profiles.

    A profile is best only if it is better than each other one by the paired test, corrected over all pairs: which one
    leads was seen on the same topics, so the pairs without it belong to the family of tests as well.
    """

    measure: str
    first: str  # has the highest mean
    pairs: tuple[Paired, ...]  # the profile with the higher mean is the challenger

    @property
    def of_first(self) -> list[Paired]:
        return [pair for pair in self.pairs if pair.challenger == self.first]

    @property
    def best(self) -> str | None:
        return self.first if all(_is_better(pair) for pair in self.of_first) else None

    @property
    def sentence(self) -> str:
        from trivet.evaluate.significance import FEW

        better = [f"{pair.baseline} (p {_p(pair)})" for pair in self.of_first if _is_better(pair)]
        level = [f"{pair.baseline} (p {_p(pair)})" for pair in self.of_first if not _is_better(pair)]
        family = f"; Holm-corrected over {len(self.pairs)} pairs" if len(self.pairs) > 1 else ""
        if self.best:
            return f"{self.best} is best on {self.measure}: better than {', '.join(better)}{family}"
        if self.pairs[0].n < FEW:
            return f"{plural(self.pairs[0].n, 'topic')} are too few to tell which is better"
        text = f"{self.first} has the highest mean: "
        text += f"better than {', '.join(better)}, " if better else ""
        return f"{text}no difference shown to {', '.join(level)}{family}"


def rank(evaluations: Sequence[Evaluation], measure: str) -> Ranking | None:
    """Compare every two evaluations; return None where there is only one."""
    from trivet.evaluate.significance import holm, paired

    if len(evaluations) < 2:
        return None
    ordered = sorted(evaluations, key=lambda item: -item.mean(measure))
    pairs = [
        paired(low.of(measure), high.of(measure), names=(low.name, high.name), measure=measure)
        for high, low in combinations(ordered, 2)
    ]
    corrected = holm([pair.p for pair in pairs])
    family = tuple(replace(pair, p_holm=value) for pair, value in zip(pairs, corrected, strict=True))
    return Ranking(measure, ordered[0].name, family)


def _is_better(pair: Paired) -> bool:
    from trivet.evaluate.significance import FEW

    return pair.significant and pair.n >= FEW


def _p(pair: Paired) -> str:
    text = tables.p(pair.p_holm)
    return text if text.startswith("<") else f"= {text}"


# --- what is shown ----------------------------------------------------------------------------------------------------


def _view(
    evaluations: Sequence[Evaluation],
    ranking: Ranking | None,
    headrooms: Mapping[str, Headroom],
    screen: Screen,
    documents: int,
) -> RenderableType:
    first = evaluations[0]
    main = next(iter(first.scores))
    counts = f"{plural(len(first.of(main)), 'topic')}, {plural(documents, 'document')}"
    parts: list[RenderableType] = [
        tables.heading(first.dataset, counts),
        Text(),
        _measures(evaluations, ranking, screen),
    ]
    if ranking is not None:
        parts += [Text(), tables.sentence(ranking.sentence, "green" if ranking.best else "")]
    if len(set(first.strata.values())) > 1:
        parts += [Text(), _strata(evaluations, main, screen)]
    parts += [Text(), _findings(evaluations, headrooms, screen), Text(), evaluation.provenance(evaluations)]
    return Group(*parts)


def _measures(evaluations: Sequence[Evaluation], ranking: Ranking | None, screen: Screen) -> RenderableType:
    from trivet.evaluate.significance import interval

    names = list(evaluations[0].scores)
    rows: list[list[tables.Cell]] = []
    for item in evaluations:
        best = ranking is not None and ranking.best == item.name
        low, high = interval(list(item.of(names[0]).values()))
        row: list[tables.Cell] = [
            Text(clean(item.name), style="bold" if best else ""),
            Text(tables.score(item.mean(names[0])), style="bold green" if best else ""),
            Text(tables.span(low, high), style="dim"),
        ]
        rows.append(row + [tables.score(item.mean(name)) for name in names[1:]])
    return tables.table(["profile", names[0], "95 %", *names[1:]], rows, screen)


def _strata(evaluations: Sequence[Evaluation], measure: str, screen: Screen) -> RenderableType:
    from trivet.evaluate.measures import mean

    values = [item.by_stratum(measure) for item in evaluations]
    with_bar = screen.terminal and len(evaluations) == 1
    rows: list[list[tables.Cell]] = []
    for stratum in sorted(values[0], key=lambda name: (-len(values[0][name]), name)):
        means = [mean(item[stratum]) for item in values]
        row: list[tables.Cell] = [clean(stratum), Text(f"{len(values[0][stratum]):,}", style="dim")]
        row += [tables.score(value) for value in means]
        rows.append([*row, bars.single("lexical", means[0], STRATUM_BAR, screen.colour)] if with_bar else row)
    columns = [f"{measure} by stratum", "topics", *(clean(item.name) for item in evaluations)]
    return tables.table([*columns, ""] if with_bar else columns, rows, screen, left=("",))


def _findings(evaluations: Sequence[Evaluation], headrooms: Mapping[str, Headroom], screen: Screen) -> RenderableType:
    from trivet.legs import LEGS

    legs = [leg for leg in LEGS if any(leg in _legs(item) for item in evaluations)]
    columns = [_finding(item, legs, headrooms.get(item.name)) for item in evaluations]
    rows: list[list[tables.Cell]] = [
        [_label(label, screen), *(column[label] or Text("–", style="dim") for column in columns)]
        for label in columns[0]
        if any(column[label] for column in columns)
    ]
    return tables.table(["what measures do not show", *(clean(item.name) for item in evaluations)], rows, screen)


def _legs(item: Evaluation) -> list[str]:
    """Return the legs of a profile that has more than one."""
    legs = [leg for leg, weight in item.profile.weights.items() if weight > 0] if item.profile else []
    return legs if len(legs) > 1 else []


def _finding(item: Evaluation, legs: Sequence[str], headroom: Headroom | None) -> dict[str, tables.Cell]:
    """Return the value of each label; an empty one where it does not apply."""
    found = item.findings
    active = _legs(item)
    return {
        "relevant hits": f"{found.right:,}",
        **{f"  in the top k of {leg} only": f"{found.only.get(leg, 0):,}" if leg in active else "" for leg in legs},
        "relevant of the returned": f"{found.precision:.1%} of {found.returned:.1f}",
        "relevance threshold": f"{item.profile.min_relevance:g}" if item.profile else "",
        "  hits, though nothing is relevant": _share(found.false_unanswerable, found.unanswerable),
        "  hits, though the query is nonsense": _share(found.false_nonsense, found.nonsense),
        "queries without a hit": f"{found.unanswered:,}",
        "degraded": Text(f"{found.degraded:,}", style="red" if found.degraded else ""),
        "time, p50 / p95": f"{found.p50_ms:.1f} / {found.p95_ms:.1f} ms" if found.p95_ms else "",
        "  and to embed the query": f"{found.embed_ms:.1f} ms" if found.embed_ms is not None else "",
        "with one alpha for all topics": f"{headroom.best_mean:.4f} at {headroom.best_alpha:g}" if headroom else "",
        "  with the best alpha of each topic": f"{headroom.oracle_mean:.4f}" if headroom else "",
    }


def _share(share: float | None, count: int) -> tables.Cell:
    if share is None:
        return ""
    return Text(f"{round(share * count):,} of {count:,}", style="yellow" if share > 0.5 else "")


def _label(label: str, screen: Screen) -> Text:
    text = Text(label, style="" if not label.startswith(" ") else "dim")
    for leg, colour in bars.COLOURS.items():
        if screen.colour and (at := label.find(f" {leg} ")) >= 0:
            text.stylize(f"not dim {colour}", at + 1, at + 1 + len(leg))
    return text
