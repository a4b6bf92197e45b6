"""The filter that hides documents whose time has passed."""

from __future__ import annotations

import time

from trivet.filters import Filter, Not, Range, both
from trivet.types import Document


def unexpired(where: Filter | None, passed: float | None) -> Filter | None:
    """Return the filter, and not expired. ``passed`` is the last expiry that has passed, None where none has.

    That moment stands in the filter rather than the clock's: what a store remembers of a filter holds until another
    document expires.
    """
    return where if passed is None else both(where, Not(Range("expires", lte=passed)))


def is_alive(document: Document) -> bool:
    """Tell whether the document's time has not passed yet."""
    return document.expires is None or document.expires.timestamp() > time.time()
