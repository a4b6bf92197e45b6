"""What have people said was right?

Feedback is judgement collected in passing: ``engine.feedback(query, id, good)``, or ``trivet feedback``. Here it
becomes a dataset without documents, to be asked of the very collection it is about:

>>> lab = Lab(from_feedback(engine), engine)

It is not a test collection. A question is kept without the filter it was asked under, so it is asked of the whole
collection. And people judge only what they were shown: a document nobody judged counts as wrong, so a profile that
finds new ones is punished for it. That bias is on the side of the profile that was in use, and it is the smaller evil.
Leaving documents without a judgement out of the ranking before it is scored (condensed lists; Sakai: "Alternatives to
Bpref", SIGIR 2007) is fair where everything shown was judged. Where people judge down to the last good answer it is a
trap: all that stands above a good document is bad, so any other order looks better. With such judgements of the
default's first five hits, simulated on 300 topics, tuning by condensed lists left the default for a worse profile in
every draw (SciFact -0.04 nDCG@10, LoCoMo -0.05, CoSQA -0.15), by plain lists in none. From good verdicts alone,
condensed lists learn nothing. What plain lists cost: from RRF with k = 60 they gained 0.069 on LoCoMo where all
judgements gain 0.072, but 0.006 instead of 0.017 on SciFact.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from trivet.errors import InputError
from trivet.evaluate.dataset import Dataset, Topic

if TYPE_CHECKING:
    from trivet.engine import Engine

FEEDBACK = "feedback"  # the name of the dataset and of its split
FEWEST = 5  # questions with a good document: fewer do not even make the folds of a cross-validation


def from_feedback(engine: Engine) -> Dataset:
    """The judged questions of a collection: good is grade 1, bad is grade 0.

    A verdict on a document that is gone is passed over, and so is a question for which nothing good is left; ``notes``
    says how many. Fewer than ``FEWEST`` questions are refused.
    """
    answered, notes = judged(engine)
    if len(answered) < FEWEST:
        told = f"feedback: {len(answered)} questions have a good document, and {FEWEST} is the least to learn from"
        raise InputError("; ".join((told, *notes, "say more with `trivet feedback QUERY ID --good`")))
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
    """(question → document → grade, what was passed over), however few there are."""
    said = engine.feedbacks()
    there = _still_there(engine, (given.id for given in said))
    grades_of: dict[str, dict[str, int]] = {}
    for given in said:
        grades = grades_of.setdefault(given.query, {})
        if given.id in there:
            grades[given.id] = int(given.good)
    answered = {query: grades for query, grades in grades_of.items() if any(grades.values())}
    notes = []
    if gone := sum(given.id not in there for given in said):
        notes.append(f"{gone:,} of {len(said):,} verdicts are on documents that are gone: passed over")
    if unanswered := len(grades_of) - len(answered):
        notes.append(f"{unanswered:,} of {len(grades_of):,} questions have no good document: not asked")
    return answered, notes


def _still_there(engine: Engine, ids: Iterable[str]) -> set[str]:
    return {id for id in set(ids) if engine.get(id) is not None}


def topic_id(text: str) -> str:
    """A name that stays when more is said: a topic of today is the same topic tomorrow."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
