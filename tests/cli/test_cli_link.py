"""``trivet link``."""

from __future__ import annotations


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
