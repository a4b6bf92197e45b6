"""``trivet redistribute``."""

from __future__ import annotations

from servers import Postgres, postgres

__all__ = ["postgres"]


def test_it_moves_a_collection_and_says_how_large_it_is(cli, postgres: Postgres) -> None:
    url = postgres.fresh()
    cli("add", "one apple", "--id", "a", "--store", url)
    told = cli("redistribute", "--store", url, "--json").json
    assert told.pop("seconds") >= 0
    assert told == {"collection": "default", "by": "documents", "moved": True, "documents": 1, "passages": 1}
    assert cli("search", "apple", "--store", url, "--json").json["hits"][0]["id"] == "a"
    assert cli("redistribute", "-s", url).out == "default was distributed by documents already: 1 document, 1 passage\n"
    back = cli("redistribute", "-s", url, "--by", "collections")
    assert back.code == 0 and back.out.startswith(
        "default is distributed by collections now: 1 document, 1 passage, in"
    )
    assert cli("doctor", "--store", url).code == 0
    postgres.sweep()


def test_what_cannot_be_divided_is_told_in_one_line(cli) -> None:
    cli("add", "one apple")
    for arguments, code, told in (
        ((), 2, "a file is not divided; it is for a collection on a PostgreSQL server"),
        (("--by", "rows"), 2, "by: 'rows' is unknown; known: documents, collections"),
        (("-c", "fruit"), 1, "there is no 'fruit'"),
        (("-s", "nothing.db"), 1, "there is no file 'nothing.db'"),
    ):
        ran = cli("redistribute", *arguments)
        assert ran.code == code and told in ran.err and ran.err.count("\n") == 1, ran
