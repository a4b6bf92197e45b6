"""Are single documents put in, read, taken out and connected as asked?"""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path


def test_add_makes_the_store_and_tells_the_id(cli, clean_place: Path) -> None:
    ran = cli("add", "the gateway reboots", "--id", "n1")
    assert (ran.code, ran.out, ran.err) == (0, "added n1\n", "")
    assert (clean_place / "memory.db").exists()
    assert cli("add", "the gateway reboots", "--id", "n1").out == "unchanged n1\n"
    assert cli("add", "the gateway reboots often", "--id", "n1").out == "updated n1\n"


def test_every_field_arrives(cli) -> None:
    cli("add", "target", "--id", "other")
    fields = [
        "--id",
        "n1",
        "--title",
        "A title",
        "--kind",
        "decision",
        "--importance",
        "0.9",
        "--created",
        "2024-05-06",
    ]
    meta = ["--meta", "year=2020", "--meta", "ok=true", "--meta", "tags=a", "--meta", "tags=b", "--meta", 'code="007"']
    assert cli("add", "body", *fields, *meta, "--link", "other:part-of", "--link", "gone").code == 0
    found = cli("get", "n1", "--json").json
    assert found["text"] == "body"
    assert (found["title"], found["kind"], found["importance"]) == ("A title", "decision", 0.9)
    assert found["created"].startswith("2024-05-06")
    assert found["meta"] == {"year": 2020, "ok": True, "tags": ["a", "b"], "code": "007"}
    assert {(link["target"], link["type"]) for link in found["links"]} == {("other", "part-of"), ("gone", "see-also")}


def test_text_comes_from_a_pipe(cli) -> None:
    assert cli("add", "--id", "a", piped="from a pipe").code == 0
    assert cli("add", "-", "--id", "b", piped="also").code == 0
    assert cli("get", "a", "--json").json["text"] == "from a pipe"
    assert cli("get", "b", "--json").json["text"] == "also"


def test_nothing_to_add_is_a_wrong_call(cli) -> None:
    ran = cli("add")
    assert ran.code == 2
    assert "text is empty" in ran.err


def test_json_of_add(cli) -> None:
    assert cli("add", "x", "--id", "n1", "--json").json == {"id": "n1", "result": "added", "pending": 0}


def test_a_pair_without_equals_is_named(cli) -> None:
    ran = cli("add", "x", "--meta", "year")
    assert ran.code == 2
    assert "--meta: 'year' is not key=value" in ran.err


def test_get_gives_the_text_back_as_it_is(cli) -> None:
    cli("add", "first line\nsecond \x1b[31mline", "--id", "n1")
    ran = cli("get", "n1")
    assert ran.code == 0
    assert ran.out.startswith("id ")
    assert "first line\nsecond \x1b[31mline\n" in ran.out


def test_get_of_nothing(cli) -> None:
    cli("add", "x")
    ran = cli("get", "nope")
    assert ran.code == 1
    assert ran.err.startswith("trivet: id: there is no document 'nope'")


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
    assert "2 documents would go; add --yes" in refused.err
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


def test_links(cli) -> None:
    cli("add", "x", "--id", "a")
    cli("add", "y", "--id", "b")
    made = cli("link", "a", "b", "--type", "supersedes", "--weight", "0.5", "--json").json
    assert made == {"source": "a", "target": "b", "type": "supersedes", "weight": 0.5}
    assert cli("link", "--list", "b").out == "a —supersedes→ b  0.5\n"
    assert cli("link", "--list", "b", "--json").json == [made]
    assert cli("link", "a", "b", "-t", "supersedes", "--remove").out == "removed\n"
    assert cli("link", "a", "b", "-t", "supersedes", "--remove").code == 1
    assert cli("link", "--list", "b").out == "no links\n"
    assert cli("link", "--list", "b", "--json").json == []


def test_link_refusals(cli) -> None:
    cli("add", "x", "--id", "a")
    assert cli("link", "a", "nope").code == 1
    assert cli("link", "a").code == 2
    assert cli("link", "a", "--list", "a").code == 2
    assert cli("link", "--list", "nope").code == 1


def test_secrets_are_taken_out_and_counted(cli) -> None:
    secret = "AKIA" + "Q2W3E4R5T6Y7U2I3"
    ran = cli("add", f"the key is {secret}", "--id", "a", "--meta", f"old={secret}", "--redact")
    assert ran.out == "added a\ntaken out: 2 × api key\n"
    assert secret not in cli("get", "a", "--json").out
    assert cli("add", "nothing secret", "--id", "b", "--redact", "--json").json["redacted"] == {}


def test_front_matter_of_a_text_in_a_pipe(cli) -> None:
    cli("add", "The hatch.", "--id", "hatch")
    text = "---\nid: side\ntitle: Side door\ntags: wet\nkind: decision\n---\nLift it; see [[hatch]] and [[nowhere]].\n"
    assert cli("add", "--markdown", "--kind", "note", "--meta", "floor=1", piped=text).out == "added side\n"
    found = cli("get", "side", "--json").json
    assert (found["title"], found["kind"]) == ("Side door", "note"), "a flag goes before"
    assert found["meta"] == {"tags": ["wet"], "floor": 1}
    assert [link["target"] for link in found["links"]] == ["hatch"]
    ran = cli("add", "--markdown", piped="---\na: b: c\n---\nx")
    assert ran.code == 2
    assert ran.err.startswith("trivet: text line 2: front matter: ")
    assert cli("add", "--id", "plain", piped=text).code == 0
    assert cli("get", "plain", "--json").json["text"] == text, "only where it is asked for"
