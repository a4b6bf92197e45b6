"""The names of an encoder's tensors in Hugging Face checkpoints of the BERT family.

One naming per ``model_type`` of config.json; ``{}`` is the number of the layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from trivet.errors import InputError

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Family:
    """The names of one family: of its tensors, and of its sizes in config.json."""

    embeddings: Mapping[str, str]
    qkv: tuple[str, str, str]
    layer: Mapping[str, str]
    #: Positions start after the padding token's id (RoBERTa and similar), not at 0.
    offset_by_padding: bool = False
    config: Mapping[str, str] = field(
        default_factory=lambda: {
            "hidden": "hidden_size",
            "layers": "num_hidden_layers",
            "heads": "num_attention_heads",
            "activation": "hidden_act",
        }
    )


_EMBEDDINGS = {
    "word_emb": "embeddings.word_embeddings.weight",
    "pos_emb": "embeddings.position_embeddings.weight",
    "emb_ln.w": "embeddings.LayerNorm.weight",
    "emb_ln.b": "embeddings.LayerNorm.bias",
}
_BERT = Family(
    embeddings=_EMBEDDINGS | {"type_emb": "embeddings.token_type_embeddings.weight"},
    qkv=tuple(f"encoder.layer.{{}}.attention.self.{part}" for part in ("query", "key", "value")),  # type: ignore[arg-type]
    layer={
        "ao": "encoder.layer.{}.attention.output.dense",
        "aln": "encoder.layer.{}.attention.output.LayerNorm",
        "f1": "encoder.layer.{}.intermediate.dense",
        "f2": "encoder.layer.{}.output.dense",
        "fln": "encoder.layer.{}.output.LayerNorm",
    },
)
_ROBERTA = Family(_BERT.embeddings, _BERT.qkv, _BERT.layer, offset_by_padding=True)
_DISTILBERT = Family(
    embeddings=_EMBEDDINGS,
    qkv=(
        "transformer.layer.{}.attention.q_lin",
        "transformer.layer.{}.attention.k_lin",
        "transformer.layer.{}.attention.v_lin",
    ),
    layer={
        "ao": "transformer.layer.{}.attention.out_lin",
        "aln": "transformer.layer.{}.sa_layer_norm",
        "f1": "transformer.layer.{}.ffn.lin1",
        "f2": "transformer.layer.{}.ffn.lin2",
        "fln": "transformer.layer.{}.output_layer_norm",
    },
    config={"hidden": "dim", "layers": "n_layers", "heads": "n_heads", "activation": "activation"},
)

FAMILIES: Mapping[str, Family] = {
    "bert": _BERT,
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "camembert": _ROBERTA,
    "distilbert": _DISTILBERT,
}


def prefix_of(tensors: Mapping[str, Floats], family: Family) -> str:
    """Return the prefix of every name: "bert.", "roberta." or nothing, depending on how the checkpoint was saved."""
    known = family.embeddings["word_emb"]
    return next((name for name in tensors if name.endswith(known)), known).removesuffix(known)


def short_named(tensors: Mapping[str, Floats], family: Family, layers: int, where: str) -> dict[str, Floats]:
    """Return a checkpoint's tensors under the short names, with query, key and value stacked into one matrix."""
    prefix = prefix_of(tensors, family)

    def tensor(name: str) -> Floats:
        try:
            return tensors[prefix + name]
        except KeyError:
            raise InputError(f"{where} lacks tensor {prefix + name!r}: config.json is of another model") from None

    weights = {short: tensor(name) for short, name in family.embeddings.items()}
    for layer in range(layers):
        for kind, suffix in (("w", "weight"), ("b", "bias")):
            parts = [tensor(f"{name.format(layer)}.{suffix}") for name in family.qkv]
            weights[f"l{layer}.qkv.{kind}"] = np.concatenate(parts)
            for short, name in family.layer.items():
                weights[f"l{layer}.{short}.{kind}"] = tensor(f"{name.format(layer)}.{suffix}")
    return weights
