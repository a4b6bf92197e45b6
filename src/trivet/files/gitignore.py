"""The files that ``.gitignore`` excludes, and those that ``.gitattributes`` marks as generated.

The rules of a file's folder and of every folder above it apply, up to the root of the repository; the deepest rule that
matches decides. An ignored folder is not entered, so nothing below it can be included again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec

IGNORE_FILE, ATTRIBUTES_FILE = ".gitignore", ".gitattributes"
#: Attribute → what is put before the pattern.
_MARKS = {
    "linguist-generated": "",
    "linguist-generated=true": "",
    "-linguist-generated": "!",
    "linguist-generated=false": "!",
}


@dataclass(frozen=True, slots=True)
class Ignore:
    """The rules that apply in one folder: its own first, then those of the folders above."""

    layers: tuple[tuple[Path, GitIgnoreSpec], ...] = ()
    file: str = IGNORE_FILE

    @classmethod
    def above(cls, folder: Path, file: str = IGNORE_FILE) -> Ignore:
        """Return the rules of the folders above, if the folder lies in a repository."""
        root = next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), None)
        rules = cls(file=file)
        if root is not None and root != folder:
            for parent in reversed([parent for parent in folder.parents if parent.is_relative_to(root)]):
                rules = rules.entering(parent)
        return rules

    def entering(self, folder: Path) -> Ignore:
        """Return the rules that apply inside a folder."""
        spec = _read(folder / self.file)
        return self if spec is None else Ignore(((folder, spec), *self.layers), self.file)

    def excludes(self, path: Path, is_folder: bool) -> bool:
        for folder, spec in self.layers:
            excluded = spec.check_file(path.relative_to(folder).as_posix() + ("/" if is_folder else "")).include
            if excluded is not None:
                return excluded
        return False


def _read(path: Path) -> GitIgnoreSpec | None:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        return GitIgnoreSpec.from_lines(_generated(lines) if path.name == ATTRIBUTES_FILE else lines)
    except (OSError, ValueError):  # no such file, or a pattern that git would refuse too
        return None


def _generated(lines: list[str]) -> list[str]:
    """Return the patterns of the files that are marked as generated, as those of a .gitignore."""
    found = []
    for pattern, *attributes in (line.split() for line in lines if line.strip() and not line.startswith("#")):
        found += [_MARKS[attribute] + pattern for attribute in attributes if attribute in _MARKS]
    return found
