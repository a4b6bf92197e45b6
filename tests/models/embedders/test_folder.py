from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from trivet.errors import EmbedderError, InputError
from trivet.models.embedders import load_embedder
from trivet.types import Embedder

from . import tiny_models as tiny
from .reference import bert_states, unit

TEXTS = ["the cat sat on the mat.", "cats", "Mat on Cat", "unknown words here"]
IDS = [tiny.tokenizer().encode(text).ids for text in TEXTS]


def folder(path: Path, option: str = "") -> Embedder:
    found = load_embedder(f"folder:{path}{option}")
    assert found is not None
    return found


def mean(states: np.ndarray) -> np.ndarray:
    return unit(states.mean(axis=0))


def cls(states: np.ndarray) -> np.ndarray:
    return unit(states[0])


def expected(weights: dict[str, Any], pool: Callable[[np.ndarray], np.ndarray], offset: int = 0) -> np.ndarray:
    return np.stack([pool(bert_states(ids, weights, tiny.HEADS, 1e-5, offset)) for ids in IDS])


def agree(ours: np.ndarray, theirs: np.ndarray) -> None:
    assert len({tuple(row.round(3)) for row in theirs}) == len(theirs), "the reference cannot tell these texts apart"
    np.testing.assert_allclose(ours, theirs, atol=3e-6)


@pytest.mark.parametrize(("mode", "pool"), [("mean_tokens", mean), ("cls_token", cls)])
def test_bert_equals_the_reference(mode: str, pool: Any, tmp_path: Path) -> None:
    path = tiny.write_folder(tmp_path / "m", pooling=mode)
    agree(folder(path).embed_passages(TEXTS), expected(tiny.tensors(), pool))


@pytest.mark.parametrize(
    ("family", "prefix"), [("roberta", "roberta."), ("xlm-roberta", ""), ("camembert", "roberta.")]
)
def test_roberta_counts_positions_from_behind_the_padding(family: str, prefix: str, tmp_path: Path) -> None:
    weights = tiny.renamed(tiny.tensors(), {}, prefix)
    path = tiny.write_folder(tmp_path / "m", weights=weights, config={"model_type": family, "pad_token_id": 1})
    agree(folder(path).embed_passages(TEXTS), expected(tiny.tensors(), mean, offset=2))


def test_distilbert_equals_the_reference(tmp_path: Path) -> None:
    weights = tiny.tensors()
    del weights["embeddings.token_type_embeddings.weight"]
    sizes = {"dim": tiny.HIDDEN, "n_layers": tiny.LAYERS, "n_heads": tiny.HEADS, "activation": "gelu"}
    path = tiny.write_folder(
        tmp_path / "m",
        weights=tiny.renamed(weights, tiny.DISTILBERT, "distilbert."),
        config={"model_type": "distilbert", "hidden_size": None, **sizes},
    )
    agree(folder(path).embed_passages(TEXTS), expected(weights, mean))


def test_int8_is_near_fp32_and_another_model(tmp_path: Path) -> None:
    path = tiny.write_folder(tmp_path / "m")
    exact, rounded = folder(path), folder(path, "?int8")
    cosines = (exact.embed_passages(TEXTS) * rounded.embed_passages(TEXTS)).sum(axis=1)
    assert 0.999 < cosines.min() < 0.9999999
    assert exact.id != rounded.id
    assert (exact.spec, rounded.spec) == (f"folder:{path}", f"folder:{path}?int8")


def test_prompts_of_the_folder_are_used(tmp_path: Path) -> None:
    plain = folder(tiny.write_folder(tmp_path / "plain"))
    prompts = {"query": "query: ", "passage": "passage: "}
    prompted = folder(tiny.write_folder(tmp_path / "prompted", prompts=prompts))
    assert np.array_equal(prompted.embed_queries(["cat"]), plain.embed_queries(["query: cat"]))
    assert np.array_equal(prompted.embed_passages(["cat"]), plain.embed_passages(["passage: cat"]))
    assert prompted.id != plain.id
    documents = folder(tiny.write_folder(tmp_path / "documents", prompts={"query": "", "document": "the "}))
    assert np.array_equal(documents.embed_passages(["cat"]), plain.embed_passages(["the cat"]))


