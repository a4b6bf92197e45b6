"""``trivet delete`` and ``trivet forget``."""

from __future__ import annotations

import os
import pty
import subprocess
import time

import pytest


@pytest.fixture
def three(cli) -> None:
    for number, text in enumerate(("one apple", "two pears", "three plums")):
        cli("add", text, "--id", str(number), "--meta", f"n={number}")
    cli("feedback", "which fruit", "0")


def test_forget_by_id_takes_the_feedback_too(cli, three) -> None:
    assert cli("forget", "0", "--json").json == {"forgotten": 1, "missing": [], "compacted": None}
    assert cli("feedback", "--list", "--json").json == []
    missing = cli("forget", "0")
    assert missing.code == 1 and "document '0' not found" in missing.err
    assert "trivet compact" in cli("forget", "1").out


def test_forget_by_filter_asks_first_and_erases_at_once(cli, three) -> None:
    assert cli("forget", "--where", "n>=1").code == 2
    found = cli("forget", "--where", "n>=1", "--yes", "--compact", "--json").json
    assert found["forgotten"] == 2 and found["compacted"]["pruned"] == 2
    assert cli("stats", "--json").json["documents"] == 1


@pytest.mark.parametrize("wrong", [(), ("0", "--expired"), ("0", "--where", "n=1")])
def test_forget_wants_one_way_to_choose(cli, three, wrong: tuple[str, ...]) -> None:
    assert cli("forget", *wrong).code == 2


def test_what_expires_is_shown_and_forgotten(cli, three) -> None:
    assert cli("add", "four", "--id", "4", "--expires", "2100-01-01").code == 0
    assert "2100-01-01" in cli("get", "4").out
    assert cli("add", "five", "--expires", "soon").code == 2
    cli("add", "six", "--id", "6", "--expires", str(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 5))))
    assert cli("get", "6").code == 1
    # another command may have deleted it before
    assert cli("forget", "--expired", "--json").json["forgotten"] in (0, 1)
    assert cli("stats", "--json").json["documents"] == 4


def test_delete_by_id_names_the_missing(cli) -> None:
    cli("add", "x", "--id", "a")
    cli("add", "y", "--id", "b")
    assert cli("delete", "a").out == "deleted 1 document\n"
    ran = cli("delete", "a", "b", "--json")
    assert (ran.code, ran.json) == (1, {"deleted": 1, "missing": ["a"]})


def test_delete_by_filter_never_asks_a_pipe(cli) -> None:
    for number in range(3):
        cli("add", f"text {number}", "--meta", f"n={number}")
    refused = cli("delete", "--where", "n>=1")
    assert refused.code == 2
    assert "2 documents would be deleted; add --yes" in refused.err
    assert cli("delete", "--where", "n>=1", "--yes", "--json").json == {"deleted": 2, "missing": []}
    assert cli("delete", "--where", "n=2").out == "deleted 0 documents\n"


def test_delete_by_filter_asks_a_terminal(cli, command: list[str]) -> None:
    cli("add", "x", "--id", "a", "--meta", "n=1")
    for answer, code in ((b"n\n", 1), (b"y\n", 0)):
        ours, theirs = pty.openpty()
        os.write(ours, answer)
        asking = [*command, "delete", "--where", "n=1"]
        done = subprocess.run(asking, stdin=theirs, capture_output=True, timeout=60, check=False)
        os.close(ours)
        os.close(theirs)
        assert done.returncode == code, done.stderr
        assert b"Delete 1 document?" in done.stderr
        assert b"Traceback" not in done.stderr
    assert cli("get", "a").code == 1


def test_delete_wants_one_way(cli) -> None:
    cli("add", "x")
    assert cli("delete").code == 2
    assert cli("delete", "a", "--where", "n=1").code == 2
