"""Parquet: one document for each row, as of any table."""

from __future__ import annotations

import io
from datetime import date, time
from decimal import Decimal
from typing import Any

from trivet.files import table
from trivet.files.formats import Part, UnreadableError, missing
from trivet.files.zipped import MAX_UNPACKED


def read(content: bytes) -> list[Part]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise missing("parquet") from error

    try:
        file = parquet.ParquetFile(io.BytesIO(content))
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise UnreadableError(f"broken Parquet: {str(error).splitlines()[0][:120]}") from error
    groups = (file.metadata.row_group(at) for at in range(file.metadata.num_row_groups))
    size = sum(group.total_byte_size for group in groups)
    if size > MAX_UNPACKED:
        raise UnreadableError(f"larger than {MAX_UNPACKED // 1_000_000} MB when unpacked ({size / 1e6:,.0f} MB)")
    if file.metadata.num_rows > table.MAX_ROWS:
        raise UnreadableError(f"more than {table.MAX_ROWS:,} rows ({file.metadata.num_rows:,}); split it")
    binary = [field.name for field in file.schema_arrow if pyarrow.types.is_binary(field.type)]
    notes = (f"binary columns left out: {', '.join(binary)}",) if binary else ()
    rows = file.read([name for name in file.schema_arrow.names if name not in binary]).to_pylist()
    return table.parts(({name: plain(value) for name, value in row.items()} for row in rows), notes)


def plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, date | time):  # a datetime is a date
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, float) and value - value != 0:  # NaN or infinite
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)
