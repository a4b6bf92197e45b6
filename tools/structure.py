"""Print the size and shape of the code, and the files that a warm search visits: `make structure`.

With `--check` it ends with code 1 where a figure is over its limit (`LIMITS`). Lower a limit when the code gets
smaller; raise one only for a feature, in the commit that adds it.
"""

from __future__ import annotations

import argparse
import ast
import io
import sys
import tempfile
import threading
import tokenize
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

SOURCE = Path(__file__).parent.parent / "src/trivet"

#: The most that each figure may be.
LIMITS = {
    "modules at the top of src/trivet": 10,
    "packages": 28,
    "lines of Python": 57_650,
    "of these, code without docstrings, comments and blank lines": 41_100,
    "lines of the longest module": 755,
    "public classes in stores/ that inherit from another one there": 0,
    "hasattr and getattr at callers of a store": 2,
    "files that a warm search visits, default profile": 45,
    "files that a warm search visits, two legs and nothing else": 33,
}
LONGEST = 10  # modules to list
#: Names under which callers hold a store or a part of one; a wrapper inside ``stores/`` calls it ``inner``.
STORE_NAMES = {"collection", "documents", "graph", "index", "lexical", "store", "vectors", "whole"}
NOTES = (
    "The greenhouse door sticks when it rains.",
    "We swapped the irrigation pump for a quieter one.",
    "Set retry_backoff_ms to 250 in GatewaySession.reconnect.",
    "The gateway listens on port 8443.",
)
QUERY = "why does the door stick in wet weather"


def modules() -> dict[str, str]:
    """Return the text of every module by its path below the source."""
    return {
        path.relative_to(SOURCE).as_posix(): path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py"))
    }


def code_lines(text: str) -> int:
    """Count the lines that hold code: no docstring, no comment, no blank line."""
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skipped:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and ast.get_docstring(node):
                lines.difference_update(range(first.lineno, (first.end_lineno or 0) + 1))
    return len(lines)


def inheritance(texts: dict[str, str]) -> list[str]:
    """Return the public classes in ``stores/`` whose base is another class there; protocols and errors do not count."""
    classes = [
        (path, node)
        for path, text in texts.items()
        if path.startswith("stores/")
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef)
    ]
    contracts = {node.name for _, node in classes if "Protocol" in map(ast.unparse, node.bases)}
    parts = {node.name for _, node in classes if not node.name.endswith("Error")} - contracts
    return [
        f"{path}: {node.name}({base})"
        for path, node in classes
        for base in map(ast.unparse, node.bases)
        if base in parts and not node.name.startswith("_")
    ]


def capability_checks(texts: dict[str, str]) -> list[str]:
    """Return where a caller asks a store with ``hasattr`` or ``getattr`` for what it can do."""
    return [
        f"{path}:{node.lineno}: {ast.unparse(node)}"
        for path, text in texts.items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("hasattr", "getattr")
        and ast.unparse(node.args[0]).split(".")[-1].lstrip("_")
        in (STORE_NAMES | {"inner"} if path.startswith("stores/") else STORE_NAMES)
    ]


class Visits:
    """The files of ours in which a function is called, in the order of the first call, in every thread."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}
        self.recording = False

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if self.recording and event == "call":
            file = Path(frame.f_code.co_filename)
            if file.is_relative_to(SOURCE):
                self.files.setdefault(file.relative_to(SOURCE).as_posix())


#: A search by two legs alone.
PLAIN: dict[str, Any] = {
    "weights": {"lexical": 0.5, "dense": 0.5, "graph": 0.0},
    "rerankers": [],
    "understanding": "plain",
}


def visited(**overrides: Any) -> list[str]:
    """Return the files that every one of five warm searches of a small SQLite store visits.

    Not those of one search: a thread that saves an index may run beside it.
    """
    import trivet

    visits = Visits()
    # Before the store is opened: a thread takes the function that is set when it starts.
    threading.setprofile(visits)
    sys.setprofile(visits)
    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            trivet.open(Path(folder) / "m.db", embedder="hashing:64") as memory,
        ):
            memory.add(list(NOTES))
            memory.wait()
            memory.prepare()
            memory.search(QUERY, **overrides)
            memory.search(QUERY, **overrides)
            searches = []
            for _ in range(5):
                visits.files, visits.recording = {}, True
                memory.search(QUERY, **overrides)
                visits.recording = False
                searches.append(visits.files)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return [file for file in searches[0] if all(file in each for each in searches)]


def listed(title: str, lines: list[str]) -> Iterator[str]:
    """Yield a title and its numbered lines."""
    yield f"\n{title}"
    yield from (f"{at:4}  {line}" for at, line in enumerate(lines, 1))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="end with code 1 where a figure is over its limit")
    check = parser.parse_args().check
    texts = modules()
    lines = {path: len(text.splitlines()) for path, text in texts.items()}
    longest = sorted(lines, key=lambda path: -lines[path])[:LONGEST]
    inherited, asked, files, plain = inheritance(texts), capability_checks(texts), visited(), visited(**PLAIN)
    values = (
        sum("/" not in path for path in lines),
        len({Path(path).parent for path in lines}) - 1,
        sum(lines.values()),
        sum(map(code_lines, texts.values())),
        lines[longest[0]],
        len(inherited),
        len(asked),
        len(files),
        len(plain),
    )
    over = [name for (name, limit), value in zip(LIMITS.items(), values, strict=True) if value > limit]
    print(f"{'figure':64} {'value':>7} {'limit':>7}")
    for (name, limit), value in zip(LIMITS.items(), values, strict=True):
        print(f"{name:64} {value:7,} {limit:7,}{'  over the limit' if value > limit else ''}")
    for title, found in (
        ("Longest modules (lines)", [f"{lines[path]:5}  {path}" for path in longest]),
        ("Classes in stores/ that inherit from another one there", inherited),
        ("hasattr and getattr at callers of a store", asked),
        ("Files that a warm search visits with the default profile, in order", files),
        ("Files that a warm search by two legs visits, in order", plain),
    ):
        print("\n".join(listed(title, found)))
    if check and over:
        print(f"\nstructure: over the limit: {', '.join(over)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
