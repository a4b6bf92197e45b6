"""Evaluations: a profile or another system's run, scored on a dataset.

An ``Evaluation`` is a record that goes to JSON and back. It names its dataset, profile, model, commit and machine, so
that only comparable evaluations are compared.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess  # git alone, with fixed words  # nosec B404
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from trivet import __version__
from trivet.errors import InputError, NotFoundError
from trivet.evaluate import findings, measures
from trivet.evaluate.dataset import Dataset
from trivet.evaluate.findings import Findings
from trivet.evaluate.lab import Lab
from trivet.evaluate.measures import MEASURES, Scores, canonical, score
from trivet.evaluate.run import Run, from_plain, plain
from trivet.profile import Profile
from trivet.types import StepProgress

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The scores and findings of one run over one dataset."""

    name: str  # of the profile, or of another system's run
    dataset: str  # Dataset.identity
    profile: Profile | None  # None for a run from elsewhere
    model: str | None
    scores: Scores = field(repr=False)  # measure → topic → value, every judged topic in each
    strata: Mapping[str, str] = field(repr=False)  # topic → stratum
    texts: Mapping[str, str] = field(repr=False)  # topic → query
    qrels: Mapping[str, Mapping[str, int]] = field(repr=False)
    run: Run = field(repr=False)
    findings: Findings = field(repr=False)
    made: Mapping[str, Any] = field(default_factory=dict, repr=False)
    notes: tuple[str, ...] = ()

    def mean(self, measure: str) -> float:
        return measures.mean(self.of(measure))

    def of(self, measure: str) -> dict[str, float]:
        """Return topic → value."""
        name = measures.canonical(measure)
        if name not in self.scores:
            raise InputError(f"measure: {name} was not computed for {self.name}; it has: {', '.join(self.scores)}")
        return self.scores[name]

    def by_stratum(self, measure: str) -> dict[str, dict[str, float]]:
        return measures.by_stratum(self.of(measure), self.strata)

    @property
    def file_name(self) -> str:
        """The name of its file: commit, profile and dataset."""
        who = self.profile.identity if self.profile else self.name
        parts = (self.made.get("commit", "unknown"), who, self.dataset)
        # the name of another system or of a folder may hold anything, a path included
        return "-".join(("eval", *(re.sub(r"[^\w.+-]+", "-", part).strip(".-") for part in parts))) + ".json"

    def to_dict(self, answers: bool = True) -> dict[str, Any]:
        """Return plain data; without ``answers`` it holds nothing of the dataset but the ids of topics."""
        record: dict[str, Any] = {
            "format": FORMAT,
            "name": self.name,
            "dataset": self.dataset,
            "profile": self.profile.to_dict() if self.profile else None,
            "identity": self.profile.identity if self.profile else None,
            "model": self.model,
            "made": dict(self.made),
            "notes": list(self.notes),
            "overall": {measure: round(measures.mean(values), 4) for measure, values in self.scores.items()},
            "strata": {
                stratum: {
                    "topics": sum(1 for name in self.strata.values() if name == stratum),
                    **{measure: round(measures.mean(self.by_stratum(measure)[stratum]), 4) for measure in self.scores},
                }
                for stratum in sorted(set(self.strata.values()))
            },
            "findings": self.findings.to_dict(),
            # not rounded: a stored run compared with itself must show no change
            "scores": {measure: dict(values) for measure, values in self.scores.items()},
            "stratum_of": dict(self.strata),
        }
        if answers:
            record["texts"] = dict(self.texts)
            record["qrels"] = {topic: dict(grades) for topic, grades in self.qrels.items()}
            record["answers"] = [plain(answer) for answer in self.run.answers.values()]
        return record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Evaluation:
        if record.get("format") != FORMAT:
            raise InputError(f"result: format {record.get('format')!r} is not {FORMAT}; run trivet eval again")
        return cls(
            name=record["name"],
            dataset=record["dataset"],
            profile=Profile.from_dict(record["profile"]) if record["profile"] else None,
            model=record["model"],
            scores={
                measure: {topic: float(value) for topic, value in values.items()}
                for measure, values in record["scores"].items()
            },
            strata=record["stratum_of"],
            texts=record.get("texts", {}),
            qrels=record.get("qrels", {}),
            run=Run(record["name"], {item["topic"]: from_plain(item) for item in record.get("answers", ())}),
            findings=Findings.from_dict(record["findings"]),
            made=record["made"],
            notes=tuple(record["notes"]),
        )

    def save(self, folder: str | Path, answers: bool = True) -> Path:
        path = Path(folder) / self.file_name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.to_dict(answers), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        return path


