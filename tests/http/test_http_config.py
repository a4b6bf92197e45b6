"""The configuration follows one precedence rule, and its commands report what is wrong."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from trivet.errors import InputError
from trivet.http import config
from trivet.http.config import HELP, Config, is_loopback, resolve


def test_a_flag_wins_over_the_environment_over_the_file_over_the_default(tmp_path: Path) -> None:
    file = tmp_path / "trivet.toml"
    file.write_text('port = 1\nthreads = 2\nworkers = 3\n\n[chat]\nendpoint = "x"\n')
    found, sources = resolve({"port": 4, "host": None}, {"TRIVET_PORT": "5", "TRIVET_THREADS": "6"}, file)
    assert (found.port, found.threads, found.workers, found.host) == (4, 6, 3, "127.0.0.1")
    by_name = {item.name: item.source for item in sources}
    assert by_name["port"] == "--port"
    assert by_name["threads"] == "TRIVET_THREADS"
    assert by_name["workers"] == str(file)
    assert by_name["host"] == "default"


def test_every_setting_has_help_a_check_and_survives_the_way_to_a_worker() -> None:
    names = [item.name for item in fields(Config)]
    assert list(HELP) == names
    assert list(config._CHECKS) == names
    odd = Config(cors_origins=("https://a.example",), allowed_hosts=("a.example",), port=1, require_key=True)
    assert Config.from_json(odd.to_json()) == odd


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("TRIVET_PORT", "x"), ("TRIVET_PORT", "70000"), ("TRIVET_WORKERS", "0"), ("TRIVET_REQUIRE_KEY", "maybe"),
        ("TRIVET_LOG_LEVEL", "loud"), ("TRIVET_CORS_ORIGINS", "app.example.com"), ("TRIVET_REQUEST_SECONDS", "nan"),
        ("TRIVET_ALLOWED_HOSTS", "*"), ("TRIVET_ALLOWED_HOSTS", "a.example/x"), ("TRIVET_ALLOWED_HOSTS", "https://a.example"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_named_with_its_source(variable: str, value: str) -> None:
    with pytest.raises(InputError, match=variable):
        resolve({}, {variable: value})


def test_names_of_a_proxy_come_from_everywhere(tmp_path: Path) -> None:
    file = tmp_path / "other.toml"
    file.write_text('allowed_hosts = ["a.example"]')
    assert resolve({}, {}, file)[0].allowed_hosts == ("a.example",)
    assert resolve({}, {"TRIVET_ALLOWED_HOSTS": "b.example, c.example:81"}, file)[0].allowed_hosts == (
        "b.example",
        "c.example:81",
    )
    assert resolve({"allowed_hosts": "d.example"}, {}, file)[0].allowed_hosts == ("d.example",)
    assert resolve({}, {})[0].allowed_hosts == ()


def test_a_wrong_file(tmp_path: Path) -> None:
    for text, told in (("prot = 1", "did you mean 'port'"), ("port =", "not TOML"), ("port = true", "not allowed")):
        (tmp_path / "bad.toml").write_text(text)
        with pytest.raises(InputError, match=told):
            resolve({}, {}, tmp_path / "bad.toml")
    with pytest.raises(InputError, match="cannot read"):
        resolve({}, {"TRIVET_CONFIG": str(tmp_path / "none.toml")})


def test_which_addresses_are_this_machines_own() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.8.8.8", "localhost", "::1", "[::1]")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "localhost.example.com", "")))


# --- the commands -----------------------------------------------------------------------------------------------------


def test_config_shows_values_and_sources(cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVET_PORT", "9000")
    shown = cli("config", "--threads", "2")
    assert "port = 9000  # TRIVET_PORT" in shown.out
    assert "threads = 2  # --threads" in shown.out
    assert "a flag wins over the environment" in shown.out
    assert cli("config", "--json").json["port"] == {"value": 9000, "source": "TRIVET_PORT"}
    assert cli("config", "--port", "70000").code == 2


def test_keys_are_made_listed_and_revoked(cli: Callable[..., Any]) -> None:
    assert cli("keys", "list").code == 1, "a typo in a path makes no store"
    made = cli("keys", "create", "dashboard", "--scope", "write", "--for", "tickets")
    assert made.out.startswith("tvt_")
    listed = cli("keys")
    assert "dashboard  write, tickets" in listed.out
    assert made.out.strip().split("_", 2)[2] not in listed.out
    assert cli("keys", "revoke", "dashboard").code == 0
    assert "revoked" in cli("keys", "list").out
    assert cli("keys", "revoke", "dashboard").code == 1
    assert cli("keys", "create", "x", "--scope", "root").code == 2
    assert cli("keys", "make").code == 2


def test_check_says_whether_it_would_start(cli: Callable[..., Any], tmp_path: Path) -> None:
    fine = cli("serve", "--check", "--port", "0")
    assert fine.code == 0
    assert "will be created" in fine.out
    assert not (tmp_path / "memory.db").exists()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        busy = cli("serve", "--check", "--port", str(taken.getsockname()[1]))
    assert busy.code == 1
    assert "cannot listen" in busy.err
    assert cli("serve", "--check", "--host", "0.0.0.0").code == 2
    cli("keys", "create", "one")
    assert "an API key is required" in cli("serve", "--check", "--host", "0.0.0.0", "--port", "0").out
    assert cli("serve", "--check", "--store", "none/memory.db").code == 2


def test_serving_the_world_without_a_key_is_refused(cli: Callable[..., Any]) -> None:
    refused = cli("serve", "--host", "0.0.0.0", "--port", "0")
    assert refused.code == 2
    assert "trivet keys create" in refused.err


def test_a_missing_extra_prints_its_pip_line() -> None:
    code = (
        "import sys; sys.modules['fastapi'] = None\n"
        "from trivet.cli import main; main(['serve', '--check', '--port', '0'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "pip install 'trivet[serve]'" in done.stderr


def test_help_loads_no_web_framework() -> None:
    code = (
        "import sys\nfrom trivet.cli import main\n"
        "try: main(['serve', '--help'])\nexcept SystemExit: pass\n"
        "print([name for name in ('fastapi', 'uvicorn', 'prometheus_client', 'starlette') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
