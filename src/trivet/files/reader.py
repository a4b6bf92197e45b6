"""The files of a folder, and the documents of a file.

A folder gives every file that git would track; hidden, unreadable, generated and very large files are skipped with the
reason. A document's id is its path below the folder, so that the next import finds the same document; a Markdown file
may name another id in its front matter. A suffix that ``formats.FORMATS`` knows is read by that format, any other file
as text.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from trivet.errors import MissingExtraError
from trivet.files import encoding, formats, generated, markdown
from trivet.files.formats import UnreadableError
from trivet.files.gitignore import ATTRIBUTES_FILE, Ignore

MAX_BYTES = 10_000_000  # a larger text is a log or a dump, not written by a person
MAX_FORMAT_BYTES = 100_000_000  # of a file with pictures, as a book or a presentation
MAX_ID = 512  # characters, the limit of the engine

JSONL = (".jsonl", ".ndjson")

#: Extension → (kind of document, programming language).
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
    """A file to import, its name below the folder, and the id of its document."""

    place: str  # its path, as text: to build 100,000 Path objects takes longer than to check a folder for changes
    name: str
    id: str
    named: bool = False  # by the user, not found in a folder: then it is an error that it cannot be read
    whatever: bool = True  # import it even if it is generated: a file that is named itself is wanted

    @property
    def path(self) -> Path:
        return Path(self.place)

    def stamp(self) -> tuple[int, datetime | None]:
        """Return size and time of modification; a file with the same two is taken as unchanged."""
        stat = self.path.stat()
        try:
            return stat.st_size, datetime.fromtimestamp(stat.st_mtime, UTC)
        except (OverflowError, ValueError, OSError):  # a year before 1 or after 9999
            return stat.st_size, None


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that is not imported, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of a file, as ``Engine.add`` takes them, and what could not be read well."""

    documents: list[dict[str, Any]]
    notes: list[str] = field(default_factory=list)


def list_folder(
    root: Path, *, ignore: bool = True, store: Path | None = None, whatever: bool = False
) -> Iterator[File | Skipped]:
    """Yield the files of a folder, sorted by name; the files of ``store`` itself are left out.

    ``whatever`` includes generated files.
    """
    root = root.resolve()
    excluded = {Path(f"{store.resolve()}{end}") for end in ("", ".index", ".sessions")} if store else set()
    marks = None if whatever else Ignore.above(root, ATTRIBUTES_FILE)
    yield from _walk(root, "", root, Ignore.above(root) if ignore else None, marks, excluded)


def _walk(
    folder: Path, prefix: str, root: Path, rules: Ignore | None, marks: Ignore | None, excluded: set[Path]
) -> Iterator[File | Skipped]:
    """Yield the files below ``folder``, whose path below ``root`` is ``prefix``; ``marks`` says which are generated."""
    rules = rules.entering(folder) if rules is not None else None
    marks = marks.entering(folder) if marks is not None else None
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        yield Skipped(prefix.rstrip("/") or ".", error.strerror or "cannot be read")
        return
    of_store = {path.name + end for path in excluded if path.parent == folder for end in ("", "-wal", "-shm")}
    for entry in entries:  # may be 100,000: pathlib is used only where the name does not decide
        if entry.name in of_store:
            continue
        name = prefix + entry.name
        is_folder = entry.is_dir(follow_symlinks=False)
        if entry.name.startswith("."):
            yield Skipped(name, "hidden")
        elif rules is not None and rules.layers and rules.excludes(Path(entry.path), is_folder):
            yield Skipped(name, "ignored by .gitignore")
        elif is_folder:
            yield from _walk(Path(entry.path), f"{name}/", root, rules, marks, excluded)
        elif entry.name.lower().endswith(JSONL):
            yield Skipped(name, "JSONL in a folder; name the file itself to import its documents")
        elif entry.is_symlink() and not Path(entry.path).resolve().is_relative_to(root):
            # a folder from a stranger may link to a private file
            yield Skipped(name, "a link to a file outside the folder")
        elif entry.is_file():
            kind = _kind_of_name(entry, marks)
            yield Skipped(name, kind) if kind else File(entry.path, name, name, whatever=marks is None)
        else:
            yield Skipped(name, "a link to a folder" if entry.is_dir() else "not a file")


