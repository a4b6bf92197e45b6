"""Use the wheel in an environment without the source. ``smoke.py [PYTHON …]``

Builds the wheel, installs it with its extras in a fresh environment, and uses it from an empty folder: library, command
line, page, MCP. Each Python that is named is tried, else every supported one that is here; the last line says which
works, and which were left out and why. The one it is run with is never left out.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
EXTRAS = "serve,mcp"
SUPPORTED = ("3.11", "3.12", "3.13")
USE = """
import re, trivet
assert "site-packages" in trivet.__file__, trivet.__file__
with trivet.open("memory.db") as memory:
    memory.add("The side door sticks when it rains.", id="door")
    memory.add("Otters sleep in the harbour.", id="otter")
    found = memory.search("which entrance is jammed in wet weather", k=1)
    assert [hit.id for hit in found] == ["door"], found
    assert memory.verify().ok
    memory.backup("copy.db")
from starlette.testclient import TestClient
from trivet.http.config import Config
from trivet.http.app import create
with TestClient(create(Config(store="memory.db")), "http://127.0.0.1:8787") as client:
    page = client.get("/")
    assert page.status_code == 200, page
    assets = re.findall(r'(?:src|href)="(/assets/[^"]+)"', page.text)
    assert assets and all(client.get(asset).status_code == 200 for asset in assets), page.text
    found = client.post("/v1/collections/default/search", json={"query": "door"})
    assert found.json()["hits"][0]["id"] == "door", found.text
"""
WHO = {"name": "smoke", "version": "1"}
ASK = (
    {
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": WHO},
    },
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list"},
)
COMMANDS = (("--help",), ("--version",), ("search", "door", "--json"), ("doctor",), ("serve", "--check"))


def main(named: list[str]) -> int:
    here, skipped = (named, []) if named else supported()
    with tempfile.TemporaryDirectory(prefix="trivet-wheel-") as place:
        wheel = build(Path(place))
        done = [tried(python, wheel, Path(place) / f"env-{at}") for at, python in enumerate(here)]
    print(told(wheel.name, done, skipped))
    return 0


def supported() -> tuple[list[str], list[str]]:
    """(the Pythons to try, why the others are not)"""
    mine = f"{sys.version_info[0]}.{sys.version_info[1]}"
    here, skipped = [sys.executable], []
    for version in SUPPORTED:
        if version == mine:
            continue
        if found := _runs(f"python{version}", version):
            here.append(found)
        else:
            skipped.append(f"{version} (no python{version} that runs is here)")
    return here, skipped


def _runs(name: str, version: str) -> str | None:
    """The program, if it is that Python and can make environments: a shim of a version manager may be neither."""
    path = shutil.which(name)
    code = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    if path is None:
        return None
    asked = subprocess.run([path, "-c", code], capture_output=True, text=True, check=False)
    return path if asked.returncode == 0 and asked.stdout.strip() == version else None


def told(wheel: str, done: list[str], skipped: list[str]) -> str:
    rest = f"; skipped: {', '.join(skipped)}" if skipped else ""
    return f"wheel: {wheel} works on {', '.join(done)}{rest}"


def build(place: Path) -> Path:
    run([sys.executable, "-m", "venv", place / "build"])
    run([place / "build/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "build"])
    run([place / "build/bin/python", "-m", "build", "--wheel", "--outdir", place / "dist", ROOT])
    (wheel,) = (place / "dist").glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert any(name.endswith("trivet/web/index.html") for name in names), "the page is not in the wheel"
    assert not any(name.startswith(("tests", "benchmarks")) for name in names), "what is no part of it is in the wheel"
    return wheel


def tried(python: str, wheel: Path, environment: Path) -> str:
    started = time.monotonic()
    run([python, "-m", "venv", environment])
    binaries = environment / "bin"
    run([binaries / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{wheel}[{EXTRAS}]"])
    empty = environment / "empty"
    empty.mkdir()
    run([binaries / "python", "-W", "error", "-c", USE], empty)
    for command in COMMANDS:
        run([binaries / "trivet", *command], empty)
    assert tools(binaries / "trivet", empty) >= 7, "tools are missing"
    version = run([binaries / "python", "-V"], empty).strip()
    print(f"{version}: installed and used in {time.monotonic() - started:.0f} s")
    return version


def tools(trivet: Path, place: Path) -> int:
    """How many tools the MCP server lists to a client on its standard input."""
    command = [str(trivet), "mcp", "--store", "memory.db"]
    with subprocess.Popen(command, cwd=place, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None and server.stdout is not None
        for message in ASK:
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        server.stdin.flush()
        for line in server.stdout:
            answer = json.loads(line)
            if answer.get("id") == 2:
                server.stdin.close()
                return len(answer["result"]["tools"])
    return 0


def run(command: list[object], place: Path = ROOT) -> str:
    plain = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(list(map(str, command)), cwd=place, env=plain, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"wheel: {' '.join(map(str, command))[:300]}\n{done.stdout[-1500:]}{done.stderr[-3000:]}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
