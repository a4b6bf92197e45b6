"""Every error is one line with its exit code; ``trivet --help`` is complete and imports nothing heavy."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from trivet import cli as surface
from trivet.fusion import FUSIONS
from trivet.fusion.normalize import NORMALIZERS

HEAVY = (
    "numpy", "faiss", "tantivy", "onnxruntime", "tokenizers", "httpx", "pathspec", "scipy", "ir_measures",
    "trivet.engine", "trivet.evaluate",
)  # fmt: skip
NAMES = [command.name for command in surface.COMMANDS]
#: How each command is called where there is no store yet; ``WITHOUT`` need none.
WITHOUT_STORE = {
    "search": ["x"],
    "get": ["x"],
    "delete": ["x"],
    "forget": ["x"],
    "compact": [],
    "link": ["x", "y"],
    "settings": [],
    "history": [],
    "revert": [],
    "list": [],
    "collections": [],
    "feedback": ["x", "y"],
    "stats": [],
    "reembed": [],
    "rebuild": [],
    "redistribute": [],
    "export": ["-"],
    "tune": [],
    "hook": ["install"],
}
WITHOUT = {
    "add",
    "import",
    "profiles",
    "doctor",
    "backup",
    "restore",
    "eval",
    "compare",
    "sweep",
    "gate",
    "serve",
    "keys",
    "config",
    "mcp",
    "copy",
    "remember",
}
SERVERS = {"serve", "mcp", "hook"}  # their output is a protocol, so they have no --json


def test_the_commands(cli) -> None:
    expected = "add import search get delete link settings feedback stats doctor reembed rebuild export profiles"
    expected += " eval compare sweep tune gate serve keys config mcp copy backup restore forget compact remember"
    expected += " hook list collections history revert redistribute"
    assert sorted(NAMES) == sorted(expected.split())
    assert set(WITHOUT_STORE) | WITHOUT == set(NAMES)
    out = cli("--help").out
    assert all(f" {name} " in out for name in NAMES)
    assert cli().code == 0
    assert cli().out.strip() == out.strip()


@pytest.mark.parametrize("name", NAMES)
def test_every_help_has_an_example_and_json(cli, name: str) -> None:
    ran = cli(name, "--help")
    assert ran.code == 0
    assert "Example" in ran.out
    assert f"$ trivet {name}" in ran.out.replace("| trivet", "$ trivet")
    assert name in SERVERS or "--json" in ran.out
    assert "<bool>" not in ran.out


@pytest.mark.parametrize(("flag", "registry"), [("--fusion", FUSIONS), ("--normalize", NORMALIZERS)])
def test_an_unknown_choice_is_refused_with_the_known_ones(cli, notes, flag: str, registry) -> None:
    ran = cli("search", "x", "-s", notes, flag, "nope")
    assert ran.code == 2
    assert f"'nope' is unknown; known: {', '.join(registry)}" in " ".join(ran.err.split())


def test_version(cli) -> None:
    from trivet import __version__

    assert cli("--version").out == f"trivet {__version__}\n"


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom trivet.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr.strip() == "[]"


@pytest.mark.parametrize("name", WITHOUT_STORE)
def test_a_missing_store_is_not_made(cli, clean_place: Path, name: str) -> None:
    ran = cli(name, *WITHOUT_STORE[name])
    assert ran.code == 1
    assert ran.err.startswith("trivet: store: there is no file 'memory.db'; make it with `trivet add")
    assert ran.out == ""
    assert list(clean_place.iterdir()) == []


def test_a_missing_collection_is_not_made(cli) -> None:
    cli("add", "x")
    assert cli("search", "x", "-c", "nope").code == 1
    assert cli("stats", "--json").json["collections"] == ["default"]


@pytest.mark.parametrize("arguments", [["frobnicate"], ["search"], ["get"], ["stats", "extra"], ["add", "x", "--nope"]])
def test_wrong_calls_exit_2(cli, arguments: list[str]) -> None:
    ran = cli(*arguments)
    assert ran.code == 2
    assert ran.err.startswith("trivet: ")
    assert "--help`." in ran.err
    assert ran.err.count("\n") == 1


def test_a_folder_is_no_store(cli, clean_place: Path) -> None:
    assert cli("add", "x", "-s", clean_place).code == 2
    assert cli("search", "x", "-s", clean_place).code == 2


def test_another_program_s_file(cli, clean_place: Path) -> None:
    (clean_place / "memory.db").write_bytes(b"not a database, far from it" * 100)
    ran = cli("search", "x")
    assert ran.code == 1
    assert "not a trivet store" in ran.err


def test_the_unexpected_is_one_line(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def surprise(*_: object) -> None:
        raise ZeroDivisionError("by\nzero")

    monkeypatch.setattr(surface.settings, "_list", surprise)
    ran = cli("profiles")
    assert ran.code == 1
    assert ran.err == (
        "trivet: unexpected ZeroDivisionError: by zero (please report it; TRIVET_DEBUG=1 shows the traceback)\n"
    )
    monkeypatch.setenv("TRIVET_DEBUG", "1")
    assert "Traceback" in cli("profiles").err


def test_ctrl_c(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(surface.settings, "_list", stop)
    ran = cli("profiles")
    assert (ran.code, ran.err) == (130, "trivet: interrupted\n")


def test_ctrl_c_while_waiting_for_a_pipe(command: list[str]) -> None:
    # a background job of a shell ignores SIGINT, and its children inherit that
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*command, "import", "-"], **pipes, preexec_fn=heard) as running:
        while not Path("memory.db").exists():
            time.sleep(0.05)
        time.sleep(0.5)
        while running.poll() is None:  # on a busy machine the first signal may come before the handler is set
            running.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.wait(timeout=5)
        _, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert err.startswith(b"trivet: interrupted")
    assert err.count(b"\n") == 1


def test_a_reader_that_has_seen_enough(process, command: list[str]) -> None:
    lines = "".join(f'{{"id": "{number}", "text": "{"word " * 200}{number}"}}\n' for number in range(300))
    assert process("import", "-", piped=lines).code == 0
    with subprocess.Popen([*command, "export", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stdout.readline().startswith(b'{"trivet"')
        running.stdout.close()
        assert running.stderr is not None
        assert running.stderr.read() == b""
    assert running.returncode == 0


def test_a_terminal_that_knows_no_unicode(process, notes: Path) -> None:
    ran = process("search", "出厂测试", "-s", notes, "-k", "1", PYTHONIOENCODING="ascii")
    assert ran.code == 0
    assert ran.err == ""


def test_a_word_that_is_no_text(process, command: list[str]) -> None:
    adding = [*command, "add", b"caf\xe9", "--id", "a"]
    done = subprocess.run(adding, capture_output=True, env=os.environ, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert process("get", "a", "--json").json["text"] == "caf\ufffd"
