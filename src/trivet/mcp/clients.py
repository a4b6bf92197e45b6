"""Adds our server to the configuration file of an MCP client.

A plan is made and shown first. Writing it keeps all other content of the file and a backup of the old file. A file that
is not plain JSON is not changed.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from trivet.errors import InputError, StoreError


def _application_support() -> Path:
    """Return the folder for application settings on this system."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")


@dataclass(frozen=True, slots=True)
class Client:
    """An MCP client and its configuration files."""

    title: str
    user: Callable[[], Path]  # the file for all projects of the user
    project: str | None  # the file for one project folder
    section: str = "mcpServers"
    typed: bool = True  # an entry has `"type": "stdio"`


CLIENTS = {
    "claude-desktop": Client(
        "Claude Desktop",
        lambda: _application_support() / "Claude" / "claude_desktop_config.json",
        None,
        typed=False,
    ),
    "claude-code": Client("Claude Code", lambda: Path.home() / ".claude.json", ".mcp.json"),
    "cursor": Client("Cursor", lambda: Path.home() / ".cursor" / "mcp.json", ".cursor/mcp.json", typed=False),
    "vscode": Client(
        "VS Code",
        lambda: _application_support() / "Code" / "User" / "mcp.json",
        ".vscode/mcp.json",
        section="servers",
    ),
}


@dataclass(frozen=True, slots=True)
class Plan:
    """What to write to which file."""

    client: Client
    path: Path
    name: str
    entry: dict[str, Any]
    before: dict[str, Any] | None  # the current entry of that name
    content: dict[str, Any]  # the whole file after the change

    @property
    def changes(self) -> bool:
        return self.before != self.entry

    @property
    def shown(self) -> str:
        """Return our part of the file as JSON."""
        return json.dumps({self.client.section: {self.name: self.entry}}, indent=2, ensure_ascii=False)


def entry(client: Client, arguments: list[str]) -> dict[str, Any]:
    """Return the entry that starts our server with the current interpreter, independent of PATH."""
    command = {"command": sys.executable, "args": ["-m", "trivet", "mcp", *arguments]}
    return {"type": "stdio", **command} if client.typed else command


def plan(name: str, arguments: list[str], *, server: str, project: bool = False, file: Path | None = None) -> Plan:
    """Return the change that adds ``server`` to the configuration of the client ``name``."""
    client = named(name)
    path = file or _place(name, client, project)
    ours = entry(client, arguments)
    if not server.strip():
        raise InputError("name: empty; give the server a name")
    content = read(path, client.section, {server: ours})
    servers = content.get(client.section) or {}
    before = servers.get(server)
    return Plan(client, path, server, ours, before, {**content, client.section: {**servers, server: ours}})


def named(name: str) -> Client:
    if name not in CLIENTS:
        raise InputError(f"client: {name!r} is unknown; known: {', '.join(CLIENTS)}")
    return CLIENTS[name]


def _place(name: str, client: Client, project: bool) -> Path:
    if not project:
        return client.user()
    if client.project is None:
        raise InputError(f"project: {name} has no project configuration; leave out --project")
    return Path.cwd() / client.project


def read(path: Path, section: str, ours: dict[str, Any]) -> dict[str, Any]:
    """Return the content of the file, empty if it does not exist; ``ours`` is what is to be added to a section."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from None
    if not text.strip():
        return {}
    try:
        content = json.loads(text)
    except ValueError:
        content = None
    known = content.get(section, {}) if isinstance(content, dict) else None
    if not isinstance(content, dict) or not (known is None or isinstance(known, dict)):
        paste = json.dumps({section: ours}, ensure_ascii=False)
        raise InputError(
            f"{path}: not a plain JSON object (does it contain comments?) and not changed; add this yourself: {paste}"
        )
    return content


def write(file: Path, content: dict[str, Any]) -> Path | None:
    """Write a configuration file; return the backup of the old one, if there was one."""
    path = file.resolve()  # a symbolic link stays one
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = _backup(path)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as new:
                new.write(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
                new.flush()
                os.fsync(new.fileno())
            if kept is not None:
                shutil.copymode(path, temporary)  # the file may contain keys; keep its permissions
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise StoreError(f"{file}: cannot be written ({error.strerror})") from None
    return kept


def _backup(path: Path) -> Path | None:
    """Copy the file beside itself under a new name and return that; None if there is no file."""
    if not path.exists():
        return None
    stamp = f"{datetime.now():%Y%m%d-%H%M%S}"
    names = (path.with_name(f"{path.name}.{stamp}{again}.bak") for again in ("", *(f"-{n}" for n in range(2, 1_000))))
    kept = next(name for name in names if not name.exists())
    shutil.copy2(path, kept)
    return kept
