from __future__ import annotations

import pytest

from trivet.errors import InputError
from trivet.models.address import Address, parse_address, with_path

OPTIONS = {"batch": int, "api": ("one", "two")}


def parsed(url: str) -> Address:
    return parse_address("scorer", url, url, OPTIONS, "A_KEY", "http://HOST/v1")


def test_our_options_are_taken_out_and_the_others_stay() -> None:
    assert parsed("https://h:8/v1/?batch=3&api-version=2&api=two#m") == Address(
        "https://h:8/v1?api-version=2", "m", {"batch": 3, "api": "two"}
    )


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ftp://h/v1", "scorer 'ftp://h/v1': write a URL, as in 'http://HOST/v1'"),
        ("http:///v1", "write a URL"),
        ("ftp://u:secret@h", "must not hold a password: put the key in A_KEY"),
        ("http://h?auth_TOKEN=secret", "must not hold a key or token: put it in A_KEY"),
        ("http://h?api=three", "api='three' is not known; known: one, two"),
        ("http://h?batch=-1", "option batch='-1' must be a number above 0"),
        ("http://h?batch=many", "option batch='many' must be a number above 0"),
    ],
)
def test_a_wrong_address_is_refused_without_its_secret(url: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parsed(url)
    assert message in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["http://h/v1", "http://h/v1/", "http://h/v1/embeddings", "http://h/v1/embeddings/"])
def test_the_base_may_be_written_with_its_path(url: str) -> None:
    assert with_path(url, "/embeddings") == "http://h/v1/embeddings"


def test_a_path_is_not_added_behind_another_version_of_it() -> None:
    assert with_path("http://h/v1/rerank?a=1", "/v2/rerank", "/rerank") == "http://h/v1/rerank?a=1"
