from __future__ import annotations

import numpy as np
import pytest

from trivet.errors import InputError
from trivet.models.encoders.tensor_names import FAMILIES, prefix_of, short_named

BERT = FAMILIES["bert"]


def tensors(prefix: str, layers: int = 1) -> dict[str, np.ndarray]:
    """One number for each tensor of a checkpoint: those of query, key and value are 1, 2 and 3."""
    names = dict.fromkeys(BERT.embeddings.values(), 0)
    for layer in range(layers):
        for part in ("weight", "bias"):
            names |= {f"{name.format(layer)}.{part}": at for at, name in enumerate(BERT.qkv, start=1)}
            names |= {f"{name.format(layer)}.{part}": 0 for name in BERT.layer.values()}
    return {prefix + name: np.array([value], dtype=np.float32) for name, value in names.items()}


@pytest.mark.parametrize("prefix", ["", "bert.", "model.bert."])
def test_a_checkpoint_may_have_any_prefix(prefix: str) -> None:
    assert prefix_of(tensors(prefix), BERT) == prefix
    found = short_named(tensors(prefix), BERT, 1, "here")
    assert {"word_emb", "type_emb", "l0.qkv.w", "l0.fln.b"} <= set(found)


def test_query_key_and_value_are_stacked_in_this_order() -> None:
    found = short_named(tensors(""), BERT, 1, "here")
    assert found["l0.qkv.w"].tolist() == found["l0.qkv.b"].tolist() == [1, 2, 3]


def test_a_missing_layer_is_named() -> None:
    with pytest.raises(InputError, match=r"here lacks tensor 'encoder\.layer\.1\.attention\.self\.query\.weight'"):
        short_named(tensors(""), BERT, 2, "here")
