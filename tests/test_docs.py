"""Can the docs lie? Every command, setting, dependency and target is documented, and README code runs."""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from trivet.profile import _CHECKS, PROFILES, Profile
from trivet.rerank import describe

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
SETTINGS = (ROOT / "docs/SETTINGS.md").read_text()


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def test_readme_python_runs_with_the_built_in_model(tmp_path: Path) -> None:
    code = "\n".join(blocks(README, "python"))
    assert "trivet.open" in code
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1 door"), "the paraphrase finds the note it means"


def test_readme_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    named = set(
        re.findall(r"(?:^|`)make ([a-z-]+)", README + (ROOT / "CONTRIBUTING.md").read_text(), flags=re.MULTILINE)
    )
    assert {"demo", "test", "lint", "bench"} <= named
    for target in named:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_ci_runs_the_readmes_test_command() -> None:
    assert "make test" in README
    assert "make test" in (ROOT / ".ci/run").read_text()


@pytest.mark.parametrize("name", list(_CHECKS))
def test_every_setting_is_documented(name: str) -> None:
    assert f"| `{name}` |" in SETTINGS


@pytest.mark.parametrize(("name", "options"), describe().items())
def test_every_reranker_option_is_documented_with_its_default(name: str, options: dict[str, object]) -> None:
    for option, about in options.items():
        row = next((line for line in SETTINGS.splitlines() if line.startswith(f"| `{name}` | `{option}` |")), None)
        assert row is not None, f"{name}.{option}"
        assert f"| {about.default} |" in row  # type: ignore[attr-defined]


def test_documented_toml_is_a_profile() -> None:
    (text,) = blocks(SETTINGS, "toml")
    assert Profile.from_toml(text).rerankers[0].name == "importance"


def test_documented_defaults_are_the_defaults() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", SETTINGS, flags=re.MULTILINE))
    default = PROFILES["default"]
    for name in ("k", "weighing", "fusion", "normalize", "rrf_k", "pool", "match", "min_relevance"):
        shown = rows[name].strip().strip('`"')
        assert str(getattr(default, name)).removesuffix(".0") == shown, name


def test_every_profile_is_documented() -> None:
    pages = SETTINGS + (ROOT / "docs/PROFILES.md").read_text()
    for name in PROFILES:
        assert f"`{name}`" in pages


def test_the_command_page_is_what_the_commands_say() -> None:
    spec = importlib.util.spec_from_file_location("cli_page", ROOT / "docs/cli_page.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = module.page()
    assert page.count("\n## `trivet ") == 27
    assert (ROOT / "docs/CLI.md").read_text() == page, "run `make docs`"
    for section in page.split("\n## ")[1:]:
        assert "**Example" in section, section.splitlines()[0]


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = (ROOT / "docs/DEPENDENCIES.md").read_text()
    for requirement in project["dependencies"]:
        name = re.split(r"[<>=\[ ]", requirement)[0]
        assert f"| `{name}` |" in page, name
        assert re.search(r"[<=]", requirement), f"{name} has no upper end"
    extras = project["optional-dependencies"]
    for requirement in [item for name in extras for item in extras[name] if not item.startswith("trivet[")]:
        assert f"`{re.split(r'[<>=]', requirement)[0]}`" in page, requirement


def test_architecture_is_short_and_names_every_module() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    assert len(page.splitlines()) < 200
    parts = (
        "legs",
        "fusion",
        "rerank",
        "scorers",
        "stores/sqlite",
        "embedders",
        "evaluate",
        "surfaces/cli",
        "surfaces/mcp",
        "surfaces/http",
    )
    for folder in parts:
        assert f"`src/trivet/{folder}/`" in page
    for module in (*(ROOT / "src/trivet").glob("*.py"), *(ROOT / "src/trivet/evaluate").glob("*.py")):
        if not module.name.startswith("_"):
            assert module.name in page or module.stem in page, module.name


def test_the_results_page_is_of_a_run_in_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the file it names; a page edited by hand, or of a run that is not there, is found out."""
    text = (ROOT / "docs/RESULTS.md").read_text()
    named = re.search(r"\[results/(quality-[0-9a-f]+\.json)\]", text)
    assert named is not None
    results = json.loads((ROOT / "benchmarks/results" / named[1]).read_text())
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    assert importlib.import_module("quality_page").page(results, named[1]) == text
    assert results["profiles"]["default"] == str(PROFILES["default"]), "the default was changed: run `make results`"


def test_links_between_the_pages_lead_somewhere() -> None:
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_measured_numbers_are_those_of_the_result_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    pages = importlib.import_module("pages")
    named = re.search(r"bench:start (\S+) -->", README)
    assert named, "run `make bench`"
    results = json.loads((ROOT / "benchmarks/results" / named[1]).read_text())
    assert pages.readme_block(results, named[1]) in README
    assert (ROOT / "docs/SPEED.md").read_text() == pages.page(results, named[1])


def test_the_comparison_with_the_peers_is_that_of_its_result_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    page = importlib.import_module("peers.page")
    told = (ROOT / "docs/BENCHMARKS.md").read_text()
    named = re.search(r"benchmarks/results/(peers-\S+\.json)", told)
    assert named, "run `make bench-peers`"
    assert told == page.text(json.loads((ROOT / "benchmarks/results" / named[1]).read_text()), named[1])


def test_every_module_says_what_it_is() -> None:
    for module in (ROOT / "src/trivet").rglob("*.py"):
        text = module.read_text()
        if text.strip() and module.name not in ("__init__.py", "_version.py"):
            assert text.startswith('"""'), module


def test_no_machine_path_or_registry_host_is_in_the_repository() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    forbidden = re.compile("/wo" + "rk/|/ro" + "ot/|pypi" + r"\.org|files\.python" + "hosted")
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.suffix in (".py", ".md", ".toml", ".json", ".jsonl", "") and path.is_file():
            assert not forbidden.search(path.read_text(errors="replace")), name


def test_every_test_that_the_security_page_names_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "docs/SECURITY.md").read_text())
    assert len(named) > 30
    for file, test in named:
        assert re.search(rf"^ *def {test}\(", (ROOT / file).read_text(), flags=re.MULTILINE), f"{file}::{test}"


def test_the_robustness_page_names_every_part_and_its_size() -> None:
    page = (ROOT / "docs/ROBUSTNESS.md").read_text()
    parts = re.findall(r'^    "(\w+)": \w+\.run,$', (ROOT / "tests/robust/__main__.py").read_text(), flags=re.MULTILINE)
    assert len(parts) == 9
    for part in parts:
        assert re.search(rf"^\| `{part}` \|", page, flags=re.MULTILINE), part
