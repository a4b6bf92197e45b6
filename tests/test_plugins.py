"""``Registry``: built-in parts, parts of installed packages and parts that a program adds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from trivet.errors import InputError
from trivet.plugins import Registry

GROUP = "trivet.test_parts"
BUILT_IN = {"root": "math:sqrt", "log": "math:log"}


@pytest.fixture
def parts() -> Registry[object]:
    return Registry("part", GROUP, BUILT_IN)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on ``sys.path`` where ``installed`` puts packages."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("trivet_test_")]:
        del sys.modules[name]


def installed(site: Path, package: str, entry_points: dict[str, str], code: str = "") -> None:
    """Write the module and the metadata that ``pip install`` leaves of a package with these entry points."""
    (site / f"{package}.py").write_text(code)
    info = site / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [f"{name} = {value}" for name, value in entry_points.items()]
    (info / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *lines]))


def test_a_built_in_part_is_imported_on_first_use() -> None:
    sys.modules.pop("this", None)
    parts: Registry[object] = Registry("part", GROUP, {"zen": "this:s"})
    assert list(parts) == ["zen"] and "zen" in parts and len(parts) == 1
    assert "this" not in sys.modules
    assert parts["zen"] is parts["zen"] is sys.modules["this"].s


def test_a_built_in_name_needs_no_search_for_packages(parts: Registry[object], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: str) -> None:
        raise AssertionError("entry points were read")

    monkeypatch.setattr("importlib.metadata.entry_points", refuse)
    assert "root" in parts and callable(parts["root"])
    with pytest.raises(AssertionError, match="entry points were read"):
        parts.names()


@pytest.mark.parametrize("name", ["nope", "", 3, None, ["root"]])
def test_an_unknown_name_is_refused_with_the_known_ones(parts: Registry[object], name: object) -> None:
    assert name not in parts
    with pytest.raises(InputError) as raised:
        parts[name]  # type: ignore[index]
    assert str(raised.value) == f"part: {name!r} is unknown; known: root, log"


def test_a_program_adds_its_own(parts: Registry[object]) -> None:
    parts.add("one", 1)

    @parts.register("two")
    def two() -> int:
        return 2

    assert parts.names() == ["root", "log", "one", "two"]
    assert parts["one"] == 1 and parts["two"] is two and two() == 2


def test_a_name_is_given_once(parts: Registry[object], site: Path) -> None:
    installed(site, "trivet_test_extra", {"three": "trivet_test_extra:THREE"}, "THREE = 3")
    parts.add("one", 1)
    for name, owner in (("root", "trivet"), ("one", "this program"), ("three", "the package 'trivet_test_extra'")):
        with pytest.raises(InputError, match=f"part: '{name}' is already provided by {owner}; choose another name"):
            parts.add(name, 0)


def test_installed_packages_bring_parts(parts: Registry[object], site: Path) -> None:
    installed(site, "trivet_test_extra", {"three": "trivet_test_extra:THREE"}, "THREE = 3")
    parts.add("one", 1)
    assert parts.names() == ["root", "log", "three", "one"]
    assert "trivet_test_extra" not in sys.modules
    assert "three" in parts and parts["three"] == 3


def test_a_package_cannot_replace_a_built_in_part(parts: Registry[object], site: Path) -> None:
    installed(site, "trivet_test_clash", {"root": "math:sin"})
    with pytest.raises(InputError, match=r"'root' is provided by the packages 'trivet' and 'trivet_test_clash'"):
        parts.names()
    assert parts["root"](9.0) == 3.0  # type: ignore[operator]


def test_two_packages_cannot_bring_the_same_name(parts: Registry[object], site: Path) -> None:
    installed(site, "trivet_test_a", {"three": "math:pi"})
    installed(site, "trivet_test_b", {"three": "math:e"})
    with pytest.raises(InputError, match=r"'three' is provided by the packages 'trivet_test_[ab]' and"):
        parts["three"]


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("import no_such_library", "ModuleNotFoundError: No module named 'no_such_library'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("", "AttributeError"),
    ],
)
def test_a_package_that_cannot_be_imported_is_an_error_when_used(
    parts: Registry[object], site: Path, code: str, cause: str
) -> None:
    installed(site, "trivet_test_broken", {"three": "trivet_test_broken:THREE"}, code)
    assert parts.names() == ["root", "log", "three"]
    with pytest.raises(InputError, match=f"'three' of the package 'trivet_test_broken' cannot be imported.*{cause}"):
        parts["three"]
    assert callable(parts["root"])


def test_parts_that_cannot_be_used_are_no_items(parts: Registry[object], site: Path) -> None:
    installed(site, "trivet_test_broken", {"three": "trivet_test_broken:THREE"})
    parts.add("one", 1)
    assert [name for name, _ in parts.items()] == ["root", "log", "one"]


def test_a_part_is_checked_before_its_first_use(site: Path) -> None:
    def check(name: str, part: object) -> None:
        if not callable(part):
            raise InputError(f"part: {name!r} is {part!r}; it must be a function")

    installed(site, "trivet_test_extra", {"three": "trivet_test_extra:THREE"}, "THREE = 3")
    parts: Registry[object] = Registry("part", GROUP, BUILT_IN, check)
    assert callable(parts["root"])
    with pytest.raises(InputError, match="'three' is 3; it must be a function"):
        parts["three"]
    with pytest.raises(InputError, match="'one' is 1; it must be a function"):
        parts.add("one", 1)
    assert parts.names() == ["root", "log", "three"]
