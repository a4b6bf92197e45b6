"""What does this spec name?

A spec is a string that can be stored and printed; what stands before its first colon is its scheme, and a folder may
be given as it is. Nothing is imported before a spec asks for it.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from trivet.errors import InputError


@dataclass(frozen=True, slots=True)
class Scheme:
    """Where a kind of model is loaded from, and how its spec is written."""

    module: str
    form: str
    loader: str = "load"


def load(spec: str, what: str, package: str, schemes: Mapping[str, Scheme]) -> Any:
    """The model a spec names, by the package's own module for its scheme."""
    name, _, argument = spec.partition(":")
    scheme = schemes.get(name)
    if scheme is None and spec.strip() and Path(spec).expanduser().is_dir():
        scheme, argument = schemes["folder"], spec
    if scheme is None:
        forms = "; ".join(["none", *(known.form for known in schemes.values())])
        raise InputError(f"{what} {spec!r} is neither a known form nor an existing folder. Known forms: {forms}")
    return getattr(import_module(f"{package}.{scheme.module}"), scheme.loader)(argument)


def check(candidate: object, what: str, members: Sequence[str]) -> None:
    """Has an object of the caller's own what is asked of one?"""
    # getattr_static: asking an endpoint for its ``dim`` would already call it
    missing = [name for name in members if inspect.getattr_static(candidate, name, None) is None]
    if missing:
        one = f"{'an' if what[0] in 'aeiou' else 'a'} {what}"
        raise InputError(
            f"{what} {type(candidate).__name__!r} lacks {', '.join(missing)}: {one} has {', '.join(members)}"
        )
