from __future__ import annotations

import numpy as np
import pytest

from trivet.errors import InputError
from trivet.models.encoders.pair_encoder import HEADS, head_weights
from trivet.models.encoders.tensor_names import FAMILIES

ONE = np.ones(1, dtype=np.float32)


def test_every_supported_family_has_a_head() -> None:
    assert set(HEADS) == set(FAMILIES)


def test_the_tensors_of_a_head_are_found_behind_the_checkpoints_prefix() -> None:
    names = ["bert.embeddings.word_embeddings.weight", "bert.pooler.dense.weight", "bert.pooler.dense.bias"]
    tensors = dict.fromkeys([*names, "classifier.weight", "classifier.bias"], ONE)
    assert set(head_weights(tensors, "bert", "here")) == {"head0.w", "head0.b", "head1.w", "head1.b"}
    del tensors["classifier.bias"]
    with pytest.raises(InputError, match=r"here lacks 'classifier\.bias': its head is not supported"):
        head_weights(tensors, "bert", "here")
