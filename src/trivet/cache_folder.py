"""The folder on this machine for what can be made again: vectors, graphs of servers, the built-in model."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return the folder of TRIVET_CACHE, else one in the user's cache folder; it may not exist or be writable."""
    if folder := os.environ.get("TRIVET_CACHE"):
        return Path(folder)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trivet"
    except RuntimeError:  # a user without a home, as in some containers: nothing can be kept
        return Path(os.devnull) / "trivet"
