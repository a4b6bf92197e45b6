"""Does docs/MCP.md tell of everything there is?"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trivet.surfaces.mcp.clients import CLIENTS
from trivet.surfaces.mcp.prompts import PROMPTS
from trivet.surfaces.mcp.tools import TOOLS, Tool

PAGE = (Path(__file__).parents[3] / "docs/MCP.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_tool_is_documented_with_what_it_takes_and_gives(tool: Tool) -> None:
    section = PAGE.split(f"### `{tool.name}`\n")[1].split("\n##")[0]
    takes, gives = section.split("→")
    for name in tool.takes.model_fields:
        assert f"`{name}`" in takes, name
    for name in tool.gives.model_fields:
        assert f"`{name}`" in gives, name


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_the_hints_are_those_of_the_table(tool: Tool) -> None:
    row = re.search(rf"^\| `{tool.name}` \| (\w+) \| (\w+) \| (\w+) \| (\w+) \|$", PAGE, flags=re.MULTILINE)
    assert row is not None
    hints = (tool.read_only, tool.destructive, tool.idempotent, tool.open_world)
    assert row.groups() == tuple("yes" if hint else "no" for hint in hints)


def test_every_prompt_and_client_is_documented() -> None:
    for name in (*(prompt.name for prompt in PROMPTS), *CLIENTS):
        assert f"| `{name}` |" in PAGE
