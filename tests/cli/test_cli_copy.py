"""``trivet copy``, ``trivet backup`` and ``trivet restore``."""

from __future__ import annotations

from pathlib import Path


def test_it_copies_the_whole_store_and_says_so(cli, tmp_path: Path) -> None:
    cli("add", "one apple", "--id", "a", "--store", "here.db")
    cli("add", "two pears", "--id", "b", "--store", "here.db", "--collection", "fruit")
    ran = cli("backup", "here.db", "copy.db")
    assert (ran.code, ran.err) == (0, "")
    assert "copy.db (default, fruit); every row was checked" in ran.out
    assert cli("get", "b", "--store", "copy.db", "--collection", "fruit", "--json").json["text"] == "two pears"
    assert cli("doctor", "--store", "copy.db").code == 0


def test_json_says_where_how_large_and_what_is_in_it(cli) -> None:
    cli("add", "one apple")
    told = cli("backup", "memory.db", "copy.db", "--json").json
    assert told == {"path": "copy.db", "bytes": Path("copy.db").stat().st_size, "collections": ["default"]}


def test_what_exists_and_what_does_not_are_told_in_one_line(cli) -> None:
    cli("add", "one apple")
    Path("taken.db").write_text("something else")
    for arguments, code, told in (
        (("memory.db", "taken.db"), 2, "'taken.db' exists; a backup replaces nothing"),
        (("memory.db", "no/copy.db"), 2, "does not exist; create it first"),
        (("nothing.db", "copy.db"), 1, "there is none at 'nothing.db'; SOURCE is a store's file"),
        (("qdrant+local:there", "copy.db"), 1, "no"),
    ):
        ran = cli("backup", *arguments)
        assert ran.code == code, ran
        assert ran.err.count("\n") == 1 and told in ran.err.replace(str(Path.cwd()) + "/", ""), ran
    assert Path("taken.db").read_text() == "something else"
    assert not Path("copy.db").exists()


def test_restore_puts_a_backup_back_and_says_so(cli) -> None:
    cli("add", "one apple", "--id", "a")
    cli("backup", "memory.db", "monday.db")
    cli("add", "two pears", "--id", "b")
    ran = cli("restore", "monday.db", "memory.db")
    assert (ran.code, ran.err) == (0, "")
    assert "replaced memory.db: 1 document (default)" in ran.out and "every row was checked" in ran.out
    assert cli("get", "b").code == 1
    told = cli("restore", "monday.db", "other.db", "--json").json
    assert (told["documents"], told["collections"], told["replaced"]) == (1, ["default"], False)
    assert cli("doctor").code == 0


def test_restore_tells_what_is_wrong_in_one_line(cli) -> None:
    cli("add", "one apple")
    Path("text.db").write_text("something else")
    for arguments, code, told in (
        (("no.db", "memory.db"), 1, "there is no backup 'no.db'"),
        (("text.db", "memory.db"), 1, "is not a backup of a store"),
        (("memory.db", "memory.db"), 2, "the same file"),
    ):
        ran = cli("restore", *arguments)
        assert ran.code == code, ran
        assert ran.err.count("\n") == 1 and told in ran.err.replace(str(Path.cwd()) + "/", ""), ran
