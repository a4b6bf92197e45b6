"""What is there to say of a gate? (what ``trivet gate`` shows)"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trivet.surfaces.cli.screen import Screen, clean

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from trivet.evaluate import Evaluation, Paired, Verdict

FALLEN = 5  # topics named


@dataclass(frozen=True, slots=True)
class Gated:
    """``verdict`` is None where there was nothing to hold the current result against."""

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
        lost = sorted((after[topic] - value, topic) for topic, value in before.items() if after[topic] < value - 1e-9)
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
        nothing = {"dataset": self.current.dataset, "measure": self.measure, "passed": None}
        told = {**self.verdict.to_dict(), "words": self.verdict.pair.verdict} if self.verdict else nothing
        return {
            **told,
            "stored": _about(self.stored) if self.stored else None,
            "current": {**_about(self.current), "mean": round(self.current.mean(self.measure), 4)},
            "fallen": self.fallen,
            "written": self.written,
            "notes": self.notes,
        }


def _about(item: Evaluation) -> dict[str, Any]:
    identity = item.profile.identity if item.profile else None
    return {"name": item.name, "profile": identity, "model": item.model, "commit": item.made.get("commit")}


def shown(gated: Gated, screen: Screen) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from trivet.surfaces.cli import scores

    parts: list[RenderableType] = [_headline(gated)]
    if gated.verdict is not None:
        parts.append(_evidence(gated.verdict.pair))
    if gated.fallen:
        parts += [Text(), _fallen(gated, screen)]
    return Group(*parts, Text(), scores.about([gated.current], gated.notes))


def _headline(gated: Gated) -> Text:
    from rich.text import Text

    from trivet.surfaces.cli import tables

    what = f"  {gated.current.dataset}  {gated.current.name}  {gated.measure} "
    if gated.verdict is None:
        return Text.assemble(("stored", "bold"), clean(what), tables.score(gated.current.mean(gated.measure)))
    passed, pair = gated.verdict.passed, gated.verdict.pair
    style = "bold green" if passed else "bold red"
    return Text.assemble(
        ("stored", "bold") if gated.written else ("passed" if passed else "FAILED", style),
        f"{clean(what)}{tables.score(pair.mean_baseline)} → {tables.score(pair.mean_challenger)}",
        (f"  {tables.signed(pair.difference)}", style),
        (f"  it may fall by {gated.verdict.margin:g}", "dim"),
    )


def _evidence(pair: Paired) -> Text:
    from trivet.surfaces.cli import tables

    moved = f"{pair.wins:,} topics rose, {pair.losses:,} fell, {pair.ties:,} stayed"
    return tables.sentence(f"{moved}; by the paired test: {pair.verdict}")


def _fallen(gated: Gated, screen: Screen) -> RenderableType:
    from rich.text import Text

    from trivet.surfaces.cli import tables

    rows: list[list[tables.Cell]] = [
        [
            clean(item["topic"]),
            tables.score(item["stored"]),
            tables.score(item["now"]),
            Text(tables.signed(item["now"] - item["stored"]), style="red"),
            tables.line(item["text"], max(20, screen.width - len(item["topic"]) - 34)),
        ]
        for item in gated.fallen
    ]
    return tables.table(["what fell most", "stored", "now", "change", "question"], rows, screen, left=("question",))
