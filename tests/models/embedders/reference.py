"""A reference encoder in plain numpy, written from the papers, sharing no line with trivet.

Slow and obvious on purpose: batch of one, float64, exact erf.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_erf = np.vectorize(math.erf, otypes=[np.float64])


def gelu(x: Array) -> Array:
    return x * 0.5 * (1.0 + _erf(x / math.sqrt(2.0)))


def layer_norm(x: Array, gain: Array, bias: Array, eps: float) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + eps) * gain + bias


def softmax(x: Array) -> Array:
    raised = np.exp(x - x.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)


def bert_states(ids: list[int], tensors: Mapping[str, Array], heads: int, eps: float, offset: int = 0) -> Array:
    """The last layer's state of every token; tensors under Hugging Face's BERT names."""
    w = {name: np.asarray(tensor, dtype=np.float64) for name, tensor in tensors.items()}
    x = w["embeddings.word_embeddings.weight"][ids]
    x = x + w["embeddings.position_embeddings.weight"][offset : offset + len(ids)]
    if "embeddings.token_type_embeddings.weight" in w:
        x = x + w["embeddings.token_type_embeddings.weight"][0]
    x = layer_norm(x, w["embeddings.LayerNorm.weight"], w["embeddings.LayerNorm.bias"], eps)
    layer = 0
    while f"encoder.layer.{layer}.output.dense.weight" in w:
        part = f"encoder.layer.{layer}"

        def linear(value: Array, name: str, part: str = part) -> Array:
            return value @ w[f"{part}.{name}.weight"].T + w[f"{part}.{name}.bias"]

        q, k, v = (linear(x, f"attention.self.{name}") for name in ("query", "key", "value"))
        size = q.shape[1] // heads
        heard = np.zeros_like(q)
        for head in range(heads):
            columns = slice(head * size, (head + 1) * size)
            scores = q[:, columns] @ k[:, columns].T / math.sqrt(size)
            heard[:, columns] = softmax(scores) @ v[:, columns]
        norm = f"{part}.attention.output.LayerNorm"
        x = layer_norm(x + linear(heard, "attention.output.dense"), w[f"{norm}.weight"], w[f"{norm}.bias"], eps)
        inner = linear(gelu(linear(x, "intermediate.dense")), "output.dense")
        x = layer_norm(x + inner, w[f"{part}.output.LayerNorm.weight"], w[f"{part}.output.LayerNorm.bias"], eps)
        layer += 1
    return x


def unit(vector: Array) -> Array:
    return vector / np.linalg.norm(vector)


#: The granite pack's names -> Hugging Face's, per layer.
GRANITE_LAYER = {
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "f1": "intermediate.dense",
    "f2": "output.dense",
    "fln": "output.LayerNorm",
}
GRANITE_EMBEDDINGS = {
    "word_emb": "embeddings.word_embeddings.weight",
    "pos_emb": "embeddings.position_embeddings.weight",
    "type_emb": "embeddings.token_type_embeddings.weight",
    "emb_ln.w": "embeddings.LayerNorm.weight",
    "emb_ln.b": "embeddings.LayerNorm.bias",
}


def granite_tensors(path: Path, factors: Mapping[str, Array] | None = None) -> tuple[dict[str, Array], str]:
    """The pack's tensors under Hugging Face's names, and its tokenizer; ``factors`` are added to the matrices."""
    factors = factors or {}
    suffixes = {"w": "weight", "b": "bias"}
    tensors: dict[str, Array] = {}
    with path.open("rb") as file:
        file.seek(8)
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        tokenizer = file.read(header["tokenizer_len"]).decode()
        for entry in header["tensors"]:
            size = math.prod(entry["shape"])
            if entry["dtype"] == "i8":
                values = np.fromfile(file, np.int8, size).astype(np.float32)
                scales = np.fromfile(file, "<f4", size // entry["group"])
                array = values * np.repeat(scales, entry["group"])
            else:
                array = np.fromfile(file, "<f4", size)
            array = array.reshape(entry["shape"])
            name = entry["name"]
            if name in GRANITE_EMBEDDINGS:
                tensors[GRANITE_EMBEDDINGS[name]] = array
                continue
            layer, part, kind = name.split(".")
            if kind == "w" and f"{layer}.{part}.up" in factors:
                array = array + factors[f"{layer}.{part}.up"] @ factors[f"{layer}.{part}.down"]
            where = f"encoder.layer.{layer[1:]}"
            if part == "qkv":
                for third, split in zip(("query", "key", "value"), np.split(array, 3), strict=True):
                    tensors[f"{where}.attention.self.{third}.{suffixes[kind]}"] = split
            else:
                tensors[f"{where}.{GRANITE_LAYER[part]}.{suffixes[kind]}"] = array
    return tensors, tokenizer
