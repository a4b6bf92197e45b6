"""The engine: one collection of a store, and everything that a search or a write passes through.

``pipeline.py`` is the order in which a search runs; ``ingest.py`` is the way in.
"""

from trivet.engine.engine import Engine
from trivet.engine.opening import DEFAULT_COLLECTION, collections_in, is_store, on_server, open, restore, shown

__all__ = ["DEFAULT_COLLECTION", "Engine", "collections_in", "is_store", "on_server", "open", "restore", "shown"]
