"""Anthropic: the memory tool of Claude over a trivet collection.

A file is a document of the kind ``memory-file``; its id is its path and its title its name. ``folders`` in its metadata
lists the folders that it is in, so a folder exists as long as there is a file in it. The replies are those of the
file implementation in Anthropic's SDK, because models know them.
"""

from __future__ import annotations

import asyncio
import posixpath
import re
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from trivet.engine import Engine
from trivet.errors import TrivetError
from trivet.filters import And, Eq
from trivet.integrations.engine import lenient, missing_extra, open_engine
from trivet.types import Document, Embedder

try:
    from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
    from anthropic.types.beta import (
        BetaMemoryTool20250818Command,
        BetaMemoryTool20250818CreateCommand,
        BetaMemoryTool20250818DeleteCommand,
        BetaMemoryTool20250818InsertCommand,
        BetaMemoryTool20250818RenameCommand,
        BetaMemoryTool20250818StrReplaceCommand,
        BetaMemoryTool20250818ViewCommand,
    )
except ImportError as error:
    raise missing_extra("anthropic", error) from error

KIND = "memory-file"
ROOT = "memories"
_SHOWN_ROOT = f"/{ROOT}"
_MAX_LINES = 999_999  # of a file that is shown, as in the SDK
_NUMBER_WIDTH = len(str(_MAX_LINES))
_FOLDER_SIZE = "4K"  # what most file systems report; a folder of a collection takes no space


class TrivetMemoryTool(BetaAbstractMemoryTool):
    """The memory tool, for ``tools=[…]`` of a tool runner; ``trivet search`` finds its files.

    Args:
        store: The path or address of a store, or an open engine.
        collection: The name of the collection.
        embedder: The model of a new collection.
        cache_control: The cache control of the tool's definition.
    """

    def __init__(
        self,
        store: str | Path | Engine,
        *,
        collection: str = "default",
        embedder: str | Embedder | None = None,
        cache_control: Any = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self.engine = open_engine(store, collection, embedder)
        self._lock = threading.Lock()  # a model may call the tool several times at once

    def execute(self, command: BetaMemoryTool20250818Command) -> Any:
        """Run one command and return its reply; every refusal is a ``ToolError``, which the model reads."""
        try:
            with self._lock:
                return super().execute(command)
        except TrivetError as error:
            raise ToolError(str(error)) from error

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Return a file with line numbers, or the files and folders in a folder."""
        id = _id(command.path)
        document = self._file(id)
        if document is not None:
            return _numbered(document.text, command.path, command.view_range)
        files = self._inside(id)
        if not files and id != ROOT:
            raise ToolError(f"The path {command.path} does not exist. Please provide a valid path.")
        return _listing(id, command.path, files)

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Create a file."""
        id = _id(command.path)
        if self._exists(id) or self.engine.get(id) is not None:
            raise ToolError(f"File {command.path} already exists")
        self._check_parents(id)
        self.engine.add([{"text": command.file_text, "kind": KIND, **_place(id)}])
        return f"File created successfully at: {command.path}"

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that occurs once in a file."""
        document = self._editable(command.path)
        _check_once(document.text, command.old_str, command.path)
        line = document.text[: document.text.find(command.old_str)].count("\n")
        text = document.text.replace(command.old_str, command.new_str)
        self.engine.patch(document.id, text=text)
        first = max(0, line - 2)
        snippet = _with_numbers(text.split("\n")[first : line + 3], first + 1)
        return (
            f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{snippet}"
        )

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert lines into a file, after the line with the given number."""
        document = self._editable(command.path)
        lines = document.text.removesuffix("\n").split("\n") if document.text else []
        if not 0 <= command.insert_line <= len(lines):
            allowed = f"It should be within the range [0, {len(lines)}]."
            raise ToolError(f"Invalid `insert_line` parameter: {command.insert_line}. {allowed}")
        lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
        text = "\n".join(lines)
        self.engine.patch(document.id, text=text if text.endswith("\n") else f"{text}\n")
        return f"The file {command.path} has been edited."

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file, or a folder with everything in it."""
        id = _id(command.path)
        if id == ROOT:
            raise ToolError("Cannot delete the /memories directory itself")
        gone = self._files_at(id)
        if not gone:
            raise ToolError(f"The path {command.path} does not exist")
        self.engine.delete([document.id for document in gone])
        return f"Successfully deleted {command.path}"

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Rename or move a file, or a folder with everything in it."""
        old, new = _id(command.old_path), _id(command.new_path)
        if old == ROOT:
            raise ToolError("Cannot rename the /memories directory itself")
        if self._exists(new):
            raise ToolError(f"The destination {command.new_path} already exists")
        moved = self._files_at(old)
        if not moved:
            raise ToolError(f"The path {command.old_path} does not exist")
        if new.startswith(f"{old}/"):
            raise ToolError(f"The destination {command.new_path} is inside {command.old_path}")
        self._check_parents(new)
        self.engine.add([_moved(document, new + document.id.removeprefix(old)) for document in moved])
        self.engine.delete([document.id for document in moved])
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    def clear_all_memory(self) -> str:
        """Delete every file."""
        self.engine.delete([document.id for document in self._inside(ROOT)])
        return "All memory cleared"

    def _file(self, id: str) -> Document | None:
        document = self.engine.get(id)
        return document if document is not None and document.kind == KIND else None

    def _inside(self, folder: str) -> list[Document]:
        """Return the files in a folder and in the folders below it."""
        return list(lenient(self.engine, And((Eq("kind", KIND), Eq("folders", folder))), self.engine.documents))

    def _files_at(self, id: str) -> list[Document]:
        document = self._file(id)
        return self._inside(id) if document is None else [document]

    def _exists(self, id: str) -> bool:
        return id == ROOT or bool(self._files_at(id))

    def _check_parents(self, id: str) -> None:
        """Refuse a path below a file."""
        for folder in _folders(id):
            if self._file(folder) is not None:
                raise ToolError(f"The path /{folder} is a file, so there can be nothing below it")

    def _editable(self, path: str) -> Document:
        id = _id(path)
        document = self._file(id)
        if document is not None:
            return document
        if self._exists(id):
            raise ToolError(f"The path {path} is not a file.")
        raise ToolError(f"The path {path} does not exist. Please provide a valid path.")


class TrivetAsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """The memory tool for an asynchronous client; each command runs in a thread. Takes the same arguments."""

    def __init__(self, store: str | Path | Engine, *, cache_control: Any = None, **options: Any) -> None:
        super().__init__(cache_control=cache_control)
        self._tool = TrivetMemoryTool(store, **options)
        self.engine = self._tool.engine

    async def execute(self, command: Any) -> Any:
        """Run one command and return its reply."""
        return await asyncio.to_thread(self._tool.execute, command)

    view = create = str_replace = insert = delete = rename = execute

    async def clear_all_memory(self) -> str:
        """Delete every file."""
        return await asyncio.to_thread(self._tool.clear_all_memory)


# --- paths ------------------------------------------------------------------------------------------------------------


def _id(path: str) -> str:
    """Return the id of the file or folder at a path; refuse one outside of /memories."""
    if not path.startswith(_SHOWN_ROOT):
        raise ToolError(f"Path must start with /memories, got: {path}")
    full = posixpath.normpath(f"{_SHOWN_ROOT}/{path.removeprefix(_SHOWN_ROOT)}")
    if full != _SHOWN_ROOT and not full.startswith(f"{_SHOWN_ROOT}/"):
        raise ToolError(f"Path {path} would escape /memories directory")
    if "\0" in full:
        raise ToolError(f"Path {path!r} has a null character in it")
    return full.removeprefix("/")


def _folders(id: str) -> list[str]:
    parts = id.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]


