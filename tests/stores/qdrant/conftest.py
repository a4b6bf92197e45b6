from __future__ import annotations

from servers import postgres

__all__ = ["postgres"]
