"""Which names do callers of the seeds' systems use for our settings?

Seed 000 writes camelCase and calls the legs semantic and keyword. Every setting is understood in both spellings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from trivet.errors import InputError

ALIASES = {
    "semanticWeight": "dense_weight",
    "keywordWeight": "lexical_weight",
    "semanticLimit": "k",
    "limit": "k",
    "maxResults": "k",
}
_HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")


def settings(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The profile's own names; the same setting under two names is refused."""
    found: dict[str, Any] = {}
    for name, value in changes.items():
        own = ALIASES.get(name) or _HUMP.sub(lambda hump: f"_{hump[1].lower()}", name)
        if own in found:
            raise InputError(f"{name}: the same setting is given twice; it is {own!r} here")
        found[own] = value
    return found