def test_vocab_txt_stands_in_for_tokenizer_json(tmp_path: Path) -> None:
    path = tiny.write_folder(tmp_path / "m")
    before = folder(path).embed_passages(TEXTS)
    cased = tiny.write_folder(tmp_path / "cased")
    for place in (path, cased):
        (place / "tokenizer.json").unlink()
        (place / "vocab.txt").write_text("\n".join(tiny.WORDS) + "\n", encoding="utf-8")
    tiny.write_json(cased / "tokenizer_config.json", {"do_lower_case": False})
    listed = load_embedder(f"folder:{shutil.copytree(path, tmp_path / 'copy')}")
    assert listed is not None
    assert np.array_equal(listed.embed_passages(TEXTS), before)
    upper, lower = folder(cased).embed_passages(["Cat", "cat"])
    assert not np.array_equal(upper, lower)


def test_lower_casing_asked_for_by_the_pipeline_is_done(tmp_path: Path) -> None:
    path = tiny.write_folder(tmp_path / "m")
    tiny.tokenizer(lower=False).save(str(path / "tokenizer.json"))
    upper, lower = folder(path).embed_passages(["Cat", "cat"])
    assert not np.array_equal(upper, lower)
    asked = Path(shutil.copytree(path, tmp_path / "asked"))
    tiny.write_json(asked / "sentence_bert_config.json", {"do_lower_case": True})
    upper, lower = folder(asked).embed_passages(["Cat", "cat"])
    assert np.array_equal(upper, lower)


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({}, tiny.POSITIONS),
        ({"sentence_bert_config.json": {"max_seq_length": 12}}, 12),
        ({"tokenizer_config.json": {"model_max_length": 9}, "sentence_bert_config.json": {"max_seq_length": None}}, 9),
        ({"tokenizer_config.json": {"model_max_length": 10**30}}, tiny.POSITIONS),
    ],
)
def test_texts_are_cut_at_the_smallest_limit(files: dict[str, Any], limit: int, tmp_path: Path) -> None:
    path = tiny.write_folder(tmp_path / "m")
    stored = Tokenizer.from_file(str(path / "tokenizer.json"))
    stored.enable_truncation(5)  # what tokenizer.json itself says does not count: all-MiniLM's says 128, and pads to it
    stored.enable_padding(length=30)
    stored.save(str(path / "tokenizer.json"))
    for name, value in files.items():
        tiny.write_json(path / name, value)
    model = folder(path)
    whole, cut, shorter = model.embed_passages(["the " * 99, "the " * (limit - 2), "the " * (limit - 3)])
    assert np.array_equal(whole, cut)
    assert not np.array_equal(cut, shorter)


def test_a_folder_moved_keeps_its_id_and_one_changed_does_not(tmp_path: Path) -> None:
    path = tiny.write_folder(tmp_path / "m")
    moved = Path(shutil.copytree(path, tmp_path / "moved"))
    assert folder(path).id == folder(moved).id
    assert folder(path).id.startswith("bert-2x64/fp32/")
    others = [
        tiny.write_folder(tmp_path / "weights", weights=tiny.tensors(seed=1)),
        tiny.write_folder(tmp_path / "pooling", pooling="cls_token"),
    ]
    shorter = tiny.write_folder(tmp_path / "shorter")
    tiny.write_json(shorter / "sentence_bert_config.json", {"max_seq_length": 12})
    ids = {folder(other).id for other in (path, shorter, *others)}
    assert len(ids) == 4


def test_unrelated_is_measured(tmp_path: Path) -> None:
    assert 0.5 < folder(tiny.write_folder(tmp_path / "m")).unrelated <= 1.0


# --- ONNX layout ---------------------------------------------------------------------------------------------------


def onnx_folder(path: Path, where: str = "model.onnx", **known: Any) -> tuple[Path, np.ndarray]:
    tiny.write_folder(path, config={"model_type": "mpnet"}, pooling=known.pop("pooling", "mean_tokens"))
    (path / "model.safetensors").unlink()
    return path, tiny.write_onnx(path / where, **known)


