"""`trivet mcp install` changes the client's file as shown, and nothing else in it."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters

from trivet.mcp import clients


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "home"
    place.mkdir()
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(place))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("APPDATA", str(place / "AppData" / "Roaming"))
    return place


@pytest.mark.parametrize(
    ("platform", "client", "place"),
    [
        ("linux", "claude-desktop", ".config/Claude/claude_desktop_config.json"),
        ("darwin", "claude-desktop", "Library/Application Support/Claude/claude_desktop_config.json"),
        ("win32", "claude-desktop", "AppData/Roaming/Claude/claude_desktop_config.json"),
        ("linux", "claude-code", ".claude.json"),
        ("linux", "cursor", ".cursor/mcp.json"),
        ("linux", "vscode", ".config/Code/User/mcp.json"),
        ("darwin", "vscode", "Library/Application Support/Code/User/mcp.json"),
        ("win32", "vscode", "AppData/Roaming/Code/User/mcp.json"),
    ],
)
def test_the_places(monkeypatch: pytest.MonkeyPatch, home: Path, platform: str, client: str, place: str) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    assert clients.named(client).user() == home / place


def test_xdg_is_respected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    assert clients.named("vscode").user() == tmp_path / "xdg/Code/User/mcp.json"


@pytest.mark.parametrize("client", list(clients.CLIENTS))
def test_a_new_file(cli: Callable[..., Any], tmp_path: Path, client: str) -> None:
    done = cli("mcp", "install", "--client", client, "--yes", "--store", "notes.db", "--read-only")
    assert done.code == 0, done.err
    known = clients.named(client)
    path = known.user()
    assert str(path) in done.out
    entry = json.loads(path.read_text())[known.section]["trivet"]
    assert entry["command"] == sys.executable
    assert entry["args"] == [
        "-m", "trivet", "mcp", "--store", str(tmp_path / "notes.db"), "--collection", "default", "--read-only"
    ]  # fmt: skip
    assert ("type" in entry) == known.typed
    assert list(path.parent.glob("*.bak")) == []


@pytest.mark.parametrize("store", ["postgresql://me@host/db?schema=notes", "postgresql:///db?host=/run/postgresql"])
def test_the_address_of_a_server_is_written_as_it_was_given(cli: Callable[..., Any], store: str) -> None:
    assert cli("mcp", "install", "--client", "cursor", "--yes", "--store", store).code == 0
    known = clients.named("cursor")
    assert store in json.loads(known.user().read_text())[known.section]["trivet"]["args"]


@pytest.mark.parametrize(
    ("client", "place"), [("claude-code", ".mcp.json"), ("cursor", ".cursor/mcp.json"), ("vscode", ".vscode/mcp.json")]
)
def test_for_one_project(cli: Callable[..., Any], tmp_path: Path, client: str, place: str) -> None:
    assert cli("mcp", "install", "--client", client, "--project", "--yes").code == 0
    assert (tmp_path / place).exists()


def test_everything_else_in_the_file_stays_and_the_old_one_is_kept(cli: Callable[..., Any], home: Path) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    old = {"theme": "dark", "mcpServers": {"other": {"command": "x", "env": {"KEY": "s3cret"}}, "ünï": {"url": "y"}}}
    path.write_text(json.dumps(old), encoding="utf-8")
    path.chmod(0o600)
    done = cli("mcp", "install", "--client", "cursor", "--yes")
    assert done.code == 0, done.err
    assert "s3cret" not in done.out, "other servers are nobody's business"
    new = json.loads(path.read_text(encoding="utf-8"))
    ours = new["mcpServers"].pop("trivet")
    assert new == old
    assert ours["args"][:3] == ["-m", "trivet", "mcp"]
    (kept,) = path.parent.glob("mcp.json.*.bak")
    assert json.loads(kept.read_text(encoding="utf-8")) == old
    assert str(kept) in done.out
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_again_is_nothing(cli: Callable[..., Any], home: Path) -> None:
    assert cli("mcp", "install", "--client", "cursor", "--yes").code == 0
    path = home / ".cursor" / "mcp.json"
    before = path.stat().st_mtime_ns
    done = cli("mcp", "install", "--client", "cursor")
    assert (done.code, path.stat().st_mtime_ns) == (0, before)
    assert "nothing to do" in done.out
    assert list(path.parent.glob("*.bak")) == []


def test_another_entry_of_that_name_is_shown_before_it_is_replaced(cli: Callable[..., Any], home: Path) -> None:
    cli("mcp", "install", "--client", "cursor", "--yes")
    done = cli("mcp", "install", "--client", "cursor", "--yes", "--store", "other.db")
    assert "would replace 'trivet'" in done.out
    assert "instead of:" in done.out
    done = cli("mcp", "install", "--client", "cursor", "--yes", "--name", "second")
    assert list(json.loads((home / ".cursor/mcp.json").read_text())["mcpServers"]) == ["trivet", "second"]


def test_nothing_is_written_without_a_yes(cli: Callable[..., Any], home: Path) -> None:
    done = cli("mcp", "install", "--client", "cursor")
    assert done.code == 2
    assert "would add 'trivet'" in done.out
    assert '"mcpServers"' in done.out
    assert "--yes" in done.err
    assert not (home / ".cursor").exists()


@pytest.mark.parametrize("answer", ["y", "n"])
def test_it_asks(home: Path, monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    import typer

    from trivet.cli import main, mcp

    class Terminal:
        def isatty(self) -> bool:
            return True

    def confirm(*given: Any, abort: bool, **options: Any) -> None:
        if answer == "n":
            raise typer.Abort

    monkeypatch.setattr(mcp.sys, "stdin", Terminal())
    monkeypatch.setattr(mcp.typer, "confirm", confirm)
    with pytest.raises(SystemExit) as ended:
        main(["mcp", "install", "--client", "cursor"])
    assert (ended.value.code or 0) == (0 if answer == "y" else 1)
    assert (home / ".cursor/mcp.json").exists() == (answer == "y")


@pytest.mark.parametrize("text", ['{"mcpServers": {} // mine\n}', "[]", '{"mcpServers": []}', "{"])
def test_a_file_that_is_not_plain_json_is_left_alone(cli: Callable[..., Any], home: Path, text: str) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text(text)
    done = cli("mcp", "install", "--client", "cursor", "--yes")
    assert done.code == 2
    assert "add this yourself" in done.err
    assert path.read_text() == text


@pytest.mark.parametrize("text", ["", "  \n", "{}", '{"mcpServers": null}', "\ufeff{}"])
def test_an_empty_file_is_filled(cli: Callable[..., Any], home: Path, text: str) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    assert cli("mcp", "install", "--client", "cursor", "--yes").code == 0
    assert list(json.loads(path.read_text())["mcpServers"]) == ["trivet"]


@pytest.mark.skipif(os.name != "posix", reason="links need rights on Windows")
def test_a_link_stays_a_link(cli: Callable[..., Any], home: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    (home / ".cursor").mkdir()
    (home / ".cursor/mcp.json").symlink_to(real)
    assert cli("mcp", "install", "--client", "cursor", "--yes").code == 0
    assert (home / ".cursor/mcp.json").is_symlink()
    assert "trivet" in json.loads(real.read_text())["mcpServers"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--client", "emacs"), "known: claude-desktop, claude-code, cursor, vscode"),
        (("--client", "claude-desktop", "--project"), "leave out --project"),
        (("--client", "cursor", "--name", " "), "name: empty; give the server a name"),
        ((), "--client"),
    ],
)
def test_a_wrong_call_is_told(cli: Callable[..., Any], arguments: tuple[str, ...], said: str) -> None:
    done = cli("mcp", "install", "--yes", *arguments)
    assert done.code == 2
    assert said in done.err


def test_what_was_installed_starts(cli: Callable[..., Any], tmp_path: Path) -> None:
    """Start the server with the command and arguments in the client's file."""
    file = tmp_path / "somewhere" / "servers.json"
    done = cli("mcp", "install", "--client", "vscode", "--file", file, "--yes", "--embedder", "none")
    assert done.code == 0, done.err
    entry = json.loads(file.read_text())["servers"]["trivet"]

    async def main() -> None:
        async with Client(StdioServerParameters(command=entry["command"], args=entry["args"], cwd="/")) as client:
            assert not (await client.call_tool("remember", {"text": "It works."})).is_error

    anyio.run(main)
    assert (tmp_path / "memory.db").exists()
