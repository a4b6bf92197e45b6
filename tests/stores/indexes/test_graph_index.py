"""The graph index on disk and in memory always equals one that is built again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trivet
from trivet.stores.indexes import graph_index as module
from trivet.stores.indexes import snapshots
from trivet.text.concepts import digest, key_of

NAMES = ("Ada Lumen", "Bert Kolk", "Clara Voss", "Dora Lind", "Emil Roth")
WALKED = {"weights": {"lexical": 0.5, "dense": 0.0, "graph": 0.5}}


def picture(engine: trivet.Engine) -> dict[str, set[str]]:
    """Which documents name each of the people, and whose title is one."""
    collection = engine._collection
    graph = collection.graph.mentions(collection.state().version)  # type: ignore[attr-defined]
    ids = {did: document.id for did, document in collection.documents.page(None, 0, 1_000)}
    found = graph.naming(np.array([digest(key_of(name)) for name in NAMES], dtype=np.uint64))
    seen: dict[str, set[str]] = {name: set() for name in NAMES}
    for at, did, mark in zip(found.source.tolist(), found.did.tolist(), found.mark.tolist(), strict=True):
        seen[NAMES[at]].add(ids[did] + ("!" if mark & 0x80 else ""))
    return seen


def named(document: trivet.Document) -> dict[str, set[str]]:
    return {
        name: {document.id + ("!" if document.title == name else "")}
        for name in NAMES
        if name in document.text or name == document.title
    }


def expected(engine: trivet.Engine) -> dict[str, set[str]]:
    seen: dict[str, set[str]] = {name: set() for name in NAMES}
    for document in engine.documents():
        for name, ids in named(document).items():
            seen[name] |= ids
    return seen


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """With limits so low that a few documents make a snapshot, and are read in several batches."""
    monkeypatch.setattr(module, "TAIL_LIMIT", 3)
    monkeypatch.setattr(module, "BATCH", 2)
    monkeypatch.setattr(module, "MANY", 4)


changes = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 9), st.sampled_from(NAMES), st.sampled_from(("", *NAMES))),
        st.tuples(st.just("delete"), st.integers(0, 9), st.just(""), st.just("")),
        st.tuples(st.sampled_from(["look", "settle", "reopen"]), st.just(0), st.just(""), st.just("")),
    ),
    max_size=25,
)


@pytest.mark.usefixtures("small")
@settings(max_examples=40, deadline=None)
@given(changes)
def test_after_any_changes_it_is_what_the_records_says(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[str, int, str, str]]
) -> None:
    path = tmp_path_factory.mktemp("graph") / "m.db"
    engine = trivet.open(path, embedder="none")
    try:
        for what, number, name, title in changes:
            if what == "add":
                engine.add(f"here is {name}.", id=f"d{number}", title=title)
            elif what == "delete":
                engine.delete(f"d{number}")
            elif what == "look":
                assert picture(engine) == expected(engine)
            elif what == "settle":
                picture(engine)
                engine._collection.graph.opened.open().settle()  # type: ignore[attr-defined]
            else:
                engine.close()
                engine = trivet.open(path, embedder="none")
        assert picture(engine) == expected(engine)
    finally:
        engine.close()


def fill(path: Path, count: int = 12) -> None:
    with trivet.open(path, embedder="none") as engine:
        engine.add(
            [{"id": f"d{n}", "title": NAMES[n % 5], "text": f"about {NAMES[(n + 1) % 5]}"} for n in range(count)]
        )
        picture(engine)
        engine._collection.graph.opened.open().settle()  # type: ignore[attr-defined]


def test_one_long_document_is_not_read_again_by_every_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TAIL_LIMIT", 4)
    with trivet.open(tmp_path / "m.db", embedder="none", passage_size=20) as engine:
        engine.add("\n\n".join(f"Part {n} of it is by Ada Lumen, she says so herself." for n in range(8)), id="long")
        engine.prepare()
        index = engine._collection.graph.opened.open()  # type: ignore[attr-defined]
        assert index.wants_settling
        index.settle()
        assert snapshots.newest_first(index._folder) and not index.wants_settling


@pytest.mark.usefixtures("small")
def test_a_long_document_is_read_across_batches_as_one(tmp_path: Path) -> None:
    """And the passage that is shown is the one that names the concept."""
    with trivet.open(tmp_path / "m.db", embedder="none", passage_size=20) as engine:
        filler = " ".join(f"word{n}" for n in range(25))
        engine.add(f"{filler}.\n\nHere is Ada Lumen.\n\n{filler}.\n\nHere is Bert Kolk.", id="long", title="Dora Lind")
        engine.add([{"id": f"d{n}", "title": NAMES[0], "text": f"nothing {n}"} for n in range(8)])
        assert picture(engine)["Bert Kolk"] == {"long"}
        assert picture(engine)["Dora Lind"] == {"long!"}
        collection = engine._collection
        graph = collection.graph.mentions(collection.state().version)  # type: ignore[attr-defined]
        found = graph.naming(np.array([digest("bert kolk")], dtype=np.uint64))
        ((_, _, _, text),) = collection.feed.passages(found.pid.tolist())  # type: ignore[attr-defined]
        assert "Bert Kolk" in text and "Ada Lumen" not in text


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("damage", ["delete", "truncate", "flip", "state", "foreign"])
def test_a_damaged_snapshot_is_made_again(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "m.db"
    fill(path)
    (snapshot,) = Path(f"{path}.index").glob("c*/graph/snapshot-*")
    files = sorted(snapshot.glob("*.npy"))
    assert len(files) == 11
    for number, file in enumerate(files):
        if not file.exists():
            break
        data = file.read_bytes()
        if damage == "delete":
            file.unlink()
        elif damage == "truncate":
            file.write_bytes(data[: len(data) // 2])
        elif damage == "flip":
            at = random.Random(number).randrange(len(data))
            file.write_bytes(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])
        elif damage == "state":
            (snapshot / "state.json").write_text("{")
        else:
            (snapshot / "state.json").write_text(
                (snapshot / "state.json").read_text().replace('"identity": "', '"identity": "x')
            )
        with trivet.open(path, embedder="none") as engine:
            assert picture(engine) == expected(engine), (damage, file.name)
            engine._collection.graph.opened.open().settle()  # type: ignore[attr-defined]
        (snapshot,) = Path(f"{path}.index").glob("c*/graph/snapshot-*")


@pytest.mark.usefixtures("small")
def test_damage_is_told_and_rebuild_mends_it(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    fill(path)
    with trivet.open(path, embedder="none") as engine:
        picture(engine)
        (file,) = Path(f"{path}.index").glob("c*/graph/snapshot-*/concepts.npy")
        file.write_bytes(file.read_bytes()[:-4] + b"oops")
        assert any("concepts.npy is damaged" in told for told in engine.verify().problems)
        engine.rebuild()
        assert engine.verify().ok
        assert picture(engine) == expected(engine)


@pytest.mark.usefixtures("small")
def test_a_snapshot_of_a_later_state_of_the_store_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    fill(path, 6)
    backup = path.read_bytes()
    with trivet.open(path, embedder="none") as engine:
        engine.add([{"id": f"later{n}", "title": NAMES[0], "text": f"more of {n}"} for n in range(6)])
        picture(engine)
        engine._collection.graph.opened.open().settle()  # type: ignore[attr-defined]
    for beside in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
        beside.unlink(missing_ok=True)
    path.write_bytes(backup)
    with trivet.open(path, embedder="none") as engine:
        assert picture(engine) == expected(engine)
        assert not any("later" in id for ids in picture(engine).values() for id in ids)


@pytest.mark.usefixtures("small")
def test_another_process_writes_and_this_one_sees_it(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    fill(path)
    with trivet.open(path, embedder="none") as here, trivet.open(path, embedder="none") as there:
        picture(here)
        there.add("about Emil Roth", id="new", title="Ada Lumen")
        there.delete("d0")
        assert picture(here) == expected(here)
        there._collection.graph.opened.open().settle()  # type: ignore[attr-defined]
        there.add([{"id": f"more{n}", "title": "Clara Voss", "text": f"about {NAMES[n % 5]}"} for n in range(9)])
        picture(there)
        there._collection.graph.opened.open().settle()  # type: ignore[attr-defined]
        assert picture(here) == expected(here) == picture(there)


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.timeout(180)
def test_a_killed_process_leaves_a_graph_that_heals(tmp_path: Path) -> None:
    """Writers that snapshot all the time, killed at random moments; what is left is always right."""
    path = tmp_path / "m.db"
    script = textwrap.dedent(f"""
        import sys, itertools, trivet
        from trivet.stores.indexes import graph_index
        graph_index.TAIL_LIMIT, graph_index.BATCH, graph_index.GROWTH = 2, 3, 0.0
        names = {NAMES!r}
        with trivet.open(sys.argv[1], embedder="none") as engine:
            for n in itertools.count():
                engine.add(f"about {{names[n % 5]}} {{n}}", id=f"{{sys.argv[2]}}-{{n % 40}}", title=names[(n * 3) % 5])
                if n % 7 == 0:
                    engine.delete(f"{{sys.argv[2]}}-{{n % 11}}")
                collection = engine._collection
                collection.graph.mentions(collection.state().version)
                collection.graph.opened.open().settle()
                print("ready" if n == 0 else "", flush=True)
    """)
    chance = random.Random(7)
    for round_ in range(5):
        command = [sys.executable, "-c", script, str(path)]
        writers = [
            subprocess.Popen([*command, f"w{number}"], stdout=subprocess.PIPE, env=os.environ) for number in range(2)
        ]
        try:
            for writer in writers:
                assert writer.stdout is not None
                for _ in range(chance.randrange(2, 15)):
                    writer.stdout.readline()
        finally:
            for writer in writers:
                writer.send_signal(signal.SIGKILL)
                writer.communicate()
        with trivet.open(path, embedder="none") as engine:
            assert engine.stats().documents > 0, round_
            assert picture(engine) == expected(engine), round_


def test_a_snapshot_that_another_process_deletes_meanwhile_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = tmp_path / "graph" / "snapshot-1", tmp_path / "graph" / "snapshot-2"
    for folder in (old, new):
        folder.mkdir(parents=True)
        (folder / "state.json").write_text("{}")
    gone = FileNotFoundError(str(old / "names.npy"))
    assert snapshots.deletion_message(old, gone) == ["graph: it cannot be read and was deleted"]
    stopped: list[Path] = []
    monkeypatch.setattr(snapshots.shutil, "rmtree", lambda folder, ignore_errors: stopped.append(folder))
    snapshots.keep_only(new)  # as far as the other process has come: its first step is the state
    assert stopped == [old]
    assert snapshots.deletion_message(old, gone) == []
    assert (new / "state.json").exists()


def test_nothing_is_made_until_the_graph_has_a_weight(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with trivet.open(path, embedder="none") as engine:
        engine.add("about Ada Lumen", title="Bert Kolk")
        engine.search("who is Ada Lumen?", graph_weight=0)
        assert engine._collection.graph.opened.index is None  # type: ignore[attr-defined]
        engine.search("who is Ada Lumen?", **WALKED)
        assert engine._collection.graph.opened.index is not None  # type: ignore[attr-defined]
    assert not list(Path(f"{path}.index").glob("c*/graph"))


def test_names_that_a_triple_gives_are_concepts_and_change_with_it(engine: trivet.Engine) -> None:
    engine.add("it flows", id="a", triples=[("Ada Lumen", "knows", "Bert Kolk")])
    assert picture(engine)["Bert Kolk"] == {"a"}
    engine.patch("a", triples=[("Ada Lumen", "knows", "Clara Voss")])
    assert picture(engine)["Bert Kolk"] == set()
    assert picture(engine)["Clara Voss"] == {"a"}
    engine.patch("a", meta={"triples": None})
    assert picture(engine)["Ada Lumen"] == set()
