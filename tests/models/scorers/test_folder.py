from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from embedders import tiny_models as embedding
from onnx import TensorProto
from safetensors.numpy import load_file, save_file

from trivet.errors import InputError, ScorerError
from trivet.models.encoders.encoder import FP32
from trivet.models.encoders.model_folder import architecture
from trivet.models.encoders.pair_encoder import head_weights, pair_graph
from trivet.models.encoders.tensor_names import FAMILIES, short_named
from trivet.models.scorers.folder import FolderScorer, load

from . import tiny_models as tiny

QUERY = "the cat"
PASSAGES = ["the cat sat on the mat.", "cats", "", "unknown words on Cat mat the the"]


def pair(query: str, passage: str) -> object:
    return embedding.tokenizer().encode(query, passage)


@pytest.mark.parametrize("family", tiny.HEADS)
def test_a_built_graph_equals_the_numpy_reference(tmp_path: Path, family: str) -> None:
    weights = tiny.write_folder(tmp_path, family)
    offset = 1 if family == "roberta" else 0
    found = load(str(tmp_path)).scores(QUERY, PASSAGES)
    wanted = [tiny.expected(weights, family, pair(QUERY, passage), offset)[0] for passage in PASSAGES]
    assert found == pytest.approx(wanted, abs=2e-4)
    assert np.ptp(wanted) > 0.1, "passages that are all the same would prove nothing"


def test_the_two_texts_are_told_apart(tmp_path: Path) -> None:
    """By the type of their tokens: with the types' embeddings made equal the scores change."""
    tiny.write_folder(tmp_path / "a")
    tiny.write_folder(tmp_path / "b")
    tensors = load_file(str(tmp_path / "b" / "model.safetensors"))
    tensors["bert.embeddings.token_type_embeddings.weight"][1] = tensors[
        "bert.embeddings.token_type_embeddings.weight"
    ][0]
    save_file(tensors, str(tmp_path / "b" / "model.safetensors"))
    one, other = (load(str(tmp_path / name)).scores(QUERY, PASSAGES[:1]) for name in "ab")
    assert one != pytest.approx(other, abs=1e-3)


def test_of_two_labels_the_odds_of_the_second_are_the_score(tmp_path: Path) -> None:
    weights = tiny.write_folder(tmp_path, labels=2)
    no, yes = tiny.expected(weights, "bert", pair(QUERY, PASSAGES[0]))
    assert load(str(tmp_path)).scores(QUERY, PASSAGES[:1]) == [pytest.approx(yes - no, abs=2e-4)]


def test_int8_is_close(tmp_path: Path) -> None:
    tiny.write_folder(tmp_path)
    whole, small = load(str(tmp_path)), load(f"{tmp_path}?int8")
    assert whole.id != small.id
    assert small.spec.endswith("?int8")
    assert small.scores(QUERY, PASSAGES) == pytest.approx(whole.scores(QUERY, PASSAGES), abs=0.1)


def test_the_built_graph_passes_onnx_checker(tmp_path: Path) -> None:
    tiny.write_folder(tmp_path)
    scorer = load(str(tmp_path))
    tensors = load_file(str(tmp_path / "model.safetensors"))
    weights = short_named(tensors, FAMILIES["bert"], embedding.LAYERS, "here")
    weights |= head_weights(tensors, "bert", "here")
    shape = architecture(tmp_path, scorer._config, scorer._settings, "fp32")
    model = onnx.load_from_string(pair_graph(shape, weights, "bert", FP32))
    onnx.checker.check_model(model)
    assert [item.name for item in model.graph.input] == ["input_ids", "token_type_ids"]


@pytest.mark.parametrize("labels", [1, 2])
@pytest.mark.parametrize(
    "inputs", [("input_ids",), ("input_ids", "attention_mask"), ("input_ids", "attention_mask", "token_type_ids")]
)
@pytest.mark.parametrize("kind", [TensorProto.INT64, TensorProto.INT32])
def test_an_onnx_file_runs_as_it_is(tmp_path: Path, labels: int, inputs: tuple[str, ...], kind: int) -> None:
    table = tiny.write_onnx(tmp_path / "onnx" / "model.onnx", labels, inputs, kind)
    embedding.tokenizer().save(str(tmp_path / "tokenizer.json"))
    encoded = embedding.tokenizer().encode(QUERY, PASSAGES[0])
    asked = {"attention_mask": len(encoded.ids), "token_type_ids": sum(encoded.type_ids)}
    logits = table[encoded.ids].sum(axis=0) + sum(asked[name] for name in inputs[1:])
    wanted = logits[-1] - logits[0] if labels == 2 else logits[0]
    scorer = load(str(tmp_path))
    assert scorer.scores(QUERY, PASSAGES[:1]) == [pytest.approx(wanted, abs=1e-4)]
    assert scorer.id.startswith("cross-encoder/onnx/")


def test_the_output_may_have_any_name(tmp_path: Path) -> None:
    tiny.write_onnx(tmp_path / "model.onnx", output="score")
    embedding.tokenizer().save(str(tmp_path / "tokenizer.json"))
    assert len(load(str(tmp_path)).scores(QUERY, PASSAGES)) == len(PASSAGES)


def test_a_passage_is_cut_before_the_question_is(tmp_path: Path) -> None:
    weights = tiny.write_folder(tmp_path, tokenizer_config=None)
    embedding.write_json(tmp_path / "tokenizer_config.json", {"model_max_length": 12})
    tokenizer = embedding.tokenizer()
    tokenizer.enable_truncation(12, strategy="longest_first")
    long = "the cat sat on the mat " * 400
    cut = tokenizer.encode(QUERY, long)
    assert cut.tokens[:4] == ["[CLS]", "the", "cat", "[SEP]"]
    wanted = tiny.expected(weights, "bert", cut)[0]
    assert load(str(tmp_path)).scores(QUERY, [long]) == [pytest.approx(wanted, abs=2e-4)]
    assert len(load(str(tmp_path)).scores(long, [long, ""])) == 2, "a question longer than all the room"


