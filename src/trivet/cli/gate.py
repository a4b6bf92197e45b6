"""``trivet gate``: fail where a ranking scores less than a stored result."""

from __future__ import annotations

import json as json_
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from trivet.cli import evaluation, options, output, output_files, tables
from trivet.cli.evaluation import DatasetOptions, ProfileOptions, Trial
from trivet.cli.options import flag, option, option_groups
from trivet.cli.output import Screen, clean, plural
from trivet.errors import NotFoundError, TrivetError

if TYPE_CHECKING:
    from trivet.evaluate import Evaluation, Paired, Verdict
    from trivet.profile import Profile

FALLEN = 5  # topics shown
TIE = 1e-9  # a smaller difference of two scores is a rounding error


@option_groups
def gate(
    dataset: evaluation.DatasetName,
    against: Annotated[Path, option("--against", "FILE", "The stored result to compare with.")],
    profiles: ProfileOptions,
    source: DatasetOptions,
    measure: evaluation.Measure = "nDCG@10",
    margin: Annotated[float, option("--margin", "0–1", "How much lower the score may be.", default=True)] = 0.01,
    write: Annotated[bool, flag("--write", "Store this result in the file, whatever it is.")] = False,
    json: options.Json = False,
) -> None:
    """Fail (exit code 1) if a ranking scores less than a stored result by more than a margin. Made for CI.

    Without -p it runs the profile of the stored result; a shipped profile as it ships now.
    """
    from trivet.evaluate import MEASURES
    from trivet.evaluate import gate as judge

    measure = evaluation.check_measures([measure])[0]
    stored = _read_stored(against, write)
    loaded = source.load(dataset)
    if stored is not None and not write:  # a comparison that is not possible is refused before any work is done
        judge(stored, replace(stored, dataset=loaded.identity), measure, margin)
    output_files.check_file(against, "--against")
    profile = profiles.single(_profile_of(stored))
    measures = list(dict.fromkeys((measure, *MEASURES))) if write else [measure]
    (current,), _ = Trial(loaded, source, {profile.name: profile}, measures).evaluate()
    comparable = stored is not None and stored.dataset == current.dataset and measure in stored.scores
    verdict = judge(stored, current, measure, margin) if stored is not None and comparable else None
    if write:
        text = json_.dumps(current.to_dict(answers=False), ensure_ascii=False, indent=1)
        output_files.write_text(against, f"{text}\n")
    outcome = Outcome(measure, current, stored, verdict, write)
    screen = output.stdout()
    if json:
        output.print_json(outcome.to_dict())
    else:
        screen.show(_view(outcome, screen))
    if not write and verdict is not None and not verdict.passed:
        raise typer.Exit(1)


def _read_stored(path: Path, write: bool) -> Evaluation | None:
    """Return the stored result; None where it is about to be written and there is none that can be read."""
    from trivet.evaluate import read_evaluation

    try:
        return read_evaluation(path)
    except TrivetError as error:
        if write:
            return None
        if isinstance(error, NotFoundError):
            raise NotFoundError(f"--against: there is no file {str(path)!r}; make it with --write") from None
        raise


def _profile_of(stored: Evaluation | None) -> Profile | None:
    """Return a shipped profile as it is now, so that a change of it is noticed; another one as it was stored."""
    from trivet.profile import PROFILES

    if stored is None or stored.profile is None:
        return None
    return PROFILES.get(stored.profile.name, stored.profile)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The current and the stored result; ``verdict`` is None where the two cannot be compared."""

    measure: str
    current: Evaluation
    stored: Evaluation | None
    verdict: Verdict | None
    written: bool

    @property
    def fallen(self) -> list[dict[str, Any]]:
        """The topics that lost most."""
        if self.stored is None or self.verdict is None:
            return []
        before, after = self.stored.of(self.measure), self.current.of(self.measure)
        lost = sorted((after[topic] - value, topic) for topic, value in before.items() if after[topic] < value - TIE)
        return [
            {"topic": topic, "text": self.current.texts.get(topic, ""), "stored": before[topic], "now": after[topic]}
            for _, topic in lost[:FALLEN]
        ]

    @property
    def notes(self) -> list[str]:
        notes = [*self.current.notes, *(self.verdict.warnings if self.verdict else ())]
        before, now = self.stored and self.stored.profile, self.current.profile
        if self.verdict and before and now and before.identity != now.identity:
            notes.append(f"the stored result is of {before.identity}, this one of {now.identity}")
        return notes

    def to_dict(self) -> dict[str, Any]:
        none = {"dataset": self.current.dataset, "measure": self.measure, "passed": None}
        verdict = {**self.verdict.to_dict(), "words": self.verdict.pair.verdict} if self.verdict else none
        return {
            **verdict,
            "stored": _summary(self.stored) if self.stored else None,
            "current": {**_summary(self.current), "mean": round(self.current.mean(self.measure), 4)},
            "fallen": self.fallen,
            "written": self.written,
            "notes": self.notes,
        }


def _summary(item: Evaluation) -> dict[str, Any]:
    identity = item.profile.identity if item.profile else None
    return {"name": item.name, "profile": identity, "model": item.model, "commit": item.made.get("commit")}


# --- what is shown ----------------------------------------------------------------------------------------------------


def _view(outcome: Outcome, screen: Screen) -> RenderableType:
    parts: list[RenderableType] = [_headline(outcome)]
    if outcome.verdict is not None:
        parts.append(_evidence(outcome.verdict.pair))
    if outcome.fallen:
        parts += [Text(), _fallen(outcome, screen)]
    return Group(*parts, Text(), evaluation.provenance([outcome.current], outcome.notes))


def _headline(outcome: Outcome) -> Text:
    what = clean(f"  {outcome.current.dataset}  {outcome.current.name}  {outcome.measure} ")
    if outcome.verdict is None:
        return Text.assemble(("stored", "bold"), what, tables.score(outcome.current.mean(outcome.measure)))
    passed, pair = outcome.verdict.passed, outcome.verdict.pair
    style = "bold green" if passed else "bold red"
    return Text.assemble(
        ("stored", "bold") if outcome.written else ("passed" if passed else "FAILED", style),
        f"{what}{tables.score(pair.mean_baseline)} → {tables.score(pair.mean_challenger)}",
        (f"  {tables.signed(pair.difference)}", style),
        (f"  margin {outcome.verdict.margin:g}", "dim"),
    )


def _evidence(pair: Paired) -> Text:
    counts = f"{plural(pair.wins, 'topic')} better, {pair.losses:,} worse, {pair.ties:,} equal"
    return tables.sentence(f"{counts}; by the paired test: {pair.verdict}")


def _fallen(outcome: Outcome, screen: Screen) -> RenderableType:
    rows: list[list[tables.Cell]] = [
        [
            clean(item["topic"]),
            tables.score(item["stored"]),
            tables.score(item["now"]),
            Text(tables.signed(item["now"] - item["stored"]), style="red"),
            tables.line(item["text"], max(20, screen.width - len(item["topic"]) - 34)),
        ]
        for item in outcome.fallen
    ]
    return tables.table(["what fell most", "stored", "now", "change", "query"], rows, screen, left=("query",))
