"""A package with a leg and a reranker is installed, and a search uses them by name."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

PACKAGE = Path(__file__).parent / "plugins" / "package"
SEARCH = """
import json, sys, trivet
from trivet.rerank import RERANKERS

profile = trivet.Profile.from_json(sys.argv[1])
with trivet.open(":memory:", embedder="none") as memory:
    memory.add({"id": "long", "text": "harbour harbour: the ferry leaves the harbour at noon"})
    memory.add({"id": "short", "text": "the harbour", "meta": {"pinned": True}})
    found = memory.search("harbour", profile=profile)
    changes = {hit.id: [(item.reranker, item.reason) for item in hit.adjustments] for hit in found}
    legs = {hit.id: [item.leg for item in hit.contributions] for hit in found}
    print(json.dumps([[hit.id for hit in found], changes, legs, RERANKERS.names()[-1]]))
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the package is installed into."""
    site = tmp_path_factory.mktemp("site")
    wheel = build_wheel(tmp_path_factory.mktemp("wheel"))
    if importlib.util.find_spec("pip"):
        offline = ["--quiet", "--no-index", "--no-deps", "--disable-pip-version-check"]
        subprocess.run([sys.executable, "-m", "pip", "install", *offline, "--target", site, wheel], check=True)
    else:
        zipfile.ZipFile(wheel).extractall(site)
    return site


def build_wheel(folder: Path) -> Path:
    """Write the wheel that a build backend makes of ``PACKAGE``, since no backend is needed to run the tests."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    name, version = project["name"], project["version"]
    stem = f"{name.replace('-', '_')}-{version}"
    groups = [
        "\n".join([f"[{group}]", *(f"{part} = {value}" for part, value in parts.items())])
        for group, parts in project["entry-points"].items()
    ]
    files = {str(path.relative_to(PACKAGE)): path.read_text() for path in PACKAGE.glob("*/*.py")} | {
        f"{stem}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{stem}.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{stem}.dist-info/entry_points.txt": "\n".join(groups),
    }
    files[f"{stem}.dist-info/RECORD"] = "".join(f"{path},,\n" for path in files)
    wheel = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return wheel


def search(site: Path | None, **profile: object) -> tuple[list[str], dict[str, Any], dict[str, Any], str]:
    """Search in a new process: hit ids, rerankers and reasons by hit, legs by hit, the last known reranker."""
    path = os.pathsep.join([str(site)] * bool(site) + [entry for entry in sys.path if entry])
    done = subprocess.run(
        [sys.executable, "-c", SEARCH, json.dumps(profile)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    ids, changes, legs, last = json.loads(done.stdout)
    return ids, changes, legs, last


def test_a_search_uses_the_reranker_of_a_package(site: Path) -> None:
    lexical = {"lexical": 1.0, "dense": 0.0}
    assert search(site, weights=lexical, fusion="rrf")[0] == ["long", "short"]
    ids, changes, _, last = search(site, weights=lexical, fusion="rrf", rerankers=[{"name": "shortest", "weight": 5.0}])
    assert ids == ["short", "long"]
    assert changes == {"short": [["shortest", "11 characters"]], "long": []}
    assert last == "shortest"


def test_a_search_uses_the_leg_of_a_package(site: Path) -> None:
    weights = {"lexical": 1.0, "dense": 0.0, "pinned": 5.0}
    ids, _, legs, _ = search(site, weights=weights, fusion="rrf")
    assert ids == ["short", "long"]
    assert legs == {"short": ["lexical", "pinned"], "long": ["lexical"]}


def test_without_the_package_its_parts_are_unknown() -> None:
    with pytest.raises(AssertionError, match="reranker: 'shortest' is unknown; known: exact, importance"):
        search(None, rerankers=["shortest"])
    with pytest.raises(AssertionError, match=r"weights\.pinned: unknown leg; known: lexical, trigram, dense, graph"):
        search(None, weights={"pinned": 1.0})
