"""A caller can act on an error: by its class, and by the exit code of a process."""

from __future__ import annotations

import pytest

from trivet import errors
from trivet.errors import EXIT_CODES, TrivetError, exit_code


@pytest.mark.parametrize(
    ("kind", "code", "also"),
    [
        (errors.InputError, 2, ValueError),
        (errors.TakenError, 2, errors.InputError),
        (errors.NotFoundError, 1, LookupError),
        (errors.StoreError, 1, OSError),
        (errors.EmbedderError, 1, RuntimeError),
        (errors.ChatError, 1, RuntimeError),
        (errors.ModelMismatchError, 2, errors.EmbedderError),
        (errors.MissingExtraError, 2, ImportError),
        (errors.TrivetError, 1, Exception),
    ],
)
def test_code_and_kin(kind: type[TrivetError], code: int, also: type[Exception]) -> None:
    error = kind("what, which value, the way out")
    assert exit_code(error) == code
    assert isinstance(error, TrivetError)
    assert isinstance(error, also)
    assert str(error) == "what, which value, the way out"


def test_every_kind_has_a_code() -> None:
    kinds = {found for found in vars(errors).values() if isinstance(found, type) and issubclass(found, TrivetError)}
    assert kinds == set(EXIT_CODES)


def test_a_kind_of_a_kind_has_its_parents_code() -> None:
    class SpecialError(errors.StoreError):
        pass

    class OddError(TrivetError):
        pass

    assert exit_code(SpecialError("x")) == EXIT_CODES[errors.StoreError]
    assert exit_code(OddError("x")) == EXIT_CODES[TrivetError]


def test_a_chat_error_says_what_became_of_the_message() -> None:
    told = errors.ChatError("it broke off", "broken").of("episode-1")
    assert (str(told), told.kind, told.episode) == ("it broke off", "broken", "episode-1")


def test_paths_of_the_machine_are_left_out() -> None:
    said = errors.without_paths("cannot load '/srv/models/x.onnx', file:///etc/hosts/x or C:\\models\\a")
    assert said == "cannot load '[path]', [path] or [path]"
    kept = "http://127.0.0.1:11434/v1/embeddings said 500; a/b and 1/2 stay"
    assert errors.without_paths(kept) == kept
