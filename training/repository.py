"""Reads files of a bare git repository at one commit."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

#: Bytes; larger files hold data or generated code.
LARGEST = 5_000_000


class Repository:
    """A bare repository under the mirror folder, ``OWNER+NAME/repo``, read at ``commit``."""

    def __init__(self, mirror: Path, name: str, commit: str) -> None:
        folder = mirror / name.replace("/", "+") / "repo"
        self._git = ["git", f"--git-dir={folder / '.git' if (folder / '.git').is_dir() else folder}"]
        self._commit = commit

    def paths(self) -> list[str]:
        """Return the paths of the commit whose content is there."""
        listed = subprocess.run(
            [*self._git, "ls-tree", "-r", "-l", "-z", self._commit], capture_output=True, check=True, text=True
        ).stdout
        found = []
        for line in listed.split("\0"):
            if line:
                entry, path = line.split("\t", 1)
                size = entry.split()[3]
                if size.isdigit() and int(size) <= LARGEST:
                    found.append(path)
        return found

    def files(self, wanted: Callable[[str], bool], shuffled: random.Random | None = None) -> Iterator[tuple[str, str]]:
        """Yield path and text of every wanted file, in the order of the tree or shuffled."""
        paths = [path for path in self.paths() if wanted(path)]
        if shuffled is not None:
            shuffled.shuffle(paths)
        asked = "".join(f"{self._commit}:{path}\n" for path in paths).encode()
        with subprocess.Popen(
            [*self._git, "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as git:
            assert git.stdin is not None and git.stdout is not None
            for line, path in zip(asked.splitlines(keepends=True), paths, strict=True):
                git.stdin.write(line)
                git.stdin.flush()
                header = git.stdout.readline().split()
                if header[-1] == b"missing":
                    continue
                data = git.stdout.read(int(header[2]))
                git.stdout.read(1)
                yield path, data.decode("utf-8", "replace")
            git.stdin.close()
