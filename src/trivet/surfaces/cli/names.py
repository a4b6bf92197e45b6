"""What do the files of an import call each other?

A ``[[link]]`` names a file by its path or its name, with or without the extension, or by the id, title or an alias in
its front matter; in any case of letters. Of several with the same name the first counts, a path before a name before a
title.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath

from trivet.errors import InputError
from trivet.surfaces import markdown
from trivet.surfaces.cli import files


class Names:
    """Every Markdown file is read once for them, before any is taken in."""

    def __init__(self, found: Iterable[files.File | files.Skipped] = (), prefix: str = "") -> None:
        self._ids: list[dict[str, str]] = [{}, {}, {}]  # by path, by name, by what it calls itself
        self._linking: set[Path] = set()
        self.files: list[files.File | files.Skipped] = []
        self.learn(found, prefix)

    def learn(self, found: Iterable[files.File | files.Skipped], prefix: str) -> None:
        self.files += [self._learnt(item, prefix) if isinstance(item, files.File) else item for item in found]

    def resolve(self, name: str) -> str | None:
        """The id of the document that is called so."""
        wanted = name.casefold()
        return next((known[wanted] for known in self._ids if wanted in known), None)

    def links(self, file: files.File) -> bool:
        """Does it name others? What they are may change while it does not."""
        return file.path in self._linking

    def _learnt(self, file: files.File, prefix: str) -> files.File:
        said = list(self._said(file)) if files.is_markdown(file) else []
        own = said[0] if said and said[0] else file.name
        known = replace(file, name=prefix + file.name, id=prefix + own)
        path = PurePosixPath(file.name)
        calls = ((file.name, str(path.with_suffix(""))), (path.name, path.stem), said)
        for ids, names in zip(self._ids, calls, strict=True):
            for name in names:
                ids.setdefault(name.casefold(), known.id)
        return known

    def _said(self, file: files.File) -> Iterator[str]:
        """Its own id (or nothing), then whatever else it calls itself."""
        try:
            text = files.decoded(file.path.read_bytes()) if file.path.stat().st_size <= files.MAX_BYTES else None
            matter = markdown.read(text or "")
        except (OSError, InputError):  # told when it is taken in
            return
        if markdown.linked(matter.text):
            self._linking.add(file.path)
        own = matter.said.get("id")
        yield str(own).strip() if isinstance(own, str | int) and not isinstance(own, bool) else ""
        yield from markdown.names(matter.said)
