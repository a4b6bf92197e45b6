"""Model folders by themselves; ``test_folder.py`` of embedders and of scorers loads whole ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from trivet.errors import InputError
from trivet.models.encoders.model_folder import Settings, fingerprint, max_tokens, parse_folder

SETTINGS = Settings("cls", 512, False, True, "", "")


def test_a_spec_is_a_path_and_a_precision(tmp_path: Path) -> None:
    assert parse_folder("scorer", str(tmp_path)) == (tmp_path, "")
    assert parse_folder("scorer", f"{tmp_path}?int8") == (tmp_path, "int8")


@pytest.mark.parametrize(
    ("argument", "message"),
    [("", "scorer 'folder:': .* is not a folder"), ("/no/such", "is not a folder"), (".?int4", "option 'int4'")],
)
def test_a_wrong_spec_is_refused(argument: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_folder("scorer", argument)


def test_the_smallest_limit_of_tokens_holds() -> None:
    config = {"max_position_embeddings": 514, "model_type": "roberta", "pad_token_id": 1}
    assert max_tokens(config, {}, {}) == 512, "positions start behind the padding token"
    assert max_tokens(config, {"max_seq_length": 256}, {"model_max_length": 300}) == 256
    assert max_tokens(config, {"max_seq_length": None}, {"model_max_length": 10**30}) == 512


def test_the_fingerprint_changes_with_content_and_settings_and_not_with_the_place(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.onnx").write_bytes(b"weights")
        (tmp_path / name / "tokenizer.json").write_bytes(b"{}")

    def made(name: str, settings: Settings = SETTINGS) -> str:
        return fingerprint(tmp_path / name / "model.onnx", tmp_path / name / "tokenizer.json", settings)

    assert made("a") == made("b")
    assert made("a") != made("a", replace(SETTINGS, query_prompt="query: "))
    (tmp_path / "b" / "model.onnx_data").write_bytes(b"more weights")
    assert made("a") != made("b"), "the second file of a large ONNX model counts"
