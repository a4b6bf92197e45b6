"""trivet: hybrid retrieval for agent memory and RAG.

>>> import trivet
>>> memory = trivet.open("memory.db")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trivet._version import __version__

if TYPE_CHECKING:
    from trivet.engine import Engine, open, restore
    from trivet.errors import TrivetError
    from trivet.filters import And, Eq, Exists, In, Not, Or, Range
    from trivet.profile import PROFILES, Profile
    from trivet.types import Document, Feedback, Hit, Link, Results

_HOMES = {
    "trivet.engine": ("Engine", "open", "restore"),
    "trivet.errors": ("TrivetError",),
    "trivet.filters": ("And", "Eq", "Exists", "In", "Not", "Or", "Range"),
    "trivet.profile": ("PROFILES", "Profile"),
    "trivet.types": ("Document", "Feedback", "Hit", "Link", "Results"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}
__all__ = [
    "PROFILES",
    "And",
    "Document",
    "Engine",
    "Eq",
    "Exists",
    "Feedback",
    "Hit",
    "In",
    "Link",
    "Not",
    "Or",
    "Profile",
    "Range",
    "Results",
    "TrivetError",
    "__version__",
    "open",
    "restore",
]


def __getattr__(name: str) -> Any:
    """Names load on first use: `import trivet` costs milliseconds, not the sum of its dependencies."""
    if name not in _HOME:
        raise AttributeError(f"module 'trivet' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
