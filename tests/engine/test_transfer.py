"""A collection comes back as it was exported, and a broken file is reported with its line."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trivet
from trivet.engine import Engine, transfer
from trivet.errors import InputError, StoreError

Open = Callable[..., Engine]


def full(memory: Engine) -> Engine:
    memory.add(
        [
            {
                "id": "a",
                "text": "apple \u2028 pie\nwith a line, “quotes” and \\ \U0001f600",
                "title": "Ä title",
                "kind": "fact",
                "meta": {"tags": ["x", None, {"deep": 1.5}], "n": 2**62, "empty": {}},
                "importance": 0.25,
                "created": "2024-01-02T03:04:05.678901+00:00",
                "updated": "2024-02-02",
                "accessed": "2025-01-01",
                "valid_from": "2020-01-01",
                "valid_to": "9999-12-31T23:59:59.999999",
                "links": [{"target": "b", "type": "part-of", "weight": 0.5}, "gone"],
            },
            {"id": "b", "text": "", "title": "only a title"},
            {"id": "c", "text": "Long sentence about pears and plums. " * 150},
        ]
    )
    memory.link("c", "a")
    memory.update_settings("memories", k=7, trigram_gate=0.4)
    memory.wait(timeout=30)
    return memory


class TestRoundTrip:
    @pytest.mark.parametrize("vectors", [False, True])
    def test_documents_links_and_settings(self, open_store: Open, tmp_path: Path, vectors: bool) -> None:
        one = full(open_store("one.db", embedder="hashing:32"))
        assert one.export(tmp_path / "out.jsonl", vectors=vectors) == 3
        other = open_store("other.db", embedder="hashing:32")
        told = other.import_(tmp_path / "out.jsonl")
        assert (told.added, told.pending) == (3, told.pending)
        other.wait(timeout=30)
        assert list(other.documents()) == list(one.documents())
        assert other.links() == one.links()
        assert other.settings == one.settings
        assert other.stats().passages == one.stats().passages
        before, after = (memory.search("pears apple", k=3) for memory in (one, other))
        assert [(h.id, h.score, h.contributions) for h in after] == [(h.id, h.score, h.contributions) for h in before]

    def test_and_again_it_is_the_same_file(self, open_store: Open, tmp_path: Path) -> None:
        one = full(open_store("one.db"))
        one.export(tmp_path / "first.jsonl")
        other = open_store("other.db")
        other.import_(tmp_path / "first.jsonl")
        other.export(tmp_path / "second.jsonl")
        assert (tmp_path / "second.jsonl").read_text(encoding="utf-8") == (tmp_path / "first.jsonl").read_text(
            encoding="utf-8"
        )

    def test_vectors_spare_the_embedding_where_the_model_is_the_same(
        self, open_store: Open, taught: Any, tmp_path: Path
    ) -> None:
        open_store("one.db", embedder=taught("apple", name="m")).add(
            [{"id": "a", "text": "apple"}, {"id": "b", "text": "pie"}]
        )
        open_store("one.db", embedder=taught("apple", name="m")).export(tmp_path / "out.jsonl", vectors=True)
        same, other = taught("apple", name="m"), taught("pie", name="n")
        memory = open_store("same.db", embedder=same)
        memory.import_(tmp_path / "out.jsonl")
        assert same.passages == []
        assert [hit.id for hit in memory.search("apple", alpha=1)] == ["a"]
        memory = open_store("different.db", embedder=other)
        memory.import_(tmp_path / "out.jsonl")
        assert other.passages == ["apple", "pie"]
        assert [hit.id for hit in memory.search("pie", alpha=1)] == ["b"]
        memory = open_store("none.db")
        assert memory.import_(tmp_path / "out.jsonl").added == 2

    def test_vectors_of_every_passage_are_kept(self, open_store: Open, taught: Any, tmp_path: Path) -> None:
        model = taught("apple", name="m")
        one = open_store("one.db", embedder=model, passage_size=12)
        paragraphs = [f"The apple number {n} fell from the tree." for n in range(20)]
        one.add({"id": "long", "text": "\n\n".join([*paragraphs, *paragraphs[:3]])})  # three passages come twice
        one.add({"id": "short", "text": "apple"})
        one.wait(timeout=30)
        one.export(tmp_path / "out.jsonl", vectors=True)
        same = taught("apple", name="m")
        other = open_store("other.db", embedder=same, passage_size=12)
        other.import_(tmp_path / "out.jsonl")
        assert (same.passages, other.stats().pending) == ([], 0)
        assert other.stats().embedded == other.stats().passages == one.stats().passages > 10
        before, after = (memory.search("apple 7", k=2, alpha=1) for memory in (one, other))
        assert [(hit.id, hit.passage, hit.score) for hit in after] == [(h.id, h.passage, h.score) for h in before]
        other.export(tmp_path / "again.jsonl", vectors=True)
        assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "out.jsonl").read_bytes()

    def test_passages_that_are_cut_elsewhere_are_embedded(self, open_store: Open, taught: Any, tmp_path: Path) -> None:
        one = open_store("one.db", embedder=taught("apple", name="m"), passage_size=12)
        one.add({"id": "long", "text": "\n\n".join(f"The apple number {n} fell from the tree." for n in range(20))})
        one.wait(timeout=30)
        one.export(tmp_path / "out.jsonl", vectors=True)
        same = taught("apple", name="m")
        other = open_store("other.db", embedder=same, passage_size=40)
        other.import_(tmp_path / "out.jsonl")
        other.wait(timeout=30)
        assert len(same.passages) == other.stats().embedded == other.stats().passages > 1

    def test_without_vectors_there_are_none(self, open_store: Open, tmp_path: Path) -> None:
        full(open_store("one.db", embedder="hashing:32")).export(tmp_path / "out.jsonl")
        assert "vector" not in (tmp_path / "out.jsonl").read_text(encoding="utf-8")

    def test_into_a_collection_in_use_the_settings_stay(self, open_store: Open, tmp_path: Path) -> None:
        full(open_store("one.db")).export(tmp_path / "out.jsonl")
        other = open_store("other.db")
        other.add("was here first", id="first")
        other.update_settings(k=3)
        other.import_(tmp_path / "out.jsonl")
        assert other.settings.k == 3
        assert other.stats().documents == 4

    def test_twice_changes_nothing(self, open_store: Open, tmp_path: Path) -> None:
        full(open_store("one.db")).export(tmp_path / "out.jsonl")
        other = open_store("other.db")
        other.import_(tmp_path / "out.jsonl")
        told = other.import_(tmp_path / "out.jsonl")
        assert (told.added, told.updated, told.unchanged) == (0, 0, 3)


class TestFile:
    def test_header_then_one_line_a_document(self, open_store: Open, tmp_path: Path) -> None:
        full(open_store("one.db", "notes", language="fr")).export(tmp_path / "out.jsonl")
        header, *rest = [
            json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").split("\n") if line
        ]
        assert (header["trivet"], header["collection"], header["documents"], header["model"]) == (1, "notes", 3, None)
        assert header["config"] == {"language": "fr", "words_only": True}
        assert header["settings"]["k"] == 7
        assert [line["id"] for line in rest] == ["a", "b", "c"]
        assert rest[0]["created"] == "2024-01-02T03:04:05.678901+00:00"
        assert "accessed" not in rest[1]

    def test_the_same_a_line_at_a_time(self, open_store: Open, tmp_path: Path) -> None:
        memory = full(open_store(embedder="hashing:32"))
        for vectors in (False, True):
            memory.export(tmp_path / "out.jsonl", vectors=vectors)
            assert "".join(f"{line}\n" for line in memory.lines(vectors)) == (tmp_path / "out.jsonl").read_text("utf-8")

    def test_progress(self, open_store: Open, tmp_path: Path) -> None:
        memory = open_store()
        memory.add([f"text {n}" for n in range(450)])
        told: list[tuple[int, int]] = []
        memory.export(tmp_path / "out.jsonl", progress=lambda done, total: told.append((done, total)))
        assert told == [(0, 450), (200, 450), (400, 450), (450, 450)]

    def test_a_failed_export_leaves_the_old_file(
        self, words: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        target = tmp_path / "out.jsonl"
        words.add(["one", "two"])
        words.export(target)
        before = target.read_text()

        def broken(shelf: Any, vectors: bool = False) -> Any:
            yield "half a file"
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(transfer, "lines", broken)
        with pytest.raises(StoreError, match=r"cannot write .*: No space left on device"):
            words.export(target)
        assert target.read_text() == before
        assert [path.name for path in tmp_path.iterdir() if "out" in path.name] == ["out.jsonl"]

    def test_a_broken_store_is_not_called_a_broken_target(self, words: Engine, tmp_path: Path) -> None:
        words.close()
        with pytest.raises(StoreError, match="is closed; open it again"):
            words.export(tmp_path / "out.jsonl")

    def test_damaged_settings_are_told_and_set_anew_the_documents_leave(self, words: Engine, tmp_path: Path) -> None:
        words.add("one", id="a")
        with words._collection.rows.changing() as connection:
            connection.execute("""UPDATE collections SET settings = '{"k": '""")
        with pytest.raises(StoreError, match=r"settings of collection 'default' are damaged .*--profile default"):
            words.export(tmp_path / "out.jsonl")
        words.update_settings("default")
        assert words.export(tmp_path / "out.jsonl") == 1

    def test_a_folder_that_is_not_there(self, words: Engine, tmp_path: Path) -> None:
        with pytest.raises(StoreError, match="cannot write"):
            words.export(tmp_path / "nowhere" / "out.jsonl")
        with pytest.raises(InputError, match=r"cannot read .*nowhere\.jsonl': No such file"):
            words.import_(tmp_path / "nowhere.jsonl")
        with pytest.raises(InputError, match="cannot read"):
            words.import_(tmp_path)


class TestPlainFiles:
    def write(self, tmp_path: Path, *lines: Any) -> Path:
        path = tmp_path / "in.jsonl"
        path.write_text(
            "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), encoding="utf-8"
        )
        return path

    def test_made_by_anyone(self, words: Engine, tmp_path: Path) -> None:
        path = self.write(
            tmp_path,
            {"text": "no id"},
            "",
            "  ",
            {"id": 7, "text": "seven", "meta": {"a": 1}},
            {"id": "x", "text": "é"},
        )
        told = words.import_(path)
        assert told.added == 3
        assert told.ids[1:] == ("7", "x")
        assert words.settings == trivet.PROFILES["default"]

    def test_a_byte_order_mark_is_no_part_of_it(self, words: Engine, tmp_path: Path) -> None:
        """What the command line reads, the library reads."""
        (tmp_path / "in.jsonl").write_bytes(b'\xef\xbb\xbf{"trivet": 1}\n{"id": "a", "text": "x"}\n')
        assert words.import_(tmp_path / "in.jsonl").ids == ("a",)

    def test_nothing_in_it(self, words: Engine, tmp_path: Path) -> None:
        assert words.import_(self.write(tmp_path, "")).added == 0

    def test_vectors_of_ones_own(self, open_store: Open, tmp_path: Path) -> None:
        memory = open_store(embedder="vectors:2")
        packed = base64.b64encode(np.array([0, 1], dtype="<f4").tobytes()).decode()
        memory.import_(
            self.write(
                tmp_path, {"id": "l", "text": "list", "vector": [1, 0]}, {"id": "p", "text": "packed", "vector": packed}
            )
        )
        assert [hit.id for hit in memory.search("q", vector=[0.1, 1], alpha=1)] == ["p", "l"]

    @pytest.mark.parametrize(
        ("line", "told"),
        [
            ("{broken", r"in\.jsonl line 3: not JSON \(Expecting property name.* at column 2\)"),
            ('{"meta": ' + "[" * 100_000, r"in\.jsonl line 3: cannot be read \(maximum recursion depth"),
            ('{"meta": ' + "1" * 5_000 + "}", r"in\.jsonl line 3: cannot be read \(Exceeds the limit"),
            ("[1]", r"in\.jsonl line 3: expected an object, got list"),
            ('"text"', r"in\.jsonl line 3: expected an object, got str"),
            ('{"text": 5}', r"in\.jsonl line 3: document 1: text: int is not text"),
            ('{"id": "x"}', r"in\.jsonl line 3: document 'x': text: missing; give one"),
            ('{"text": "t", "colour": 1}', r"in\.jsonl line 3: document 1: unknown field 'colour'"),
            ('{"text": "t", "vector": "no base64!"}', r"in\.jsonl line 3: vector is not base64 of float32"),
            ('{"text": "t", "vector": "YWJj"}', r"in\.jsonl line 3: vector is not base64 of float32"),
            ('{"text": "t", "vector": {"no hex": "AAAA"}}', r"in\.jsonl line 3: vector is not base64 of float32"),
            ('{"text": "t", "vector": {"ab": 5}}', r"in\.jsonl line 3: vector is not base64 of float32"),
            (
                '{"id": "v", "text": "t", "vector": [1, 2]}',
                r"in\.jsonl line 3: document 'v': vector given, but the collection has no model",
            ),
        ],
    )
    def test_a_broken_line_is_named_by_its_number(self, words: Engine, tmp_path: Path, line: str, told: str) -> None:
        path = self.write(tmp_path, {"text": "fine"}, "", line, {"text": "never reached"})
        with pytest.raises(InputError, match=told):
            words.import_(path)

    def test_in_the_first_line_too(self, words: Engine, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"in\.jsonl line 1: not JSON"):
            words.import_(self.write(tmp_path, "nonsense"))

    def test_what_is_not_text(self, words: Engine, tmp_path: Path) -> None:
        path = tmp_path / "image.png"
        path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
        with pytest.raises(InputError, match=r"image\.png' is not UTF-8 text"):
            words.import_(path)

    def test_an_export_of_the_future(self, words: Engine, tmp_path: Path) -> None:
        path = self.write(tmp_path, {"trivet": 2, "settings": {"novel": 1}}, {"text": "x"})
        with pytest.raises(InputError, match="export format 2; this trivet reads 1"):
            words.import_(path)
        assert words.settings == trivet.PROFILES["default"]

    def test_a_header_without_settings(self, words: Engine, tmp_path: Path) -> None:
        assert words.import_(self.write(tmp_path, {"trivet": 1}, {"text": "x"})).added == 1

    @pytest.mark.parametrize("settings", [{"k": 0}, {"novel": 1}, [1], None, "memories"])
    def test_a_header_with_wrong_settings(self, words: Engine, tmp_path: Path, settings: Any) -> None:
        with pytest.raises(InputError):
            words.import_(self.write(tmp_path, {"trivet": 1, "settings": settings}, {"text": "x"}))
        assert words.settings == trivet.PROFILES["default"]


class TestFeedback:
    def judged(self, memory: Engine) -> Engine:
        full(memory)
        memory.feedback("which \u2028 “fruit”?\n\U0001f600", "a")
        memory.feedback("which fruit", "c", good=False)
        memory.feedback("which fruit", "b")
        memory.delete("b")
        return memory

    def test_comes_back_with_its_times_and_its_order_and_that_of_what_is_gone(
        self, open_store: Open, tmp_path: Path
    ) -> None:
        one = self.judged(open_store("one.db"))
        assert one.export(tmp_path / "out.jsonl") == 2, "documents are what is counted"
        other = open_store("other.db")
        told = other.import_(tmp_path / "out.jsonl")
        assert (told.added, len(told)) == (2, 2)
        assert other.feedbacks() == one.feedbacks()
        assert [given.id for given in other.feedbacks()] == ["a", "c", "b"]
        other.export(tmp_path / "again.jsonl")
        assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "out.jsonl").read_bytes()

    def test_stands_behind_the_documents_a_line_each(self, open_store: Open, tmp_path: Path) -> None:
        memory = self.judged(open_store())
        told: list[tuple[int, int]] = []
        memory.export(tmp_path / "out.jsonl", progress=lambda done, total: told.append((done, total)))
        assert told == [(0, 2), (2, 2)]
        lines = [json.loads(line) for line in memory.lines()]
        assert [line.get("id") for line in lines] == [None, "a", "c", None, None, None]
        first = memory.feedbacks()[0]
        assert lines[3] == {"feedback": {"query": first.query, "id": "a", "good": True, "at": first.at.isoformat()}}

    def test_an_export_from_before_there_was_any(self, open_store: Open, tmp_path: Path) -> None:
        self.judged(open_store("one.db")).export(tmp_path / "out.jsonl")
        lines = (tmp_path / "out.jsonl").read_text(encoding="utf-8").split("\n")
        older = [line for line in lines if not line.startswith('{"feedback"')]
        (tmp_path / "older.jsonl").write_text("\n".join(older), encoding="utf-8")
        other = open_store("other.db")
        assert other.import_(tmp_path / "older.jsonl").added == 2
        assert other.feedbacks() == []

    def test_a_later_verdict_here_stays(self, open_store: Open, tmp_path: Path) -> None:
        memory = self.judged(open_store())
        memory.export(tmp_path / "out.jsonl")
        memory.feedback("which fruit", "c", good=True)
        memory.forget_feedback("which fruit", "b")
        before = memory.feedbacks()
        memory.import_(tmp_path / "out.jsonl")
        assert [given for given in memory.feedbacks() if given.id != "b"] == before
        assert [given.good for given in memory.feedbacks() if given.id == "b"] == [True]

    def test_of_a_document_nobody_has(self, words: Engine, tmp_path: Path) -> None:
        path = tmp_path / "in.jsonl"
        path.write_text('{"feedback": {"query": "q", "id": "nobody", "good": false}}\n{"text": "x", "id": "x"}\n')
        assert words.import_(path).ids == ("x",)
        assert [(given.query, given.id, given.good) for given in words.feedbacks()] == [("q", "nobody", False)]

    @pytest.mark.parametrize(
        ("line", "told"),
        [
            ('{"feedback": {"query": "q", "id": "a", "good": 1}}', r"line 2: feedback: good: 1 is not True"),
            ('{"feedback": {"query": "", "id": "a", "good": true}}', r"line 2: feedback: query: it is empty"),
            ('{"feedback": {"query": "q", "good": true}}', r"line 2: feedback: id: None is not an id"),
            ('{"feedback": {"query": "q", "id": "a", "good": true, "at": "x"}}', r"line 2: feedback: at: 'x'"),
            ('{"feedback": null}', r"line 2: feedback: NoneType is not a mapping"),
            ('{"feedback": {}, "id": "x"}', r"line 2: feedback: unknown field 'id' beside it"),
            ('{"feedback": {}, "text": "x"}', r"line 2: document 1: unknown field 'feedback'"),
        ],
    )
    def test_a_broken_line_is_named_by_its_number(self, words: Engine, tmp_path: Path, line: str, told: str) -> None:
        path = tmp_path / "in.jsonl"
        path.write_text('{"text": "fine"}\n' + line)
        with pytest.raises(InputError, match=rf"in\.jsonl {told}"):
            words.import_(path)
        assert words.feedbacks() == []


def test_half_embedded_long_documents_do_not_leave_with_the_vector_of_one_passage(tmp_path: Path) -> None:
    with trivet.open(tmp_path / "m.db", embedder="hashing:32", passage_size=12) as memory:
        memory.add("\n\n".join(f"The cat number {number} sleeps all day long." for number in range(3)), id="long")
        memory.add("short", id="short")
        shelf = memory._collection
        with shelf.rows.changing() as connection:  # as if the process had died after the first passage
            pids = [row[0] for row in connection.execute("SELECT pid FROM passages ORDER BY pid")][1:-1]
            connection.executemany("DELETE FROM vectors WHERE pid = ?", [(pid,) for pid in pids])
        exported = [json.loads(line) for line in memory.lines(vectors=True)][1:]
        assert {item["id"]: type(item["vector"]) for item in exported} == {"long": dict, "short": str}
        assert len(exported[0]["vector"]) == 1, "of the one passage, by its hash: the others are embedded again"


def test_an_export_that_is_interrupted_leaves_no_file_behind(open_store: Open, tmp_path: Path) -> None:
    memory = full(open_store("memory.db", embedder="none"))
    (tmp_path / "out").mkdir()

    def interrupted(done: int, total: int) -> None:
        raise KeyboardInterrupt

    memory.add([f"note {number}" for number in range(200)])
    with pytest.raises(KeyboardInterrupt):
        memory.export(tmp_path / "out/notes.jsonl", progress=interrupted)
    assert list((tmp_path / "out").iterdir()) == []
