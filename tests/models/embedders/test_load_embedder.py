from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from trivet.errors import InputError
from trivet.models.embedders import EMBEDDERS, KINDS, MODELS, load_embedder
from trivet.models.embedders.hashing import Hashing

if TYPE_CHECKING:
    from trivet.types import Vector

HEAVY = ("numpy", "onnxruntime", "tokenizers", "httpx", "google.protobuf", "onnx")


def imported_by(code: str, **environment: str) -> set[str]:
    script = f"import sys\n{code}\nprint(*(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env={**os.environ, **environment}
    )
    return set(done.stdout.split())


def test_importing_the_package_imports_nothing_heavy() -> None:
    assert imported_by("import trivet.models.embedders") == set()


def test_loading_the_built_in_model_opens_nothing() -> None:
    assert (
        imported_by("from trivet.models.embedders import *; load_embedder('granite')") & {"onnxruntime", "tokenizers"}
        == set()
    )


def test_running_the_built_in_model_needs_no_onnx_package(tmp_path: Path) -> None:
    """Nor does making its graph, in a cache folder that has none yet."""
    code = "sys.modules['onnx'] = None\nfrom trivet.models.embedders import load_embedder\n"
    used = imported_by(
        f"{code}load_embedder('granite').embed_queries(['cat'])\ndel sys.modules['onnx']", TRIVET_CACHE=str(tmp_path)
    )
    assert used == {"numpy", "onnxruntime", "google.protobuf"}


@pytest.mark.parametrize("spec", [None, "none"])
def test_no_embedder_is_a_choice(spec: str | None) -> None:
    assert load_embedder(spec) is None


def test_one_spec_is_one_model_and_builtin_is_granite() -> None:
    assert load_embedder("granite") is load_embedder("builtin") is load_embedder("granite:int8")


@pytest.mark.parametrize("spec", ["", " ", "bert", "granit", "/no/such/folder", "ftp://host#m", "None", "hash:3"])
def test_an_unknown_spec_is_answered_with_the_known_forms(spec: str) -> None:
    with pytest.raises(InputError) as caught:
        load_embedder(spec)
    message = str(caught.value)
    assert repr(spec) in message
    for kind in KINDS.values():
        assert kind.form in message


def test_an_existing_folder_is_taken_as_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no config\.json"):
        load_embedder(str(tmp_path))


def test_every_kind_has_a_loader() -> None:
    assert all(callable(EMBEDDERS[name]) for name in EMBEDDERS)


class Own:
    """A caller's own embedder, whose size costs a call."""

    spec, id, unrelated = "own", "own/1", 0.0

    @property
    def dim(self) -> int:
        raise AssertionError("asked too early")

    def embed_queries(self, texts: list[str]) -> Vector:
        raise NotImplementedError

    def embed_passages(self, texts: list[str]) -> Vector:
        raise NotImplementedError


def test_an_embedder_passes_through_untouched() -> None:
    own = Own()
    assert load_embedder(own) is own
    ours = Hashing(8)
    assert load_embedder(ours) is ours


def test_an_object_that_is_no_embedder_is_told_what_it_lacks() -> None:
    class Half:
        id, dim = "half", 3

    with pytest.raises(InputError, match="'Half' lacks spec, unrelated, embed_queries, embed_passages"):
        load_embedder(Half())  # type: ignore[arg-type]


def test_a_spec_that_failed_is_tried_again() -> None:
    with pytest.raises(InputError):
        load_embedder("hashing:1")
    assert "hashing:1" not in MODELS.loaded