def _kind_of_name(entry: os.DirEntry[str], marks: Ignore | None) -> str:
    if marks is None:
        return ""
    is_marked = bool(marks.layers) and marks.excludes(Path(entry.path), False)
    return generated.GENERATED if is_marked else generated.kind_by_name(entry.name)


def read(file: File, resolve: markdown.Resolve = lambda name: None) -> Documents | Skipped:
    """Return the documents of a file, or why it is skipped; raise InputError for front matter that cannot be read."""
    most = MAX_FORMAT_BYTES if formats.format_of(file.name) else MAX_BYTES
    try:
        size, modified = file.stamp()
        if size > most:
            return Skipped(file.id, f"larger than {most // 1_000_000} MB ({size / 1e6:.1f} MB)")
        content = file.path.read_bytes()
    except OSError as error:
        return Skipped(file.id, error.strerror or "cannot be read")
    return documents(content, file, modified, resolve)


def documents(
    content: bytes, file: File, modified: datetime | None, resolve: markdown.Resolve = lambda name: None
) -> Documents | Skipped:
    """Return the documents in the content of a file, whatever surface it came by."""
    extension = file.path.suffix.lower()
    facts: dict[str, Any] = {"path": file.name, "extension": extension.lstrip(".")}
    format = formats.format_of(file.name)
    try:
        if format:
            return _of_parts(formats.parts(content, format), file, {**facts, "bytes": len(content)}, modified)
        decoded = encoding.decode(content)
    except (UnreadableError, MissingExtraError) as error:
        return Skipped(file.id, str(error))

    def others(name: str) -> str | None:
        id = resolve(name)
        return None if id == file.id else id

    kind, language = KINDS.get(extension, ("text", ""))
    if not file.whatever and kind == "code" and (written_by := generated.kind_of_code(decoded.text)):
        return Skipped(file.id, written_by)
    found: dict[str, Any] = {"text": decoded.text, "title": "", "meta": {}}
    if is_markdown(file):
        found = markdown.document(decoded.text, others)
    if not found["text"].strip() and not found["title"]:
        return Skipped(file.id, "empty")
    facts |= {"language": language, "bytes": len(content), "encoding": decoded.detected}
    meta = {**found["meta"], **{name: fact for name, fact in facts.items() if fact != ""}}
    title = found["title"] or file.path.name
    one = {"kind": kind, "created": modified, **found, "id": file.id, "title": title, "meta": meta}
    return Documents([one], list(decoded.notes))


def _of_parts(parts: Sequence[formats.Part], file: File, facts: dict[str, Any], modified: datetime | None) -> Documents:
    """Return the documents of a format.

    One of several has an id of its own, and neither the size nor the time of the file, or each would change with it.
    """
    full = [part for part in parts if part.text.strip() or part.title]
    ids = {part.key: f"{file.id}#{part.key}"[:MAX_ID] if part.key else file.id for part in full}
    found = []
    for part in full:
        one: dict[str, Any] = {"id": ids[part.key], "text": part.text, "kind": part.kind, "title": part.title}
        own = {name: facts[name] for name in ("path", "extension")} if part.key else facts
        created = part.created or (None if part.key else modified)
        links = [{"target": ids[key], "type": type} for key, type in part.links if key in ids and key != part.key]
        one |= {"meta": {**part.meta, **own}, **({"created": created} if created else {})}
        found.append({**one, "title": part.title or ("" if part.key else file.path.name), **_linked(links)})
    notes = list(dict.fromkeys(note for part in parts for note in part.notes))
    if len(full) < len(parts):
        notes.append(f"{len(parts) - len(full):,} of {len(parts):,} parts are empty")
    return Documents(found, notes)


def _linked(links: list[dict[str, str]]) -> dict[str, Any]:
    return {"links": links} if links else {}


def is_markdown(file: File) -> bool:
    return KINDS.get(file.path.suffix.lower(), ("", ""))[0] == "markdown"
