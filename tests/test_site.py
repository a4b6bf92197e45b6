"""The documentation site builds strictly, and needs nothing from another host."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parent.parent
pytest.importorskip("zensical")


class Page(HTMLParser):
    """The addresses and the anchors of a page; ``loaded`` are those that a browser fetches by itself."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") not in ("canonical", "next", "prev"):
            self.loaded.append(given.get("href", ""))
        elif "src" in given:
            self.loaded.append(given["src"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as ``make site`` does, in a folder of its own."""
    folder = tmp_path_factory.mktemp("site")
    for name in ("mkdocs.yml", "ARCHITECTURE.md"):
        shutil.copy(ROOT / name, folder)
    for name in ("docs", "src"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "build/site"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}


def local(pages: dict[Path, Page], site: Path) -> Iterator[tuple[Path, str, Path, str]]:
    """Yield every address within the site: the page, the address, the file and the anchor."""
    for path, page in pages.items():
        for address in (*page.links, *page.loaded):
            split = urlsplit(address)
            if not split.scheme and not split.netloc and address and path.name != "404.html":
                target = path if not split.path else (path.parent / unquote(split.path)).resolve()
                yield path, address, target, unquote(split.fragment)


def test_every_link_and_anchor_of_the_built_pages_exists(pages: dict[Path, Page], site: Path) -> None:
    missing = []
    for path, address, target, anchor in local(pages, site):
        file = target / "index.html" if target.is_dir() else target
        if not file.exists() or (anchor and file in pages and anchor not in pages[file].anchors):
            missing.append(f"{path.relative_to(site)}: {address}")
    assert missing == []


def test_a_browser_loads_nothing_from_another_host(pages: dict[Path, Page]) -> None:
    loaded = [address for page in pages.values() for address in page.loaded]
    assert loaded
    assert [address for address in loaded if urlsplit(address).netloc] == []


def test_stylesheets_load_nothing_from_another_host(site: Path) -> None:
    sheets = list(site.rglob("*.css"))
    assert sheets
    assert [path.name for path in sheets if "url(http" in path.read_text(encoding="utf-8").replace('"', "")] == []


def test_the_engine_is_in_the_python_reference(site: Path) -> None:
    text = (site / "reference/python/engine.html").read_text(encoding="utf-8")
    assert 'id="trivet.Engine.search"' in text
