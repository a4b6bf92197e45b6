"""Registries of the parts of a search that a profile or a setting names, open to third-party packages.

A part comes from one of three places: trivet itself, the entry points of an installed package, or the running program.
A package offers one in its ``pyproject.toml``::

    [project.entry-points."trivet.rerankers"]
    newest = "my_package.newest:Newest"
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, TypeVar

from trivet.errors import InputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")
V = TypeVar("V")


class Registry(Generic[T]):
    """The parts of one kind by name. A part is imported when it is first used."""

    def __init__(
        self, kind: str, group: str, built_in: Mapping[str, str], check: Callable[[str, T], None] | None = None
    ) -> None:
        """Take the ``kind`` for messages, the entry point ``group``, and ``"module:attribute"`` of each built-in.

        ``check`` is called with the name and the part before its first use and raises ``InputError`` to refuse it.
        """
        self.kind, self.group = kind, group
        self._built_in, self._check = dict(built_in), check
        self._added: dict[str, T] = {}
        self._loaded: dict[str, T] = {}
        self._found: dict[str, EntryPoint] | None = None

    def __getitem__(self, name: str) -> T:
        """Return the part of that name; raise ``InputError`` with the known names if there is none."""
        try:
            return self._loaded[name]
        except (KeyError, TypeError):  # TypeError: the name is not text but, for example, a list
            return self._load(name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self._loaded or name in self._built_in or name in self.names())

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def items(self) -> Iterator[tuple[str, T]]:
        """Yield the name and the part of all that can be used; leave out a plug-in that cannot be imported."""
        for name in self.names():
            with suppress(InputError):
                yield name, self[name]

    @property
    def built_in(self) -> tuple[str, ...]:
        """The names of the parts that ship with trivet."""
        return tuple(self._built_in)

    def names(self) -> list[str]:
        """Return every name: the built-in ones, then those of installed packages, then those the program added."""
        return [*self._built_in, *self.added_names()]

    def added_names(self) -> list[str]:
        """Return the names that are not built in."""
        return [*self._plug_ins(), *self._added]

    def add(self, name: str, value: T) -> None:
        """Add a part under a name that is free, for this process."""
        if name in self:
            raise InputError(f"{self.kind}: {name!r} is already provided by {self._origin(name)}; choose another name")
        self._added[name] = self._accept(name, value)

    def register(self, name: str) -> Callable[[V], V]:
        """Return a decorator that adds the decorated function or class under ``name``."""

        def decorate(value: V) -> V:
            self.add(name, value)  # type: ignore[arg-type]
            return value

        return decorate

    def _load(self, name: str) -> T:
        if not isinstance(name, str) or name not in self:
            raise InputError(f"{self.kind}: {name!r} is unknown; known: {', '.join(self.names())}")
        if name in self._built_in:
            return self._accept(name, pkgutil.resolve_name(self._built_in[name]))
        return self._accept(name, self._load_plug_in(self._plug_ins()[name]))

    def _accept(self, name: str, value: T) -> T:
        if self._check is not None:
            self._check(name, value)
        self._loaded[name] = value
        return value

    def _load_plug_in(self, entry: EntryPoint) -> T:
        try:
            value: T = entry.load()
        except Exception as error:  # a plug-in runs foreign code when it is imported, so anything may be raised
            raise InputError(
                f"{self.kind}: {entry.name!r} of the package {_package(entry)!r} cannot be imported from "
                f"{entry.value!r} ({type(error).__name__}: {error}); repair or uninstall that package"
            ) from error
        return value

    def _plug_ins(self) -> dict[str, EntryPoint]:
        """Return the entry points of the group, looked up once. Refuse two parts of one name."""
        if self._found is None:
            from importlib.metadata import entry_points  # takes milliseconds, and most processes never need it

            found: dict[str, EntryPoint] = {}
            for entry in entry_points(group=self.group):
                if entry.name in self._built_in or entry.name in found:
                    other = _package(found[entry.name]) if entry.name in found else "trivet"
                    raise InputError(
                        f"{self.kind}: {entry.name!r} is provided by the packages {other!r} and {_package(entry)!r}; "
                        f"uninstall {_package(entry)!r} or rename its entry point in the group {self.group!r}"
                    )
                found[entry.name] = entry
            self._found = found
        return self._found

    def _origin(self, name: str) -> str:
        if name in self._added:
            return "this program"
        return "trivet" if name in self._built_in else f"the package {_package(self._plug_ins()[name])!r}"


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.module
