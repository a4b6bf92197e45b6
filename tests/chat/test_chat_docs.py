"""docs/how-to/chat.md is true: its code runs, and it has every setting, variable, route, state and failure."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from trivet.chat.endpoint import KEYS, ChatSettings
from trivet.chat.episodes import STATES

PAGE = (Path(__file__).parent.parent.parent / "docs/how-to/chat.md").read_text()


def test_its_code_runs(tmp_path: Path) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "> User: Why does the door stick?" in done.stdout


@pytest.mark.parametrize("item", [item for item in fields(ChatSettings) if item.name not in ("key", "options")])
def test_every_setting_is_documented(item: object) -> None:
    name = item.name  # type: ignore[attr-defined]
    default = getattr(ChatSettings(), name) or "none"
    assert f"| `{name}` | `TRIVET_CHAT_{name.upper()}` | {default} |" in PAGE
    assert all(f"`{key}`" in PAGE for key in KEYS)


def test_every_state_is_documented() -> None:
    assert all(f"| `{state}` |" in PAGE for state in STATES)


def test_every_route_and_failure_is_documented() -> None:
    pytest.importorskip("fastapi")
    from trivet.http import problem_details
    from trivet.http.routes.conversations import router

    for route in router.routes:
        for method in route.methods:  # type: ignore[attr-defined]
            assert f"`{method} {route.path}" in PAGE  # type: ignore[attr-defined]
    chat = {kind.removeprefix("chat-"): status for kind, (status, _) in problem_details.KINDS.items() if "chat" in kind}
    assert len(chat) == 6
    for kind, status in chat.items():
        assert re.search(rf"`{kind}`[^`]*?\b{status}\b", PAGE), kind
