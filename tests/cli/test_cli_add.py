"""``trivet add``."""

from __future__ import annotations

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


def test_secrets_are_taken_out_and_counted(cli) -> None:
    secret = "AKIA" + "Q2W3E4R5T6Y7U2I3"
    ran = cli("add", f"the key is {secret}", "--id", "a", "--meta", f"old={secret}", "--redact")
    assert ran.out == "added a\nredacted 2 × api key\n"
    assert secret not in cli("get", "a", "--json").out
    assert cli("add", "nothing secret", "--id", "b", "--redact", "--json").json["redacted"] == {}


def test_front_matter_of_a_text_in_a_pipe(cli) -> None:
    cli("add", "The hatch.", "--id", "hatch")
    text = "---\nid: side\ntitle: Side door\ntags: wet\nkind: decision\n---\nLift it; see [[hatch]] and [[nowhere]].\n"
    assert cli("add", "--markdown", "--kind", "note", "--meta", "floor=1", piped=text).out == "added side\n"
    found = cli("get", "side", "--json").json
    assert (found["title"], found["kind"]) == ("Side door", "note"), "an option overrides the front matter"
    assert found["meta"] == {"tags": ["wet"], "floor": 1}
    assert [link["target"] for link in found["links"]] == ["hatch"]
    ran = cli("add", "--markdown", piped="---\na: b: c\n---\nx")
    assert ran.code == 2
    assert ran.err.startswith("trivet: text line 2: front matter: ")
    assert cli("add", "--id", "plain", piped=text).code == 0
    assert cli("get", "plain", "--json").json["text"] == text, "only with --markdown"
