"""``trivet remember``."""

from __future__ import annotations


def test_a_contradiction_is_told_with_what_changed(cli) -> None:
    assert cli("remember", "Raw readings are kept for 24 months.", "--id", "m-17").out == "remembered m-17\n"
    ran = cli("remember", "Raw readings are kept for 13 months.", "--id", "m-18")
    told = 'contradicts m-17: "Raw readings are kept for 24 months." (24 → 13); suggestion: supersede'
    assert (ran.code, ran.out.splitlines(), ran.err) == (0, ["remembered m-18", told], "")
    assert cli("get", "m-17", "--json").json["text"] == "Raw readings are kept for 24 months."


def test_the_same_again_is_known(cli) -> None:
    cli("remember", "Kim lives in Oslo.", "--id", "home")
    assert cli("remember", "kim lives  in Oslo.").out == "already known as home\n"


def test_a_paraphrase_says_the_same(cli) -> None:
    cli("remember", "Priya leads the migration project.", "--id", "lead")
    ran = cli("remember", "The migration project is led by Priya.", "--id", "again")
    assert ran.out.splitlines()[1:] == [
        'says the same as lead: "Priya leads the migration project."; suggestion: update'
    ]


def test_fields_links_and_json(cli) -> None:
    cli("remember", "The gateway listens on port 8443.", "--id", "old", "--kind", "fact", "-m", "user=kim")
    new = ["remember", "The gateway listens on port 9443.", "--kind", "fact", "-m", "user=kim", "--json"]
    (similar,) = cli(*new, "--id", "new").json["similar"]
    assert (similar["id"], similar["relation"], similar["changed"]) == ("old", "contradicting", "8443 → 9443")
    assert similar["statement"] == "The gateway listens on port 8443."
    linked = cli("remember", "The gateway listens on port 7443.", "--link", "new:supersedes", "--json").json
    assert "new" not in {item["id"] for item in linked["similar"]}


def test_a_secret_is_removed_and_a_missing_text_is_named(cli) -> None:
    secret = "AKIA" + "IOSFODNN7ABCDE2Q"
    ran = cli("remember", f"the key is {secret}", "--id", "k", "--redact")
    assert ran.out.splitlines()[1].startswith("redacted ")
    assert secret not in cli("get", "k", "--json").json["text"]
    assert "text is empty" in cli("remember").err
