from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trivet.errors import InputError
from trivet.models.embedders import load_embedder
from trivet.models.embedders.hashing import Hashing

GOLDEN = [
    0.1459,
    -0.4376,
    0.0,
    -0.2917,
    0.0,
    0.0,
    0.0,
    0.1459,
    0.0,
    0.5835,
    0.2917,
    0.1459,
    0.4376,
    -0.1459,
    0.0,
    -0.1459,
]

PRINT = (
    "from trivet.models.embedders.hashing import Hashing; "
    "print(Hashing(16).embed_queries(['Grüße, Welt! 日本 x'])[0].tolist())"
)


def vector(text: str, dim: int = 256) -> np.ndarray:
    return Hashing(dim).embed_passages([text])[0]


def test_vectors_are_those_of_the_first_release() -> None:
    """Frozen: golden files and stores made with an older version hold these."""
    assert vector("the quick brown fox", 16).tolist() == pytest.approx(GOLDEN, abs=1e-4)


@pytest.mark.parametrize("seed", ["0", "12345"])
def test_vectors_do_not_depend_on_the_process(seed: str) -> None:
    environment = os.environ | {"PYTHONHASHSEED": seed}
    done = subprocess.run([sys.executable, "-c", PRINT], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == str(vector("Grüße, Welt! 日本 x", 16).tolist())


def test_case_width_and_punctuation_do_not_matter() -> None:
    assert np.array_equal(vector("Straße: ＦＯＯ"), vector("STRASSE foo!"))


def test_shared_words_and_shared_spelling_count() -> None:
    query = vector("docker volume mount")
    same_words = float(query @ vector("mount the docker volume"))
    misspelt = float(query @ vector("dokcer volumes mounted"))
    unrelated = float(query @ vector("recipe for apple cake"))
    assert same_words > misspelt > unrelated
    assert misspelt > 0.25 > abs(unrelated)


def test_a_text_without_words_is_a_zero_row() -> None:
    assert not Hashing().embed_passages(["", " ", "!?"]).any()
    assert Hashing(32).embed_queries([]).shape == (0, 32)


@given(st.text(max_size=60), st.integers(8, 512))
@settings(max_examples=60, deadline=None)
def test_every_row_is_unit_or_zero(text: str, dim: int) -> None:
    row = vector(text, dim)
    assert row.shape == (dim,)
    assert row.dtype == np.float32
    assert np.linalg.norm(row) == pytest.approx(1.0, abs=1e-5) or not row.any()


def test_specs() -> None:
    plain, sized = load_embedder("hashing"), load_embedder("hashing:64")
    assert plain is not None
    assert sized is not None
    assert (plain.dim, sized.dim) == (256, 64)
    assert load_embedder("hashing:256") is plain
    assert plain.id != sized.id


@pytest.mark.parametrize("dim", ["0", "7", "65537", "-8", "many", "8.5", "٣٢"])
def test_an_impossible_dimension_is_refused(dim: str) -> None:
    with pytest.raises(InputError, match="8 to 65536"):
        load_embedder(f"hashing:{dim}")
