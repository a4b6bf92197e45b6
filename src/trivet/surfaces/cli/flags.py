"""What did the flags say?

``key=value`` pairs become metadata or profile settings. A value is read as JSON where it is JSON (2, true, ["a"])
and as text otherwise; the profile's own checks then name what is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trivet.errors import InputError

if TYPE_CHECKING:
    from trivet.profile import Profile


def value(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text


def _no_constant(name: str) -> Any:
    raise ValueError(name)  # NaN and Infinity are no JSON: they stay text


def pair(item: str, flag: str, example: str) -> tuple[str, str]:
    key, equals, said = item.partition("=")
    if not equals or not key.strip():
        raise InputError(f"{flag}: {item!r} is not key=value; write {flag} {example}")
    return key.strip(), said.strip()


def meta(items: Iterable[str]) -> dict[str, Any]:
    """A key given again makes a list of its values."""
    found: dict[str, list[Any]] = {}
    for item in items:
        key, said = pair(item, "--meta", "author=sam")
        found.setdefault(key, []).append(value(said))
    return {key: values[0] if len(values) == 1 else values for key, values in found.items()}


def link(item: str) -> dict[str, str]:
    """``ID`` or ``ID:type``; an id with a colon in it needs its type written."""
    target, colon, kind = item.rpartition(":")
    return {"target": target, "type": kind} if colon else {"target": item}


def changes(settings: Iterable[str] = (), weights: Iterable[str] = (), **given: Any) -> dict[str, Any]:
    """The profile's fields to change; ``weights.dense=2`` goes into a mapping, a flag not given is left out."""
    found = {name: said for name, said in given.items() if said is not None}
    for item in weights:
        leg, said = pair(item, "--weight", "dense=1.5")
        _put(found, ("weights", leg), value(said))
    for item in settings:
        name, said = pair(item, "--set", "rrf_k=5")
        field, dot, key = name.partition(".")
        if field == "rerankers" and not said.startswith("["):
            _put(found, (field,), [step.strip() for step in said.split(",") if step.strip()])
        else:
            _put(found, (field, key) if dot else (field,), value(said))
    return found


def _put(found: dict[str, Any], path: tuple[str, ...], said: Any) -> None:
    if len(path) == 1:
        found[path[0]] = said
        return
    table = found.setdefault(path[0], {})
    if not isinstance(table, dict):
        raise InputError(f"--set: {path[0]} was given both as a whole and by its parts; choose one")
    table[path[1]] = said


def profile(said: str | None) -> Profile | None:
    """A shipped profile by its name, or one from a .toml or .json file."""
    if said is None:
        return None
    from trivet.profile import Profile, named

    readers: Mapping[str, Any] = {".toml": Profile.from_toml, ".json": Profile.from_json}
    path = Path(said)
    if path.suffix.lower() not in readers:
        return named(said)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--profile: cannot read {said!r}: {getattr(error, 'strerror', None) or error}") from None
    try:
        return readers[path.suffix.lower()](text)  # type: ignore[no-any-return]
    except InputError as error:
        raise InputError(f"{said}: {error}") from None
