"""trivet: hybrid retrieval for agent memory and RAG.

>>> import trivet
>>> memory = trivet.open("memory.db")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from trivet.engine import Engine, open, restore
    from trivet.engine.async_engine import AsyncEngine, open_async
    from trivet.errors import (
        CollectionDroppedError,
        DeadlineError,
        EmbedderError,
        IndexNotReadyError,
        InputError,
        MissingExtraError,
        ModelMismatchError,
        ModelReplacedError,
        NotAllowedError,
        NotFoundError,
        ScorerError,
        StoreBusyError,
        StoreError,
        StoreReplacedError,
        TakenError,
        TrivetError,
    )
    from trivet.filters import And, Contains, Eq, Exists, Filter, In, Not, Or, Prefix, Range
    from trivet.profile import PROFILES, Overrides, Profile, Step
    from trivet.types import (
        Added,
        Adjustment,
        Compacted,
        Contribution,
        Degraded,
        Document,
        Embedder,
        Explanation,
        Facet,
        Feedback,
        Forgotten,
        Hit,
        LegVerdict,
        Link,
        Page,
        Passage,
        Period,
        Redundancy,
        Remembered,
        Report,
        Restored,
        Results,
        Saved,
        Scorer,
        SettingsChange,
        Similar,
        Stage,
        Stats,
        Timeline,
    )

_HOMES = {
    "trivet.engine": (
        "Engine",
        "open",
        "restore",
    ),
    "trivet.engine.async_engine": (
        "AsyncEngine",
        "open_async",
    ),
    "trivet.errors": (
        "CollectionDroppedError",
        "DeadlineError",
        "EmbedderError",
        "IndexNotReadyError",
        "InputError",
        "MissingExtraError",
        "ModelMismatchError",
        "ModelReplacedError",
        "NotAllowedError",
        "NotFoundError",
        "ScorerError",
        "StoreBusyError",
        "StoreError",
        "StoreReplacedError",
        "TakenError",
        "TrivetError",
    ),
    "trivet.filters": (
        "And",
        "Contains",
        "Eq",
        "Exists",
        "Filter",
        "In",
        "Not",
        "Or",
        "Prefix",
        "Range",
    ),
    "trivet.profile": (
        "PROFILES",
        "Overrides",
        "Profile",
        "Step",
    ),
    "trivet.types": (
        "Added",
        "Adjustment",
        "Compacted",
        "Contribution",
        "Degraded",
        "Document",
        "Embedder",
        "Explanation",
        "Facet",
        "Feedback",
        "Forgotten",
        "Hit",
        "LegVerdict",
        "Link",
        "Page",
        "Passage",
        "Period",
        "Redundancy",
        "Remembered",
        "Report",
        "Restored",
        "Results",
        "Saved",
        "Scorer",
        "SettingsChange",
        "Similar",
        "Stage",
        "Stats",
        "Timeline",
    ),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}
__all__ = [
    "PROFILES",
    "Added",
    "Adjustment",
    "And",
    "AsyncEngine",
    "CollectionDroppedError",
    "Compacted",
    "Contains",
    "Contribution",
    "DeadlineError",
    "Degraded",
    "Document",
    "Embedder",
    "EmbedderError",
    "Engine",
    "Eq",
    "Exists",
    "Explanation",
    "Facet",
    "Feedback",
    "Filter",
    "Forgotten",
    "Hit",
    "In",
    "IndexNotReadyError",
    "InputError",
    "LegVerdict",
    "Link",
    "MissingExtraError",
    "ModelMismatchError",
    "ModelReplacedError",
    "Not",
    "NotAllowedError",
    "NotFoundError",
    "Or",
    "Overrides",
    "Page",
    "Passage",
    "Period",
    "Prefix",
    "Profile",
    "Range",
    "Redundancy",
    "Remembered",
    "Report",
    "Restored",
    "Results",
    "Saved",
    "Scorer",
    "ScorerError",
    "SettingsChange",
    "Similar",
    "Stage",
    "Stats",
    "Step",
    "StoreBusyError",
    "StoreError",
    "StoreReplacedError",
    "TakenError",
    "Timeline",
    "TrivetError",
    "__version__",
    "open",
    "open_async",
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
