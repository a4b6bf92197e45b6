"""A backup is a complete store, made while others write, and never an incomplete file under its final name."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

import trivet
from trivet.errors import InputError, StoreError
from trivet.stores.sqlite import backup as module
from trivet.types import Saved


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with trivet.open(tmp_path / "memory.db", embedder="hashing:64") as engine:
        for number in range(30):
            engine.add(f"note number {number} of the harbour", id=f"d{number}", meta={"n": number})
        engine.feedback("harbour", "d1")
        engine.update_settings(k=4)
        engine.collection("other", embedder="none").add("elsewhere", id="o1")
    return tmp_path / "memory.db"


def test_the_copy_is_the_store_with_all_its_collections(store: Path, tmp_path: Path) -> None:
    steps: list[tuple[int, int]] = []
    with trivet.open(store) as engine:
        saved = engine.backup(tmp_path / "copy.db", lambda *step: steps.append(step))
        before = list(engine.documents())
    assert saved == Saved(str(tmp_path / "copy.db"), (tmp_path / "copy.db").stat().st_size, ("default", "other"))
    assert steps[-1][0] == steps[-1][1] > 0
    with trivet.open(tmp_path / "copy.db") as copy:
        assert list(copy.documents()) == before
        assert copy.settings.k == 4
        assert [given.id for given in copy.feedbacks()] == ["d1"]
        assert copy.collection("other").get("o1") is not None
        assert copy.search("note number 7 of the harbour", k=1, alpha=1.0)[0].id == "d7"
        assert copy.verify().ok


def test_it_is_one_file_that_can_be_read_where_nothing_can_be_written(store: Path, tmp_path: Path) -> None:
    with trivet.open(store) as engine:
        engine.backup(tmp_path / "copy.db")
    assert sorted(path.name for path in tmp_path.glob("*copy*")) == ["copy.db"], "nothing else is left"
    with closing(sqlite3.connect(tmp_path / "copy.db")) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_writers_go_on_and_the_copy_is_of_the_moment_it_began(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STEP", 5)  # many steps, with a write between each
    with trivet.open(store) as engine, trivet.open(store) as other:
        count = iter(range(1000))

        def write(*_: int) -> None:
            other.add("written meanwhile", id=f"late{next(count)}")

        engine.backup(tmp_path / "copy.db", write)
        assert engine.stats().documents > 35
    with trivet.open(tmp_path / "copy.db") as copy:
        assert [document.id for document in copy.documents()] == [f"d{number}" for number in range(30)]


def test_a_backup_put_in_the_stores_place_is_the_store_again(store: Path, tmp_path: Path) -> None:
    with trivet.open(store) as engine:
        engine.rebuild()
        engine.backup(tmp_path / "copy.db")
        engine.delete([f"d{number}" for number in range(20)])
        engine.add([{"id": f"late{number}", "text": f"later {number}"} for number in range(20)])
        engine.rebuild()
    (tmp_path / "copy.db").replace(store)
    for suffix in ("-wal", "-shm"):
        Path(f"{store}{suffix}").unlink(missing_ok=True)
    with trivet.open(store) as engine:
        assert engine.search("note number 3", k=1)[0].id == "d3"
        assert engine.get("late1") is None
        assert engine.verify().ok


def test_what_exists_is_never_replaced(store: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("keep me")
    with trivet.open(store) as engine:
        for target, told in (
            (tmp_path / "precious", "exists; a backup replaces nothing"),
            (store, "belongs to the store itself"),
            (Path(f"{store}.index") / "x.db", "belongs to the store itself"),
            (tmp_path / "no" / "folder.db", "does not exist; create it first"),
        ):
            with pytest.raises(InputError, match=told):
                engine.backup(target)
    assert (tmp_path / "precious").read_text() == "keep me"


def test_a_damaged_store_makes_no_backup(store: Path, tmp_path: Path) -> None:
    data = store.read_bytes()
    at = data.rindex(b"number 7 of")
    store.write_bytes(data[:at] + b"nunber 7 of" + data[at + 11 :])
    with trivet.open(store) as engine, pytest.raises(StoreError, match=r"not sound.*document 'd7'.*trivet doctor"):
        engine.backup(tmp_path / "copy.db")
    assert not list(tmp_path.glob("*copy*"))


def test_a_failure_on_the_way_leaves_nothing(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "_keep", fail)
    with trivet.open(store) as engine, pytest.raises(StoreError, match=r"copy\.db.*No space left.*nothing was left"):
        engine.backup(tmp_path / "copy.db")
    assert not list(tmp_path.glob("*copy*"))


def test_it_is_made_from_any_thread(store: Path, tmp_path: Path) -> None:
    with trivet.open(store) as engine:
        threads = [threading.Thread(target=engine.backup, args=(tmp_path / f"copy{at}.db",)) for at in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert all((tmp_path / f"copy{at}.db").exists() for at in range(3))
