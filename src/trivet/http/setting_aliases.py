"""Other names of settings: camelCase, and the names that earlier services used for the legs."""

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


def canonical(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes under the profile's own names; refuse one setting under two names."""
    found: dict[str, Any] = {}
    for alias, value in changes.items():
        name = ALIASES.get(alias) or _HUMP.sub(lambda hump: f"_{hump[1].lower()}", alias)
        if name in found:
            raise InputError(f"{name}: given under two names; use one of them")
        found[name] = value
    return found
