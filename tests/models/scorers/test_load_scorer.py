from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from trivet.errors import InputError
from trivet.models.scorers import SCORERS, load_scorer
from trivet.models.scorers.words import Words

HEAVY = ("numpy", "onnxruntime", "tokenizers", "httpx")


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = f"import sys, trivet.models.scorers.cached\nprint(*(n for n in {HEAVY!r} if n in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize("spec", [None, "none"])
def test_none_is_none(spec: str | None) -> None:
    assert load_scorer(spec) is None


def test_one_spec_is_one_scorer() -> None:
    assert isinstance(load_scorer("words"), Words)
    assert load_scorer("words") is load_scorer("words")


def test_a_scorer_is_taken_as_it_is() -> None:
    mine = Words()
    assert load_scorer(mine) is mine


def test_an_object_that_is_none_is_told_what_it_lacks() -> None:
    class Half:
        spec = id = "half"

    with pytest.raises(InputError, match="scorer 'Half' lacks batch, scores: a scorer has spec, id, batch, scores"):
        load_scorer(Half())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("nonsense", "neither a known form nor an existing folder. Known forms: none; folder:PATH"),
        ("", "neither a known form"),
        ("words:3", "'words:3': it takes no argument; write 'words'"),
        ("folder:/no/such/folder", "/no/such/folder is not a folder"),
        ("folder:", "is not a folder"),
        ("llm:http://localhost/v1", "write the model after '#'"),
        ("llm:localhost#m", "write a URL"),
        ("http://localhost/v1/rerank", "the vllm API needs a model after '#'"),
        ("http://user:pw@localhost/rerank", "must not hold a password: put the key in TRIVET_SCORER_API_KEY"),
        ("http://localhost/rerank?api_key=x", "must not hold a key or token"),
        ("http://localhost/rerank?api=other", "api='other' is not known; known: cohere, jina, vllm, tei"),
        ("http://localhost/rerank?timeout=soon", "option timeout='soon' must be a number above 0"),
        ("http://localhost/rerank?batch=0", "option batch='0' must be a number above 0"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_asked(spec: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        load_scorer(spec)
    assert message in str(caught.value)


def test_a_folder_may_be_named_without_its_scheme(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"neither tokenizer\.json nor vocab\.txt"):
        load_scorer(str(tmp_path))


def test_every_kind_has_a_loader() -> None:
    assert all(callable(SCORERS[name]) for name in SCORERS)


def test_words_knows_spelling_and_prefers_the_shorter() -> None:
    one, two, three = Words().scores("red build", ["the red build is red", "a red door", "the " * 500 + "red build"])
    assert one > three > two > 0.0
    assert Words().scores("Ｒed", ["red"]) == [pytest.approx(1000 / 1001)]
    assert Words().scores("", ["anything"]) == [0.0]