def test_a_template_makes_one_text_of_both(tmp_path: Path) -> None:
    table = tiny.write_onnx(tmp_path / "model.onnx")
    embedding.tokenizer().save(str(tmp_path / "tokenizer.json"))
    as_pair = load(str(tmp_path))
    plain = as_pair.scores(QUERY, PASSAGES)
    (tmp_path / "template.txt").write_text("query: {query}\npassage: {passage}\n")
    scorer = load(str(tmp_path))
    one = embedding.tokenizer().encode(f"query: {QUERY}\npassage: {PASSAGES[0]}")
    assert scorer.scores(QUERY, PASSAGES[:1]) == [pytest.approx(table[one.ids].sum() + len(one.ids), abs=1e-4)]
    assert scorer.scores(QUERY, PASSAGES) != plain
    assert scorer.id != as_pair.id, "it changes every score"
    assert scorer.scores("{passage}", ["{query}"]), "what is asked is no template"


@pytest.mark.parametrize("text", ["", "{query}", "{passage} {query}", "{query} {passage} {passage}"])
def test_a_template_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    tiny.write_folder(tmp_path)
    (tmp_path / "template.txt").write_text(text)
    with pytest.raises(InputError, match=r"template\.txt: write \{query\} once and, after it, \{passage\} once"):
        load(str(tmp_path))


def test_a_model_that_reads_for_long_is_kept_short(tmp_path: Path) -> None:
    tiny.write_folder(tmp_path, max_position_embeddings=8192)
    assert load(str(tmp_path))._settings.max_tokens == 512


def test_broken_text_is_no_failure(tmp_path: Path) -> None:
    tiny.write_folder(tmp_path)
    assert len(load(str(tmp_path)).scores("cat \ud800", ["mat \udfff", "\x00"])) == 2


def test_the_id_is_of_the_content_and_not_of_the_place(tmp_path: Path) -> None:
    for name in ("a", "b"):
        tiny.write_folder(tmp_path / name)
    assert load(str(tmp_path / "a")).id == load(str(tmp_path / "b")).id
    tensors = load_file(str(tmp_path / "b" / "model.safetensors"))
    tensors["classifier.bias"] += 1
    save_file(tensors, str(tmp_path / "b" / "model.safetensors"))
    assert load(str(tmp_path / "a")).id != load(str(tmp_path / "b")).id


def test_many_passages_are_those_one_by_one(tmp_path: Path) -> None:
    tiny.write_folder(tmp_path)
    scorer = load(str(tmp_path))
    assert scorer.scores(QUERY, PASSAGES) == [scorer.scores(QUERY, [passage])[0] for passage in PASSAGES]


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("tokenizer.json", r"neither tokenizer\.json nor vocab\.txt"),
        (
            "model.safetensors",
            r"has no model\.safetensors of a bert or .* ForSequenceClassification, and no model\.onnx",
        ),
    ],
)
def test_a_folder_that_lacks_something_is_refused_at_once(tmp_path: Path, missing: str, message: str) -> None:
    tiny.write_folder(tmp_path)
    (tmp_path / missing).unlink()
    with pytest.raises(InputError, match=message):
        load(str(tmp_path))


def test_an_embedding_model_is_no_scorer(tmp_path: Path) -> None:
    embedding.write_folder(tmp_path)
    with pytest.raises(InputError, match="ForSequenceClassification"):
        load(str(tmp_path))
    with pytest.raises(InputError, match="option 'int4' is not known"):
        load(f"{tmp_path}?int4")


def test_another_head_is_said_when_it_is_opened(tmp_path: Path) -> None:
    tiny.write_folder(tmp_path)
    tensors = load_file(str(tmp_path / "model.safetensors"))
    del tensors["classifier.weight"]
    save_file(tensors, str(tmp_path / "model.safetensors"))
    with pytest.raises(InputError, match=r"lacks 'classifier\.weight': its head is not supported; put its ONNX export"):
        load(str(tmp_path)).scores(QUERY, PASSAGES)


def test_too_many_labels_are_no_score(tmp_path: Path) -> None:
    tiny.write_folder(tmp_path / "built", labels=3)
    with pytest.raises(ScorerError, match="returns 3 numbers a pair; a cross-encoder has 1 or 2 labels") as caught:
        load(str(tmp_path / "built")).scores(QUERY, PASSAGES)
    assert str(tmp_path) not in str(caught.value), "a search says this to whoever asked"


def test_an_onnx_file_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"nonsense")
    embedding.tokenizer().save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ScorerError, match="cannot load the model"):
        load(str(tmp_path)).scores(QUERY, PASSAGES)


def test_an_input_nobody_knows(tmp_path: Path) -> None:
    tiny.write_onnx(tmp_path / "model.onnx", inputs=("input_ids", "pixel_values"))
    embedding.tokenizer().save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ScorerError, match="asks for input 'pixel_values'; known inputs: input_ids"):
        load(str(tmp_path)).scores(QUERY, PASSAGES)


def test_a_child_process_opens_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny.write_folder(tmp_path)
    scorer: FolderScorer = load(str(tmp_path))
    before = scorer.scores(QUERY, PASSAGES)
    opened = scorer._model()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert scorer.scores(QUERY, PASSAGES) == before
    assert scorer._model() is not opened
