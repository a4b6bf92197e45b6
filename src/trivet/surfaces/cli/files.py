"""Which files does an import read, and what document is a file?

A folder gives every text file that git would keep; a hidden, binary or huge one is left out with the reason. A
document's id is its path below the folder named, so that importing again finds the same documents; a Markdown file may
name another in its front matter.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from trivet.surfaces import markdown
from trivet.surfaces.cli.ignoring import Ignore

MAX_BYTES = 10_000_000  # a larger file is a log or a dump, not something a person wrote
SNIFFED = 8_192  # bytes that are looked at for a NUL, as git does

JSONL = frozenset({".jsonl", ".ndjson"})
LINES = tuple(JSONL)

#: What a file's extension says: its kind, and the language of code.
KINDS: dict[str, tuple[str, str]] = {
    **dict.fromkeys((".md", ".markdown", ".mdx"), ("markdown", "")),
    **dict.fromkeys((".txt", ".text", ".rst", ".adoc", ".org", ".tex", ".log"), ("text", "")),
    **dict.fromkeys((".html", ".htm", ".xml"), ("markup", "")),
    **dict.fromkeys((".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".csv", ".tsv", ".env"), ("data", "")),
    **{
        extension: ("code", language)
        for language, extensions in {
            "python": ".py .pyi",
            "javascript": ".js .mjs .cjs .jsx",
            "typescript": ".ts .tsx .mts",
            "rust": ".rs",
            "go": ".go",
            "c": ".c .h",
            "c++": ".cc .cpp .cxx .hpp .hh",
            "c#": ".cs",
            "java": ".java",
            "kotlin": ".kt .kts",
            "swift": ".swift",
            "scala": ".scala",
            "ruby": ".rb",
            "php": ".php",
            "perl": ".pl .pm",
            "lua": ".lua",
            "r": ".r",
            "julia": ".jl",
            "haskell": ".hs",
            "elixir": ".ex .exs",
            "erlang": ".erl",
            "clojure": ".clj",
            "ocaml": ".ml .mli",
            "zig": ".zig",
            "dart": ".dart",
            "shell": ".sh .bash .zsh .fish",
            "powershell": ".ps1",
            "sql": ".sql",
            "css": ".css .scss .sass .less",
            "vue": ".vue",
            "svelte": ".svelte",
            "protobuf": ".proto",
            "terraform": ".tf",
            "nix": ".nix",
        }.items()
        for extension in extensions.split()
    },
}


@dataclass(frozen=True, slots=True)
class File:
    """A file to read, the name it has below the folder, and the id its document will have."""

    place: str  # where it lies; a Path of it only when it is read: a folder that is known already is merely looked at
    name: str
    id: str

    @property
    def path(self) -> Path:
        return Path(self.place)

    def stamp(self) -> tuple[int, datetime | None]:
        """Size and time of change: while both stay, the content is taken to be the same."""
        stat = self.path.stat()
        try:
            return stat.st_size, datetime.fromtimestamp(stat.st_mtime, UTC)
        except (OverflowError, ValueError, OSError):  # a clock before 1 or after 9999
            return stat.st_size, None


@dataclass(frozen=True, slots=True)
class Skipped:
    path: str
    reason: str


def below(root: Path, *, ignore: bool = True, own: Path | None = None) -> Iterator[File | Skipped]:
    """The files of a folder in the order of their names; ``own`` is the store itself, which may lie in it."""
    root = root.resolve()
    mine = {own.resolve(), Path(f"{own.resolve()}.index")} if own else set()
    yield from _walk(root, "", root, Ignore.above(root) if ignore else None, mine)


def _walk(folder: Path, below: str, root: Path, rules: Ignore | None, mine: set[Path]) -> Iterator[File | Skipped]:
    """``below``: what stands before a file's own name in the name it has."""
    rules = rules.entering(folder) if rules is not None else None
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        yield Skipped(below.rstrip("/") or ".", error.strerror or "cannot be read")
        return
    own = {path.name + end for path in mine if path.parent == folder for end in ("", "-wal", "-shm")}
    for entry in entries:  # a folder may hold a hundred thousand: nothing is asked of pathlib that a name can tell
        if entry.name in own:
            continue
        name = below + entry.name
        is_folder = entry.is_dir(follow_symlinks=False)
        if entry.name.startswith("."):
            yield Skipped(name, "hidden")
        elif rules is not None and rules.layers and rules.leaves_out(Path(entry.path), is_folder):
            yield Skipped(name, "ignored by .gitignore")
        elif is_folder:
            yield from _walk(Path(entry.path), f"{name}/", root, rules, mine)
        elif entry.name.lower().endswith(LINES):
            yield Skipped(name, "JSONL in a folder: name it to import its documents")
        elif entry.is_symlink() and not Path(entry.path).resolve().is_relative_to(root):
            # a folder from elsewhere may hold a link to what is nobody else's business
            yield Skipped(name, "a link out of the folder")
        elif entry.is_file():
            yield File(entry.path, name, name)
        else:
            yield Skipped(name, "a link to a folder" if entry.is_dir() else "not a file")


def read(file: File, resolve: markdown.Resolve = lambda name: None) -> dict[str, Any] | Skipped:
    """The document a file is, or why it is none; front matter that cannot be read is an InputError."""

    def others(name: str) -> str | None:
        found = resolve(name)
        return None if found == file.id else found

    try:
        size, modified = file.stamp()
        if size > MAX_BYTES:
            return Skipped(file.id, f"larger than {MAX_BYTES // 1_000_000} MB ({size / 1e6:.1f} MB)")
        content = file.path.read_bytes()
    except OSError as error:
        return Skipped(file.id, error.strerror or "cannot be read")
    text = decoded(content)
    if text is None:
        odd = b"\0" not in content[:8192]
        return Skipped(file.id, "not UTF-8, convert it first" if odd else "binary")
    extension = file.path.suffix.lower()
    kind, language = KINDS.get(extension, ("text", ""))
    said: dict[str, Any] = {"text": text, "title": "", "meta": {}}
    if is_markdown(file):
        said = markdown.document(text, others)
    if not said["text"].strip() and not said["title"]:
        return Skipped(file.id, "empty")
    facts = {"path": file.name, "extension": extension.lstrip("."), "language": language, "bytes": size}
    meta = {**said["meta"], **{name: fact for name, fact in facts.items() if fact != ""}}
    title = said["title"] or file.path.name
    return {"kind": kind, "created": modified, **said, "id": file.id, "title": title, "meta": meta}


def is_markdown(file: File) -> bool:
    return KINDS.get(file.path.suffix.lower(), ("", ""))[0] == "markdown"


def decoded(content: bytes) -> str | None:
    """UTF-8, or UTF-16 that says so; None for everything else."""
    wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if not wide and b"\0" in content[:SNIFFED]:
        return None
    try:
        return content.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError:
        return None
