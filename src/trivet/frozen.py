"""Fast constructors for frozen dataclasses with slots, for the few classes that a search makes by the dozen.

The constructor of a frozen dataclass calls ``object.__setattr__`` for each field: 0.2 ms for a page of hits with their
documents and contributions. Here a mutable object with the same slots is filled, then its ``__class__`` is swapped,
which takes a fifth of that time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def quick(value: Callable[P, T]) -> Callable[P, T]:
    """Return a function that makes instances of the class. It has no defaults: every field must be given."""
    names = _fields_of(value)
    made: Callable[P, T] = _compiled(value, names, [f"_made.{name} = {name}" for name in names])
    return made


def quick_replace(value: Callable[..., T], *changed: str) -> Callable[..., T]:
    """Return a function that copies an instance with other values of these fields, given in this order."""
    lines = [f"_made.{name} = {name if name in changed else f'_item.{name}'}" for name in _fields_of(value)]
    made: Callable[..., T] = _compiled(value, ("_item", *changed), lines)
    return made


def _fields_of(value: Any) -> list[str]:
    return [field.name for field in fields(value)]


def _compiled(value: Any, parameters: Sequence[str], lines: Sequence[str]) -> Any:
    """Compile a function that fills a mutable instance and swaps its class."""
    scope = {"_mutable": type(value.__name__, (), {"__slots__": value.__slots__}), "_kind": value}
    body = "\n ".join(["_made = _mutable()", *lines, "_made.__class__ = _kind", "return _made"])
    # The source contains only the names of the fields, as in the __init__ that dataclasses generates.
    exec(f"def make({', '.join(parameters)}):\n {body}", scope)  # nosec
    return scope["make"]
