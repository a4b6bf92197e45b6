"""What was made of a question?

The value that ``understand`` gives and legs and rerankers read. A question of which nothing was made is its own text.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trivet.filters import Filter


@dataclass(frozen=True, slots=True)
class Window:
    """The time a question speaks of: from ``begin`` on, before ``end``; ``words`` is how it was said.

    ``named``: a day by its date, which is meant more strictly than "five days ago" or "last month".
    """

    begin: datetime
    end: datetime
    words: str
    named: bool = False

    def __str__(self) -> str:
        return f"{self.words!r} is {self.begin:%Y-%m-%d} to {self.end:%Y-%m-%d}"


@dataclass(frozen=True, slots=True)
class Understood:
    """``text`` is what is looked for: the question without its fields and without what it does not want."""

    text: str
    avoided: tuple[str, ...] = ()
    where: Filter | None = None
    fields: tuple[str, ...] = ()  # ``kind:note``, as they were written
    identifiers: tuple[str, ...] = ()
    window: Window | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """For the trace: everything the question was read for beyond its words."""
        told = [f"filter {field}" for field in self.fields]
        told += [f"not {part!r}" for part in self.avoided]
        told += [f"exactly {name!r}" for name in self.identifiers]
        return (*told, *([str(self.window)] if self.window else []))
