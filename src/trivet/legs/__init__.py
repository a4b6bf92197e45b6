"""The legs: retrievers that each rank documents in their own way.

A leg is one file with one class, registered in ``LEGS``; packages add theirs through the entry point group
``trivet.legs``. ``rephrased.py`` asks a leg several wordings. How to add one:
docs/how-to/add-a-leg.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trivet.plugins import Registry

if TYPE_CHECKING:
    from trivet.legs.leg import LegType

LEGS: Registry[LegType] = Registry(
    "leg",
    "trivet.legs",
    {
        "lexical": "trivet.legs.lexical:Lexical",
        "trigram": "trivet.legs.trigram:Trigram",
        "dense": "trivet.legs.dense:Dense",
        "graph": "trivet.legs.graph:Graph",
    },
)
