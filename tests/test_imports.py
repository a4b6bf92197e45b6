"""Does every module import only what the design lets it?

types ← everything; legs, fusion, rerank, stores and embedders never import each other's insides; the engine imports
them; nobody imports a surface.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import trivet

ROOT = Path(trivet.__file__).parent
PARTS = ("legs", "fusion", "rerank", "stores", "embedders")
SPINE = ("threads.py", "links.py", "paging.py", "explaining.py")
HEAVY = (
    "numpy",
    "faiss",
    "tantivy",
    "onnxruntime",
    "tokenizers",
    "Stemmer",
    "httpx",
    "typer",
    "rich",
    "sqlite3",
    "filelock",
    "fastapi",
    "pydantic",
    "uvicorn",
    "psycopg",
    "qdrant_client",
)


def modules() -> list[str]:
    return sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py"))


def imported(module: str, run_time_only: bool = True) -> Iterator[str]:
    """The modules of ours that this one imports, dotted; what stands under TYPE_CHECKING is not there at run time."""
    tree = ast.parse((ROOT / module).read_text(encoding="utf-8"))
    skipped = {
        id(node)
        for block in ast.walk(tree)
        if run_time_only and isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for inner in block.body
        for node in ast.walk(inner)
    }
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "trivet")
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative import"
            if node.module and node.module.split(".")[0] == "trivet":
                yield node.module
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


def part_of(dotted: str) -> str | None:
    """``trivet.stores.sqlite.words`` is of the part stores."""
    pieces = dotted.split(".")
    return pieces[1] if len(pieces) > 1 and pieces[1] in PARTS else None


def test_there_is_something_to_check() -> None:
    found = modules()
    assert "types.py" in found
    assert "legs/dense.py" in found
    assert "trivet.fusion" in set(imported("search.py"))
    assert "trivet.engine" not in set(imported("transfer.py"))
    assert "trivet.engine" in set(imported("transfer.py", run_time_only=False))


def test_types_and_errors_import_nothing_of_ours_at_run_time() -> None:
    assert list(imported("types.py")) == []
    assert list(imported("errors.py")) == []


@pytest.mark.parametrize("module", [name for name in modules() if name.split("/")[0] in PARTS])
def test_the_parts_do_not_import_each_other(module: str) -> None:
    own = module.split("/")[0]
    others = {name for name in imported(module, run_time_only=False) if part_of(name) not in (None, own)}
    assert others == set()


@pytest.mark.parametrize("module", [name for name in modules() if name.split("/")[0] in PARTS])
def test_the_parts_do_not_import_what_imports_them(module: str) -> None:
    above = {"trivet.engine", "trivet.profile", "trivet.transfer", "trivet.backlog", "trivet.intake"}
    assert above.isdisjoint(imported(module))


@pytest.mark.parametrize("module", SPINE)
def test_what_the_spine_is_made_of_knows_neither_the_spine_nor_each_other(module: str) -> None:
    """Control returns to ``search.py``; what they share is ``inquiry.py``."""
    own = module.removesuffix(".py")
    others = {f"trivet.{name.removesuffix('.py')}" for name in SPINE} - {f"trivet.{own}"}
    names = set(imported(module, run_time_only=False))
    assert (others | {"trivet.search", "trivet.engine"}).isdisjoint(names)
    assert f"trivet.{own}" in set(imported("search.py", run_time_only=False))


@pytest.mark.parametrize("module", [name for name in modules() if name.startswith("scorers/")])
def test_scorers_are_models_and_know_no_part_but_the_embedders(module: str) -> None:
    """A cross-encoder is built from what an embedder is built from."""
    names = set(imported(module, run_time_only=False))
    assert {part_of(name) for name in names} <= {None, "embedders"}
    assert {"trivet.engine", "trivet.profile", "trivet.search"}.isdisjoint(names)


@pytest.mark.parametrize("module", [name for name in modules() if name.split("/")[0] in PARTS])
def test_no_part_imports_a_scorer(module: str) -> None:
    """A reranker is lent one, behind a protocol of its own."""
    assert not [name for name in imported(module, run_time_only=False) if name.startswith("trivet.scorers")]


@pytest.mark.parametrize("module", [name for name in modules() if not name.startswith("surfaces/")])
def test_nobody_imports_a_surface(module: str) -> None:
    allowed = {"trivet.surfaces.cli"} if module == "__main__.py" else set()
    assert {name for name in imported(module, run_time_only=False) if name.startswith("trivet.surfaces")} <= allowed


@pytest.mark.parametrize("module", [name for name in modules() if name.startswith("surfaces/")])
def test_surfaces_go_through_the_engine(module: str) -> None:
    """Not to the store or a leg behind its back."""
    assert {part_of(name) for name in imported(module)} <= {None, "embedders", "rerank", "fusion"}


@pytest.mark.parametrize("module", [name for name in modules() if not name.startswith("stores/")])
def test_a_store_is_known_by_its_contract_alone(module: str) -> None:
    """One place picks a store by its address; nobody else knows which there are."""
    found = {name for name in imported(module, run_time_only=False) if name.startswith("trivet.stores.")}
    kinds = tuple(f"trivet.stores.{kind}" for kind in ("sqlite", "postgres", "qdrant"))
    assert not {name for name in found if name.startswith(kinds)}


def loaded_by(code: str) -> set[str]:
    script = f"{code}\nimport sys\nprint(*(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    return set(done.stdout.split())


def test_importing_trivet_loads_nothing_heavy() -> None:
    assert loaded_by("import trivet") == set()
    assert loaded_by("import trivet; trivet.__version__; dir(trivet)") == set()


def test_the_check_sees_what_is_loaded() -> None:
    assert "numpy" in loaded_by("import numpy")


def test_a_profile_needs_no_numbers_library() -> None:
    assert loaded_by("import trivet; trivet.Profile()") == set()


def test_every_public_name_can_be_had() -> None:
    for name in trivet.__all__:
        assert getattr(trivet, name) is not None
    assert sorted(trivet.__all__) == dir(trivet)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        trivet.nonsense  # noqa: B018
