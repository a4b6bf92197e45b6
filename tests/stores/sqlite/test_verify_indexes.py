"""``verify`` compares the content of every index with the records, whatever its counts and checksums say."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from trivet.stores.indexes import graph_index, snapshots
from trivet.stores.sqlite import term_index, vector_index

from . import heal


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits so low that a few documents lie in the index on disk and in a snapshot."""
    for module, name, limit in (
        (term_index, "TAIL_LIMIT", 4),
        (vector_index, "SNAPSHOT_FROM", 8),
        (graph_index, "TAIL_LIMIT", 4),
    ):
        monkeypatch.setattr(module, name, limit)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``right``: a store with all its indexes. ``other``: the same numbers with other texts and vectors."""
    folder = tmp_path_factory.mktemp("verify")
    (folder / "right").mkdir()
    code = "import sys; from stores.sqlite import heal; from pathlib import Path; heal.build(Path(sys.argv[1]), True)"
    run_python("-c", code, str(folder / "right" / "memory.db"))
    shutil.copytree(folder / "right", folder / "other")
    shutil.rmtree(folder / "other" / "memory.db.index")
    with closing(sqlite3.connect(folder / "other" / "memory.db")) as connection, connection:
        for did in range(1, heal.COUNT + 1):
            text = heal.text_of(did % heal.COUNT)  # that of the next document
            connection.execute("UPDATE documents SET text = ? WHERE did = ?", (text, did))
            connection.execute("UPDATE passages SET stop = ? WHERE did = ?", (len(text), did))
        rows = [data for (data,) in connection.execute("SELECT data FROM vectors ORDER BY vid")]
        for at, (vid,) in enumerate(connection.execute("SELECT vid FROM vectors ORDER BY vid").fetchall()):
            connection.execute("UPDATE vectors SET data = ? WHERE vid = ?", (rows[at - 1], vid))
        connection.execute("UPDATE collections SET version = version + 1")  # a timeline of its own
    prepare = (
        "from stores.sqlite import heal; from pathlib import Path; "
        f"e = heal.open_small(Path({str(folder)!r})/'other'/'memory.db'); "
        "heal.ask(e, 'otter', 'trigram'); e._collection.maintenance.update(graph=True); "
        "e._collection.vectors.index(e._collection.state().model).compact(); e.close()"
    )
    run_python("-c", prepare)
    return folder


@pytest.fixture
def store(built: Path, tmp_path: Path) -> Path:
    shutil.copytree(built / "right", tmp_path / "store")
    return tmp_path / "store" / "memory.db"


def run_python(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    ran = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=120, check=False, cwd=TESTS
    )
    assert not check or ran.returncode == 0, ran.stderr
    return ran


TESTS = Path(__file__).parents[2]


def index_of(store: Path, name: str) -> Path:
    return next(Path(f"{store}.index").glob(f"c1/{name}"))


def adopt(store: Path, other: Path, name: str) -> None:
    """Put another store's index in the place of this one, and add its checkpoint to the records."""
    mine = index_of(store, name)
    shutil.rmtree(mine)
    shutil.copytree(index_of(other, name), mine)
    adopt_checkpoints(store, other)


def adopt_checkpoints(store: Path, other: Path) -> None:
    with closing(sqlite3.connect(other)) as source, closing(sqlite3.connect(store)) as target, target:
        rows = source.execute("SELECT token, cid, name, number + 100 FROM checkpoints").fetchall()
        target.executemany("INSERT OR IGNORE INTO checkpoints VALUES (?, ?, ?, ?)", rows)


def forward_of_others(store: Path, other: Path) -> None:
    folder = index_of(store, "words")
    for path in folder.glob("forward-*"):
        path.unlink()
    for path in index_of(other, "words").glob("forward-*"):
        shutil.copy(path, folder)


def forward_missing(store: Path, other: Path) -> None:
    for path in index_of(store, "words").glob("forward-*.npz"):
        path.unlink()


