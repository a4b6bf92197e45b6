"""Input for the tests of the report: evaluations made by hand, and a strict HTML parser."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

from trivet.evaluate import Answer, Evaluation, Headroom, Run, Sweep
from trivet.evaluate.findings import Bin, Cut, Findings
from trivet.evaluate.report import Material
from trivet.evaluate.sweeps import Point
from trivet.profile import PROFILES, Profile

KITCHEN, GARDEN = "kitchen/test#aaaaaaaaaaaa", "garden/test#bbbbbbbbbbbb"
MEASURES = ("nDCG@10", "R@5")
MADE = {
    "commit": "abc1234",
    "version": "9.9",
    "python": "3.11.0",
    "machine": "x86_64, 2 cores",
    "at": "2026-01-02T03:04",
}
_VOID = {"meta", "br", "input", "col"}


def profile(name: str, **weights: float) -> Profile:
    return Profile(name=name, weights=weights or {"lexical": 0.5, "dense": 0.5})


WORDS, MEANING, RRF = (
    profile("bm25", lexical=1.0),
    profile("dense", dense=1.0),
    profile("rrf").with_changes({"fusion": "rrf"}),
)
DEFAULT = PROFILES["default"]


def findings(topics: int = 3, **changes: Any) -> Findings:
    cuts = tuple(
        Cut(step / 50, min(1.0, 0.2 + step / 60), 1 - step / 50, 1 - step / 50, 0.5 - step / 100) for step in range(51)
    )
    told = Findings(
        topics=topics,
        unanswered=0,
        degraded=0,
        returned=10.0,
        precision=0.1,
        right=10,
        only={"dense": 3, "lexical": 2},
        unanswerable=4,
        false_unanswerable=0.5,
        nonsense=50,
        false_nonsense=0.25,
        p50_ms=1.5,
        p95_ms=4.0,
        embed_ms=5.0,
        cuts=cuts,
        bins=(Bin(0.0, 30, 0.05, 0.1), Bin(0.4, 8, 0.45, 0.25), Bin(0.9, 2, 0.95, 1.0)),
    )
    return replace(told, **changes)


def evaluation(
    profile: Profile | None = DEFAULT,
    scores: Mapping[str, Mapping[str, float]] | None = None,
    *,
    name: str | None = None,
    dataset: str = KITCHEN,
    topics: int = 40,
    strata: Sequence[str] = ("easy", "hard"),
    seed: int = 0,
    texts: Mapping[str, str] | None = None,
    **changes: Any,
) -> Evaluation:
    """Scores by chance, the same for the same seed, unless they are given."""
    called = name or (profile.name if profile else "other")
    chance = random.Random(ascii((seed, called, dataset)))
    if scores is None:
        scores = {measure: {f"q{n}": round(chance.random(), 2) for n in range(topics)} for measure in MEASURES}
    ids = list(next(iter(scores.values()))) if scores else []
    answers = {
        id: Answer(id, ("d1", "d2"), (2.0, 1.0), (0.9, 0.4), (("dense",), ("lexical", "dense")), 1.0) for id in ids
    }
    return Evaluation(
        name=called,
        dataset=dataset,
        profile=profile,
        model="model/1",
        scores={measure: dict(values) for measure, values in scores.items()},
        strata={id: strata[place % len(strata)] for place, id in enumerate(ids)},
        texts={id: f"question {id}" for id in ids} if texts is None else texts,
        qrels={id: {"d1": 1, "d2": 0} for id in ids},
        run=Run(called, answers),
        **{"findings": findings(len(ids)), "made": MADE, "notes": (), **changes},
    )


def four(dataset: str = KITCHEN, **options: Any) -> list[Evaluation]:
    return [evaluation(item, dataset=dataset, **options) for item in (WORDS, MEANING, RRF, DEFAULT)]


def sweep(
    axes: Mapping[str, Sequence[Any]], base: Profile = RRF, dataset: str = KITCHEN, measure: str = "nDCG@10"
) -> Sweep:
    """Every combination; the means rise and fall again."""
    settings: list[dict[str, Any]] = [{}]
    for name, values in axes.items():
        settings = [{**known, name: value} for known in settings for value in values]
    points = []
    for place, changes in enumerate(settings):
        mean = 0.5 + 0.01 * (place if place < len(settings) / 2 else len(settings) - place)
        points.append(
            Point(
                changes, base.with_changes({**changes, "name": base.name}), mean, mean - 0.1, mean + 0.1, {"q0": mean}
            )
        )
    return Sweep(dataset, measure, base, {name: tuple(values) for name, values in axes.items()}, tuple(points))


def headroom() -> Headroom:
    return Headroom("nDCG@10", 0.5, 0.4, 0.55, 0.7, {0.0: 0.4, 0.4: 0.55, 1.0: 0.45})


def alone(*evaluations: Evaluation, **more: Any) -> Material:
    return Material("A report", list(evaluations), **more)


class Page(HTMLParser):
    """A page as a strict reader sees it: every tag closed in its place, every attribute told once."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.script = self.style = ""
        self.feed(page)
        self.close()
        assert self.open == [], f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), f"<{tag}> has an attribute twice: {attrs}"
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> closes another tag"

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("script", "style"):
            setattr(self, self.open[-1], getattr(self, self.open[-1]) + data)
        else:
            self.text += data

    def all(self, tag: str, kind: str = "") -> list[dict[str, str | None]]:
        """The attributes of these tags, of those of a class alone where one is named."""
        wanted = set(kind.split())
        return [attrs for name, attrs in self.tags if name == tag and wanted <= set((attrs.get("class") or "").split())]

    @property
    def sections(self) -> list[str]:
        return [str(attrs["id"]) for attrs in self.all("section")]


_NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|inf", re.IGNORECASE)
_PLACES = ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height", "d", "viewbox")


def coordinates(page: Page) -> list[float]:
    """Every number that places a mark."""
    found = []
    for tag, attrs in page.tags:
        if tag in ("svg", "line", "circle", "rect", "path", "text"):
            for name in _PLACES:
                found += [float(number) for number in _NUMBER.findall(attrs.get(name) or "")]
    return found
