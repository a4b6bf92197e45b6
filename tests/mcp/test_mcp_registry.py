"""server.json, the entry in the MCP registry: its version is ours, and its command serves the tools."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters

import trivet

ROOT = Path(__file__).parents[2]
ENTRY: dict[str, Any] = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))
(PACKAGE,) = ENTRY["packages"]


def test_the_versions_are_those_of_the_package() -> None:
    assert {ENTRY["version"], PACKAGE["version"]} == {trivet.__version__}
    (argument,) = PACKAGE["runtimeArguments"]
    # Clients put identifier==version or identifier@version behind it; uvx takes neither as a command of `--from`.
    assert (argument["name"], argument["value"]) == ("--with", f"trivet[mcp]=={trivet.__version__}")


def test_the_readme_names_it_which_proves_ownership_to_the_registry() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"<!-- mcp-name: (\S+) -->", readme) == [ENTRY["name"]]


def test_the_limits_of_the_schema() -> None:
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", ENTRY["name"])
    assert len(ENTRY["description"]) <= 100
    assert all(item["type"] in ("named", "positional") for item in PACKAGE["packageArguments"])


def tools(store: Path, **environment: str) -> set[str]:
    """Start the entry's command and return the names of its tools."""
    arguments: list[str] = []
    for item in PACKAGE["packageArguments"]:
        value = item.get("value") or str(store)
        arguments += [item["name"], value] if item["type"] == "named" else [value]
    defaults = {item["name"]: item["default"] for item in PACKAGE["environmentVariables"]}
    variables = {**os.environ, **defaults, "TRIVET_EMBEDDER": "none", **environment}

    async def names() -> set[str]:
        async with Client(
            StdioServerParameters(command=sys.executable, args=["-m", "trivet", *arguments], env=variables)
        ) as client:
            return {tool.name for tool in (await client.list_tools()).tools}

    return anyio.run(names)


def test_its_command_serves_the_tools(tmp_path: Path) -> None:
    store = tmp_path / "memory.db"
    assert {"recall", "remember", "update"} <= tools(store)
    (about,) = [item["description"] for item in PACKAGE["environmentVariables"] if item["name"] == "TRIVET_READ_ONLY"]
    named = re.findall(r"\w+", about.partition("read: ")[2].replace(" and ", " "))
    assert set(named) == tools(store, TRIVET_READ_ONLY="true")
