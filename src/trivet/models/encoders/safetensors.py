"""A reader of .safetensors files.

The format is 8 bytes of header length (u64, little-endian), a JSON header with the dtype, shape and place of each
tensor, then the raw data. The ``safetensors`` package (1.4 MB, 2 to 5 ms of import) reads no bfloat16 into numpy unless
``ml_dtypes`` is installed too; this takes 20 lines.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from trivet.errors import InputError

Floats = npt.NDArray[np.float32]

#: dtype -> its bytes as float32. A bfloat16 is the upper half of a float32. Integer tensors are not weights.
DTYPES: Mapping[str, Callable[[bytes], Floats]] = {
    "F32": lambda data: np.frombuffer(data, "<f4").astype(np.float32, copy=False),
    "F16": lambda data: np.frombuffer(data, "<f2").astype(np.float32),
    "BF16": lambda data: (np.frombuffer(data, "<u2").astype(np.uint32) << 16).view(np.float32),
}


def read_safetensors(path: Path) -> dict[str, Floats]:
    """Return every float tensor of the file, as float32."""
    return tensors_of(path.read_bytes(), str(path))


def tensors_of(data: bytes, name_of_file: str) -> dict[str, Floats]:
    """Return every float tensor of a file's bytes, as float32."""
    try:
        (length,) = struct.unpack_from("<Q", data)
        header = json.loads(data[8 : 8 + length])
        tensors: dict[str, Floats] = {}
        for name, entry in header.items():
            if name != "__metadata__" and entry["dtype"] in DTYPES:
                start, end = (8 + length + offset for offset in entry["data_offsets"])
                tensors[name] = DTYPES[entry["dtype"]](data[start:end]).reshape(entry["shape"])
    except (struct.error, ValueError, KeyError, TypeError, AttributeError, MemoryError, OverflowError) as error:
        raise InputError(
            f"{name_of_file} is not a readable .safetensors file ({error}): copy or download it again"
        ) from error
    return tensors
