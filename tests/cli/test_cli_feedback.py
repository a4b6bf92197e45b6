"""``trivet feedback``."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from trivet.cli import feedback


@pytest.fixture
def two(cli) -> None:
    cli("add", "the alarms stayed silent", "--id", "a")
    cli("add", "the bells rang", "--id", "b")


def test_good_is_the_default(cli, two) -> None:
    ran = cli("feedback", "why silent", "a")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "good: a for 'why silent'\n1 judged query; `trivet tune` needs about 30 to be useful\n"
    assert cli("feedback", "why silent", "b", "--good").out.startswith("good: b for")
    assert cli("feedback", "why loud", "a", "--bad").out == (
        "bad: a for 'why loud'\n2 judged queries; `trivet tune` needs about 30 to be useful\n"
    )


def test_json_says_what_was_recorded(cli, two) -> None:
    told = cli("feedback", "why silent", "a", "--bad", "--json").json
    assert datetime.fromisoformat(told.pop("at")).tzinfo is not None
    assert told == {"query": "why silent", "id": "a", "good": False, "questions": 1}


def test_a_later_verdict_replaces_the_earlier(cli, two) -> None:
    cli("feedback", "why silent", "a")
    assert cli("feedback", "why silent", "a", "--bad", "--json").json["questions"] == 1
    assert [item["good"] for item in cli("feedback", "--list", "--json").json] == [False]


def test_list(cli, two) -> None:
    assert cli("feedback", "--list").out == "no feedback\n"
    assert cli("feedback", "--list", "--json").json == []
    cli("feedback", "why silent", "a")
    cli("feedback", "why\nloud \x1b[31m", "b", "--bad")
    ran = cli("feedback", "-l")
    assert (ran.code, ran.err) == (0, "")
    head, first, second = ran.out.splitlines()
    assert head.split() == ["judgement", "document", "query", "time"]
    assert first.split()[:4] == ["good", "a", "why", "silent"]
    assert second.split()[:4] == ["bad", "b", "why", "loud"]
    assert "\x1b" not in ran.out, "no colour in a pipe, and none of the question's own"
    listed = cli("feedback", "--list", "--json").json
    assert [(item["query"], item["id"], item["good"]) for item in listed] == [
        ("why silent", "a", True),
        ("why\nloud \x1b[31m", "b", False),
    ]


def test_forget(cli, two) -> None:
    for id in ("a", "b"):
        cli("feedback", "why silent", id)
    cli("feedback", "why loud", "a")
    assert cli("feedback", "--forget", "why silent", "b").out == (
        "removed 1 judgement\n2 judged queries; `trivet tune` needs about 30 to be useful\n"
    )
    ran = cli("feedback", "--forget", "why silent", "b")
    assert ran.code == 1
    assert ran.err.startswith(
        "trivet: feedback: there is none for document 'b' and query 'why silent'; `trivet feedback --list`"
    )
    cli("feedback", "why silent", "b")
    assert cli("feedback", "--forget", "why silent", "--json").json == {"forgotten": 2, "questions": 1}
    assert cli("feedback", "why silent", "--forget").code == 1


def test_of_a_document_that_is_gone_it_can_be_taken_back(cli, two) -> None:
    cli("feedback", "why silent", "a")
    cli("delete", "a")
    assert [item["id"] for item in cli("feedback", "--list", "--json").json] == ["a"]
    assert cli("feedback", "--forget", "why silent", "a").code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        ([], 2, "give a QUERY and an ID"),
        (["q"], 2, "give a QUERY and an ID"),
        (["q", "--bad"], 2, "give a QUERY and an ID"),
        (["q", "nope"], 1, "document 'nope' not found in collection 'default'; give the id that a search shows"),
        (["", "a"], 2, "query: it is empty; give the query that was searched for"),
        ([" ", "a", "--bad"], 2, "query: it is empty"),
        (["q", " "], 2, "id: ' ' is not an id"),
        (["q", "a", "b"], 2, "See `trivet feedback --help`"),
        (["--list", "q"], 2, "--list takes no QUERY"),
        (["--list", "--bad"], 2, "--list takes no QUERY"),
        (["--list", "--forget"], 2, "--list takes no QUERY"),
        (["--forget"], 2, "--forget needs a QUERY"),
        (["--forget", "q", "--good"], 2, "leave out --good and --bad"),
        (["--forget", ""], 2, "query: it is empty"),
        (["--forget", "q"], 1, "there is none for query 'q'"),
        (["q", "a", "-c", "nowhere"], 1, "there is no 'nowhere' in"),
        (["q", "a", "-s", "nowhere.db"], 1, "there is no file 'nowhere.db'"),
    ],
)
def test_a_wrong_call_is_told_in_one_line(cli, two, arguments: list[str], code: int, told: str) -> None:
    ran = cli("feedback", *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert told in ran.err
    assert ran.err.startswith("trivet: ")
    assert ran.err.count("\n") == 1
    assert cli("feedback", "--list", "--json").json == []


def test_help_says_which_is_the_default(cli) -> None:
    out = " ".join(cli("feedback", "--help").out.replace("│", " ").split())
    assert "--good --bad" in out
    assert "Default: good" in out


def test_of_one_collection(cli) -> None:
    cli("add", "x", "--id", "a", "-c", "one")
    cli("add", "x", "--id", "a", "-c", "two")
    cli("feedback", "q", "a", "-c", "one")
    assert len(cli("feedback", "--list", "--json", "-c", "one").json) == 1
    assert cli("feedback", "--list", "--json", "-c", "two").json == []


def test_thousands_are_told_with_a_comma() -> None:
    assert feedback._status(1234).startswith("1,234 judged queries")


class TestTransfer:
    def test_an_export_carries_it(self, cli, two) -> None:
        cli("feedback", "why silent", "a", "--bad")
        cli("feedback", "why loud", "b")
        assert cli("export", "out.jsonl").out == "wrote 2 documents to out.jsonl\n"
        ran = cli("import", "out.jsonl", "-s", "copy.db")
        assert ran.out.startswith("2 added · 0 updated · 0 unchanged · 0 skipped · 2 feedback  →  ")
        listed = cli("feedback", "--list", "--json").json
        assert cli("feedback", "--list", "--json", "-s", "copy.db").json == listed
        again = cli("import", "out.jsonl", "-s", "copy.db", "--json").json
        assert (again["unchanged"], again["feedback"]) == (2, 0)
        assert cli("export", "-", "-s", "copy.db").out.splitlines()[1:] == cli("export", "-").out.splitlines()[1:]

    def test_through_a_pipe(self, cli, two) -> None:
        cli("feedback", "why silent", "a")
        cli("import", "-", "-s", "copy.db", piped=cli("export", "-").out)
        assert [item["query"] for item in cli("feedback", "--list", "--json", "-s", "copy.db").json] == ["why silent"]

    def test_a_broken_line_does_not_spoil_the_others(self, cli, clean_place: Path) -> None:
        good = {"query": "q", "id": "not here", "good": True, "at": "2026-03-01T12:00:00Z"}
        lines = [
            {"feedback": good},
            {"feedback": {**good, "good": "yes"}},
            {"feedback": good, "id": "a"},
            {"feedback": [1]},
            {"id": "a", "text": "x"},
            {"feedback": {**good, "query": "other"}},
        ]
        (clean_place / "in.jsonl").write_text("\n".join(map(json.dumps, lines)))
        ran = cli("import", "in.jsonl")
        assert ran.code == 2
        assert ran.out.startswith("1 added · 0 updated · 0 unchanged · 0 skipped · 2 feedback · 3 broken  →  ")
        assert [line.removeprefix("trivet: ") for line in ran.err.splitlines()] == [
            "in.jsonl line 2: feedback: good: 'yes' is not True (a good answer) or False (a bad one)",
            "in.jsonl line 3: feedback: unknown field 'id' beside it; a line holds one feedback or one document",
            "in.jsonl line 4: feedback: list is not a mapping or a Feedback",
        ]
        assert [item["query"] for item in cli("feedback", "--list", "--json").json] == ["q", "other"]
