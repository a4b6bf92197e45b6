"""Writes a .safetensors file, so that no further package is needed."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

DTYPES = {"float32": "F32", "float16": "F16", "int8": "I8"}


def write_safetensors(file: Path, tensors: Mapping[str, npt.NDArray[np.generic]]) -> None:
    """Write the tensors in the order of their names."""
    header, parts, place = {}, [], 0
    for name in sorted(tensors):
        data = np.ascontiguousarray(tensors[name]).tobytes()
        shape = list(tensors[name].shape)
        header[name] = {
            "dtype": DTYPES[tensors[name].dtype.name],
            "shape": shape,
            "data_offsets": [place, place + len(data)],
        }
        parts.append(data)
        place += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))