@pytest.mark.parametrize("where", ["model.onnx", "onnx/model.onnx"])
@pytest.mark.parametrize("pooling", ["mean_tokens", "cls_token"])
def test_an_onnx_model_runs_as_it_is(where: str, pooling: str, tmp_path: Path) -> None:
    path, table = onnx_folder(tmp_path / "m", where, pooling=pooling)
    pool = mean if pooling == "mean_tokens" else cls
    np.testing.assert_allclose(folder(path).embed_passages(TEXTS), [pool(table[ids]) for ids in IDS], atol=1e-6)


@pytest.mark.parametrize("kind", [TensorProto.INT64, TensorProto.INT32])
def test_mask_and_types_are_given_where_asked_for(kind: int, tmp_path: Path) -> None:
    inputs = ("input_ids", "attention_mask", "token_type_ids")
    path, table = onnx_folder(tmp_path / "m", inputs=inputs, kind=kind)
    np.testing.assert_allclose(folder(path).embed_passages(TEXTS), [mean(table[ids] + 1) for ids in IDS], atol=1e-6)


def test_a_pooled_output_is_taken_as_it_is(tmp_path: Path) -> None:
    path, table = onnx_folder(tmp_path / "m", output="sentence_embedding")
    np.testing.assert_allclose(
        folder(path).embed_passages(TEXTS), [unit(table[ids].max(axis=0)) for ids in IDS], atol=1e-6
    )


def test_an_input_nobody_can_give_is_named(tmp_path: Path) -> None:
    path, _ = onnx_folder(tmp_path / "m", inputs=("input_ids", "pixel_values"))
    with pytest.raises(EmbedderError, match=r"asks for input 'pixel_values'; known inputs: input_ids"):
        folder(path).embed_passages(["cat"])


def test_weights_are_preferred_where_their_family_is_known(tmp_path: Path) -> None:
    path = tiny.write_folder(tmp_path / "m")
    tiny.write_onnx(path / "onnx" / "model.onnx")
    assert "/fp32/" in folder(path).id
    tiny.write_json(path / "config.json", tiny.CONFIG | {"model_type": "mpnet"})
    other = Path(shutil.copytree(path, tmp_path / "mpnet"))
    assert "/onnx/" in folder(other).id


def test_a_broken_onnx_file_and_a_failing_run_are_embedder_errors(tmp_path: Path) -> None:
    path, _ = onnx_folder(tmp_path / "m")
    (path / "model.onnx").write_bytes(b"not a model")
    with pytest.raises(EmbedderError, match="cannot load the model"):
        folder(path).embed_passages(["cat"])
    larger, _ = onnx_folder(tmp_path / "larger")
    vocabulary = tiny.tokenizer()
    vocabulary.add_tokens(["zebra"])
    vocabulary.save(str(larger / "tokenizer.json"))
    with pytest.raises(EmbedderError, match="the model failed on 'a zebra'"):
        folder(larger).embed_passages(["a zebra"])


# --- what is missing or not supported is named ----------------------------------------------------------------------


def without(name: str) -> Callable[[Path], None]:
    return lambda path: (path / name).unlink()


def config(**changes: Any) -> Callable[[Path], None]:
    return lambda path: tiny.write_json(path / "config.json", tiny.CONFIG | changes)


def written(name: str, value: Any) -> Callable[[Path], None]:
    return lambda path: tiny.write_json(path / name, value)


