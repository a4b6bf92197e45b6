"""Specs: the strings that name a model, such as ``granite`` or ``folder:PATH``, and the models loaded by them.

The part before the first colon names the kind of model, which a registry knows; the rest goes to that kind's loader. A
URL goes to its loader whole, and a folder may be given as a bare path.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from trivet.errors import InputError
from trivet.plugins import Registry


class HasSpec(Protocol):
    """What every model has: the spec that loads it again."""

    @property
    def spec(self) -> str: ...


M = TypeVar("M", bound=HasSpec)


@dataclass(frozen=True, slots=True)
class Kind:
    """A built-in kind of model: its loader as ``"module:attribute"``, and how its specs are written."""

    loader: str
    form: str
    languages: tuple[str, ...] = ()  # codes of those it reads; none means all, or that it is not known


@dataclass(frozen=True, slots=True)
class Models(Generic[M]):
    """The models of one role (``"embedder"`` or ``"scorer"``), each loaded once per process. Thread-safe."""

    role: str
    registry: Registry[Callable[[str], M]]
    kinds: Mapping[str, Kind]
    #: Attributes an object must have to be used in this role.
    members: Sequence[str]
    loaded: dict[str, M] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, spec: str | M | None) -> M | None:
        """Return the model a spec names; None for ``None`` and ``"none"``; an object as it is, once checked."""
        if spec is None or spec == "none":
            return None
        if not isinstance(spec, str):
            self._check(spec)
            return spec
        with self.lock:
            if spec not in self.loaded:
                model = self._load(spec)
                # "granite" and "builtin" are one model, kept under the spec it gives itself
                self.loaded[spec] = self.loaded.setdefault(model.spec, model)
            return self.loaded[spec]

    def forms(self) -> list[str]:
        """Return how every spec is written, those of installed packages included."""
        return ["none", *(self.kinds[name].form if name in self.kinds else f"{name}:…" for name in self.registry)]

    def _load(self, spec: str) -> M:
        name, _, argument = spec.partition(":")
        if name in self.registry:
            model = self.registry[name](spec if argument.startswith("//") else argument)
        elif spec.strip() and Path(spec).expanduser().is_dir():
            model = self.registry["folder"](spec)
        else:
            known = "; ".join(self.forms())
            raise InputError(
                f"{self.role} {spec!r} is neither a known form nor an existing folder. Known forms: {known}"
            )
        self._check(model)
        return model

    def _check(self, candidate: object) -> None:
        # getattr_static: reading the ``dim`` of an endpoint's model would already call the endpoint
        missing = [name for name in self.members if inspect.getattr_static(candidate, name, None) is None]
        if missing:
            article = "an" if self.role[0] in "aeiou" else "a"
            raise InputError(
                f"{self.role} {type(candidate).__name__!r} lacks {', '.join(missing)}: "
                f"{article} {self.role} has {', '.join(self.members)}"
            )
