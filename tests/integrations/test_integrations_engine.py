"""What the adapters share, and what they say where their framework is not installed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from trivet.engine import Engine
from trivet.errors import InputError
from trivet.filters import Eq, matches, parse_filter
from trivet.integrations.engine import IDS_AT_ONCE, by_ids, lenient, open_engine

FRAMEWORKS = {
    "langchain": "langchain_core",
    "langgraph": "langgraph",
    "llama_index": "llama_index",
    "haystack": "haystack",
}


@pytest.mark.parametrize(("adapter", "package"), FRAMEWORKS.items())
def test_a_missing_framework_gives_its_pip_line(adapter: str, package: str) -> None:
    code = f"import sys; sys.modules[{package!r}] = None; import trivet.integrations.{adapter}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = done.stderr.splitlines()[-1]
    assert last.startswith("trivet.errors.MissingExtraError"), done.stderr
    assert f"pip install 'trivet[{adapter.replace('_', '-')}]'" in last


def test_an_engine_is_taken_as_it_is_and_a_path_is_opened(open_store: Callable[..., Engine]) -> None:
    engine = open_store()
    assert open_engine(engine, "ignored", None) is engine
    with open_engine(":memory:", "other", "hashing:8") as opened:
        assert (opened.name, opened.stats().model) == ("other", "hashing/8/1")


def test_an_engine_has_its_model_already(words: Engine) -> None:
    with pytest.raises(InputError, match="embedder: an open engine has its model"):
        open_engine(words, "default", "hashing:8")


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ({"colour": "red"}, set()),
        ({"colour": {"ne": "red"}}, {"a", "b"}),
        ({"$or": [{"colour": ["red", "blue"]}, {"size": {"gt": 1}}]}, {"b"}),
        ({"$not": {"$and": [{"colour": {"lt": "red"}}, {"size": 1}]}}, {"a", "b"}),
        ({"kind": "note", "meta.size": 1, "due": {"exists": False}}, {"a"}),
    ],
)
def test_a_condition_on_an_unknown_field_is_not_met(words: Engine, where: dict[str, object], found: set[str]) -> None:
    words.add([{"id": "a", "text": "one", "meta": {"size": 1}}, {"id": "b", "text": "two", "meta": {"size": 2}}])
    parsed = parse_filter(where)
    assert parsed is not None
    assert {document.id for document in lenient(words, parsed, words.documents)} == found
    assert {document.id for document in words.documents() if matches(parsed, document)} == found, "the same meaning"


def test_another_error_is_left_as_it_is(words: Engine) -> None:
    words.add("one", meta={"size": 1})

    def call(where: object) -> None:
        raise InputError("k: 0 is out of range")

    with pytest.raises(InputError, match="k: 0"):
        lenient(words, Eq("size", 1), call)


def test_many_documents_by_id(words: Engine) -> None:
    ids = [f"note {at}" for at in range(2 * IDS_AT_ONCE + 3)]
    words.add({"id": id, "text": id} for id in ids)
    assert list(by_ids(words, [*ids, "none"])) == ids
    assert by_ids(words, []) == {}
