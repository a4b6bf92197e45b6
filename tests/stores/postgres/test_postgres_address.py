"""The address of a store on a server reaches it from the command line as it was given."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from command_line import Ran, clean_place, cli, vectors  # noqa: F401
from servers import Postgres

pytestmark = pytest.mark.usefixtures("clean_place")


def without_a_host(url: str) -> str:
    """Return the same address with its host among the options, as that of a socket is written."""
    parts = urlsplit(url)
    return f"postgresql://{parts.path}?host={parts.hostname}&port={parts.port}&user={parts.username}&{parts.query}"


@pytest.mark.parametrize("form", [str, without_a_host])
def test_every_command_reaches_the_server_that_is_named(cli, postgres: Postgres, form) -> None:  # noqa: F811
    url = form(postgres.fresh())
    added: Ran = cli("add", "a heron", "--id", "a", "-s", url)
    assert added.code == 0, added.err
    assert cli("search", "heron", "-s", url, "--json").json["hits"][0]["id"] == "a"
    checked: Ran = cli("serve", "--check", "--port", "0", "-s", url)
    assert checked.code == 0 and "1 collection on the server" in checked.out, checked.err
    postgres.sweep()


def test_no_command_shows_a_password(cli, postgres: Postgres) -> None:  # noqa: F811
    url = postgres.fresh(password="hush")
    cli("add", "a heron", "-s", url)
    for command in ("settings", "doctor"):
        ran: Ran = cli(command, "-s", url)
        assert ran.code == 0 and "hush" not in ran.out + ran.err
    postgres.sweep()
