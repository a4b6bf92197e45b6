"""Which files does git leave out?

A file is judged by the ``.gitignore`` files of its folder and of every folder above it, up to the repository's
root; the deepest one that has an opinion decides. An ignored folder is not entered, so nothing below it can be
taken back in.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec

IGNORE_FILE = ".gitignore"


@dataclass(frozen=True, slots=True)
class Ignore:
    """The rules in force in one folder: its own first, then those of the folders above."""

    layers: tuple[tuple[Path, GitIgnoreSpec], ...] = ()

    @classmethod
    def above(cls, folder: Path) -> Ignore:
        """The rules that reach into a folder from above it, if it lies in a repository."""
        root = next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), None)
        rules = cls()
        if root is not None and root != folder:
            for parent in reversed([parent for parent in folder.parents if parent.is_relative_to(root)]):
                rules = rules.entering(parent)
        return rules

    def entering(self, folder: Path) -> Ignore:
        spec = _read(folder / IGNORE_FILE)
        return self if spec is None else Ignore(((folder, spec), *self.layers))

    def leaves_out(self, path: Path, is_folder: bool) -> bool:
        for folder, spec in self.layers:
            said = spec.check_file(path.relative_to(folder).as_posix() + ("/" if is_folder else "")).include
            if said is not None:
                return said
        return False


def _read(path: Path) -> GitIgnoreSpec | None:
    try:
        return GitIgnoreSpec.from_lines(path.read_text(encoding="utf-8", errors="replace").splitlines())
    except (OSError, ValueError):  # no such file, or a pattern that git would not take either
        return None
