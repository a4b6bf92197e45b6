"""A second import reads only what has changed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from trivet.files import names, paths, reader


@pytest.fixture
def docs(clean_place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that the import does not take for changed a moment ago."""
    monkeypatch.setattr(paths, "RECENT", -3600.0)
    folder = clean_place / "docs"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.md").write_text("# Keys\nRotate them, see [[b]].\n")
    (folder / "sub" / "b.txt").write_text("plain words\n")
    (folder / "empty.txt").write_text("")
    return folder


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list that every file read is added to."""
    seen: list[str] = []
    real, learnt = reader.read, names.Names._read_names

    def noted(file: reader.File, *given: Any) -> Any:
        seen.append(file.id)
        return real(file, *given)

    def said(self: names.Names, file: reader.File) -> Any:
        seen.append(file.name)
        return learnt(self, file)

    monkeypatch.setattr(reader, "read", noted)
    monkeypatch.setattr(names.Names, "_read_names", said)
    return seen


def told(cli: Any, *arguments: str | Path) -> dict[str, Any]:
    ran = cli("import", *arguments, "--json")
    assert ran.code == 0, ran.err
    found: dict[str, Any] = ran.json
    return found


def counts(found: dict[str, Any]) -> tuple[int, int, int]:
    return found["added"], found["updated"], found["unchanged"]


@pytest.mark.parametrize("embedder", ["none", "hashing:32"])
def test_a_folder_is_not_read_again_and_says_the_same(cli: Any, docs: Path, read: list[str], embedder: str) -> None:
    first = told(cli, docs, "--embedder", embedder)
    assert counts(first) == (2, 0, 0)
    read.clear()
    for _ in range(2):
        again = told(cli, docs)
        assert counts(again) == (0, 0, 2)
        assert again["skipped"] == first["skipped"]
    assert not read


def test_a_file_of_the_same_size_and_time_that_says_something_else_voids_it(
    cli: Any, docs: Path, read: list[str]
) -> None:
    told(cli, docs)
    path = docs / "a.md"  # it has a link, so it is read whatever its time is
    stat = path.stat()
    path.write_text(path.read_text().replace("Rotate", "Revoke"))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    read.clear()
    assert counts(told(cli, docs)) == (0, 1, 1)
    assert read


def test_a_new_file_a_deleted_document_and_another_prefix_are_seen(cli: Any, docs: Path) -> None:
    told(cli, docs)
    (docs / "c.txt").write_text("more words\n")
    assert counts(told(cli, docs)) == (1, 0, 2)
    assert cli("delete", "c.txt", "--yes").code == 0
    assert counts(told(cli, docs)) == (1, 0, 2)
    assert counts(told(cli, docs, "--prefix", "two/")) == (3, 0, 0)


def test_secrets_that_are_to_be_taken_out_are_looked_for(cli: Any, docs: Path) -> None:
    (docs / "k.txt").write_text("the key is AKIAIOSFODNN7EXAMPLE\n")
    assert told(cli, docs)["redacted"] == {}
    found = told(cli, docs, "--redact")
    assert sum(found["redacted"].values()) == 1
    assert found["updated"] == 1
    assert told(cli, docs, "--redact")["redacted"] == found["redacted"]


def test_a_file_of_lines_and_a_broken_one(cli: Any, docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = docs.parent / "lines.jsonl"
    lines.write_text("".join(json.dumps({"id": f"l{at}", "text": f"line {at}"}) + "\n" for at in range(5)))
    assert counts(told(cli, lines)) == (5, 0, 0)
    with monkeypatch.context() as patched:
        patched.setattr(paths, "_import_jsonl", lambda *_: pytest.fail("it is read again"))
        assert counts(told(cli, lines)) == (0, 0, 5)
    lines.write_text(lines.read_text() + "{\n")
    for _ in range(2):  # broken lines are reported every time
        ran = cli("import", lines, "--json")
        assert (ran.code, len(ran.json["broken"])) == (2, 1)


def test_a_file_that_was_changed_a_moment_ago_is_read_again(
    cli: Any, docs: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "RECENT", 3600.0)
    told(cli, docs)
    read.clear()
    assert counts(told(cli, docs)) == (0, 0, 2)
    assert read
