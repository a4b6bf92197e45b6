"""Host and Origin: requests from this machine and from allowed sites are accepted, others refused."""

from __future__ import annotations

import pytest

from trivet.http import hosts


def headers(**named: str | list[str]) -> list[tuple[bytes, bytes]]:
    return [
        (name.encode(), value.encode("latin-1"))
        for name, values in named.items()
        for value in ([values] if isinstance(values, str) else values)
    ]


@pytest.mark.parametrize(
    "host",
    [
        "localhost", "LOCALHOST", "localhost.", "localhost:1", "localhost.:65535", "127.0.0.1", "127.8.9.255:8787",
        "[::1]", "[::1]:80",
    ],
)  # fmt: skip
def test_names_of_this_machine(host: str) -> None:
    assert hosts.checked_host(headers(host=host)) is not None


@pytest.mark.parametrize(
    "host",
    [
        "", " ", "127.1", "0x7f000001", "2130706433", "0177.0.0.1", "127.0.0.01", "127.0.0.256", "0.0.0.0", "[::]",
        "::1", "[::1]evil.com", "[::1].evil.com", "[::1].", "[::ffff:127.0.0.1]", "[0:0:0:0:0:0:0:1]", "[::1%lo]",
        "localhost.evil.com", "127.0.0.1.evil.com", "evil.com", "evillocalhost", "localhost..", ".localhost",
        "localhost:", "localhost:0", "localhost:65536", "localhost:-1", "localhost:80:80", "localhost:80@evil.com",
        "evil.com@localhost", "localhost/evil", "localhost,evil.com", "localhost evil.com", "localhost\t",
        "xn--localhost", "\xb9localhost", "127.0.0.1\xa0", "127.0.0.\xb9", "localhost:\xb2", "localhost\n",
    ],
)  # fmt: skip
def test_names_of_others(host: str) -> None:
    assert hosts.checked_host(headers(host=host)) is None


def test_a_host_is_named_once() -> None:
    assert hosts.checked_host([]) is None
    assert hosts.checked_host(headers(host=["localhost", "localhost"])) is None
    assert hosts.checked_host(headers(host=["localhost", "evil.com"])) is None


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://127.0.0.1:8787", "127.0.0.1:8787"), ("HTTP://LOCALHOST:8787", "localhost:8787"),
        ("http://127.0.0.1", "127.0.0.1:80"), ("http://127.0.0.1:80", "127.0.0.1"), ("https://a.example", "a.example"),
        ("https://a.example:443", "A.example."), ("http://[::1]:8787", "[::1]:8787"),
    ],
)  # fmt: skip
def test_a_page_of_the_same_origin(origin: str, host: str) -> None:
    assert not hosts.is_foreign(headers(host=host, origin=origin))


@pytest.mark.parametrize(
    "origin",
    [
        "", "null", "NULL", "*", "http://127.0.0.1", "http://127.0.0.1:8788", "https://127.0.0.1", "http://localhost:8787",
        "http://127.0.0.1:8787.evil.com", "http://127.0.0.1:8787@evil.com", "http://evil.com#127.0.0.1:8787",
        "http://evil.com/127.0.0.1:8787", "http://127.0.0.1:8787/", "file://127.0.0.1:8787", "127.0.0.1:8787",
        "ftp://127.0.0.1:8787", "moz-extension://127.0.0.1:8787", "http://127.0.0.1:8787, http://evil.com",
    ],
)  # fmt: skip
def test_a_page_of_another_origin(origin: str) -> None:
    assert hosts.is_foreign(headers(host="127.0.0.1:8787", origin=origin))
    assert hosts.is_foreign(headers(host="127.0.0.1:8787", origin=origin), ["https://app.example.com"])


def test_origins_that_are_allowed() -> None:
    allowed = ["https://App.example.com"]
    assert not hosts.is_foreign(headers(host="127.0.0.1", origin="https://app.example.com:443"), allowed)
    assert hosts.is_foreign(headers(host="127.0.0.1", origin="http://app.example.com"), allowed)
    assert hosts.is_foreign(headers(host="127.0.0.1", origin=["https://app.example.com"] * 2), allowed)
    assert not hosts.is_foreign(headers(host="127.0.0.1", origin="null"), ["*"])
    assert hosts.is_foreign(headers(host="127.0.0.1", origin=["http://127.0.0.1"] * 2), ["*"])
    assert not hosts.is_foreign(headers(host="127.0.0.1")), "a program names none"
