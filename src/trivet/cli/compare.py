"""``trivet compare``: compare rankings on the same queries with paired tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from trivet.cli import evaluation, options, output, output_files, tables
from trivet.cli.evaluation import DatasetOptions, ProfileOptions, Trial
from trivet.cli.options import argument, option, option_groups
from trivet.cli.output import Screen, clean, plural
from trivet.errors import InputError

if TYPE_CHECKING:
    from trivet.evaluate import Comparison, Evaluation, Paired
    from trivet.evaluate.comparison import Moved

RELEVANT = "✓"
FEWEST = 3  # hits shown of a ranking; more if it takes more to show the last relevant one
PIPED_LABEL = 60  # characters of a title in a pipe, which has no width
STYLES = {"better": "bold green", "worse": "bold red"}
COLUMNS = ("mean", "difference", "95 %", "p", "Holm p", "effect", "W/L/T", "verdict")

Ranked = Sequence[tuple[str, int | None]]


@option_groups
def compare(
    what: Annotated[
        list[str],
        argument("DATASET|RESULT", "A dataset (a folder or `demo`), or .json results of `trivet eval --save`."),
    ],
    profiles: ProfileOptions,
    source: DatasetOptions,
    measure: evaluation.Measure = "nDCG@10",
    run: evaluation.Runs = None,
    moved: Annotated[
        int, option("--moved", "N", "How many of the queries that changed most to show.", default=True)
    ] = 5,
    report: output_files.Report = None,
    json: options.Json = False,
) -> None:
    """Compare rankings on the same queries, the first with each other one: paired tests, and what changed.

    Name several profiles with -p to compare them. With one profile, --alpha, --weight and --set change a copy of it,
    and the two are compared.
    """
    from trivet.evaluate import compare as compare_evaluations

    if moved < 0:
        raise InputError(f"--moved: {moved} is less than 0; give 0 or more")
    measure = evaluation.check_measures([measure])[0]
    output_files.check_file(report, "--report")
    titles: dict[str, str] = {}
    if all(item.endswith(".json") for item in what):
        evaluations = _read_saved(what, profiles, source, run)
    elif len(what) > 1:
        raise InputError(f"compare: give one dataset or several .json results, not {what[0]!r} and {what[1]!r}")
    else:
        evaluations, titles = _evaluate(what[0], profiles, source, run, measure, fast=report is None)
    found = compare_evaluations(evaluations, measure, top=moved)
    output_files.write_report(report, f"trivet compare {' '.join(what)}", evaluations, [found])
    if json:
        output.print_json({**found.to_dict(), "notes": _notes(evaluations)})
        return
    screen = output.stdout()
    screen.show(_view(found, evaluations, titles, screen))


def _evaluate(
    name: str, profiles: ProfileOptions, source: DatasetOptions, run: list[str] | None, measure: str, fast: bool
) -> tuple[list[Evaluation], dict[str, str]]:
    """Return the evaluations, and the title of each document."""
    if profiles.changes and len(profiles.profile or ()) < 2:
        chosen = profiles.before_and_after()
    elif profiles.changes:
        raise InputError("compare: --alpha, --weight and --set change one profile; name one, or leave them out")
    else:
        chosen = profiles.profiles(() if run and len(run) > 1 else ("default",))
    runs = evaluation.read_runs(run, source, chosen)
    if len(chosen) + len(runs) < 2:
        raise InputError("compare: name a second ranking with -p or --run, or change the first with --set or --alpha")
    dataset = source.load(name)
    evaluations, _ = Trial(dataset, source, chosen, [measure], runs, fast).evaluate()
    titles = {item["id"]: str(item.get("title") or "") or str(item["text"])[:200] for item in dataset.documents}
    return evaluations, titles


def _read_saved(
    paths: Sequence[str], profiles: ProfileOptions, source: DatasetOptions, run: list[str] | None
) -> list[Evaluation]:
    from trivet.evaluate import read_evaluation

    if profiles != ProfileOptions() or source != DatasetOptions() or run:
        raise InputError("compare: with saved results only --measure, --moved, --report and --json can be used")
    found = [read_evaluation(path) for path in paths]
    return _with_unique_names(found, [Path(path).stem for path in paths])


def _with_unique_names(evaluations: Sequence[Evaluation], stems: Sequence[str]) -> list[Evaluation]:
    """Add the commit where two have the same name; use the file's name where that is not enough."""
    by_name = [item.name for item in evaluations]
    by_commit = [f"{item.name}@{item.made.get('commit', 'unknown')}" for item in evaluations]
    for names in (by_name, by_commit, stems):
        if max(Counter(names).values()) == 1:
            return [replace(item, name=name) for item, name in zip(evaluations, names, strict=True)]
    return list(evaluations)  # the comparison refuses them and names them


def _notes(evaluations: Sequence[Evaluation]) -> list[str]:
    notes = list(dict.fromkeys(note for item in evaluations for note in item.notes))
    models = {item.name: item.model for item in evaluations if item.profile}
    if len(set(models.values())) > 1:
        notes.append("not the same model: " + ", ".join(f"{name} {model or 'none'}" for name, model in models.items()))
    return notes


