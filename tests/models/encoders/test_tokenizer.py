from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from embedders import tiny_models
from tokenizers import normalizers, pre_tokenizers

from trivet.errors import MissingExtraError
from trivet.models.embedders import load_embedder
from trivet.models.encoders.tokenizer import WHITE, CharacterClass, TokenizersPackage, character_classes, check_package

ROOT = Path(__file__).parents[3]


def test_classes_of_characters_are_those_of_the_library() -> None:
    """Every character that begins or ends a range, or lies beside one (tools/character_classes.py writes the file)."""
    classes, words = character_classes(), pre_tokenizers.ByteLevel(add_prefix_space=False)
    bert, normal = pre_tokenizers.BertPreTokenizer(), normalizers.BertNormalizer(lowercase=True)
    edges = {near for found in classes.values() for edge in found._edges for near in (edge - 1, edge)}
    assert len(edges) > 3_000
    for code in sorted(code for code in edges if 0 <= code < 0x110000 and not 0xD800 <= code < 0xE000):
        character = chr(code)
        letter = len(words.pre_tokenize_str(f"a{character}a")) == 1
        assert (code in classes["letters"]) == letter, hex(code)
        number = not letter and len(words.pre_tokenize_str(f"1{character}1")) == 1
        assert (code in classes["numbers"]) == number, hex(code)
        assert (code in classes["punctuation"]) == (len(bert.pre_tokenize_str(f"a{character}a")) == 3), hex(code)
        assert (code in classes["removed"]) == (normal.normalize_str(f"a{character}a") == "aa"), hex(code)


def test_white_space_is_that_of_the_library() -> None:
    words = pre_tokenizers.BertPreTokenizer()
    codes = (code for code in range(0x3001) if len(words.pre_tokenize_str(f"a{chr(code)}a")) == 2)
    assert "".join(map(chr, codes)) == WHITE


def test_a_class_has_the_characters_of_its_ranges() -> None:
    found = CharacterClass([3, 5, 9, 10])
    assert [code for code in range(12) if code in found] == [3, 4, 9]


def test_the_package_cuts_a_text_and_never_pads_it() -> None:
    library = tiny_models.tokenizer()
    library.enable_padding(length=50)
    encoded = TokenizersPackage(library, 4).encode("the cat sat on the mat")
    assert (len(encoded.ids), encoded.type_ids, encoded.attention_mask) == (4, [0] * 4, [1] * 4)


def test_without_the_package_a_folder_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "trivet.models.encoders.tokenizer.find_spec", lambda name: None if name == "tokenizers" else found(name)
    )
    with pytest.raises(MissingExtraError, match=r"the reader needs .* pip install 'trivet\[folder\]'"):
        check_package("the reader")
    with pytest.raises(MissingExtraError, match="embedder 'folder:"):
        load_embedder(f"folder:{tmp_path}")


def test_built_in_models_work_without_the_package() -> None:
    program = (
        "import sys; sys.modules['tokenizers'] = None\n"
        "from trivet.models.embedders import load_embedder\n"
        "from trivet.models.scorers import load_scorer\n"
        "print(load_embedder('builtin').embed_queries(['a cat']).shape)\n"
        "print(len(load_scorer('reader').scores('a cat', ['a cat sat', 'rain'])))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["(1,", "384)", "2"]
