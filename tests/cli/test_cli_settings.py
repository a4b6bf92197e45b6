"""``trivet settings`` and ``trivet profiles``."""

from __future__ import annotations

import tomllib

import pytest

from trivet.profile import PROFILES


@pytest.fixture
def three(cli) -> None:
    for number, text in enumerate(("one apple", "two pears", "three plums")):
        cli("add", text, "--id", str(number))


def test_settings_are_toml_with_their_identity(cli, three) -> None:
    out = cli("settings").out
    assert out.startswith("# default#")
    assert tomllib.loads(out)["weights"] == dict(PROFILES["default"].weights)


def test_settings_change_for_good(cli, three) -> None:
    changed = cli("settings", "--set", "weights.dense=2", "--set", "rrf_k=5", "--json").json
    assert (changed["weights"]["dense"], changed["rrf_k"]) == (2.0, 5.0)
    assert cli("settings", "--json").json == changed
    from_profile = cli("settings", "--profile", "memories", "--set", "k=3", "--json").json
    assert (from_profile["name"], from_profile["k"], from_profile["fusion"]) == ("memories", 3, "rrf")
    assert cli("search", "apple", "--json").json["profile"].startswith("memories#")


@pytest.mark.parametrize("change", ["profile=x", "k=many", "weights.smell=1", "k", "weights.dense=99"])
def test_wrong_settings_change_nothing(cli, three, change: str) -> None:
    before = cli("settings", "--json").json
    assert cli("settings", "--set", change).code == 2
    assert cli("settings", "--json").json == before


def test_profiles(cli) -> None:
    out = cli("profiles").out
    assert all(f"\n{profile.identity}" in out for profile in PROFILES.values())
    assert [item["name"] for item in cli("profiles", "--json").json] == list(PROFILES)
    assert tomllib.loads(cli("profiles", "chunks").out)["gates"] == {"trigram": 0.3}
    assert cli("profiles", "chunks", "--json").json["identity"] == PROFILES["chunks"].identity
    assert cli("profiles", "nope").code == 2


def test_changes_are_shown_and_undone(cli, three) -> None:
    assert cli("history").out == "the settings were never changed\n"
    first = cli("settings", "--set", "weights.dense=2", "--set", "rerankers=exact", "--json").json
    cli("settings", "--set", "k=3")
    lines = cli("history").out.splitlines()
    assert [line.split()[0] for line in lines] == ["change", "2", "1"]
    assert lines[1].endswith("k=3") and lines[2].endswith("weights.dense=2.0 rerankers=exact")
    (last,) = cli("history", "-n", "1", "--json").json
    assert (last["number"], last["settings"]["k"], last["previous"]["k"]) == (2, 3, 10)
    assert cli("revert", "--json").json == first
    assert cli("settings", "--json").json == first
    assert cli("revert", "--to", "0", "--json").json["weights"] == dict(PROFILES["default"].weights)
    assert cli("history", "--json").json[0]["by"] == "trivet revert"


@pytest.mark.parametrize(("flags", "code"), [((), 1), (("--to", "7"), 1), (("--to", "-1"), 2)])
def test_there_is_nothing_to_undo(cli, three, flags: tuple[str, ...], code: int) -> None:
    ran = cli("revert", *flags)
    assert (ran.code, len(ran.err.splitlines())) == (code, 1)
