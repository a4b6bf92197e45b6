"""Measures of a run against judgements.

Measures are named and computed by ``ir-measures`` (``nDCG@10``, ``R@5``, ``Success@1``, ``RR@10``, ``AP@10``,
``Judged@10``, …), so any measure has the name and the value that papers use. One is ours: ``RecallAll@k``, which is 1
when all relevant documents are among the best k. Every judged topic has a value; a topic without hits counts 0, so that
a system does not gain by returning nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from trivet.errors import InputError, MissingExtraError
from trivet.evaluate.dataset import Qrels
from trivet.evaluate.run import Run

MEASURES = ("nDCG@10", "R@5", "R@10", "Success@1", "Success@5", "RecallAll@5", "RR@10", "AP@10", "Judged@10")
MAIN = "nDCG@10"
ALIASES = {"MRR": "RR", "MAP": "AP", "Recall": "R", "Hit": "Success", "Precision": "P", "NDCG": "nDCG"}
Scores = dict[str, dict[str, float]]  # measure → topic → value

_SHAPE = re.compile(r"([A-Za-z_]+)(.*)")


def canonical(name: str) -> str:
    """Return the name under which a measure is reported; raise for an unknown one."""
    shape = _SHAPE.fullmatch(name.strip())
    if shape is None:
        raise InputError(f"measure: {name!r} is not a measure; write one such as nDCG@10, R@5 or Success@1")
    known = {alias.lower(): real for alias, real in ALIASES.items()}
    name = known.get(shape[1].lower(), shape[1]) + shape[2]
    if (ours := _ours(name)) is not None:
        return f"RecallAll@{ours}"
    ir = _ir_measures()
    try:
        measure = ir.parse_measure(name)
        measure.validate_params()
    except Exception:
        raise InputError(
            f"measure: {name!r} is unknown; write one such as {', '.join(MEASURES)} (any name ir-measures knows)"
        ) from None
    for what in ("cutoff", "rel"):  # trec_eval ends the process at a cutoff of 0
        if isinstance(value := measure.params.get(what), int) and value < 1:
            raise InputError(f"measure: {name!r} has the {what} {value}; it must be 1 or more")
    if not ir.DefaultPipeline.supports(measure):
        raise InputError(f"measure: {name!r} is known to ir-measures, but no installed package computes it")
    return str(measure)


def score(run: Run, qrels: Qrels, measures: Sequence[str] = MEASURES) -> Scores:
    """Return measure → topic → value, for every judged topic."""
    names = list(dict.fromkeys(canonical(name) for name in measures))
    found: Scores = {name: dict.fromkeys(qrels, 0.0) for name in names}
    ir = _ir_measures()
    theirs = [ir.parse_measure(name) for name in names if _ours(name) is None]
    if theirs:
        judged = {topic: dict(grades) for topic, grades in qrels.items()}
        # a topic without a hit has 0 already; ir-measures would divide by its number of hits
        answered = {topic: scores for topic, scores in run.scores().items() if scores and topic in judged}
        try:
            values = list(ir.iter_calc(theirs, judged, answered))
        except Exception as error:  # each provider raises its own exceptions
            names_of = ", ".join(map(str, theirs))
            raise InputError(
                f"measure: ir-measures could not compute {names_of} ({type(error).__name__}: {error})"
            ) from None
        for value in values:
            found[str(value.measure)][value.query_id] = float(value.value)
    for name in names:
        if (k := _ours(name)) is not None:
            found[name] = {topic: _recall_all(run, topic, grades, k) for topic, grades in qrels.items()}
    return found


def mean(values: Mapping[str, float]) -> float:
    return sum(values.values()) / len(values) if values else 0.0


def by_stratum(values: Mapping[str, float], strata: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """Return stratum → topic → value."""
    found: dict[str, dict[str, float]] = {}
    for topic, value in values.items():
        found.setdefault(strata[topic], {})[topic] = value
    return found


def _recall_all(run: Run, topic: str, grades: Mapping[str, int], k: int) -> float:
    answer = run.answers.get(topic)
    relevant = {document for document, grade in grades.items() if grade > 0}
    return float(answer is not None and bool(relevant) and relevant <= set(answer.ids[:k]))


def _ours(name: str) -> int | None:
    found = re.fullmatch(r"recallall@([1-9][0-9]*)", name, re.IGNORECASE)
    return int(found[1]) if found else None


def _ir_measures() -> Any:
    try:
        return import_module("ir_measures")
    except ImportError:
        raise MissingExtraError("measures need ir-measures: pip install 'trivet[eval]'") from None
