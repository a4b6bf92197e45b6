"""Where does a client keep its list of servers, and how is ours put into it?

A plan is made first and shown; writing it keeps every other server and everything else in the file, keeps the old file
beside it, and does nothing where there is nothing to change. A file that is not plain JSON is left to its owner.
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
    """Where programs keep their settings, on this system."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")


@dataclass(frozen=True, slots=True)
class Client:
    title: str
    user: Callable[[], Path]  # for all of the user's work
    project: str | None  # for one folder's
    section: str = "mcpServers"
    typed: bool = True  # does an entry say that it is stdio?


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
    """What would be written, and where."""

    client: Client
    path: Path
    name: str
    entry: dict[str, Any]
    before: dict[str, Any] | None  # the entry of that name, if there is one
    content: dict[str, Any]  # the whole file, as it would be

    @property
    def changes(self) -> bool:
        return self.before != self.entry

    @property
    def shown(self) -> str:
        """The part of the file that is ours."""
        return json.dumps({self.client.section: {self.name: self.entry}}, indent=2, ensure_ascii=False)


def entry(client: Client, arguments: list[str]) -> dict[str, Any]:
    """How the client starts us: by the interpreter that runs now, which needs nobody's PATH."""
    command = {"command": sys.executable, "args": ["-m", "trivet", "mcp", *arguments]}
    return {"type": "stdio", **command} if client.typed else command


def plan(name: str, arguments: list[str], *, server: str, project: bool = False, file: Path | None = None) -> Plan:
    client = named(name)
    path = file or _place(name, client, project)
    ours = entry(client, arguments)
    if not server.strip():
        raise InputError("name: the server needs one")
    content = _read(path, client, server, ours)
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
        raise InputError(f"project: {name} has one list for everything; leave out --project")
    return Path.cwd() / client.project


def _read(path: Path, client: Client, server: str, ours: dict[str, Any]) -> dict[str, Any]:
    """What is in the file; nothing where there is none."""
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
    servers = content.get(client.section, {}) if isinstance(content, dict) else None
    if not isinstance(content, dict) or not (servers is None or isinstance(servers, dict)):
        paste = json.dumps({client.section: {server: ours}}, ensure_ascii=False)
        raise InputError(
            f"{path}: is not the plain JSON object it should be (are there comments in it?), so it is left as it is; "
            f"add this yourself: {paste}"
        )
    return content


def write(planned: Plan) -> Path | None:
    """Puts the plan into effect; returns where the old file is kept, if there was one."""
    path = planned.path.resolve()  # a link stays a link
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = _kept(path)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(json.dumps(planned.content, indent=2, ensure_ascii=False) + "\n")
                file.flush()
                os.fsync(file.fileno())
            if kept is not None:
                shutil.copymode(path, temporary)  # a list of servers may hold keys: nobody else gets to read it
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise StoreError(f"{planned.path}: cannot be written ({error.strerror})") from None
    return kept


def _kept(path: Path) -> Path | None:
    if not path.exists():
        return None
    stamp = f"{datetime.now():%Y%m%d-%H%M%S}"
    names = (path.with_name(f"{path.name}.{stamp}{again}.bak") for again in ("", *(f"-{n}" for n in range(2, 1_000))))
    kept = next(name for name in names if not name.exists())
    shutil.copy2(path, kept)
    return kept
