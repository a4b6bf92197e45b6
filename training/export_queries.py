"""Turns the trained factors of ``queries.py`` into the file that trivet ships for embedding queries.

python training/export_queries.py NAME.npz     prints the sha256 that ``trivet.models.embedders.granite`` checks
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import numpy as np
from safetensors_file import write_safetensors

SHIPPED = Path(__file__).parents[1] / "src" / "trivet" / "data" / "query_factors.safetensors"


def main() -> None:
    """Write the factors as 16-bit numbers."""
    stored = np.load(sys.argv[1])
    write_safetensors(SHIPPED, {name: stored[name] for name in stored.files if name != "settings"})
    data = SHIPPED.read_bytes()
    print(f"{SHIPPED.name}: {len(data):,} bytes, sha256 {hashlib.sha256(data).hexdigest()}")


if __name__ == "__main__":
    main()
