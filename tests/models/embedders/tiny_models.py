"""Model folders small enough to write in a test: random weights, a vocabulary of letters and a few words.

``write_folder`` gives a sentence-transformers layout; the tensors it returns go into ``reference.bert_states``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

Array = npt.NDArray[Any]
HIDDEN, LAYERS, HEADS, INNER, POSITIONS = 64, 2, 4, 128, 40
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
WORDS = [*SPECIALS, "the", "cat", "sat", "on", "mat", "query", "passage", ":", ".", "##s", "Cat"]

#: How the other families name what BERT calls so.
DISTILBERT = {
    "encoder.layer": "transformer.layer",
    "attention.self.query": "attention.q_lin",
    "attention.self.key": "attention.k_lin",
    "attention.self.value": "attention.v_lin",
    "attention.output.dense": "attention.out_lin",
    "attention.output.LayerNorm": "sa_layer_norm",
    "intermediate.dense": "ffn.lin1",
    "output.dense": "ffn.lin2",
    "output.LayerNorm": "output_layer_norm",
}


def tensors(seed: int = 0) -> dict[str, Array]:
    """Random weights under BERT's names, large enough to make the states of two tokens differ."""
    random = np.random.default_rng(seed)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (len(WORDS), HIDDEN),
        "embeddings.position_embeddings.weight": (POSITIONS, HIDDEN),
        "embeddings.token_type_embeddings.weight": (2, HIDDEN),
        "embeddings.LayerNorm.weight": (HIDDEN,),
        "embeddings.LayerNorm.bias": (HIDDEN,),
    }
    for layer in range(LAYERS):
        part = f"encoder.layer.{layer}"
        for name in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
            shapes |= {f"{part}.{name}.weight": (HIDDEN, HIDDEN), f"{part}.{name}.bias": (HIDDEN,)}
        shapes |= {f"{part}.intermediate.dense.weight": (INNER, HIDDEN), f"{part}.intermediate.dense.bias": (INNER,)}
        shapes |= {f"{part}.output.dense.weight": (HIDDEN, INNER), f"{part}.output.dense.bias": (HIDDEN,)}
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes |= {f"{part}.{name}.weight": (HIDDEN,), f"{part}.{name}.bias": (HIDDEN,)}
    return {name: random.normal(0.3, 0.5, shape).astype(np.float32) / 2 for name, shape in shapes.items()}


def tokenizer(*, lower: bool = True) -> Tokenizer:
    found = Tokenizer(models.WordPiece({word: place for place, word in enumerate(WORDS)}, unk_token="[UNK]"))
    found.normalizer = normalizers.BertNormalizer(lowercase=lower)
    found.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    found.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return found


CONFIG = {
    "model_type": "bert",
    "hidden_size": HIDDEN,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-5,
    "max_position_embeddings": POSITIONS,
    "pad_token_id": 0,
}


def write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def write_folder(
    path: Path,
    *,
    weights: Mapping[str, Array] | None = None,
    config: Mapping[str, Any] | None = None,
    pooling: str = "mean_tokens",
    prompts: Mapping[str, str] | None = None,
) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    save_file(dict(tensors() if weights is None else weights), str(path / "model.safetensors"))
    write_json(path / "config.json", CONFIG | dict(config or {}))
    tokenizer().save(str(path / "tokenizer.json"))
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    write_json(
        path / "modules.json", [{"path": at, "type": f"sentence_transformers.models.{k}"} for at, k in kinds.items()]
    )
    write_json(
        path / "1_Pooling" / "config.json", {"word_embedding_dimension": HIDDEN, f"pooling_mode_{pooling}": True}
    )
    if prompts is not None:
        write_json(path / "config_sentence_transformers.json", {"prompts": dict(prompts)})
    return path


def renamed(weights: Mapping[str, Array], names: Mapping[str, str], prefix: str = "") -> dict[str, Array]:
    """The same tensors under another family's names; longer names are replaced first."""
    out = {}
    for name, tensor in weights.items():
        for theirs in sorted(names, key=len, reverse=True):
            name = name.replace(f"{theirs}.", f"{names[theirs]}.") if theirs in name else name
        out[prefix + name] = tensor
    return out


def write_onnx(
    path: Path,
    *,
    inputs: tuple[str, ...] = ("input_ids",),
    output: str = "last_hidden_state",
    kind: int = TensorProto.INT64,
) -> Array:
    """A graph that looks each token up in a table; with a mask or types it adds those numbers too. Gives the table."""
    table = np.random.default_rng(1).normal(size=(len(WORDS), HIDDEN)).astype(np.float32)
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["looked_up"])]
    last = "looked_up"
    for name in inputs[1:]:
        nodes.append(helper.make_node("Cast", [name], [f"{name}_f"], to=TensorProto.FLOAT))
        nodes.append(helper.make_node("Unsqueeze", [f"{name}_f", "axis"], [f"{name}_u"]))
        nodes.append(helper.make_node("Add", [last, f"{name}_u"], [f"{name}_sum"]))
        last = f"{name}_sum"
    shape: list[Any] = ["batch", "length", HIDDEN]
    if output == "sentence_embedding":
        nodes.append(helper.make_node("ReduceMax", [last, "one"], [output], keepdims=0))
        shape = ["batch", HIDDEN]
    else:
        nodes.append(helper.make_node("Identity", [last], [output]))
    constants = {"table": table, "axis": np.array([-1]), "one": np.array([1])}
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, kind, ["batch", "length"]) for name in inputs],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), str(path))
    return table
