"""What does a cross-encoder look like as an ONNX graph?

The encoder of ``embedders/encoder.py``, told for each token which of the two texts it is of, and a head on the first
token's state. One pair at a time, for the same reasons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trivet.embedders.encoder import KERNELS, Architecture, Builder, Plan
from trivet.errors import InputError

Floats = npt.NDArray[np.float32]

#: Raise when a change here changes scores: it is part of every built scorer's id.
BUILD = 1


@dataclass(frozen=True, slots=True)
class Layer:
    """One linear layer of a head: its tensors' name (``{}`` is what the checkpoint puts before the encoder's names)
    and the ONNX operator behind it."""

    name: str
    activation: str = ""


#: model_type of config.json -> the head Hugging Face's ...ForSequenceClassification puts on it
_BERT = (Layer("{}pooler.dense", "Tanh"), Layer("classifier"))
_ROBERTA = (Layer("classifier.dense", "Tanh"), Layer("classifier.out_proj"))
HEADS: Mapping[str, Sequence[Layer]] = {
    "bert": _BERT,
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "camembert": _ROBERTA,
    "distilbert": (Layer("pre_classifier", "Relu"), Layer("classifier")),
}


def head_weights(tensors: Mapping[str, Floats], kind: str, anchor: str, where: str) -> dict[str, Floats]:
    """A head's tensors as ``head0.w``, ``head0.b`` and so on; ``anchor`` ends the name of the word embeddings."""
    found = next((name for name in tensors if name.endswith(anchor)), anchor)
    prefix = found.removesuffix(anchor)
    weights: dict[str, Floats] = {}
    for number, layer in enumerate(HEADS[kind]):
        for short, suffix in (("w", "weight"), ("b", "bias")):
            name = f"{layer.name.format(prefix)}.{suffix}"
            if name not in tensors:
                raise InputError(f"{where} lacks {name!r}: its head is not built here; put its ONNX export beside it")
            weights[f"head{number}.{short}"] = tensors[name]
    return weights


def pair_graph(shape: Architecture, weights: Mapping[str, Floats], kind: str, plan: Plan) -> bytes:
    """A serialised model: ``input_ids`` and, where there are two types, ``token_type_ids`` (1, length) int64 in,
    ``logits`` (1, labels) float32 out."""
    build = Builder(shape, weights, plan)
    ids = build.graph.input("input_ids", "int64", 1, "length")
    typed = "type_emb" in weights and len(weights["type_emb"]) > 1
    state = build.embeddings(ids, build.graph.input("token_type_ids", "int64", 1, "length") if typed else "")
    for layer in range(shape.layers):
        state = build.layer(state, layer)
    value = build.graph.node("Squeeze", state, build.ints(1))
    for number, part in enumerate(HEADS[kind]):
        value = KERNELS["float"](build, value, f"head{number}")
        if part.activation:
            value = build.graph.node(part.activation, value)
    labels = len(weights[f"head{len(HEADS[kind]) - 1}.w"])
    build.graph.output(value, "logits", "float32", 1, labels)
    return build.graph.serialised()
