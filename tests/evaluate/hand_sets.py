"""Datasets that are small enough to check by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from trivet.evaluate import Dataset, Evaluation, Run, Topic
from trivet.filters import Eq, In

CORPUS = (
    {"_id": "d1", "title": "Kettle", "text": "The kettle boils at nine."},
    {"_id": "d2", "title": "", "text": "The heron stands in the reeds."},
    {"_id": "d3", "text": "Nobody mends the broken gate."},
)
QUERIES = ({"_id": "q1", "text": "when does the kettle boil"}, {"_id": "q2", "text": "who mends the gate"})
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t1\nq2\td3\t1\n"

WriteSet = Callable[..., Path]
MakeRun = Callable[..., Run]
MakeEvaluation = Callable[..., Evaluation]


def small_set() -> Dataset:
    """60 short documents in three rooms, two of them copies, 9 topics: some scoped, one with its own moment."""
    things = ("kettle", "heron", "gate", "ladder", "lamp", "rope", "barrel", "anchor", "needle", "bell")
    verbs = ("boils", "stands", "breaks", "leans", "shines", "frays")
    documents: list[dict[str, Any]] = [
        {
            "id": f"d{number}",
            "text": f"The {things[number % 10]} {verbs[number % 6]} by the {things[(7 * number + 3) % 10]}, {number}.",
            "title": things[number % 10] if number % 4 == 0 else "",
            "meta": {"scope": f"room-{number % 3}", "year": 2000 + number % 5},
            "importance": (number % 11) / 10,
            "created": f"2024-0{1 + number % 9}-11T08:00:00Z",
        }
        for number in range(58)
    ]
    documents += [{**documents[0], "id": "d58"}, {**documents[7], "id": "q3"}]  # copies; one is called like a topic
    topics = (
        Topic("q0", "kettle that boils"),
        Topic("q1", "where does the heron stand", "scoped", Eq("scope", "room-1")),
        Topic("q2", "broken gate", "scoped", In("id", tuple(f"d{number}" for number in range(0, 58, 2)))),
        Topic("q3", documents[7]["text"]),
        Topic("q4", "kettel ladder lampp", "typo"),
        Topic("q5", "bell by the needle", "dated", None, "2024-06-01T00:00:00"),
        Topic("q6", '"by the rope" anchor'),
        Topic("q7", "zzyzx"),
        Topic("q8", "barrel", "scoped", Eq("year", 2003)),
    )
    qrels = {topic.id: {f"d{number * 5}": 1 + number % 2, f"d{number + 20}": 1} for number, topic in enumerate(topics)}
    return Dataset("small", "test", documents, topics, qrels, "0" * 12)
