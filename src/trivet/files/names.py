"""The names by which the files of an import link to each other.

A ``[[link]]`` names a file by its path or its name, with or without the extension, or by the id, the title or an alias
in its front matter; case does not matter. Where several files have the same name the first one counts; a path comes
before a name, a name before a title.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path, PurePosixPath

from trivet.errors import InputError
from trivet.files import encoding, markdown, reader


class Names:
    """The names of all files of an import. Every Markdown file is read once for them, before any is imported."""

    def __init__(self, files: Iterable[reader.File | reader.Skipped] = (), prefix: str = "") -> None:
        self._ids: list[dict[str, str]] = [{}, {}, {}]  # by path, by name, by front matter
        self._with_links: set[Path] = set()
        self.files: list[reader.File | reader.Skipped] = []
        self.add(files, prefix)

    def add(self, files: Iterable[reader.File | reader.Skipped], prefix: str) -> None:
        """Add files; ``prefix`` goes before their names and ids."""
        self.files += [self._named(item, prefix) if isinstance(item, reader.File) else item for item in files]

    def resolve(self, name: str) -> str | None:
        """Return the id of the document with this name."""
        key = name.casefold()
        return next((ids[key] for ids in self._ids if key in ids), None)

    def has_links(self, file: reader.File) -> bool:
        """Return whether the file links to others, whose ids may change while the file does not."""
        return file.path in self._with_links

    def _named(self, file: reader.File, prefix: str) -> reader.File:
        id, others = self._read_names(file) if reader.is_markdown(file) else ("", [])
        named = replace(file, name=prefix + file.name, id=prefix + (id or file.name))
        path = PurePosixPath(file.name)
        names = ((file.name, str(path.with_suffix(""))), (path.name, path.stem), others)
        for ids, group in zip(self._ids, names, strict=True):
            for name in group:
                ids.setdefault(name.casefold(), named.id)
        return named

    def _read_names(self, file: reader.File) -> tuple[str, list[str]]:
        """Return the id in the front matter, or "", and all names in it."""
        try:
            is_small = file.path.stat().st_size <= reader.MAX_BYTES
            matter = markdown.split(encoding.decode(file.path.read_bytes()).text if is_small else "")
        except (OSError, InputError):  # reported when the file is imported
            return "", []
        if markdown.has_links(matter.text):
            self._with_links.add(file.path)
        given = matter.values.get("id")
        id = str(given).strip() if isinstance(given, str | int) and not isinstance(given, bool) else ""
        return id, [*([id] if id else []), *markdown.names(matter.values)]