@pytest.mark.parametrize(
    ("spoil", "option", "what"),
    [
        (without("config.json"), "", r"has no config\.json"),
        (without("tokenizer.json"), "", r"has neither tokenizer\.json nor vocab\.txt"),
        (without("model.safetensors"), "", r"has no model\.safetensors"),
        (without("model.safetensors"), "?int8", r"has no model\.safetensors"),
        (config(model_type="mpnet"), "", r"model_type 'mpnet' is not supported \(bert, .* put its ONNX export"),
        (config(hidden_act="relu6"), "", r"activation 'relu6' is not supported, only gelu"),
        (config(position_embedding_type="relative_key"), "", "position_embedding_type 'relative_key' is not supported"),
        (config(hidden_size=None), "", r"config\.json: hidden_size must be a whole number above 0, not None"),
        (config(hidden_size=96), "?int8", r"\?int8 needs a hidden size divisible by 64, not 96"),
        (written("modules.json", [{"path": "2_Dense", "type": "a.b.Dense"}]), "", r"modules\.json: module 'Dense'"),
        (
            written("1_Pooling/config.json", {"pooling_mode_max_tokens": True}),
            "",
            r"pooling \['pooling_mode_max_tokens'\]",
        ),
        (lambda path: (path / "config.json").write_text("{"), "", r"config\.json cannot be read as JSON"),
        (lambda path: None, "?int4", r"option 'int4' is not known; write '\?int8' or nothing"),
    ],
)
def test_a_folder_that_cannot_be_used_says_why(spoil: Any, option: str, what: str, tmp_path: Path) -> None:
    path = tiny.write_folder(tmp_path / "m")
    spoil(path)
    with pytest.raises(InputError, match=what):
        folder(path, option)


def test_prompts_that_must_not_be_pooled_are_refused(tmp_path: Path) -> None:
    path = tiny.write_folder(tmp_path / "m", prompts={"query": "query: "})
    pooling = {"pooling_mode_mean_tokens": True, "include_prompt": False}
    tiny.write_json(path / "1_Pooling" / "config.json", pooling)
    with pytest.raises(InputError, match="include_prompt"):
        folder(path)


def test_no_folder_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere is not a folder"):
        folder(tmp_path / "nowhere")


def test_weights_that_do_not_fit_the_config_are_named_at_the_first_text(tmp_path: Path) -> None:
    path = tiny.write_folder(tmp_path / "m", config={"num_hidden_layers": 3})
    with pytest.raises(InputError, match=r"model\.safetensors lacks tensor 'encoder\.layer\.2\.attention\.self\.query"):
        folder(path).embed_passages(["cat"])


def test_a_vocabulary_without_specials_is_refused(tmp_path: Path) -> None:
    path = tiny.write_folder(tmp_path / "m")
    (path / "tokenizer.json").unlink()
    (path / "vocab.txt").write_text("cat\nmat\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"vocab\.txt lacks \[UNK\], \[CLS\], \[SEP\]"):
        folder(path).embed_passages(["cat"])


# --- the real all-MiniLM-L6-v2 ---------------------------------------------------------------------------------------

REAL = ["How do I mount a volume in docker?", "The cat sat on the mat.", "Ünïcode déjà vu"]
#: ``REAL`` through transformers 5.22's AutoModel and AutoTokenizer (torch 2.13, CPU, float32), mean of the states,
#: normalised: first eight of 384 values. Made by hand, once.
TORCH = [
    [0.03951407, 0.06068140, -0.04786403, -0.05403874, -0.03491687, -0.04821956, -0.01468087, 0.05511833],
    [0.13023721, -0.01577285, -0.03671669, 0.05798641, -0.05979175, 0.03305371, 0.03012398, 0.02892723],
    [-0.07157453, -0.01024205, 0.06482387, 0.00985987, -0.05788352, -0.01536954, 0.00378917, -0.04499728],
]


def test_minilm_equals_numpy_and_torch(minilm: Path) -> None:
    model = folder(minilm)
    rows = model.embed_passages(REAL)
    np.testing.assert_allclose(rows[:, :8], TORCH, atol=2e-6)
    stored = Tokenizer.from_file(str(minilm / "tokenizer.json"))
    stored.no_padding()
    weights = load_file(str(minilm / "model.safetensors"))
    theirs = np.stack([mean(bert_states(stored.encode(text).ids, weights, 12, 1e-12)) for text in REAL])
    assert (rows * theirs).sum(axis=1).min() > 0.999999
    assert model.dim == 384
    assert abs(model.unrelated) < 0.1


def test_minilm_in_int8_stays_near(minilm: Path) -> None:
    cosines = (folder(minilm).embed_passages(REAL) * folder(minilm, "?int8").embed_passages(REAL)).sum(axis=1)
    assert cosines.min() > 0.999