def read_evaluation(path: str | Path) -> Evaluation:
    """Read a saved evaluation."""
    file = Path(path)
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(record, dict):
            raise InputError(f"expected a result of trivet eval, got {type(record).__name__}")
        return Evaluation.from_dict(record)
    except FileNotFoundError:
        raise NotFoundError(f"result: there is no file {str(path)!r}; make one with trivet eval --save") from None
    except OSError as error:
        raise InputError(f"{file.name}: cannot be read ({error.strerror or error})") from None
    except InputError as error:
        raise InputError(f"{file.name}: {error}") from None
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{file.name}: not a whole result of trivet eval (missing or wrong: {error})") from None
    except (ValueError, RecursionError) as error:  # not JSON, not UTF-8, a number that is none
        raise InputError(f"{file.name}: not a result of trivet eval ({error})") from None


def evaluate(
    lab: Lab,
    profile: Profile,
    *,
    measures: Sequence[str] = MEASURES,
    name: str | None = None,
    fast: bool = False,
    progress: StepProgress | None = None,
) -> Evaluation:
    """Run every topic with a profile and return the evaluation.

    ``fast`` fuses stored rankings of the legs again instead of searching: the same hits, without times.
    """
    dataset = lab.dataset
    for measure in measures:
        canonical(measure)  # raises for an unknown name before anything is run
    ask = lab.rerun if fast else lab.run
    run = ask(profile, name=name, progress=progress)
    unanswerable = ask(profile, dataset.unanswerable, progress=progress) if dataset.unanswerable else None
    made_up = ask(profile, findings.nonsense(dataset.topics), progress=progress)
    spent = [] if fast or not profile.weights["dense"] else lab.embedding_ms()
    found = findings.summarize(run, dataset.qrels, unanswerable, made_up, spent)
    judged = judge(dataset, run, measures=measures, found=found, profile=profile, model=lab.model)
    return replace(judged, dataset=lab.identity)


def judge(
    dataset: Dataset,
    run: Run,
    *,
    measures: Sequence[str] = MEASURES,
    found: Findings | None = None,
    profile: Profile | None = None,
    model: str | None = None,
) -> Evaluation:
    """Score a run, ours or another system's, against the dataset's judgements and return the evaluation."""
    unknown = [topic for topic in run.answers if topic not in dataset.qrels]
    notes = list(dataset.notes)
    if unknown and len(unknown) == len(run.answers):
        raise InputError(
            f"run: none of its topics ({len(unknown):,}) is in {dataset.identity}; give a run of this dataset"
        )
    if unknown:
        notes.append(f"topics of the run that are not in the split, not scored: {len(unknown):,}")
        run = replace(run, answers={topic: run.answers[topic] for topic in run.answers if topic in dataset.qrels})
    if missing := len(dataset.qrels) - len(run.answers):
        notes.append(f"judged topics that are not in the run, counted as 0: {missing:,}")
    return Evaluation(
        name=run.name,
        dataset=dataset.identity,
        profile=profile,
        model=model,
        scores=score(run, dataset.qrels, measures),
        strata={topic.id: topic.stratum for topic in dataset.topics},
        texts={topic.id: topic.text for topic in dataset.topics},
        qrels=dataset.qrels,
        run=run,
        findings=found or findings.summarize(run, dataset.qrels, None, None),
        made=made(),
        notes=tuple(notes),
    )


@cache
def made() -> dict[str, Any]:
    """By which code, on which machine, when."""
    return {
        "commit": commit(),
        "version": __version__,
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


@cache
def commit() -> str:
    """Return the commit of this checkout, with ``+`` where src/ was changed since; outside a checkout, the version."""
    here = Path(__file__).resolve().parents[3]
    if not (here / ".git").exists():
        return f"v{__version__}"
    try:
        output = [
            subprocess.run(["git", "-C", str(here), *words], capture_output=True, text=True, check=True).stdout.strip()  # nosec
            for words in (["rev-parse", "--short", "HEAD"], ["status", "--porcelain", "--", "src"])
        ]
    except (OSError, subprocess.CalledProcessError):
        return f"v{__version__}"
    return output[0] + ("+" if output[1] else "")
