"""How is the service set up?

One rule, said by ``trivet config``: a flag wins over the environment (``TRIVET_…``), the environment over the TOML
file, the file over the default. Every value remembers where it came from.
"""

from __future__ import annotations

import ipaddress
import json
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from trivet.errors import InputError
from trivet.surfaces import hosts

FILE = "trivet.toml"  # read from the current folder where no other is named
FILE_VARIABLE = "TRIVET_CONFIG"
RULE = "a flag wins over the environment, the environment over the TOML file, the file over the default"


@dataclass(frozen=True, slots=True)
class Config:
    """What a server needs to know; ``HELP`` says what each is, and docs/HTTP.md what it allows."""

    store: str = "memory.db"
    collection: str = "default"
    embedder: str = "builtin"
    scorer: str = "none"
    host: str = "127.0.0.1"
    port: int = 8787
    workers: int = 1
    threads: int = 8
    require_key: bool = False
    cors_origins: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    max_body_bytes: int = 16_000_000
    max_batch: int = 1_000
    max_filter_depth: int = 10
    max_waiting: int = 256
    max_imports: int = 2
    max_chats: int = 16
    body_seconds: float = 60.0
    request_seconds: float = 30.0
    drain_seconds: float = 20.0
    log_level: str = "info"
    log_format: str = "json"
    evaluations: str = ""
    chat: Mapping[str, Any] = field(default_factory=dict)

    @property
    def loopback(self) -> bool:
        return is_loopback(self.host)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Config:
        plain: dict[str, Any] = json.loads(text)
        lists = {name: tuple(plain[name]) for name in ("cors_origins", "allowed_hosts")}
        return cls(**{**plain, **lists})


HELP = {
    "store": "the store's file; made if it is new",
    "collection": "the one that routes without a collection in their path mean; made if it is new",
    "embedder": "the model of new collections: builtin, none, folder:PATH, http://HOST/v1#MODEL; never from a request",
    "scorer": "asked by the reranker cross_encoder: none, folder:PATH, http://HOST/rerank; never from a request",
    "host": "the address to listen on; anything but this machine's own needs a key",
    "port": "the port to listen on; 0 picks a free one",
    "workers": "processes on the one store",
    "threads": "calls of the engine at a time, in each process",
    "require_key": "ask for a key even on this machine and even if there is none yet",
    "cors_origins": "web origins that browsers may ask from; none by default",
    "allowed_hosts": "names that a request's Host may have beside this machine's own; for a proxy that passes its own",
    "max_body_bytes": "the largest body (413); an import may be longer, but not one of its lines",
    "max_batch": "documents in one request (413); an import takes any number",
    "max_filter_depth": "levels of a nested filter (422)",
    "max_waiting": "requests that wait for a thread (429 beyond)",
    "max_imports": "imports at a time, in each process (429 beyond)",
    "max_chats": "answers of the chat endpoint waited for at a time, in each process (429 beyond)",
    "body_seconds": "what a body may take to arrive, and an import's next piece (408)",
    "request_seconds": "what a request may take once its body is here (504)",
    "drain_seconds": "what requests in hand are given to end at shutdown",
    "log_level": "debug, info, warning or error",
    "log_format": "json (a line an event) or text",
    "evaluations": "a folder of `trivet eval --save`, shown on the page; what is evaluated there is saved to it",
    "chat": "the [chat] table of the file; docs/CHAT.md has its fields and their variables",
}