# --- what is shown ----------------------------------------------------------------------------------------------------


def _view(
    found: Comparison, evaluations: Sequence[Evaluation], titles: Mapping[str, str], screen: Screen
) -> RenderableType:
    topics = plural(found.overall[0].n, "topic")
    parts: list[RenderableType] = [
        tables.heading(found.dataset, f"{found.measure}, {topics}, each against {found.baseline}"),
        Text(),
        _overall(found, screen),
    ]
    if found.strata:
        parts += [Text(), _strata(found, screen)]
    for name, items in found.moved.items():
        if items:
            parts += [Text(), tables.heading(f"What changed most: {found.baseline} → {name}")]
        for item in items:
            parts += [Text(), _moved(item, (found.baseline, name), titles, screen)]
    return Group(*parts, Text(), evaluation.provenance(evaluations, _notes(evaluations)))


def _overall(found: Comparison, screen: Screen) -> RenderableType:
    first = found.overall[0]
    rows: list[list[tables.Cell]] = [[Text(clean(found.baseline)), tables.score(first.mean_baseline), *[""] * 7]]
    rows += [[clean(pair.challenger), *_cells(pair)] for pair in found.overall]
    return tables.table(["profile", *COLUMNS], rows, screen, left=("verdict",))


def _strata(found: Comparison, screen: Screen) -> RenderableType:
    several = len(found.overall) > 1
    rows: list[list[tables.Cell]] = []
    for stratum, pairs in sorted(found.strata.items(), key=lambda item: (-item[1][0].n, item[0])):
        for pair in pairs:
            profile: list[tables.Cell] = [clean(pair.challenger)] if several else []
            rows.append([clean(stratum), Text(str(pair.n), style="dim"), *profile, *_cells(pair)])
    columns = ["stratum", "topics", *(["profile"] if several else []), *COLUMNS]
    return tables.table(columns, rows, screen, left=("verdict", "profile"))


def _cells(pair: Paired) -> list[tables.Cell]:
    verdict = pair.verdict.partition(" (")[0]
    style = STYLES.get(verdict, "dim")
    return [
        tables.score(pair.mean_challenger),
        Text(tables.signed(pair.difference), style=style if verdict in STYLES else ""),
        Text(tables.signed_span(pair.low, pair.high), style="dim"),
        tables.p(pair.p),
        tables.p(pair.p_holm),
        f"{pair.effect:+.2f}",
        f"{pair.wins}/{pair.losses}/{pair.ties}",
        Text(verdict, style=style),
    ]


def _moved(item: Moved, names: tuple[str, str], titles: Mapping[str, str], screen: Screen) -> RenderableType:
    """Return one query: its score before and after, and both rankings side by side."""
    style = "green" if item.change > 0 else "red"
    head = Text.assemble(
        (tables.signed(item.change), f"bold {style}"),
        (f"  {item.before:.3f} → {item.after:.3f}  ", style),
        tables.line(item.text or item.topic, max(20, screen.width - 28 - len(item.topic))),
    )
    if item.text:
        head.append(f"  {clean(item.topic)}", style="dim")
    if not item.baseline and not item.challenger:
        return head
    return Group(head, _rankings(item, names, titles, screen))


def _rankings(item: Moved, names: tuple[str, str], titles: Mapping[str, str], screen: Screen) -> Table:
    deepest = max(_last_relevant(item.baseline), _last_relevant(item.challenger), FEWEST)
    room = (screen.width - 6) // 2 - tables.GAP if screen.terminal else 0
    grid = Table.grid(padding=(0, tables.GAP, 0, 0))
    grid.add_column(justify="right", style="dim", width=3)
    for _ in names:
        grid.add_column(no_wrap=True, width=room or None, overflow="ellipsis")
    grid.add_row("", *(Text(f"  {clean(name)}", style="dim") for name in names))
    for at in range(min(deepest, max(len(item.baseline), len(item.challenger)))):
        grid.add_row(str(at + 1), *(_hit(ranked, at, titles, room) for ranked in (item.baseline, item.challenger)))
    return grid


def _last_relevant(ranked: Ranked) -> int:
    return max((at for at, (_, grade) in enumerate(ranked, start=1) if grade and grade > 0), default=0)


def _hit(ranked: Ranked, at: int, titles: Mapping[str, str], room: int) -> Text:
    if at >= len(ranked):
        return Text("–" if at == 0 else "", style="dim")
    id, grade = ranked[at]
    right = bool(grade and grade > 0)
    text = Text(f"{RELEVANT} " if right else "  ", style="green" if right else "", no_wrap=True, overflow="ellipsis")
    text.append(clean(id), style="bold green" if right else "")
    if titles.get(id):
        text.append(f"  {tables.line(titles[id], room or PIPED_LABEL)}", style="" if right else "dim")
    return text
