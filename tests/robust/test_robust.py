"""The robust suite finds faults: every part is shown one, and the short parts run as they are."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import trivet
from trivet.concurrency import threads
from trivet.concurrency.threads import ThreadPool
from trivet.engine.leg_threads import HelperThread, Job
from trivet.filters import matches, parse_filter
from trivet.types import Document

from . import __main__ as suite
from . import advisories, attacks, clocks, hostile, kills, leaks, migration, patient, searching, smoke, targets
from .account import PROMISED, TINY, Account
from .watch import Watch

TESTS = Path(__file__).parent.parent


# --- the account ------------------------------------------------------------------------------------------------------


def test_the_last_line_says_what_was_done_and_what_was_not() -> None:
    account = Account()
    account.add("kills", 200)
    account.add("inputs", 1_000_000)
    zeros = ", ".join(f"{kind} 0" for kind in PROMISED)
    assert account.last_line("full") == f"robust (full): kills 200, inputs 1,000,000; {zeros}; as promised"
    account.fault("lost", "d7")
    assert "; lost 1, strange 0" in account.last_line("full")
    assert account.last_line("full").endswith("; NOT AS PROMISED")


def test_a_fault_of_a_kind_nobody_thought_of_counts() -> None:
    account = Account()
    account.fault("unfound", "d1 by its word")
    account.fault("on fire", "d2")
    assert account.faults == {"wrong": 2} and not account.ok


def test_a_part_that_fails_is_a_fault_and_the_others_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("no such file")

    monkeypatch.setitem(suite.PARTS, "kills", broken)
    monkeypatch.setenv("PYTHONPATH", "")
    assert suite.run(TINY, ["kills", "migration"], 1) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert "migrations 2" in last and "crashed 1" in last and last.endswith("NOT AS PROMISED")


@pytest.mark.slow
@pytest.mark.crash
def test_every_part_runs_and_the_last_line_has_the_figures() -> None:
    """Those that take seconds; `make test-robust-short` runs them all, for five minutes."""
    command = [
        sys.executable,
        "-m",
        "robust",
        "--scale",
        "tiny",
        "--only",
        "migration",
        "clocks",
        "kills",
        "--seed",
        "1",
    ]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(TESTS)}, capture_output=True, text=True, timeout=200, check=False
    )
    last = done.stdout.splitlines()[-1]
    assert done.returncode == 0, done.stderr[-3000:]
    assert last.startswith("robust (tiny): migrations 2, jumps of the clock ") and last.endswith("as promised")
    assert "kills 2" in last


# --- earlier stores ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", migration.VERSIONS)
def test_a_store_of_an_earlier_version_is_opened_with_everything_in_it(tmp_path: Path, version: int) -> None:
    assert migration.faults(migration.unpacked(version, tmp_path)) == []


def test_a_migration_that_loses_something_would_be_found_out(tmp_path: Path) -> None:
    store = migration.unpacked(1, tmp_path)
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("DELETE FROM links WHERE type = 'part-of'")
        connection.execute("UPDATE documents SET importance = 0.1 WHERE id = 'n1'")
        connection.commit()
    told = migration.faults(store)
    assert len(told) == 2 and "n1" in told[0] and told[1].startswith("links:")


# --- kills, damage, clocks, leaks -------------------------------------------------------------------------------------


def test_a_write_that_was_acknowledged_and_is_gone_would_be_found_out(tmp_path: Path) -> None:
    from crash.journal import Journal, word

    text = f"{word(7)} by the harbour"
    with trivet.open(tmp_path / "memory.db", embedder="hashing:64") as engine:
        engine.add(text, id="a1")
        engine.add(f"{word(8)} nobody wrote this", id="stranger")
    journal = Journal(tmp_path / "add.jsonl")
    for id in ("a1", "a2"):
        journal.put(state="try", number=int(id[1]), texts={id: text})
        journal.put(state="done", number=int(id[1]))
    Journal(tmp_path / "settings.json").put(state="done", k=77)
    kinds = [kind for kind, _ in kills._audit(tmp_path, random.Random(1))]
    assert kinds == ["lost", "strange", "lost", "lost"], "a2, the stranger, the settings and their history"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("patient")
    patient.build(folder)
    return folder


def test_a_change_that_nobody_tells_of_is_silent(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole / "closed", tmp_path / "store")
    store = tmp_path / "store" / "memory.db"
    before = patient.dump(store)
    assert patient.examined(store, before, log=False) == ("harmless", "")
    with closing(sqlite3.connect(store)) as connection:  # with its copy in the index: nothing can tell
        connection.execute("UPDATE documents SET importance = 0.99 WHERE id = 'd3'")
        connection.commit()
    outcome, said = patient.examined(store, before, log=False)
    assert outcome == "silent" and said.startswith("documents: ")


def test_a_flipped_bit_in_a_text_is_told(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole / "closed", tmp_path / "store")
    store = tmp_path / "store" / "memory.db"
    before = patient.dump(store)
    data = store.read_bytes()
    store.write_bytes(data.replace(b"otter 11 of", b"ottes 11 of"))
    assert patient.examined(store, before, log=False)[0] == "told"


def test_half_a_commit_is_not_an_earlier_state(whole: Path) -> None:
    store = whole / "open" / "memory.db"
    rows = patient.dump(store)
    without = {did: [row for row in rows[1] if row[0] != did] for did in (1, patient.DOCUMENTS)}
    assert patient._earlier([rows[0], without[patient.DOCUMENTS], *rows[2:]], rows)
    assert not patient._earlier([rows[0], without[1], *rows[2:]], rows), "the first is missing"
    assert not patient._earlier([rows[0], [(*rows[1][0][:4], b"other", *rows[1][0][5:])], *rows[2:]], rows)


def test_the_clock_really_jumps() -> None:
    from trivet.engine import validation

    with clocks.jumping(random.Random(1)) as looks:
        moments = [validation.datetime.now() for _ in range(5)]
    assert looks[0] == 5
    assert moments != sorted(moments)


def test_growth_is_a_leak_and_a_level_line_is_none() -> None:
    for per_query, running, leaked in ((0, 4, 0), (500, 4, 1), (0, 5, 1)):
        account = Account()
        readings = [(at * 5_000, 50_000_000 + at * 5_000 * per_query, 10, 4) for at in range(1, 20)]
        leaks._judge(account, [*readings, (100_000, readings[-1][1], 10, running)])
        assert account.faults["leaked"] == leaked


# --- fuzzing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", targets.TARGETS)
def test_the_parsers_survive_what_they_are_seeded_with(tmp_path: Path, name: str) -> None:
    watch = Watch(name, tmp_path / "told", targets.ALLOWED)
    for data in targets.SEEDS:
        with watch.input(data):
            targets.TARGETS[name](data)
    assert not (tmp_path / "told").exists(), (tmp_path / "told").read_text()


def test_an_undocumented_error_and_a_long_time_are_written_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("robust.watch.LONGEST", 0.0)
    watch = Watch("parser", tmp_path / "told", targets.ALLOWED)
    with watch.input(b"odd"):
        raise KeyError("odd")
    told = (tmp_path / "told").read_text()
    assert '"crashed"' in told and "KeyError" in told and "b'odd'" in told
    assert '"hung"' in told
    assert watch.inputs == 1


WHERE: list[Any] = [
    {"floor": 1}, {"floor": {"gte": 1}}, {"tags": {"in": ["wet", 7]}}, {"tags": {"ne": "wet"}}, {"deep.yes": True},
    {"meta.floor": {"exists": False}}, {"$not": {"kind": "note"}}, {"$or": [{"floor": 3.5}, {"id": "d1"}]},
    {"$and": [{"importance": {"lt": 0.5}}, {"tags": "dry"}]}, {"floor": {"nin": [0, 1]}}, {"floor": "1"},
]  # fmt: skip


@pytest.mark.parametrize("where", WHERE, ids=str)
def test_a_hit_that_a_filter_forbids_would_be_found_out(where: dict[str, Any]) -> None:
    """The second meaning of a filter, written for the fuzz, agrees with the first; and both forbid something."""
    said = [searching.allows(where, item) for item in searching.documents()]
    parsed = parse_filter(where)
    assert parsed is not None
    assert said == [matches(parsed, Document(**item)) for item in searching.documents()]
    assert not all(said)


# --- hostile requests -------------------------------------------------------------------------------------------------


KNOWN = attacks.Targets({"open": 8787, "keyed": 8788}, "reader", "admin", ("revoked",), (("GET", "/healthz"),))


def test_a_seed_makes_the_same_attacks_of_every_kind() -> None:
    made = [list(attacks.attacks(random.Random(seed), KNOWN, 300)) for seed in (1, 1, 2)]
    assert made[0] == made[1] != made[2]
    kinds = [make.__name__.replace("_", " ") for make in attacks.KINDS]
    assert [attack.kind for attack in made[0]][: len(kinds)] == kinds
    assert len(kinds) <= TINY.attacks


@pytest.mark.parametrize(
    ("answer", "late", "kinds"),
    [
        (b"HTTP/1.1 403 Forbidden\r\n\r\n", False, []),
        (b"HTTP/1.1 503 Service Unavailable\r\n\r\n", False, []),
        (b"HTTP/1.1 403 Forbidden\r\n\r\nHTTP/1.1 201 Created\r\n\r\n", False, ["strange"]),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", False, ["strange"]),
        (b"HTTP/1.1 404 Not Found\r\n\r\n" + attacks.SECRET, False, ["leaked"]),
        (b"HTTP/1.1 500 Internal Server Error\r\n\r\n/some/folder/open.db", False, ["crashed", "leaked"]),
        (b"", True, ["hung"]),
    ],
)
def test_an_answer_that_must_not_be_is_a_fault(answer: bytes, late: bool, kinds: list[str]) -> None:
    attack = attacks.Attack("smuggled", "open", (b"",), fault="strange", hidden=attacks.MARKERS)
    assert [kind for kind, _ in hostile.judge(attack, answer, late, "/some/folder")] == kinds


def test_what_was_planted_changed_or_deleted_is_a_fault() -> None:
    before = {"default/d1": ("", "a"), "default/d2": ("", "b"), "default/d3": ("", "c")}
    after = {
        "default/d1": ("", "other"),
        "default/d2": ("", "b"),
        "default/planted": ("", "x"),
        "default/h1": ("", "1"),
    }
    found = sorted(hostile.differences(before, after, {"h1": "1", "h2": "2"}))
    assert [kind for kind, _ in found] == ["lost", "lost", "strange", "strange"]
    assert [told.split()[0] for _, told in found] == ["default/d3", "h2:", "default/d1", "default/planted"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "kinds"),
    [((), set()), (("--allowed-hosts", "attacker.example"), {"leaked", "strange"})],
    ids=["as it is", "with a foreign name allowed"],
)
def test_servers_are_attacked_and_a_hole_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], kinds: set[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    account = Account()
    hostile.attack(account, 150, tmp_path, random.Random(3), flags)
    assert account.counts["attacks"] == 150
    assert kinds <= {kind for kind, number in account.faults.items() if number}
    assert bool(kinds) or account.ok


# --- advisories -------------------------------------------------------------------------------------------------------


def test_what_could_not_be_compared_is_not_called_clean() -> None:
    skipped = {"name": "numpy", "skip_reason": "Dependency not found"}
    clean = {"name": "httpx", "version": "1", "vulns": []}
    weak = {"name": "old", "version": "0.1", "vulns": [{"id": "CVE-1", "fix_versions": ["0.2"]}]}
    said, code = advisories.verdict([skipped])
    assert (code, said) == (0, ["pip-audit: NOT DONE: its database cannot be reached; none of 1 packages was compared"])
    said, code = advisories.verdict([skipped, clean, weak])
    assert code == 1
    assert said[0] == "old 0.1: CVE-1; fixed in: 0.2"
    assert said[1].startswith("pip-audit: 1 of 2 packages")


# --- the wheel --------------------------------------------------------------------------------------------------------


def test_a_python_that_is_not_here_is_left_out_by_name_and_the_one_that_runs_is_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shim = tmp_path / "python3.12"  # as a version manager leaves one behind: there, and nothing behind it
    shim.write_text("#!/bin/sh\necho 'python3.12: command not found' >&2\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    mine = f"{sys.version_info[0]}.{sys.version_info[1]}"
    here, skipped = smoke.supported()
    assert here == [sys.executable]
    assert [told.split()[0] for told in skipped] == [version for version in smoke.SUPPORTED if version != mine]
    assert smoke.told("t.whl", [mine], skipped).endswith("that runs is here)")


def test_a_python_that_is_here_is_tried(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = next(version for version in smoke.SUPPORTED if version != f"{sys.version_info[0]}.{sys.version_info[1]}")
    stand_in = tmp_path / f"python{other}"
    stand_in.write_text(f"#!/bin/sh\necho {other}\n")
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert smoke.supported()[0] == [sys.executable, str(stand_in)]


def test_the_pool_of_a_leg_may_grow_and_a_second_one_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = threading.enumerate()  # a store that another test left open may have a helper of its own
    everyone = threading.enumerate
    monkeypatch.setattr(threading, "enumerate", lambda: [thread for thread in everyone() if thread not in mine])
    before, pools = leaks._threads(), [ThreadPool(2, "trivet-robust") for _ in range(2)]
    both = threading.Barrier(3)
    for _ in range(2):
        pools[0].submit(both.wait)
    both.wait()
    assert leaks._threads() == before, "two threads of one pool"
    helper = HelperThread("trivet-helper")
    helper.offer(Job(int))
    assert leaks._threads() == before, "and the helper"
    helper.close(5.0)
    pools[1].submit(int).result()
    assert leaks._threads() == before + 1
    threads.close(pools)
