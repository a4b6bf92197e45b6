"""The configuration of the service.

A flag wins over the environment (``TRIVET_…``), the environment over the TOML file, the file over the default. Every
value keeps its source, which ``trivet config`` prints.
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
from trivet.http import hosts

FILE = "trivet.toml"  # in the current folder; read if no other file is named
FILE_VARIABLE = "TRIVET_CONFIG"
RULE = "a flag wins over the environment, the environment over the TOML file, the file over the default"


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of a server; ``HELP`` explains each one."""

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
    log_format: str = "auto"
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
    "store": "the store's file; created if it does not exist",
    "collection": "the default collection, for routes without a collection in their path; created if it does not exist",
    "embedder": "the model of new collections: builtin, multilingual, none, folder:PATH, http://HOST/v1#MODEL; "
    "not set by requests",
    "scorer": "the model of the cross_encoder reranker: none, folder:PATH, http://HOST/rerank; not set by requests",
    "host": "the address to listen on; any other than the loopback address needs an API key",
    "port": "the port to listen on; 0 picks a free one",
    "workers": "number of worker processes",
    "threads": "engine calls at a time, in each process",
    "require_key": "require an API key even on the loopback address",
    "cors_origins": "origins of web pages that may call the service; none by default",
    "allowed_hosts": "other names that the Host header may have, for example behind a proxy",
    "max_body_bytes": "the largest body (413); an import may be longer, but none of its lines",
    "max_batch": "documents in one request (413); an import has no such limit",
    "max_filter_depth": "levels of a nested filter (422)",
    "max_waiting": "requests that may wait for a thread (more: 429)",
    "max_imports": "imports at a time, in each process (more: 429)",
    "max_chats": "chats that may wait for the model at a time, in each process (more: 429)",
    "body_seconds": "time limit for the body, or for the next part of an import, to arrive (408)",
    "request_seconds": "time limit of a request after its body has arrived (504)",
    "drain_seconds": "time that running requests get to finish at shutdown",
    "log_level": "debug, info, warning or error",
    "log_format": "text, json (one object a line), or auto: text on a terminal, json elsewhere",
    "evaluations": "a folder of `trivet eval --save`; the page shows its evaluations and saves new ones there",
    "chat": "the [chat] table of the file; docs/how-to/chat.md lists its fields",
}


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach ``host``; a name other than localhost may be any address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Sourced:
    """One value and its source."""

    name: str
    value: Any
    source: str


def resolve(
    flags: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    file: str | Path | None = None,
) -> tuple[Config, list[Sourced]]:
    """Return the configuration and the source of each value; flags that are None were not given."""
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
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"config: cannot read {str(path)!r}: {reason}") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"config: {str(path)!r} is not TOML ({error})") from None
    known = [item.name for item in fields(Config)]
    for name, value in table.items():
        if name not in known and not isinstance(value, dict):  # other tables belong to other parts
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]!r}? " if close else ""
            raise InputError(f"{path}: {name}: unknown setting; {hint}known: {', '.join(known)}")
    return {name: value for name, value in table.items() if name in known}, path


Check = tuple[Callable[[Any], Any], str]  # converts a value or raises; what is allowed


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
    return dict(value.items())


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
    "log_format": _one_of("auto", "json", "text"),
    "evaluations": (str, "a folder"),
    "chat": (_table_of, "a table"),
}


def _checked(name: str, value: Any, source: str) -> Any:
    check, allowed = _CHECKS[name]
    try:
        return check(value)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise InputError(f"{name}: {value!r} (from {source}) is not allowed; give {allowed}") from None
