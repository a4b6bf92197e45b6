"""The tests mirror the source, and every test asserts something."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src/trivet"

#: What covers a module that has no test file of its name (``test_name.py`` or ``test_PACKAGE_name.py`` in the mirrored
#: folder). A row that ends in a slash is for a whole package. The surfaces are tested by command, route and tool, the
#: stores by one contract suite and by what is special to each.
COVERED_BY = {
    "chat/endpoint.py": "chat/test_proxy.py",
    "cli/": "cli",
    "http/": "http",
    "mcp/": "mcp",
    "stores/sqlite/": "contract",
    "stores/postgres/": "contract",
    "stores/qdrant/": "contract",
    "stores/contract.py": "contract",
    "stores/indexes/differences.py": "stores/sqlite/test_verify_indexes.py",
    "stores/indexes/snapshots.py": "stores/indexes/test_graph_index.py",
    "stores/expiry.py": "contract/test_contract_forgetting.py",
    "evaluate/report/": "evaluate/report/test_report_sections.py",
    "evaluate/space.py": "evaluate/test_tuning.py",
    "evaluate/tuning_result.py": "evaluate/test_tuning.py",
    "engine/explain.py": "engine/test_engine_search.py",
    "engine/opening.py": "engine/test_engine.py",
    "engine/plan.py": "engine/test_engine_search.py",
    "engine/pipeline.py": "engine/test_engine_search.py",
    "engine/request.py": "engine/test_engine_search.py",
    "engine/supersession.py": "engine/test_engine_memory.py",
    "engine/surrounding.py": "engine/test_engine_understanding.py",
    "files/": "cli/test_cli_import.py",
    "integrations/embeddings.py": "integrations/test_langchain.py",
    "integrations/haystack_filters.py": "integrations/test_haystack.py",
    "integrations/llama_index_filters.py": "integrations/test_llama_index.py",
    "rerank/scoring.py": "rerank/test_cross_encoder.py",
    "memory/remember.py": "engine/test_engine_memory.py",
    "models/encoders/": "models/embedders/test_folder.py",
    "models/scorers/words.py": "models/scorers/test_load_scorer.py",
    "rerank/cap.py": "rerank/test_diversity.py",
    "rerank/mmr.py": "rerank/test_diversity.py",
    "rerank/recency.py": "rerank/test_temporal.py",
    "text/highlight.py": "cli/test_cli_hits.py",
    "text/printable.py": "cli/test_cli_hits.py",
    "text/stop_words.py": "text/test_concepts.py",
}

#: Checks of other libraries: calling one is an assertion. So is a name that begins with ``assert_``.
CHECKS = {"expect", "raises", "warns", "check_model", "call_and_validate"}


def modules() -> list[str]:
    """Return every module of the source that has code, as a path below ``src/trivet``."""
    return sorted(
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if path.name not in ("__init__.py", "__main__.py")
    )


def covering(module: str) -> Path | None:
    """Return the test file or folder that covers ``module``: the one of its name, else the one in the table."""
    path = Path(module)
    folder = TESTS / path.parent
    names = (path.stem, f"{path.parent.name}_{path.stem}", path.stem.rstrip("_"))
    found = next((folder / f"test_{name}.py" for name in names if (folder / f"test_{name}.py").exists()), None)
    if found:
        return found
    rows = [module, *(f"{parent.as_posix()}/" for parent in path.parents)]
    return next((TESTS / COVERED_BY[row] for row in rows if row in COVERED_BY), None)


@pytest.mark.parametrize("module", modules())
def test_a_module_has_its_test_file(module: str) -> None:
    found = covering(module)
    assert found is not None, f"add tests/{Path(module).parent}/test_{Path(module).stem}.py, or a row to COVERED_BY"
    assert found.exists(), found


@pytest.mark.parametrize("row", COVERED_BY)
def test_a_row_of_the_table_is_needed(row: str) -> None:
    assert (SOURCE / row).exists(), "the module is gone: remove the row"
    folder = TESTS / Path(row).parent
    assert row.endswith("/") or not (folder / f"test_{Path(row).stem}.py").exists(), "it has its own test file by now"


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield every function and method in ``tree``."""
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def names(function: ast.AST) -> set[str]:
    """Return every name that ``function`` uses: a call, an argument (a fixture) or a function it passes on."""
    found = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    found |= {node.attr for node in ast.walk(function) if isinstance(node, ast.Attribute)}
    return found | {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}


def asserts(function: ast.AST, checking: set[str]) -> bool:
    """Return whether ``function`` asserts, or uses something that does."""
    used = names(function)
    return (
        any(isinstance(node, ast.Assert) for node in ast.walk(function))
        or bool(used & checking)
        or any(name.startswith("assert_") for name in used)
    )


def checking_names(trees: list[ast.AST]) -> set[str]:
    """Return the names of our functions that assert, directly or through one another."""
    found = set(CHECKS)
    while True:
        more = {
            function.name
            for tree in trees
            for function in functions(tree)
            if not function.name.startswith("test_") and function.name not in found and asserts(function, found)
        }
        if not more:
            return found
        found |= more


@pytest.mark.parametrize("file", sorted(path.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")))
def test_a_test_asserts(file: str) -> None:
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    shared = [path for node in imports for path in TESTS.rglob(f"{str(node.module).split('.')[-1]}.py")]
    checking = checking_names([tree, *(ast.parse(path.read_text(encoding="utf-8")) for path in shared)])
    checking -= {each.name for node in imports if str(node.module).startswith("trivet") for each in node.names}
    silent = [
        function.name
        for function in functions(tree)
        if function.name.startswith("test_") and not asserts(function, checking)
    ]
    assert silent == []
