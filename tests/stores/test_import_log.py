"""An import is skipped only where repeating it would change nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import trivet
from trivet.engine import Engine, ingest, transfer
from trivet.stores.import_log import ImportFiles, content, fingerprint

Open = Callable[..., Engine]
SHEEP = [{"id": str(number), "text": f"sheep number {number}"} for number in range(20)]


def written(path: Path, documents: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(item) + "\n" for item in documents))
    return path


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return written(tmp_path / "sheep.jsonl", SHEEP)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Every file whose documents were read."""
    seen: list[Path] = []
    real = transfer.read

    def noted(path: Path) -> Any:
        seen.append(path)
        return real(path)

    monkeypatch.setattr(transfer, "read", noted)
    return seen


class TestEngineImport:
    def test_the_same_file_again_is_not_read(self, words: Engine, source: Path, reads: list[Path]) -> None:
        first, again = words.import_(source), words.import_(source)
        assert (first.added, again.unchanged, again.added, again.updated) == (20, 20, 0, 0)
        assert again.ids == first.ids
        assert len(reads) == 1

    def test_nor_by_another_process_or_under_another_name(
        self, open_store: Open, source: Path, tmp_path: Path, reads: list[Path]
    ) -> None:
        engine = open_store(embedder="none")
        engine.import_(source)
        other = tmp_path / "copy.jsonl"
        other.write_bytes(source.read_bytes())
        with trivet.open(engine.path) as second:
            assert second.import_(other).unchanged == 20
        assert len(reads) == 1

    def test_a_file_that_was_changed_to_the_same_size_and_time(self, words: Engine, source: Path) -> None:
        words.import_(source)
        stat = source.stat()
        source.write_text(source.read_text().replace("number 7", "number X"))
        os.utime(source, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        assert source.stat().st_size == stat.st_size
        assert words.import_(source).updated == 1

    @pytest.mark.parametrize(
        "change",
        [
            lambda engine: engine.delete("3"),
            lambda engine: engine.patch("3", text="goats"),
            lambda engine: engine.patch("3", meta={"colour": "black"}),
            lambda engine: engine.add({"id": "3", "text": "goats"}),
            lambda engine: engine.remember("goats", id="3"),
        ],
        ids=["deleted", "patched", "described", "replaced", "remembered"],
    )
    def test_a_document_that_was_changed_since_comes_back(
        self, words: Engine, source: Path, change: Callable[[Engine], Any]
    ) -> None:
        words.import_(source)
        change(words)
        again = words.import_(source)
        assert again.added + again.updated == 1
        kept = words.get("3")
        assert kept is not None
        assert (kept.text, kept.meta) == ("sheep number 3", {})

    def test_what_another_wrote_meanwhile_is_seen(
        self, words: Engine, source: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A receipt of the moment when the load ended would miss what was deleted while it ran."""
        monkeypatch.setattr(ingest, "BATCH_DOCUMENTS", 5)
        words.import_(source, progress=lambda done, _: words.delete("0") if done == 10 else None)
        assert words.get("0") is None
        assert words.import_(source).added == 1

    @pytest.mark.parametrize(
        "odd",
        [{"text": "no id"}, {"id": "3", "text": "the id of another"}, {"id": "x", "text": "y", "accesses": 3}],
        ids=["without an id", "twice", "recalled"],
    )
    def test_what_would_not_be_the_same_again_is_read_again(
        self, words: Engine, tmp_path: Path, odd: dict[str, Any], reads: list[Path]
    ) -> None:
        source = written(tmp_path / "odd.jsonl", [*SHEEP, odd])
        words.import_(source)
        words.import_(source)
        assert len(reads) == 2

    def test_feedback_that_was_forgotten_comes_back(self, words: Engine, tmp_path: Path) -> None:
        said = {"feedback": {"query": "which?", "id": "3", "good": True, "at": "2026-01-01T00:00:00Z"}}
        source = written(tmp_path / "judged.jsonl", [*SHEEP, said])
        words.import_(source)
        words.forget_feedback("which?")
        words.import_(source)
        assert len(words.feedbacks()) == 1

    def test_vectors_that_follow_change_nothing(self, open_store: Open, source: Path, reads: list[Path]) -> None:
        engine = open_store(embedder="hashing:32")
        engine.import_(source)
        engine.wait()
        assert engine.import_(source).unchanged == 20
        assert len(reads) == 1

    def test_another_collection_has_its_own(self, open_store: Open, source: Path) -> None:
        open_store(collection="one", embedder="none").import_(source)
        assert open_store(collection="two", embedder="none").import_(source).added == 20

    def test_an_import_of_what_is_there_does_not_void_the_others(
        self, words: Engine, source: Path, tmp_path: Path, reads: list[Path]
    ) -> None:
        other = written(tmp_path / "goats.jsonl", [{"id": "g", "text": "a goat"}])
        for _ in range(3):
            words.import_(source)
            words.import_(other)
        assert len(reads) == 3  # the first is read once more, after the second was new

    def test_it_may_be_deleted_and_damaged(self, words: Engine, source: Path) -> None:
        words.import_(source)
        folder = Path(f"{words.path}.index") / "c1" / "imports"
        for path in folder.iterdir():
            path.write_text("{")
        assert words.import_(source).unchanged == 20
        words.rebuild()
        assert not list(folder.glob("*"))
        assert words.import_(source).unchanged == 20
        assert words.verify().ok

    def test_a_backup_that_was_put_back_is_not_taken_for_what_it_was_before(
        self, open_store: Open, source: Path, tmp_path: Path
    ) -> None:
        engine = open_store(embedder="none")
        engine.backup(tmp_path / "old.db")
        engine.import_(source)
        version = engine._collection.state().version
        path = Path(engine.path)
        engine.close()
        for end in ("-wal", "-shm"):
            Path(f"{path}{end}").unlink(missing_ok=True)
        path.write_bytes((tmp_path / "old.db").read_bytes())
        with trivet.open(path) as engine:
            while engine._collection.state().version < version:
                engine.add("something else")
            assert engine.import_(source).added == 20


def test_one_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    files = ImportFiles(tmp_path / "file" / "imports", "me")
    files.keep("key", (3, "a"), {})
    assert files.find("key", (3, "a")) is None


def test_it_holds_for_one_version_and_one_collection(tmp_path: Path) -> None:
    files = ImportFiles(tmp_path, "me")
    files.keep("key", (3, "a"), {"documents": 1})
    assert files.find("key", (3, "a")) == {"documents": 1}
    assert files.find("key", (4, "a")) is None
    assert files.find("key", (3, "b")) is None  # the same number on another timeline
    assert files.find("other", (3, "a")) is None
    assert ImportFiles(tmp_path, "you").find("key", (3, "a")) is None
    files.carry((4, "b"), (5, "c"))  # they hold for 3
    assert files.find("key", (5, "c")) is None
    files.carry((3, "a"), (4, "b"))
    assert files.find("key", (4, "b")) == {"documents": 1}
    files.clear()
    assert files.find("key", (4, "b")) is None


def test_a_key_is_of_everything(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"ab")
    (tmp_path / "b").write_bytes(b"ba")
    assert content(tmp_path / "a") != content(tmp_path / "b")
    assert len({fingerprint(["a", "b"]), fingerprint(["ab"]), fingerprint(["b", "a"]), fingerprint([])}) == 4
