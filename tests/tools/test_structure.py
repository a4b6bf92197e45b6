"""The figures of `make structure`, on sources written by hand."""

from __future__ import annotations

import importlib.util
import sys
import threading
from pathlib import Path
from types import ModuleType

import pytest

TOOL = Path(__file__).parents[2] / "tools/structure.py"


@pytest.fixture(scope="module")
def structure() -> ModuleType:
    spec = importlib.util.spec_from_file_location("structure", TOOL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_class_that_inherits_from_another_part_of_a_store_is_found(structure: ModuleType) -> None:
    texts = {
        "stores/contract.py": "class Store(Protocol): ...",
        "stores/sqlite/words.py": "class Words: ...\nclass DamagedError(Exception): ...\nclass Torn(DamagedError): ...",
        "stores/sqlite/terms.py": "class Terms(Words): ...\nclass _Own(Words): ...\nclass Whole(Store): ...",
        "legs/lexical.py": "class Lexical(Words): ...",
    }
    assert structure.inheritance(texts) == ["stores/sqlite/terms.py: Terms(Words)"]


def test_a_caller_that_asks_a_store_what_it_can_do_is_found(structure: ModuleType) -> None:
    texts = {
        "engine/hits.py": "hasattr(self._store, 'places')\ngetattr(document, 'id')\ngetattr(inner, 'scripts', ())",
        "stores/qdrant/store.py": "getattr(self.inner, name)",
    }
    assert structure.capability_checks(texts) == [
        "engine/hits.py:1: hasattr(self._store, 'places')",
        "stores/qdrant/store.py:1: getattr(self.inner, name)",
    ]


def test_visits_are_listed_once_in_the_order_of_the_first_call(structure: ModuleType) -> None:
    visits = structure.Visits()
    code = {
        name: compile(f"def {name}(): pass\n{name}()", str(structure.SOURCE / f"{name}.py"), "exec")
        for name in ("second", "first")
    }
    outside = compile("def outside(): pass\noutside()", "elsewhere.py", "exec")
    before = sys.getprofile()
    sys.setprofile(visits)
    try:
        exec(code["second"], {})
        visits.recording = True
        for each in ("first", "second", "first"):
            exec(code[each], {})
        exec(outside, {})
    finally:
        sys.setprofile(before)
    assert list(visits.files) == ["first.py", "second.py"]


def test_a_search_is_followed_into_its_threads_and_nothing_stays_set(structure: ModuleType) -> None:
    files = structure.visited()
    assert files[0] == "engine/engine.py"
    assert {"legs/lexical.py", "legs/dense.py"} <= set(files)
    assert threading.getprofile() is None


def test_code_is_counted_without_docstrings_comments_and_blank_lines(structure: ModuleType) -> None:
    text = """'A module.'

# a comment
X = 1  # another

def f():
    'Return two.'
    return (
        2
    )
"""
    assert structure.code_lines(text) == 5
