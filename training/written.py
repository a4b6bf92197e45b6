"""Packs the questions that were written for the reader: the passages of each, and which of them answer.

The folder ``written`` has three kinds of file, one JSON object a line. ``talk-N`` are questions about conversations of
Synthetic-Persona-Chat, which ``talk.json`` names by file and row; ``chat-X`` and ``group-X`` are invented chats with
their questions; ``prose-X`` are invented passages about one subject. A question is (text, answering places, nearest
places where nothing answers).
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import lzma
import math
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contamination import Windows, plain
from dialogue import Turn
from repository import Repository
from sources import SOURCES
from turns import named, shown_turn

from trivet.text.analysis import Analyzer

HERE = Path(__file__).parent
FOLDER, WORK = HERE / "written", HERE / "work"
SEED = 16
#: Candidates of a question beside those that answer: BM25's first of the same conversation, any others of it, from
#: other conversations.
NEAR, SAME, OTHER = 12, 4, 2
#: How often a turn is shown with its date and the turn before, with its date, and alone.
FORMS = (("context", 0.75), ("date", 0.1), ("alone", 0.15))
#: Part of the chats with an assistant whose turns are joined by threes, as the head of a session.
JOINED = 0.25
#: Part of the questions about one of two people that are asked of the other one too, whom the turn is not about.
SWAPPED = 0.35

_ANALYZER = Analyzer("en")


@dataclass(frozen=True, slots=True)
class Dated:
    """A turn and its date; ``fresh`` where nothing was said before it that day."""

    turn: Turn
    date: str
    fresh: bool


@dataclass(frozen=True, slots=True)
class Question:
    """A question: the places that answer it, and the places that look like an answer where none does."""

    text: str
    answers: tuple[int, ...]
    near: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Subject:
    """Passages that belong together, in one or more forms, and the questions about them."""

    forms: dict[str, list[str]]
    questions: list[Question]
    people: tuple[str, ...] = ()


# --- reading ----------------------------------------------------------------------------------------------------------


def lines(pattern: str) -> list[dict[str, Any]]:
    """Return the objects of the files of this name."""
    return [
        json.loads(line)
        for file in sorted(FOLDER.glob(pattern))
        for line in file.read_text(encoding="utf-8").splitlines()
    ]


def questions(rows: Iterable[Sequence[Any]]) -> list[Question]:
    """Return the questions of an invented chat or text."""
    return [Question(row[0], tuple(row[1]), tuple(row[2]) if len(row) > 2 else ()) for row in rows]


def shown(turns: Sequence[Dated]) -> dict[str, list[str]]:
    """Return the turns in the forms that the product shows the reader, and as they are embedded."""
    spoken = [named(item.turn.speaker, item.turn.text) for item in turns]
    before = ["" if item.fresh or not at else spoken[at - 1] for at, item in enumerate(turns)]
    return {
        "context": [shown_turn(*row) for row in zip(spoken, before, [item.date for item in turns], strict=True)],
        "date": [shown_turn(said, "", item.date) for said, item in zip(spoken, turns, strict=True)],
        "alone": [item.turn.text for item in turns],
        "embedded": [
            item.turn.text if item.turn.speaker in ("user", "assistant") else said
            for said, item in zip(spoken, turns, strict=True)
        ],
    }


def dated(rows: Iterable[tuple[str, str, str]]) -> list[Dated]:
    """Return turns from (date, speaker, text)."""
    found: list[Dated] = []
    for date, speaker, text in rows:
        found.append(Dated(Turn(speaker, text), date, not found or found[-1].date != date))
    return found


def talks(mirror: Path) -> list[Subject]:
    """Return the conversations of two people with the questions about them."""
    source = next(item for item in SOURCES if item.name == "persona_chat")
    repository = Repository(mirror, source.repository, source.commit)
    chats = {
        Path(path).stem: [row["Best Generated Conversation"] for row in csv.DictReader(io.StringIO(text))]
        for path, text in repository.files(lambda path: path.endswith(("_valid.csv", "_test.csv")))
    }
    asked: dict[str, list[dict[str, Any]]] = {}
    for line in lines("talk-*.jsonl"):
        asked.setdefault(line["p"], []).append(line)
    subjects = []
    for pair, entry in json.loads((FOLDER / "talk.json").read_text(encoding="utf-8")).items():
        rows, places = [], {}
        for number, (stem, row, date) in enumerate(entry["conversations"]):
            said = [line.partition(": ") for line in chats[stem][row].splitlines()]
            kept = [(user, text) for user, _, text in said if user in ("User 1", "User 2") and text]
            for at, (user, text) in enumerate(kept):
                places[f"{pair}-{number}:{at}"] = len(rows)
                rows.append((date, entry["people"][user == "User 2"], text))
        found = [
            Question(
                line["q"],
                tuple(places[place] for place in line["a"] if place in places),
                tuple(places[place] for place in line.get("n", ()) if place in places),
            )
            for line in asked.get(pair, ())
        ]
        subjects.append(Subject(shown(dated(rows)), found, tuple(entry["people"])))
    return subjects


def chats(rng: random.Random) -> list[Subject]:
    """Return the invented chats, with an assistant and in groups."""
    subjects = []
    for line in [*lines("chat-*.jsonl"), *lines("group-*.jsonl")]:
        turns = dated((date, speaker, text) for date, speaker, text in line["turns"])
        asked = questions(line["queries"])
        if {turn[1] for turn in line["turns"]} == {"user", "assistant"} and rng.random() < JOINED:
            own = [at for at, item in enumerate(turns) if item.turn.speaker == "user"]
            heads = [own[at : at + 3] for at in range(0, len(own), 3)]
            seat = {at: number for number, head in enumerate(heads) for at in head}
            forms = {"alone": ["\n".join(turns[at].turn.text for at in head) for head in heads]}
            moved = [
                Question(item.text, _moved(item.answers, seat), _moved(item.near, seat))
                for item in asked
                if all(at in seat for at in item.answers)
            ]
            subjects.append(Subject(forms, moved))
        else:
            subjects.append(Subject(shown(turns), asked))
    return subjects


def _moved(places: Iterable[int], seat: dict[int, int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(seat[at] for at in places if at in seat))


def proses() -> list[Subject]:
    """Return the invented texts."""
    return [Subject({"alone": line["passages"]}, questions(line["queries"])) for line in lines("prose-*.jsonl")]


# --- candidates -------------------------------------------------------------------------------------------------------


def nearest(query: str, passages: Sequence[Counter[str]], k1: float = 1.2, b: float = 0.5) -> list[int]:
    """Return the places of the passages in the order of BM25."""
    average = sum(sum(passage.values()) for passage in passages) / len(passages)
    scores = [0.0] * len(passages)
    for term in set(_ANALYZER.terms(query)):
        holders = [at for at, passage in enumerate(passages) if term in passage]
        rarity = math.log1p((len(passages) - len(holders) + 0.5) / (len(holders) + 0.5))
        for at in holders:
            often, length = passages[at][term], sum(passages[at].values())
            scores[at] += rarity * often * (k1 + 1) / (often + k1 * (1 - b + b * length / average))
    return sorted(range(len(passages)), key=lambda at: -scores[at])


def asked_of_other(question: Question, people: Sequence[str]) -> str:
    """Return a question about one of two people as one about the other; empty where it names both or none."""
    if len(people) != 2 or not question.answers:
        return ""
    one, other = people if people[0] in question.text else people[::-1]
    return question.text.replace(one, other) if one in question.text and other not in question.text else ""


def groups(subjects: Sequence[Subject], rng: random.Random) -> Iterable[dict[str, Any]]:
    """Yield each question with the texts of its candidates; the first ``right`` of them answer."""
    everything = [text for subject in subjects for text in next(iter(subject.forms.values()))]
    names, shares = zip(*FORMS, strict=True)
    for subject in subjects:
        terms = [Counter(_ANALYZER.terms(text)) for text in subject.forms["alone"]]
        for question in subject.questions:
            form = rng.choices(names, shares)[0] if len(subject.forms) > 1 else "alone"
            texts = subject.forms[form]
            order = nearest(question.text, terms)
            around = [at + step for at in question.answers for step in (-1, 1) if 0 <= at + step < len(texts)]
            wrong = [*question.near, *order[:NEAR], *around, *rng.sample(range(len(texts)), min(SAME, len(texts)))]
            wrong = [at for at in dict.fromkeys(wrong) if at not in question.answers]
            others = rng.sample(everything, OTHER)
            embedded = subject.forms.get("embedded", texts)
            yield {
                "query": question.text,
                "right": len(question.answers),
                "texts": [*(texts[at] for at in (*question.answers, *wrong)), *others],
                "embedded": [*(embedded[at] for at in (*question.answers, *wrong)), *others],
            }
            swapped = asked_of_other(question, subject.people)
            if swapped and rng.random() < SWAPPED:
                yield {"query": swapped, "right": 0, "texts": [*(texts[at] for at in question.answers), *others]}


def main() -> None:
    """Write ``work/pairs/written.jsonl.xz``: one question a line with its candidates."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mirror", type=Path, required=True, help="folder of the fetched repositories")
    parser.add_argument("--data", type=Path, required=True, help="folder of the evaluation sets")
    options = parser.parse_args()
    windows, rng = Windows(options.data, WORK), random.Random(SEED)
    target = WORK / "pairs" / "written.jsonl.xz"
    target.parent.mkdir(parents=True, exist_ok=True)
    counts: Counter[str] = Counter()
    with lzma.open(target, "wt", encoding="utf-8", preset=6) as out:
        for kind, subjects in (("talk", talks(options.mirror)), ("chat", chats(rng)), ("prose", proses())):
            for item in groups(subjects, rng):
                shared = windows.shared(item["texts"])
                if plain(item["query"]) in windows.queries or any(shared[: item["right"]]):
                    counts["dropped"] += 1
                    continue
                for form in ("texts", "embedded"):
                    if form in item:
                        item[form] = [text for text, known in zip(item[form], shared, strict=True) if not known]
                out.write(json.dumps({"kind": kind, **item}, ensure_ascii=False) + "\n")
                counts[kind] += 1
                counts[f"{kind}: candidates"] += len(item["texts"])
                counts[f"{kind}: nothing answers"] += not item["right"]
    (WORK / "written.json").write_text(json.dumps(counts, indent=1) + "\n")
    print(json.dumps(counts, indent=1))


if __name__ == "__main__":
    main()