def _place(id: str) -> dict[str, Any]:
    """Return the fields of a document that say where the file is."""
    return {"id": id, "title": posixpath.basename(id), "meta": {"folders": _folders(id)}}


def _moved(document: Document, id: str) -> Document:
    place = _place(id)
    return replace(document, **{**place, "meta": {**document.meta, **place["meta"]}})


# --- replies ----------------------------------------------------------------------------------------------------------


def _numbered(text: str, path: str, view_range: Sequence[int] | None) -> str:
    lines, start = text.split("\n"), 0
    if len(lines) > _MAX_LINES:
        raise ToolError(f"File {path} exceeds maximum line limit of 999,999 lines.")
    if view_range and len(view_range) == 2:
        start, end = max(1, view_range[0]) - 1, view_range[1]
        lines = lines[start:] if end == -1 else lines[start:end]
    return f"Here's the content of {path} with line numbers:\n{_with_numbers(lines, start + 1)}"


def _with_numbers(lines: Iterable[str], first: int) -> str:
    return "\n".join(f"{number:>{_NUMBER_WIDTH}}\t{line}" for number, line in enumerate(lines, first))


def _listing(folder: str, shown: str, files: Iterable[Document]) -> str:
    """Return the entries of a folder and of the folders in it, sorted by name, without hidden ones."""
    sizes: dict[tuple[str, ...], str] = {}  # by the parts of a path; those of a folder end in an empty one
    for document in files:
        parts = tuple(document.id.removeprefix(f"{folder}/").split("/"))
        hidden = next((at for at, part in enumerate(parts) if part.startswith(".")), len(parts))
        for end in range(1, min(hidden, 2) + 1):
            is_file = end == len(parts)
            sizes[parts[:end] if is_file else (*parts[:end], "")] = _size(document.text) if is_file else _FOLDER_SIZE
    entries = [f"{size}\t{shown}/{'/'.join(parts)}" for parts, size in sorted(sizes.items())]
    header = f"Here're the files and directories up to 2 levels deep in {shown}, excluding hidden items:"
    return "\n".join([header, f"{_FOLDER_SIZE}\t{shown}", *entries])


def _size(text: str) -> str:
    """Return the bytes of a text with the unit that the SDK shows: 0B, 512B, 1.5K."""
    size, unit = float(len(text.encode())), 0
    while size >= 1024 and unit < 3:
        size, unit = size / 1024, unit + 1
    return f"{size:.0f}{'BKMG'[unit]}" if size.is_integer() else f"{size:.1f}{'BKMG'[unit]}"


def _check_once(text: str, old: str, path: str) -> None:
    """Refuse a text that does not occur, or occurs several times; matches may overlap in the lines that are named."""
    count = text.count(old)
    if count == 0:
        raise ToolError(f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")
    if count > 1:
        starts = (match.start() for match in re.finditer(f"(?={re.escape(old)})", text))
        lines = ", ".join(str(text.count("\n", 0, start) + 1) for start in starts)
        raise ToolError(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {lines}. "
            "Please ensure it is unique"
        )
