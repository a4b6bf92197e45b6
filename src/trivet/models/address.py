"""The address of a model endpoint: a URL with the model behind ``#`` and options in its query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from trivet.errors import InputError

#: A spec is stored and printed, so a query option with one of these in its name is refused.
SECRETS = ("key", "token", "secret", "password")

#: How an option is read: as a number above 0, or as one of these words.
Option = Callable[[str], int | float] | Sequence[str]


@dataclass(frozen=True, slots=True)
class Address:
    """Where an endpoint is, which model it is asked for, and the options of the spec that are ours."""

    url: str
    model: str
    options: Mapping[str, Any]


def with_path(url: str, path: str, ending: str = "") -> str:
    """Return the URL with ``path`` after it, unless it ends in ``ending`` (else ``path``) already."""
    parts = urlsplit(url)
    base = parts.path.rstrip("/")
    return urlunsplit(parts._replace(path=base if base.endswith(ending or path) else base + path))


def parse_address(role: str, spec: str, url: str, options: Mapping[str, Option], key: str, example: str) -> Address:
    """Return the address in ``url``, or raise ``InputError`` before any request is made.

    Options of the query that are not in ``options`` are the server's, such as Azure's ``api-version``, and stay in the
    URL. ``role``, ``spec``, ``key`` (an environment variable) and ``example`` are for the messages.
    """
    parts = urlsplit(url)
    if parts.username or parts.password:
        raise InputError(f"the {role}'s URL must not hold a password: put the key in {key} instead")
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    if any(word in name.lower() for name, _ in pairs for word in SECRETS):
        raise InputError(f"the {role}'s URL must not hold a key or token: put it in {key} instead")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(f"{role} {spec!r}: write a URL, as in {example!r}")
    passed_on = urlencode([(name, value) for name, value in pairs if name not in options])
    found = {name: _read(f"{role} {spec!r}", name, value, options[name]) for name, value in pairs if name in options}
    return Address(
        urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), passed_on, "")), parts.fragment, found
    )


def _read(who: str, name: str, value: str, option: Option) -> Any:
    if not callable(option):
        if value not in option:
            raise InputError(f"{who}: {name}={value!r} is not known; known: {', '.join(option)}")
        return value
    try:
        number = option(value)
    except ValueError:
        number = 0
    if not 0 < number < float("inf"):
        raise InputError(f"{who}: option {name}={value!r} must be a number above 0")
    return number
