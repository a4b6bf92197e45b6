"""Feedback as a dataset: the judged queries of a collection, to be run on that collection.

>>> lab = Lab(from_feedback(engine), engine)

This is not a test collection. A query is kept without its filter, so it runs on the whole collection. People judge only
what they were shown, and a document without a judgement counts as not relevant, so a profile that finds new documents
is punished for it. This bias favours the profile in use; ADR 12 says why the alternative is worse.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from trivet.errors import InputError
from trivet.evaluate.dataset import Dataset, Topic

if TYPE_CHECKING:
    from trivet.engine import Engine

FEEDBACK = "feedback"  # the name of the dataset and of its split
FEWEST = 5  # queries with a relevant document; cross-validation has that many folds


def from_feedback(engine: Engine) -> Dataset:
    """Return the judged queries of a collection; good is grade 1, bad is grade 0.

    Judgements of deleted documents and queries without a relevant document are left out; ``notes`` says how many.
    Raise where fewer than ``FEWEST`` queries are left.
    """
    answered, notes = judged(engine)
    if len(answered) < FEWEST:
        have = "1 query has" if len(answered) == 1 else f"{len(answered)} queries have"
        message = f"feedback: {have} a document judged good; learning needs at least {FEWEST}"
        raise InputError("; ".join((message, *notes, "add feedback with `trivet feedback QUERY ID --good`")))
    topics = [Topic(topic_id(query), query) for query in answered]
    return Dataset(
        name=FEEDBACK,
        split=FEEDBACK,
        documents=(),
        topics=tuple(topics),
        qrels={topic.id: answered[topic.text] for topic in topics},
        digest=topic_id(json.dumps(answered, sort_keys=True)),
        notes=tuple(notes),
    )


def judged(engine: Engine) -> tuple[dict[str, dict[str, int]], list[str]]:
    """Return query → document → grade, however few there are, and notes on what was left out."""
    given = engine.feedbacks()
    known = {id for id in {item.id for item in given} if engine.get(id) is not None}
    grades_of: dict[str, dict[str, int]] = {}
    for item in given:
        grades = grades_of.setdefault(item.query, {})
        if item.id in known:
            grades[item.id] = int(item.good)
    answered = {query: grades for query, grades in grades_of.items() if any(grades.values())}
    notes = []
    if deleted := sum(item.id not in known for item in given):
        notes.append(f"judgements of deleted documents, left out: {deleted:,} of {len(given):,}")
    if unanswered := len(grades_of) - len(answered):
        notes.append(f"queries without a document judged good, left out: {unanswered:,} of {len(grades_of):,}")
    return answered, notes


def topic_id(text: str) -> str:
    """Return an id that depends on the text alone, so that a topic keeps it when more feedback comes."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
