"""What does the question ask for, beyond its words?

*Useful for* telling the legs what to look for and the rerankers what to watch for: quoted parts stay with the analyser,
``field:value`` becomes a filter, what is not wanted is cut out, names mean exactly themselves, a time becomes a window.
*Not useful for* finding anything. Pure: it reads text and is handed what it needs to know.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime

from trivet.filters import And, Filter
from trivet.understanding.fields import Field, find_fields, without_fields
from trivet.understanding.identifiers import find_identifiers
from trivet.understanding.negation import split_negation
from trivet.understanding.understood import Understood, Window

__all__ = ["UNDERSTANDINGS", "Field", "Understood", "Window", "understand"]

#: ``plain`` takes the question as words; ``full`` reads it for everything above.
UNDERSTANDINGS = ("plain", "full")


def understand(
    text: str,
    fields: Callable[[], Collection[str]],
    holds: Callable[[Filter], bool],
    at: datetime,
    language: str = "en",
    times: bool = True,
) -> Understood:
    """``fields`` gives the keys of the metadata, ``holds`` says whether any document passes a filter, ``at`` is when
    the question is asked; without ``times`` nobody wants to know which time it speaks of."""
    named = [field for field in find_fields(text, fields) if holds(field.where)] if ":" in text else []
    left = without_fields(text, named)
    wanted, avoided = split_negation(left)
    window = None
    if times:
        from trivet.understanding.times import find_window

        window = find_window(wanted, at, language)
    wheres = tuple(field.where for field in named)
    return Understood(
        text=wanted or left or text,
        avoided=avoided,
        where=None if not wheres else wheres[0] if len(wheres) == 1 else And(wheres),
        fields=tuple(field.written for field in named),
        identifiers=find_identifiers(wanted),
        window=window,
    )
