"""Cross-encoders small enough to check by hand: random weights under Hugging Face's names, and a numpy reference."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from embedders import tiny_models as tiny
from embedders.reference import bert_states
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save_file

Array = npt.NDArray[Any]

#: family -> (what stands before the encoder's names, the head's layers with what follows each)
HEADS: Mapping[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "bert": ("bert.", (("bert.pooler.dense", "tanh"), ("classifier", ""))),
    "roberta": ("roberta.", (("classifier.dense", "tanh"), ("classifier.out_proj", ""))),
    "distilbert": ("distilbert.", (("pre_classifier", "relu"), ("classifier", ""))),
}
CONFIGS: Mapping[str, Mapping[str, Any]] = {
    "bert": {"architectures": ["BertForSequenceClassification"]},
    "roberta": {"architectures": ["RobertaForSequenceClassification"], "model_type": "roberta"},
    "distilbert": {
        "architectures": ["DistilBertForSequenceClassification"],
        "model_type": "distilbert",
        "dim": tiny.HIDDEN,
        "n_layers": tiny.LAYERS,
        "n_heads": tiny.HEADS,
        "activation": "gelu",
        "layer_norm_eps": 1e-12,
    },
}


def encoder(family: str) -> dict[str, Array]:
    """The encoder's tensors under BERT's names, as many kinds of tokens as the family has."""
    random = np.random.default_rng(3)  # not so large that the head's tanh is at its end for every pair
    weights = {
        name: (random.normal(0, 0.2, tensor.shape) + ("LayerNorm.weight" in name)).astype(np.float32)
        for name, tensor in tiny.tensors().items()
    }
    name = "embeddings.token_type_embeddings.weight"
    if family == "roberta":
        weights[name] = weights[name][:1]
    if family == "distilbert":
        del weights[name]
    return weights


def head(family: str, labels: int) -> dict[str, Array]:
    random = np.random.default_rng(5)
    first, last = (name for name, _ in HEADS[family][1])
    shapes = {f"{first}.weight": (tiny.HIDDEN, tiny.HIDDEN), f"{first}.bias": (tiny.HIDDEN,)}
    shapes |= {f"{last}.weight": (labels, tiny.HIDDEN), f"{last}.bias": (labels,)}
    return {name: random.normal(0, 0.2, shape).astype(np.float32) for name, shape in shapes.items()}


def write_folder(path: Path, family: str = "bert", labels: int = 1, **config: Any) -> dict[str, Array]:
    """A sentence-transformers cross-encoder; gives its tensors, the encoder's under BERT's plain names."""
    path.mkdir(parents=True, exist_ok=True)
    names = tiny.DISTILBERT if family == "distilbert" else {}
    stored = tiny.renamed(encoder(family), names, HEADS[family][0]) | head(family, labels)
    save_file(stored, str(path / "model.safetensors"))
    tiny.write_json(path / "config.json", tiny.CONFIG | dict(CONFIGS[family]) | config)
    tiny.tokenizer().save(str(path / "tokenizer.json"))
    return encoder(family) | head(family, labels)


def expected(weights: Mapping[str, Array], family: str, pair: Any, offset: int = 0) -> Array:
    """The logits of one encoded pair, in plain numpy: a token's type is added to its place."""
    plain = {name: tensor for name, tensor in weights.items() if "token_type" not in name}
    types = weights.get("embeddings.token_type_embeddings.weight")
    if types is not None:
        places = plain["embeddings.position_embeddings.weight"].copy()
        kinds = pair.type_ids if len(types) > 1 else [0] * len(pair.ids)
        places[offset : offset + len(pair.ids)] += types[kinds]
        plain["embeddings.position_embeddings.weight"] = places
    eps = float(CONFIGS[family].get("layer_norm_eps", tiny.CONFIG["layer_norm_eps"]))
    value = bert_states(pair.ids, plain, tiny.HEADS, eps, offset)[0]
    for name, activation in HEADS[family][1]:
        value = value @ weights[f"{name}.weight"].T.astype(np.float64) + weights[f"{name}.bias"]
        value = {"tanh": np.tanh, "relu": lambda x: np.maximum(x, 0), "": lambda x: x}[activation](value)
    return value


def write_onnx(
    path: Path,
    labels: int = 1,
    inputs: tuple[str, ...] = ("input_ids", "attention_mask", "token_type_ids"),
    kind: int = TensorProto.INT64,
    output: str = "logits",
) -> Array:
    """A graph that sums a row of a table for each token, plus the masks and types as numbers. Gives the table."""
    table = np.random.default_rng(7).normal(size=(len(tiny.WORDS), labels)).astype(np.float32)
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["looked_up"]),
        helper.make_node("ReduceSum", ["looked_up", "one"], ["sum_0"], keepdims=0),
    ]
    for number, name in enumerate(inputs[1:], start=1):
        nodes += [
            helper.make_node("Cast", [name], [f"{name}_f"], to=TensorProto.FLOAT),
            helper.make_node("ReduceSum", [f"{name}_f", "one"], [f"{name}_s"], keepdims=1),
            helper.make_node("Add", [f"sum_{number - 1}", f"{name}_s"], [f"sum_{number}"]),
        ]
    nodes.append(helper.make_node("Identity", [f"sum_{len(inputs) - 1}"], [output]))
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, kind, ["batch", "length"]) for name in inputs],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["batch", labels])],
        [numpy_helper.from_array(table, "table"), numpy_helper.from_array(np.array([1]), "one")],
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), str(path))
    return table
