"""The demo collection is consistent: links, dates, duplicates and judgements."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime
from difflib import SequenceMatcher
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from trivet import data

NOTES = data.notes()
QUESTIONS = data.questions()
BY_ID = {note["id"]: note for note in NOTES}

KINDS = {"note", "decision", "incident", "snippet", "episode", "meeting", "person"}
LINKS = {"supersedes", "resolved-by", "part-of", "see-also"}
TYPES = {"exact", "paraphrase", "multi-hop", "temporal", "typo", "code", "language", "unanswerable"}
FIELDS = {"id", "title", "text", "kind", "meta", "importance", "created", "links"}
NEAR_DUPLICATES = [
    ("note-gateway-mounting-height", "note-gateway-mounting-height-2"),
    ("note-dipper-calibration", "note-dipper-calibration-copy"),
    ("note-office-wifi", "note-office-wifi-again"),
    ("note-thionyl-shipping", "note-battery-shipping-2"),
    ("note-par-sensor-cleaning", "note-par-cleaning-2"),
    ("note-humidity-sensor-fumes", "note-sulphur-2"),
]


def links(type_: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return [(note, BY_ID[link["target"]]) for note in NOTES for link in note["links"] if link["type"] == type_]


def squashed(text: str) -> str:
    return " ".join(text.lower().split())


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def passes(note: dict[str, Any], where: dict[str, Any]) -> bool:
    return all((note["kind"] if key == "kind" else note["meta"].get(key)) == value for key, value in where.items())


def test_ids_are_unique_readable_slugs() -> None:
    assert len(BY_ID) == len(NOTES)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", id_) for id_ in BY_ID)


def test_a_note_has_its_fields() -> None:
    for note in NOTES:
        assert set(note) == FIELDS, note["id"]
        assert note["title"].strip(), note["id"]
        assert note["text"].strip(), note["id"]
        assert note["kind"] in KINDS, note["id"]
        assert 0.0 <= note["importance"] <= 1.0, note["id"]
        assert all(note["meta"][key] for key in ("project", "author", "tags")), note["id"]
        created = datetime.fromisoformat(note["created"])
        assert datetime(2025, 3, 1, tzinfo=UTC) <= created < datetime(2026, 4, 1, tzinfo=UTC), note["id"]


def test_notes_come_oldest_first() -> None:
    assert [note["created"] for note in NOTES] == sorted(note["created"] for note in NOTES)


def test_every_link_leads_to_another_note() -> None:
    for note in NOTES:
        targets = [(link["target"], link["type"]) for link in note["links"]]
        assert len(set(targets)) == len(targets), note["id"]
        for target, type_ in targets:
            assert target in BY_ID, note["id"]
            assert target != note["id"]
            assert type_ in LINKS, note["id"]


def test_a_decision_supersedes_an_older_one() -> None:
    pairs = links("supersedes")
    assert len(pairs) >= 10
    for new, old in pairs:
        assert new["kind"] == old["kind"] == "decision"
        assert new["created"] > old["created"]
        assert (new["meta"]["status"], old["meta"]["status"]) == ("active", "superseded")
    superseded = {note["id"] for note in NOTES if note["meta"].get("status") == "superseded"}
    assert superseded == {old["id"] for _, old in pairs}


def test_every_incident_has_a_severity_and_a_cure() -> None:
    cured = {incident["id"] for incident, _ in links("resolved-by")}
    for note in NOTES:
        if note["kind"] == "incident":
            assert note["meta"]["severity"] in {1, 2, 3, 4, 5}
            assert note["id"] in cured


def test_an_episode_is_an_exchange_in_a_session() -> None:
    for note in NOTES:
        if note["kind"] == "episode":
            assert note["meta"]["session"]
            assert note["text"].startswith("User: ")
            assert "\nAssistant: " in note["text"]


def test_the_collection_has_the_promised_variety() -> None:
    kinds = Counter(note["kind"] for note in NOTES)
    assert set(kinds) == KINDS
    assert min(kinds.values()) >= 20
    lengths = [len(note["text"].split()) for note in NOTES]
    assert 8 <= sum(length >= 600 for length in lengths) <= 12
    assert sum(length <= 15 for length in lengths) >= 5
    assert Counter(note["meta"]["lang"] for note in NOTES if "lang" in note["meta"]) == dict.fromkeys(
        ("de", "fr", "es", "zh", "ja", "ko"), 2
    )


def test_three_pairs_differ_in_case_and_space_only() -> None:
    texts = Counter(squashed(note["text"]) for note in NOTES)
    assert sorted(count for count in texts.values() if count > 1) == [2, 2, 2]
    assert len({note["text"] for note in NOTES}) == len(NOTES)


@pytest.mark.parametrize(("one", "other"), NEAR_DUPLICATES)
def test_near_duplicates_are_near_and_not_equal(one: str, other: str) -> None:
    left, right = words(BY_ID[one]["text"]), words(BY_ID[other]["text"])
    assert left != right
    assert len(set(left) & set(right)) / len(set(left) | set(right)) > 0.5


def test_a_question_is_judged_on_notes_its_filter_lets_through() -> None:
    for question in QUESTIONS:
        grades, where = question["relevant"], question.get("where", {})
        assert set(question) - {"where"} == {"id", "text", "type", "relevant", "split"}, question["id"]
        assert question["type"] in TYPES, question["id"]
        assert question["split"] in {"train", "test"}, question["id"]
        assert any(passes(note, where) for note in NOTES), question["id"]
        assert all(passes(BY_ID[id_], where) for id_ in grades), question["id"]
        assert set(grades.values()) <= {1, 2}, question["id"]
        assert (2 in grades.values()) == (question["type"] != "unanswerable"), question["id"]
        assert bool(grades) == (question["type"] != "unanswerable"), question["id"]


def test_no_two_questions_are_alike() -> None:
    assert len({question["id"] for question in QUESTIONS}) == len(QUESTIONS)
    for one, other in combinations(QUESTIONS, 2):
        assert SequenceMatcher(None, squashed(one["text"]), squashed(other["text"])).ratio() < 0.8, other["id"]


def test_each_type_is_split_in_halves() -> None:
    for type_ in TYPES:
        split = Counter(question["split"] for question in QUESTIONS if question["type"] == type_)
        assert min(split.values()) >= 3
        assert abs(split["train"] - split["test"]) <= 1


def test_a_paraphrase_shares_few_words_with_its_answers() -> None:
    for question in QUESTIONS:
        if question["type"] == "paraphrase":
            content = {word for word in words(question["text"]) if len(word) > 4}
            for id_, grade in question["relevant"].items():
                if grade == 2:
                    shared = content & set(words(BY_ID[id_]["title"] + " " + BY_ID[id_]["text"]))
                    assert len(shared) <= 2, (question["id"], id_, shared)


def test_the_readme_has_the_right_counts() -> None:
    text = Path(data.__file__).with_name("README.md").read_text(encoding="utf-8")
    assert f"{len(NOTES)} notes and {len(QUESTIONS)} questions" in text
    for kind, count in Counter(note["kind"] for note in NOTES).items():
        assert f"{count} `{kind}`" in text
    assert f"{len(links('supersedes'))} superseded decisions" in text
