"""``trivet list`` and ``trivet collections``."""

from __future__ import annotations

import pytest


@pytest.fixture
def three(cli) -> None:
    for number, text in enumerate(("one apple", "two pears", "three plums")):
        cli("add", text, "--id", f"n{number}", "--meta", f"path=fruit/{number}", "--created", f"2026-03-0{number + 1}")


def test_the_newest_documents_first(cli, three) -> None:
    lines = [line.split() for line in cli("list").out.splitlines()]
    assert lines == [
        ["id", "created", "kind", "title"],
        ["n2", "2026-03-03", "note", "three", "plums"],
        ["n1", "2026-03-02", "note", "two", "pears"],
        ["n0", "2026-03-01", "note", "one", "apple"],
    ]
    assert [one["id"] for one in cli("list", "-n", "2", "--json").json] == ["n2", "n1"]


def test_a_filter_and_the_text_on_request(cli, three) -> None:
    (lean,) = cli("list", "-w", "path^=fruit/1", "--json").json
    assert (lean["id"], lean["meta"], "text" in lean) == ("n1", {"path": "fruit/1"}, False)
    (whole,) = cli("list", "-w", "path*=/1", "--json", "--full").json
    assert whole == {**lean, "text": "two pears"}
    assert cli("list", "-w", "path=nowhere").out == "no documents\n"


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("-n", "0"), "limit: 0"),
        (("--full",), "add --json"),
        (("-w", "colour=red"), "no document has a field 'colour'"),
    ],
)
def test_wrong_calls(cli, three, flags: tuple[str, ...], told: str) -> None:
    ran = cli("list", *flags)
    assert (ran.code, told in ran.err) == (2, True)


def test_the_collections_of_a_store(cli, three) -> None:
    cli("add", "four", "-c", "other", "--embedder", "none")
    found = cli("collections", "--json").json
    assert [(one["collection"], one["documents"], one["passages"]) for one in found] == [
        ("default", 3, 3),
        ("other", 1, 1),
    ]
    assert found[0]["model"] and found[1]["model"] is None
    assert [line.split()[0] for line in cli("collections").out.splitlines()] == ["collection", "default", "other"]
    missing = cli("collections", "-s", "nowhere.db")
    assert (missing.code, "there is no file 'nowhere.db'" in missing.err) == (1, True)
