"""docs/reference/mcp.md describes every tool, prompt and resource."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trivet.mcp.clients import CLIENTS
from trivet.mcp.prompts import PROMPTS
from trivet.mcp.tools import TOOLS, Tool

PAGE = (Path(__file__).parents[2] / "docs/reference/mcp.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_tool_is_documented_with_what_it_takes_and_gives(tool: Tool) -> None:
    section = PAGE.split(f"### `{tool.name}`\n")[1].split("\n##")[0]
    takes, gives = section.split("\n→" if "\n→" in section else "→", 1)
    for name in tool.arguments.model_fields:
        assert f"`{name}`" in takes, name
    for name in tool.result.model_fields:
        assert f"`{name}`" in gives, name


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_the_hints_are_those_of_the_table(tool: Tool) -> None:
    row = re.search(rf"^\| `{tool.name}` \| (\w+) \| (\w+) \| (\w+) \| (\w+) \|$", PAGE, flags=re.MULTILINE)
    assert row is not None
    hints = (tool.read_only, tool.destructive, tool.idempotent, tool.open_world)
    assert row.groups() == tuple("yes" if hint else "no" for hint in hints)


def test_every_prompt_is_documented() -> None:
    for prompt in PROMPTS:
        assert f"| `{prompt.name}` |" in PAGE


def test_every_client_is_in_the_guide() -> None:
    guide = (Path(__file__).parents[2] / "docs/how-to/mcp-clients.md").read_text(encoding="utf-8")
    for name in CLIENTS:
        assert f"| `{name}` |" in guide
