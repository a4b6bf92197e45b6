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
    assert [item["value"] for item in PACKAGE["runtimeArguments"]] == [f"trivet[mcp]=={trivet.__version__}"]


def test_the_readme_names_it_which_proves_ownership_to_the_registry() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"<!-- mcp-name: (\S+) -->", readme) == [ENTRY["name"]]


def test_the_limits_of_the_schema() -> None:
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", ENTRY["name"])
    assert len(ENTRY["description"]) <= 100
    assert all(item["type"] in ("named", "positional") for item in PACKAGE["packageArguments"])


def test_its_command_serves_the_tools(tmp_path: Path) -> None:
    arguments: list[str] = []
    for item in PACKAGE["packageArguments"]:
        value = item.get("value") or str(tmp_path / "memory.db")
        arguments += [item["name"], value] if item["type"] == "named" else [value]
    defaults = {item["name"]: item["default"] for item in PACKAGE["environmentVariables"]}
    environment = {**os.environ, **defaults, "TRIVET_EMBEDDER": "none"}

    async def names() -> list[str]:
        async with Client(
            StdioServerParameters(command=sys.executable, args=["-m", "trivet", *arguments], env=environment)
        ) as client:
            return sorted(tool.name for tool in (await client.list_tools()).tools)

    assert {"recall", "remember", "update"} <= set(anyio.run(names))
