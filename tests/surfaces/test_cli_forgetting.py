"""``trivet forget`` and ``trivet compact``."""

from __future__ import annotations

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
    assert missing.code == 1 and "there is no document '0'" in missing.err
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
    assert cli("forget", "--expired", "--json").json["forgotten"] in (0, 1)  # a search may have swept it
    assert cli("stats", "--json").json["documents"] == 4


def test_compact_tells_what_it_gave_back(cli, three) -> None:
    cli("delete", "0", "1")
    told = cli("compact", "--json").json
    assert told["pruned"] == 2 and told["bytes_after"] > 0 and told["expired"] == 0
    assert "erased" in cli("compact").out
