"""The packages import each other in one direction only: ``LAYERS`` is that direction."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import trivet

ROOT = Path(trivet.__file__).parent
#: From the bottom to the top. A package may import those below it, and nothing beside or above it, except as
#: ``BESIDE`` says.
LAYERS = (
    ("types", "errors", "frozen", "filters", "plugins", "concurrency", "cache_folder"),
    ("text",),
    ("graph",),
    ("fusion", "models", "rerank", "stores"),
    ("legs",),
    ("profile",),
    ("memory", "engine"),
    ("chat", "data", "evaluate", "integrations", "serialize"),
    ("files",),
    ("http", "mcp", "cli", "web"),
    ("__init__", "__main__"),
)
#: Who imports a package of its own layer, and which.
BESIDE = {
    ("memory", "engine"),
    ("engine", "memory"),
    ("mcp", "http"),  # MCP over HTTP has the service's keys, hosts and limits
    ("cli", "http"),
    ("cli", "mcp"),
    ("evaluate", "data"),
}
PIPELINE = ("plan", "leg_threads", "supersession", "hits")
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


def package_of(dotted: str) -> str:
    """Return the first name below ``trivet``: ``trivet.stores.sqlite.words`` is of ``stores``."""
    return [*dotted.split("."), "__init__"][1]


def level_of(package: str) -> int:
    return next(level for level, packages in enumerate(LAYERS) if package in packages)


def test_there_is_something_to_check() -> None:
    assert {"types.py", "legs/dense.py", "engine/pipeline.py"} <= set(modules())
    assert "trivet.fusion" in set(imported("engine/pipeline.py"))
    assert "trivet.engine.engine" not in set(imported("engine/transfer.py"))
    assert "trivet.engine.engine" in set(imported("engine/transfer.py", run_time_only=False))


def test_every_package_has_a_layer() -> None:
    there = {path.stem for path in ROOT.iterdir() if path.suffix == ".py" or (path.is_dir() and path.name[0] != "_")}
    assert there == {name for layer in LAYERS for name in layer}


@pytest.mark.parametrize("module", modules())
def test_a_module_imports_only_what_is_below_it(module: str) -> None:
    own = module.split("/")[0].removesuffix(".py")
    for name in imported(module, run_time_only=own == "types"):
        other = package_of(name)
        if other in ("__version__", own, "__init__"):
            continue
        beside = (own, other) in BESIDE or level_of(own) == level_of(other) == 0
        assert level_of(other) < level_of(own) or beside, f"{module} imports {name}"


def test_types_and_errors_import_nothing_of_ours_at_run_time() -> None:
    assert list(imported("types.py")) == ["trivet.frozen", "trivet.frozen.Deferring"]
    assert list(imported("frozen.py")) == []
    assert list(imported("errors.py")) == []


@pytest.mark.parametrize("module", PIPELINE)
def test_the_stages_of_the_pipeline_know_neither_it_nor_each_other(module: str) -> None:
    """Control returns to ``pipeline.py``."""
    others = {f"trivet.engine.{name}" for name in (*PIPELINE, "pipeline", "engine") if name != module}
    assert others.isdisjoint(imported(f"engine/{module}.py", run_time_only=False))
    assert f"trivet.engine.{module}" in set(imported("engine/pipeline.py", run_time_only=False))


@pytest.mark.parametrize("module", [name for name in modules() if name.split("/")[0] in ("http", "mcp", "cli")])
def test_surfaces_go_through_the_engine(module: str) -> None:
    """Not to the store or a leg behind its back."""
    found = {name for name in imported(module) if package_of(name) in ("legs", "stores")}
    assert found <= {"trivet.legs", "trivet.legs.LEGS"}, "only the names of the legs"


@pytest.mark.parametrize("module", [name for name in modules() if not name.startswith("stores/")])
def test_a_store_is_known_by_its_contract_alone(module: str) -> None:
    """One place picks a store by its address; nobody else knows which there are."""
    found = {name for name in imported(module, run_time_only=False) if name.startswith("trivet.stores.")}
    kinds = tuple(f"trivet.stores.{kind}" for kind in ("sqlite", "postgres", "qdrant"))
    assert not {name for name in found if name.startswith(kinds)}


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "qdrant"])
def test_no_store_imports_the_insides_of_another(kind: str) -> None:
    others = tuple(f"trivet.stores.{other}" for other in ("sqlite", "postgres", "qdrant") if other != kind)
    for module in modules():
        if module.startswith(f"stores/{kind}/"):
            assert not [name for name in imported(module, run_time_only=False) if name.startswith(others)], module


def loaded_by(code: str) -> set[str]:
    script = f"{code}\nimport sys\nprint(*(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    return set(done.stdout.split())


def test_importing_trivet_loads_nothing_heavy() -> None:
    assert loaded_by("import trivet") == set()
    assert loaded_by("import trivet; trivet.__version__; dir(trivet)") == set()


def test_a_search_from_the_command_line_loads_what_it_needs(tmp_path: Path) -> None:
    trivet.open(tmp_path / "memory.db", embedder="hashing").add("The door is green.")
    run = f"import sys; sys.argv = ['trivet', 'search', 'door', '-s', {str(tmp_path / 'memory.db')!r}]"
    script = (
        f"{run}\nfrom trivet.cli import main\ntry:\n main()\nexcept SystemExit as ended:\n assert not ended.code\n"
        "print('#', *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    loaded = set(done.stdout.rpartition("#")[2].split())
    assert {"trivet.cli.search", "trivet.engine.engine", "numpy", "tantivy"} <= loaded
    needless = (
        "onnxruntime",
        "tokenizers",
        "faiss",
        "dateparser",
        "httpx",
        "fastapi",
        "pydantic",
        "psycopg",
        "asyncio",
    )
    ours = ("chat", "evaluate", "files", "http", "mcp", "memory.statements", "memory.redaction")
    assert loaded.isdisjoint({*needless, *(f"trivet.{name}" for name in ours), "trivet.cli.eval", "trivet.cli.serve"})


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