def resealed(folder: Path) -> None:
    state = json.loads((folder / "state.json").read_text())
    state["sums"] = {name: snapshots.checksum(folder / name) for name in state["sums"]}
    (folder / "state.json").write_text(json.dumps(state))


def rows_exchanged(store: Path, other: Path) -> None:
    folder = snapshots.newest_first(index_of(store, "meaning-*"))[0]
    for name in ("pids.npy", "dids.npy"):
        rows = np.load(folder / name)
        np.save(folder / name, rows[[1, 0, *range(2, len(rows))]])
    resealed(folder)


def another_did(store: Path, other: Path) -> None:
    folder = snapshots.newest_first(index_of(store, "meaning-*"))[0]
    dids = np.load(folder / "dids.npy")
    np.save(folder / "dids.npy", dids[::-1])
    resealed(folder)


def name_missing(store: Path, other: Path) -> None:
    folder = snapshots.newest_first(index_of(store, "graph"))[0]
    ends = np.load(folder / "ends.npy")
    np.save(folder / "ends.npy", np.zeros_like(ends))
    np.save(folder / "names.npy", np.zeros(0, dtype=np.uint8))
    resealed(folder)


def back_edges_wrong(store: Path, other: Path) -> None:
    folder = snapshots.newest_first(index_of(store, "graph"))[0]
    np.save(folder / "back_rows.npy", np.load(folder / "back_rows.npy")[::-1])
    resealed(folder)


def changed_text(store: Path, number: int, change: Callable[[str], str]) -> None:
    """The term index has another text of one document than the records."""
    text = heal.text_of(number)
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("UPDATE documents SET text = ? WHERE id = ?", (change(text), f"d{number}"))
        sql = "UPDATE passages SET stop = ? WHERE did = (SELECT did FROM documents WHERE id = ?)"
        connection.execute(sql, (len(change(text)), f"d{number}"))
    shutil.rmtree(index_of(store, "words"))
    with heal.open_small(store) as engine:
        engine._collection.maintenance.update_lexical()
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("UPDATE documents SET text = ? WHERE id = ?", (text, f"d{number}"))
        connection.execute(sql, (len(text), f"d{number}"))


def one_term_missing(store: Path, other: Path) -> None:
    changed_text(store, 5, lambda text: text.replace("q5x", ""))


def one_term_other(store: Path, other: Path) -> None:
    changed_text(store, 5, lambda text: text.replace("q5x", "q9x"))


CASES: dict[str, tuple[Callable[[Path, Path], None], str]] = {
    "words of another store": (lambda store, other: adopt(store, other, "words"), "words: passages have other terms"),
    "trigrams of another store": (
        lambda store, other: adopt(store, other, "trigrams"),
        "trigrams: passages have other",
    ),
    "graph of another store": (
        lambda store, other: adopt(store, other, "graph"),
        "graph: documents name other concepts",
    ),
    "vectors of another store": (
        lambda store, other: adopt(store, other, "meaning-*"),
        "codes are not those of the vectors",
    ),
    "forward files of another store": (forward_of_others, "words: forward files have other terms"),
    "forward files missing": (forward_missing, "words: a forward file is missing"),
    "a term missing": (one_term_missing, "words: passages have another length than their text (document 'd5'"),
    "another term": (one_term_other, "words: passages have other terms than their text (document 'd5'"),
    "rows exchanged": (rows_exchanged, "codes are not those of the vectors (document 'd0', 'd1' of"),
    "another document": (another_did, "vectors stand under another document"),
    "a name missing": (name_missing, "graph: concepts have no name"),
    "edges of one direction": (back_edges_wrong, "graph: edges differ between the two directions"),
}


