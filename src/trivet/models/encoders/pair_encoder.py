"""Cross-encoders as ONNX graphs: an encoder that reads a pair of texts, and a head on its first token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trivet.errors import InputError
from trivet.models.encoders.encoder import KERNELS, Architecture, Builder, Plan
from trivet.models.encoders.tensor_names import FAMILIES, prefix_of

Floats = npt.NDArray[np.float32]

BUILD = 1  # part of every scorer's id; raise it when a change here changes scores


@dataclass(frozen=True, slots=True)
class Layer:
    """One linear layer of a head: the name of its tensors and the ONNX operator behind it.

    ``{}`` in the name is the checkpoint's prefix of the encoder's names.
    """

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


def head_weights(tensors: Mapping[str, Floats], kind: str, where: str) -> dict[str, Floats]:
    """Return the tensors of a head as ``head0.w``, ``head0.b`` and so on."""
    prefix = prefix_of(tensors, FAMILIES[kind])
    weights: dict[str, Floats] = {}
    for number, layer in enumerate(HEADS[kind]):
        for short, suffix in (("w", "weight"), ("b", "bias")):
            name = f"{layer.name.format(prefix)}.{suffix}"
            if name not in tensors:
                raise InputError(f"{where} lacks {name!r}: its head is not supported; put its ONNX export beside it")
            weights[f"head{number}.{short}"] = tensors[name]
    return weights


def pair_graph(shape: Architecture, weights: Mapping[str, Floats], kind: str, plan: Plan) -> bytes:
    """Return a serialised model: ``input_ids`` (1, length) int64 in, ``logits`` (1, labels) float32 out.

    Where the model has two token types, ``token_type_ids`` is an input too.
    """
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