def is_loopback(host: str) -> bool:
    """Only addresses that cannot be reached from elsewhere; a name other than localhost may lead anywhere."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Sourced:
    """One value and where it came from."""

    name: str
    value: Any
    source: str


def resolve(
    flags: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    file: str | Path | None = None,
) -> tuple[Config, list[Sourced]]:
    """The configuration in force; ``flags`` that are None were not given."""
    environment = os.environ if environment is None else environment
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    table, path = _table(file, environment)
    found: list[Sourced] = []
    for item in fields(Config):
        variable = f"TRIVET_{item.name.upper()}"
        if item.name in given:
            value, source = given[item.name], f"--{item.name.replace('_', '-')}"
        elif environment.get(variable):
            value, source = environment[variable], variable
        elif item.name in table:
            value, source = table[item.name], str(path)
        else:
            default = item.default if item.default_factory is MISSING else item.default_factory()
            value, source = default, "default"
        found.append(Sourced(item.name, _checked(item.name, value, source), source))
    return Config(**{one.name: one.value for one in found}), found


def _table(file: str | Path | None, environment: Mapping[str, str]) -> tuple[Mapping[str, Any], Path | None]:
    named = file or environment.get(FILE_VARIABLE)
    path = Path(named) if named else Path(FILE)
    if not named and not path.is_file():
        return {}, None
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        told = getattr(error, "strerror", None) or error
        raise InputError(f"config: cannot read {str(path)!r}: {told}") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"config: {str(path)!r} is not TOML ({error})") from None
    known = [item.name for item in fields(Config)]
    for name, value in table.items():
        if name not in known and not isinstance(value, dict):  # another table is another part's
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]!r}? " if close else ""
            raise InputError(f"{path}: {name}: unknown; {hint}Known: {', '.join(known)}")
    return {name: value for name, value in table.items() if name in known}, path


# --- one check per field ----------------------------------------------------------------------------------------------


Check = tuple[Callable[[Any], Any], str]  # what makes a value of it (or raises), and what it should have been


def _whole(low: int, high: int) -> Check:
    def check(value: Any) -> int:
        if isinstance(value, str):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError
        return value

    return check, f"a whole number from {low:,} to {high:,}"


def _seconds(low: float, high: float) -> Check:
    def check(value: Any) -> float:
        number = float(value)
        if isinstance(value, bool) or not low <= number <= high:
            raise ValueError
        return number

    return check, f"seconds from {low:g} to {high:g}"


def _truth(value: Any) -> bool:
    known = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    return value if isinstance(value, bool) else known[str(value).lower()]


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError
    return value


def _origins(value: Any) -> tuple[str, ...]:
    items = value.split(",") if isinstance(value, str) else list(value)
    found = tuple(item.strip().rstrip("/") for item in items if item.strip())
    for item in found:
        if item != "*" and not item.startswith(("http://", "https://")):
            raise ValueError
    return found


def _hosts(value: Any) -> tuple[str, ...]:
    items = value.split(",") if isinstance(value, str) else list(value)
    found = tuple(item.strip() for item in items if item.strip())
    if any(hosts.host(item) is None for item in found):
        raise ValueError
    return found


def _table_of(value: Any) -> dict[str, Any]:
    return dict(value.items())  # a text has none


def _one_of(*known: str) -> Check:
    def check(value: Any) -> str:
        if value not in known:
            raise ValueError
        return str(value)

    return check, f"one of {', '.join(known)}"


_CHECKS: dict[str, Check] = {
    "store": (_text, "a path"),
    "collection": (_text, "a name"),
    "embedder": (_text, "an embedder such as builtin"),
    "scorer": (_text, "a scorer such as folder:PATH"),
    "host": (_text, "an address such as 127.0.0.1"),
    "port": _whole(0, 65_535),
    "workers": _whole(1, 256),
    "threads": _whole(1, 1_000),
    "require_key": (_truth, "true or false"),
    "cors_origins": (_origins, "origins such as https://app.example.com"),
    "allowed_hosts": (_hosts, "names such as search.example.com or search.example.com:8443"),
    "max_body_bytes": _whole(1_000, 10**10),
    "max_batch": _whole(1, 1_000_000),
    "max_filter_depth": _whole(1, 20),
    "max_waiting": _whole(0, 1_000_000),
    "max_imports": _whole(0, 1_000),
    "max_chats": _whole(0, 10_000),
    "body_seconds": _seconds(0.01, 86_400),
    "request_seconds": _seconds(0.01, 86_400),
    "drain_seconds": _seconds(0, 86_400),
    "log_level": _one_of("debug", "info", "warning", "error"),
    "log_format": _one_of("json", "text"),
    "evaluations": (str, "a folder"),
    "chat": (_table_of, "a table"),
}


def _checked(name: str, value: Any, source: str) -> Any:
    check, allowed = _CHECKS[name]
    try:
        return check(value)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise InputError(f"{name}: {value!r} (from {source}) is not allowed; give {allowed}") from None