@pytest.mark.parametrize("case", CASES)
def test_an_index_of_other_content_is_told_and_mended(case: str, store: Path, built: Path) -> None:
    damage, told = CASES[case]
    damage(store, built / "other" / "memory.db")
    doctor = run_python("-m", "trivet", "doctor", "-s", str(store), "--json", check=False)
    assert doctor.returncode == 1, doctor.stdout + doctor.stderr
    checks = [check for check in json.loads(doctor.stdout)["checks"] if not check["ok"]]
    assert any(told in check["said"] and "trivet rebuild" in check["mend"] for check in checks), checks
    with heal.open_small(store) as engine:
        problems = engine.verify().problems
        assert any(told in problem for problem in problems), problems
        assert all("run rebuild" in problem for problem in problems), problems
        engine.rebuild()
        assert engine.verify().ok
        heal.check(engine)


def test_doctor_tells_how_much_it_compared(store: Path) -> None:
    ran = run_python("-m", "trivet", "doctor", "-s", str(store), "--json")
    kinds = ("documents", "passages", "words", "vectors", "trigrams", "graph")
    assert json.loads(ran.stdout)["compared"] == dict.fromkeys(kinds, heal.COUNT)


def test_an_index_of_another_timeline_is_told(store: Path, built: Path) -> None:
    """Without its checkpoint in the records it is deleted when it is opened; verify reports it."""
    for name in ("words", "graph", "meaning-*"):
        mine = index_of(store, name)
        shutil.rmtree(mine)
        shutil.copytree(index_of(built / "other" / "memory.db", name), mine)
    with heal.open_small(store) as engine:
        problems = engine.verify().problems
        for name in ("words", "graph", "meaning-1"):
            assert any(p.startswith(f"{name}: it was made on another timeline") for p in problems), problems
        engine.rebuild()
        assert engine.verify().ok


def test_what_is_in_memory_is_compared_too(store: Path) -> None:
    with heal.open_small(store) as engine:
        engine.add("Newcomer at Willow House z1z", id="n1", title="A newcomer")
        heal.check(engine)
        tail = engine._collection.lexical.opened.open().index.tail
        (pid,) = tail.terms
        tail.terms[pid] = [*tail.terms[pid][:-1], "other"]
        assert any("words: passages have other terms" in told for told in engine.verify().problems)


def test_removals_that_an_index_has_not_applied_are_no_problem(store: Path) -> None:
    with heal.open_small(store) as engine:
        engine.delete(["d3", "d7"])
        engine.add("written again q4x", id="d4")
    with heal.open_small(store) as engine:
        assert engine.verify().problems == ()


WRITER = """
import random, sys, time
from pathlib import Path
from stores.sqlite import heal
rng = random.Random(7)
with heal.open_small(Path(sys.argv[1])) as engine:
    print("begun", flush=True)
    for number in range(100_000):
        name = f"w{rng.randrange(40)}"
        if rng.random() < 0.3:
            engine.delete([name])
        else:
            long = "Willow House and Cedar House. " * rng.randrange(1, 200)
            engine.add(f"{long} written {number} by Mr Rowan{number % 9}", id=name, title=f"Note {number % 5}")
        if number % 7 == 0:
            heal.ask(engine, "otter written", "trigram")
            engine._collection.maintenance.update(graph=True)
"""


def test_no_false_alarm_while_another_process_writes(store: Path) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(store)], cwd=TESTS, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"begun\n"
        versions = set()
        for attempt in range(12):
            with heal.open_small(store) as engine:
                heal.ask(engine, "otter", "trigram") if attempt % 2 else None
                versions.add(engine._collection.state().version)
                assert engine.verify().problems == ()
        assert len(versions) > 1  # it did write
        assert writer.poll() is None
    finally:
        writer.kill()
        writer.communicate()


def test_receipts_of_another_version_are_dropped(store: Path) -> None:
    with heal.open_small(store) as engine:
        engine._collection.imports._files.keep("key", (1, "ab"), {"added": 1})
        engine.verify()
        assert not list((Path(f"{store}.index") / "c1" / "imports").glob("*.json"))
