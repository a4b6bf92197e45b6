"""Files that a program wrote: lock files, minified and generated code.

They are large, nobody asks for them, and their passages crowd out those of the files they were made from.
"""

from __future__ import annotations

import re

KINDS = GENERATED, MINIFIED, LOCK = "generated", "minified", "lock file"

LOCK_FILES = frozenset(
    {
        "bun.lock",
        "cargo.lock",
        "composer.lock",
        "deno.lock",
        "flake.lock",
        "gemfile.lock",
        "go.sum",
        "gradle.lockfile",
        "mix.lock",
        "npm-shrinkwrap.json",
        "package-lock.json",
        "packages.lock.json",
        "pdm.lock",
        "pipfile.lock",
        "pnpm-lock.yaml",
        "poetry.lock",
        "pubspec.lock",
        "uv.lock",
        "yarn.lock",
    }
)
_MINIFIED_NAME = re.compile(r"[.-]min\.(?:m?js|css)$|\.(?:m?js|css)\.map$")

#: Characters a line has on average in minified code, and how long such a file is at least: written code has 30 to 50.
MINIFIED_LINE, MINIFIED_FROM = 200, 2_000

#: Lines in which a generator says so, and how they begin: a sentence of the code may have the same words.
HEAD_LINES = 5
_SAID = re.compile(
    r"^\s*(?:#|//|/\*|\*|--|;|%|<!--)\s*(?:(?:this |the )?(?:file |code )?generated (?:by|from)\b|.*(?:@generated\b"
    r"|\bauto[- ]?generated\b|\bautomatically generated\b|\bgenerated\b.*\bdo not (?:edit|modify)\b"
    r"|\bthis (?:file|code) (?:is|was|has been) generated\b))",
    re.IGNORECASE,
)


def kind_by_name(name: str) -> str:
    """Return the kind of generated file that a name stands for; empty where it says nothing."""
    lower = name.lower()
    if lower in LOCK_FILES:
        return LOCK
    return MINIFIED if _MINIFIED_NAME.search(lower) else ""


def kind_of_code(text: str) -> str:
    """Return the kind of generated file that this code is; empty for code that a person wrote."""
    if any(_SAID.match(line) for line in text[:2_000].split("\n", HEAD_LINES)[:HEAD_LINES]):
        return GENERATED
    long_lines = len(text) >= MINIFIED_FROM and len(text) > MINIFIED_LINE * (text.count("\n") + 1)
    return MINIFIED if long_lines else ""
