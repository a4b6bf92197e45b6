"""The documentation agrees with the code: names, defaults, figures, links, and code blocks that run."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import re
import subprocess
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
import yaml

import trivet
from documented import blocks, check
from trivet.cli import COMMANDS
from trivet.fusion import FUSIONS, NORMALIZERS
from trivet.fusion.weighing import WEIGHINGS
from trivet.plugins import Registry
from trivet.profile import _CHECKS, PROFILES, Profile
from trivet.rerank import describe

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text(encoding="utf-8")
SETTINGS = (DOCS / "reference/settings.md").read_text(encoding="utf-8")
CLI = (DOCS / "reference/cli.md").read_text(encoding="utf-8")
PROFILES_PAGE = (DOCS / "evidence/profiles.md").read_text(encoding="utf-8")
PAGES = sorted((*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *ROOT.glob(".github/**/*.md")))
#: Files that name other files of the repository.
SOURCES = [
    path for folder in ("src", "tests", "benchmarks", "tools", "examples") for path in (ROOT / folder).rglob("*.py")
]
README_LINES = 150


def loaded(path: Path) -> ModuleType:
    """Import a script by its path."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def named_targets() -> set[str]:
    """Return the make targets that the README and CONTRIBUTING name."""
    text = README + (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return set(re.findall(r"(?:^|`|\$ )make ([a-z-]+)", text, flags=re.MULTILINE))


class TestReadme:
    def test_its_code_runs_and_prints_what_it_shows(self, tmp_path: Path) -> None:
        (tmp_path / "notes").mkdir()
        (tmp_path / "notes/door.md").write_text("# The greenhouse door\n\nThe door sticks when it rains.\n")
        check("README.md", tmp_path, "python", "sh")

    def test_it_is_short(self) -> None:
        assert len(README.splitlines()) <= README_LINES

    def test_it_shows_a_picture_and_an_output(self) -> None:
        assert README.index("docs/demo.svg") < README.index("## ")
        assert any(block.output for block in blocks(README, "python"))

    def test_its_make_targets_exist(self) -> None:
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        assert {"demo", "test", "test-fast", "lint", "site", "structure"} <= named_targets()
        for target in named_targets():
            assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target

    def test_ci_runs_its_test_command(self) -> None:
        commands = (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()
        assert "make test" in README
        assert {"make lint", "make structure", "make site", "make test"} <= set(commands)

    def test_its_table_is_a_part_of_the_profiles(self) -> None:
        """Every figure of its table of quality is on the page of profiles, in the row and column of that name."""
        cells = [[cell.strip(" ▼▲*") for cell in line.split("|")[1:-1]] for line in PROFILES_PAGE.splitlines()]
        begin = next(place for place, row in enumerate(cells) if row[:2] == ["set", "topics"])
        header, table = cells[begin], {row[0]: row for row in cells[begin + 2 :] if len(row) == len(cells[begin])}
        lines = [line.split("|") for line in README.splitlines() if re.search(r"\| \**0\.\d{3}", line)]
        assert len(lines) == 8
        for _, label, dataset, *figures, _ in lines:
            row = table[dataset.strip() or "mean"]
            for system, figure in zip(("BM25", "dense", "RRF k=60", "default", "careful"), figures, strict=True):
                found = row[header.index(system)]
                assert f"{float(found):.3f}" == figure.strip(" *"), (label, system)

    def test_its_times_are_those_of_the_benchmark(self) -> None:
        speed, peers = ((DOCS / f"evidence/{name}.md").read_text(encoding="utf-8") for name in ("speed", "benchmarks"))
        default, two_legs = re.findall(r"\| no filter \| ([\d.]+) / [\d.]+ ms \| ([\d.]+) / ", speed)[0]
        assert f"{default} ms with the default profile, {two_legs} ms with two legs" in README
        assert "89k: hybrid p50, trivet, two legs | 0.91 × (1.4 ms beside 1.3 ms" in peers
        assert all(time in README for time in ("1.3 ms", "1.4 ms"))


class TestReference:
    @pytest.mark.parametrize("name", list(_CHECKS))
    def test_every_setting_is_documented(self, name: str) -> None:
        assert f"| `{name}` |" in SETTINGS

    @pytest.mark.parametrize(("setting", "registry"), [(item.kind, item) for item in (FUSIONS, NORMALIZERS, WEIGHINGS)])
    def test_every_choice_of_a_setting_is_documented(self, setting: str, registry: Registry[object]) -> None:
        row = next(line for line in SETTINGS.splitlines() if line.startswith(f"| `{setting}` |"))
        assert [name for name in registry.names() if f"`{name}`" not in row] == []

    @pytest.mark.parametrize(("name", "options"), describe().items())
    def test_every_reranker_option_is_documented_with_its_default(self, name: str, options: dict[str, object]) -> None:
        for option, about in options.items():
            row = next((line for line in SETTINGS.splitlines() if line.startswith(f"| `{name}` | `{option}` |")), None)
            assert row is not None, f"{name}.{option}"
            assert f"| {about.default} |" in row  # type: ignore[attr-defined]

    def test_documented_toml_is_a_profile(self) -> None:
        (block,) = blocks(SETTINGS, "toml")
        assert Profile.from_toml(block.code).rerankers[0].name == "importance"

    def test_documented_defaults_are_the_defaults(self) -> None:
        rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", SETTINGS, flags=re.MULTILINE))
        default = PROFILES["default"]
        for name in ("k", "weighing", "fusion", "normalize", "rrf_k", "pool", "match", "min_relevance"):
            shown = rows[name].strip().strip('`"')
            assert str(getattr(default, name)).removesuffix(".0") == shown, name

    def test_every_profile_is_documented(self) -> None:
        pages = SETTINGS + (DOCS / "explanation/profiles.md").read_text(encoding="utf-8")
        for name in PROFILES:
            assert f"`{name}`" in pages

    def test_the_command_page_is_made_from_the_commands(self) -> None:
        page = loaded(ROOT / "tools/cli_page.py").page()
        assert page.count("\n## `trivet ") >= len(COMMANDS)
        assert (DOCS / "reference/cli.md").read_text(encoding="utf-8") == page, "run `make docs`"
        for section in page.split("\n## ")[1:]:
            assert "**Example" in section, section.splitlines()[0]

    @pytest.mark.parametrize("module", [trivet, "trivet.evaluate", "trivet.chat"])
    def test_every_public_name_is_in_the_python_reference(self, module: ModuleType | str) -> None:
        public = importlib.import_module(module) if isinstance(module, str) else module
        text = "\n".join(path.read_text(encoding="utf-8") for path in (DOCS / "reference/python").glob("*.md"))
        for name in public.__all__:
            if not name.startswith("__"):
                assert f"::: {public.__name__}.{name}\n" in text, f"{public.__name__}.{name}"

    def test_every_dependency_has_its_reason(self) -> None:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        page = (DOCS / "reference/dependencies.md").read_text(encoding="utf-8")
        extras = project["optional-dependencies"].values()
        needed = [*project["dependencies"], *(item for items in extras for item in items)]
        for requirement in (item for item in needed if not item.startswith("trivet[")):
            name = re.split(r"[<>=; ]", requirement)[0]
            assert f"| `{name}` |" in page, name
            assert re.search(r"[<=]", requirement), f"{name} has no upper end"


class TestExplanation:
    def test_architecture_is_short_and_names_every_package(self) -> None:
        page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
        assert len(page.splitlines()) < 200
        for folder in (ROOT / "src/trivet").iterdir():
            if folder.is_dir() and not folder.name.startswith("_"):
                assert f"`{folder.name}/`" in page, folder.name
        for module in (ROOT / "src/trivet").glob("*.py"):
            if not module.name.startswith("_"):
                assert f"`{module.name}`" in page, module.name

    def test_the_code_names_only_decision_records_that_exist(self) -> None:
        known = {int(path.name[:4]) for path in (DOCS / "adr").glob("0*.md")}
        for module in (ROOT / "src/trivet").rglob("*.py"):
            named = re.findall(r"\b(?:ADR |adr/)(\d+)", module.read_text(encoding="utf-8"))
            assert set(map(int, named)) <= known, module.name

    def test_the_decision_records_have_no_gap_and_each_has_a_date(self) -> None:
        records = sorted((DOCS / "adr").glob("0*.md"))
        index = (DOCS / "adr/index.md").read_text(encoding="utf-8")
        assert [int(path.name[:4]) for path in records] == list(range(1, len(records) + 1))
        for number, path in enumerate(records, 1):
            title, _, date = path.read_text(encoding="utf-8").splitlines()[:3]
            assert title.startswith(f"# {number}. "), path.name
            assert re.match(r"20\d\d-\d\d-\d\d · ", date), path.name
            assert f"| {number} | [{title.split('. ', 1)[1]}]({path.name}) | {date[:10]} |" in index, path.name

    @pytest.mark.parametrize(("page", "least"), [("explanation/security.md", 60), ("evidence/robustness.md", 7)])
    def test_every_test_that_a_page_names_exists(self, page: str, least: int) -> None:
        named = re.findall(r"`(tests/[\w/]+\.py)::(?:\w+::)?(\w+)`", (DOCS / page).read_text(encoding="utf-8"))
        assert len(named) >= least
        for file, test in named:
            assert re.search(rf"^ *def {test}\(", (ROOT / file).read_text(), flags=re.MULTILINE), f"{file}::{test}"


class TestEvidence:
    @pytest.fixture(autouse=True)
    def _importable(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))

    @pytest.mark.parametrize(
        ("page", "module", "function", "command"),
        [
            ("results", "quality_page", "page", "make results"),
            ("profiles", "profiles", "page", "make profiles"),
            ("speed", "speed_page", "page", "make bench"),
            ("benchmarks", "peers.page", "text", "make bench-peers"),
            ("generalisation", "generalisation_page", "page", "make generalisation"),
        ],
    )
    def test_a_page_is_made_from_its_result_file(self, page: str, module: str, function: str, command: str) -> None:
        text = (DOCS / f"evidence/{page}.md").read_text(encoding="utf-8")
        named = re.search(r"All numbers: `benchmarks/results/(\S+\.json)`", text)
        assert named, f"run `{command}`"
        results = json.loads((ROOT / "benchmarks/results" / named[1]).read_text(encoding="utf-8"))
        assert getattr(importlib.import_module(module), function)(results, named[1]) == text, f"run `{command}`"
        if page == "results":
            same = results["profiles"]["default"] == str(PROFILES["default"])
            assert same or "The default here is that of" in results["note"], "the default was changed"

    def test_the_robustness_page_names_every_part(self) -> None:
        page = (DOCS / "evidence/robustness.md").read_text(encoding="utf-8")
        runner = (ROOT / "tests/robust/__main__.py").read_text(encoding="utf-8")
        parts = re.findall(r'^    "(\w+)": \w+\.run,$', runner, flags=re.MULTILINE)
        assert len(parts) >= 12
        for part in parts:
            assert re.search(rf"^\| `{part}` \|", page, flags=re.MULTILINE), part


class TestEveryPage:
    @pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
    def test_its_links_lead_somewhere(self, page: Path) -> None:
        for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), target

    @pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
    def test_no_heading_is_a_question(self, page: Path) -> None:
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        assert [line for line in text.splitlines() if re.match(r"#+ .*\?\s*$", line)] == []

    @pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
    def test_its_commands_and_options_exist(self, page: Path) -> None:
        """Every ``trivet`` command in a block of shell commands is one, and has the options that it is given."""
        sections = dict(re.findall(r"^## `trivet ([a-z -]+)`\n(.*?)(?=^## |\Z)", CLI, flags=re.DOTALL | re.MULTILINE))
        text = "" if page.name == "cli.md" else page.read_text(encoding="utf-8")  # that page is made from the commands
        for block in blocks(text, "sh", "console"):
            for line in re.findall(r"^(?:\$ )?trivet (.+)$", block.code, flags=re.MULTILINE):
                words = line.split("#")[0].split()
                name = " ".join(words[:2]) if " ".join(words[:2]) in sections else words[0]
                assert name in sections, line
                for option in re.findall(r"(?<=\s)--[a-z-]+", line.split("#")[0]):
                    assert re.search(rf"{option}\b", sections[name]), line

    @pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
    def test_its_code_blocks_name_a_language_and_nothing_else(self, page: Path) -> None:
        fences = re.findall(r"^ *```(.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert [info for info in fences if not re.fullmatch(r"\w*", info)] == []

    def test_every_page_is_in_the_navigation_and_exists(self) -> None:
        listed = set(re.findall(r"[\w/.-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
        pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
        assert pages == listed

    def test_the_navigation_has_five_parts(self) -> None:
        nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
        assert [next(iter(part)) for part in nav[1:]] == [
            "Tutorial",
            "How-to guides",
            "Reference",
            "Explanation",
            "Evidence",
        ]


def test_a_page_that_a_source_file_or_another_page_names_exists() -> None:
    page = re.compile(r"\bdocs/(?:[A-Z]+|(?:tutorial|how-to|reference|explanation|evidence|adr)/[\w/-]+)\.md\b")
    pages = [path for path in PAGES if path.name != "CHANGELOG.md"]  # the changelog names pages of its time
    for path in [*SOURCES, *pages, *(ROOT / "benchmarks").glob("*.md"), *(ROOT / "training").glob("*.md")]:
        for name in page.findall(path.read_text(encoding="utf-8")):
            assert (ROOT / name).exists(), f"{path}: {name}"


def test_every_module_says_what_it_is() -> None:
    for module in (ROOT / "src/trivet").rglob("*.py"):
        text = module.read_text(encoding="utf-8")
        if text.strip() and module.name != "__init__.py":
            assert text.startswith('"""'), module


def test_no_docstring_opens_with_a_question() -> None:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for path in SOURCES:
        nodes = (node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, kinds))
        asked = [
            text for node in nodes if re.search(r"\?( |$)", text := (ast.get_docstring(node) or "").split("\n")[0])
        ]
        assert asked == [], path


def test_the_changelog_has_the_version_with_its_date() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[?{re.escape(trivet.__version__)}\]? - 20\d\d-\d\d-\d\d$", text, flags=re.MULTILINE)


def test_no_machine_path_or_registry_host_is_in_the_repository() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    forbidden = re.compile("/wo" + "rk/|/ro" + "ot/|pypi" + r"\.org|files\.python" + "hosted")
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.suffix in (".py", ".md", ".toml", ".json", ".jsonl", ".yml", "") and path.is_file():
            assert not forbidden.search(path.read_text(errors="replace")), name
