"""What every store's BM25 shares: the parameters k1 and b, and the length of a passage.

They are those of tantivy, which ranks what is in the index of a file and has them built in. So they are no setting: a
passage that is in no index yet, or on a server, must get the same score.

tantivy and Lucene store a length in one byte. Up to 40 terms it is exact; of a longer one the four highest bits above
24 are kept.
"""

from __future__ import annotations

from functools import cache
from typing import Any

K1, B = 1.2, 0.75

_EXACT = 24  # lengths that are stored apart from the rounded ones
_STEPS = [1 << bit for bit in range(4, 31)]  # from each of them on, one more bit is lost


_TABLE = 1 << 14  # lengths whose rounded ones are in a table: nearly all


def rounded(lengths: Any) -> Any:
    """Return an array of lengths, rounded."""
    import numpy as np

    if len(lengths) and lengths.max() < _TABLE:
        return _table()[lengths]
    return _rounded(lengths.astype(np.int64))


@cache
def _table() -> Any:
    """Return the rounded length of each length up to ``_TABLE``."""
    import numpy as np

    return _rounded(np.arange(_TABLE))


def _rounded(lengths: Any) -> Any:
    import numpy as np

    above = lengths - _EXACT
    lost = np.searchsorted(_STEPS, above, side="right")
    return (above >> lost << lost) + _EXACT


def rounded_length(length: int) -> int:
    """Return one length, rounded."""
    above = length - _EXACT
    lost = max(0, above.bit_length() - 4) if above > 0 else 0
    return (above >> lost << lost) + _EXACT


def rounded_sql(length: str) -> str:
    """Return the expression that rounds a column as ``rounded`` does."""
    steps = ",".join(map(str, _STEPS))
    lost = f"width_bucket({length} - {_EXACT}, '{{{steps}}}'::integer[])"
    return f"((({length} - {_EXACT}) >> {lost} << {lost}) + {_EXACT})"
