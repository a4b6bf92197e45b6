"""Fast constructors for frozen dataclasses with slots, for the few classes that a search makes by the dozen.

The constructor of a frozen dataclass calls ``object.__setattr__`` for each field: 0.2 ms for a page of hits with their
documents and contributions. Here a mutable object with the same slots is filled, then its ``__class__`` is swapped,
which takes a fifth of that time.

A class derived from ``Deferring`` can leave some of its fields empty until somebody reads them: of the sixty hits that
are reranked a page shows twenty, and most callers never read how their scores came about.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Deferring:
    """Base of a frozen dataclass whose ``deferred`` fields may be filled when the first of them is read.

    Such a value compares, prints, hashes and pickles like one that was made whole: all of these read the fields.
    """

    __slots__ = ("_fill",)
    deferred: ClassVar[tuple[str, ...]] = ()
    _fill: Callable[[Any], tuple[Any, ...]]  # value → its deferred fields; not set on one that was made whole

    if not TYPE_CHECKING:  # a misspelt name is still an error for mypy

        def __getattr__(self, name: str) -> Any:
            """Fill the deferred fields. Python calls this only for an empty slot and for an unknown name."""
            if name not in self.deferred:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            for field, value in zip(self.deferred, self._fill(self), strict=True):
                object.__setattr__(self, field, value)
            return getattr(self, name)


def quick(value: Callable[P, T]) -> Callable[P, T]:
    """Return a function that makes instances of the class. It has no defaults: every field must be given."""
    names = _fields_of(value)
    made: Callable[P, T] = _compiled(value, names, [f"_made.{name} = {name}" for name in names])
    return made


def quick_deferred(value: Callable[..., T]) -> Callable[..., T]:
    """Return a function that makes instances from all fields that are not deferred, in order, and ``_fill``."""
    names = [*_at_once(value), "_fill"]
    made: Callable[..., T] = _compiled(value, names, [f"_made.{name} = {name}" for name in names])
    return made


def quick_replace(value: Callable[..., T], *changed: str) -> Callable[..., T]:
    """Return a function that copies an instance with other values of these fields, given in this order.

    Deferred fields, which cannot be changed, are made again for the copy.
    """
    given = [f"_made.{name} = {name if name in changed else f'_item.{name}'}" for name in _at_once(value)]
    whole = [f"_made.{name} = _item.{name}" for name in _deferred_by(value)]
    rest = (
        ["try: _made._fill = _item._fill", "except AttributeError:", *(f" {line}" for line in whole)] if whole else []
    )
    made: Callable[..., T] = _compiled(value, ("_item", *changed), [*given, *rest])
    return made


def _fields_of(value: Any) -> list[str]:
    return [field.name for field in fields(value)]


def _deferred_by(value: Any) -> tuple[str, ...]:
    return value.deferred if issubclass(value, Deferring) else ()


def _at_once(value: Any) -> list[str]:
    return [name for name in _fields_of(value) if name not in _deferred_by(value)]


def _compiled(value: Any, parameters: Sequence[str], lines: Sequence[str]) -> Any:
    """Compile a function that fills a mutable instance and swaps its class."""
    mutable = type(value.__name__, value.__bases__, {"__slots__": value.__slots__})
    scope = {"_mutable": mutable, "_kind": value}
    body = "\n ".join(["_made = _mutable()", *lines, "_made.__class__ = _kind", "return _made"])
    # The source contains only the names of the fields, as in the __init__ that dataclasses generates.
    exec(f"def make({', '.join(parameters)}):\n {body}", scope)  # nosec
    return scope["make"]
