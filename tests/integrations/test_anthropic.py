"""Anthropic: the same commands to the SDK's own memory tool over files and to ours, and what is special to ours."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import trivet

pytest.importorskip("anthropic", reason="needs the extra anthropic: `make test-integrations`")

from anthropic.lib.tools import ToolError
from anthropic.tools import BetaLocalFilesystemMemoryTool
from programs import run_example, run_section

from trivet.integrations.anthropic import TrivetAsyncMemoryTool, TrivetMemoryTool

Call = dict[str, Any]


def call(command: str, path: str | None = None, **fields: Any) -> Call:
    return {"command": command, **({} if path is None else {"path": path}), **fields}


def create(path: str, text: str = "text\n") -> Call:
    return call("create", path, file_text=text)


def replace(path: str, old: str, new: str) -> Call:
    return call("str_replace", path, old_str=old, new_str=new)


def insert(path: str, line: int, text: str) -> Call:
    return call("insert", path, insert_line=line, insert_text=text)


def rename(old: str, new: str) -> Call:
    return call("rename", old_path=old, new_path=new)


NOTES = "/memories/notes.md"
LONG = "".join(f"line {number}\n" for number in range(1, 31))
#: Each is a session of its own.
SESSIONS: dict[str, list[Call]] = {
    "an empty memory": [call("view", "/memories"), call("view", "/memories/"), call("view", NOTES)],
    "a file": [
        create(NOTES, "one\ntwo\n"),
        create(NOTES, "again"),
        call("view", NOTES),
        call("view", "/memories//notes.md/"),
        create("/memories", "x"),
        create("/memories/empty", ""),
        call("view", "/memories/empty"),
        create("/memories/unicode/Grüße 東京.md", "naïve ☂\r\nsecond\r\n"),
        call("view", "/memories/unicode/Grüße 東京.md"),
        call("view", "/memories"),
    ],
    "ranges": [
        create(NOTES, LONG),
        *(
            call("view", NOTES, view_range=given)
            for given in ([2, 4], [28, -1], [0, 2], [5, 3], [29, 99], [3], [1, -2])
        ),
    ],
    "folders": [
        create("/memories/b.txt", "x" * 1024),
        create("/memories/a/c.txt", "x" * 1500),
        create("/memories/a/deep/d.txt", "x"),
        create("/memories/a/deep/er/e.txt", "x"),
        create("/memories/a.txt", "x" * 1023),
        create("/memories/a-b/f", "x" * 3_000_000),
        create("/memories/.hidden/f", "x"),
        create("/memories/a/.also", "x"),
        *(call("view", path) for path in ("/memories", "/memories/a", "/memories/a/deep", "/memories/.hidden")),
        create("/memories/a", "is a folder"),
        create("/memories/a.txt/below", "a file has nothing below it"),
        replace("/memories/a", "x", "y"),
        insert("/memories/a", 0, "y"),
        call("view", "/memories/a.txt/below"),
        call("delete", "/memories/a"),
        call("delete", "/memories/a"),
        call("view", "/memories"),
    ],
    "replacements": [
        create(NOTES, LONG),
        replace(NOTES, "line 15\n", "the middle\nof it\n"),
        replace(NOTES, "line 1\n", ""),
        replace(NOTES, "line 30\n", "the end"),
        replace(NOTES, "line 2", "many"),
        replace(NOTES, "nothing", "such"),
        replace(NOTES, "", "every place"),
        replace("/memories/other", "a", "b"),
        create("/memories/aaa", "aaa\naaaa\n"),
        replace("/memories/aaa", "aa", "b"),
        replace("/memories/aaa", "aaa\naaa", "b"),
        replace("/memories/aaa", ".*", "b"),
        call("view", NOTES),
        call("view", "/memories/aaa"),
    ],
    "insertions": [
        create(NOTES, "one\ntwo"),
        insert(NOTES, 0, "zero\n"),
        insert(NOTES, 3, "three\n\n"),
        insert(NOTES, 2, "and\nmore"),
        insert(NOTES, 99, "too far"),
        insert(NOTES, -1, "too early"),
        insert("/memories/other", 0, "none"),
        call("view", NOTES),
        create("/memories/empty", ""),
        insert("/memories/empty", 0, "first"),
        create("/memories/blank", "\n"),
        insert("/memories/blank", 1, ""),
        call("view", "/memories/empty"),
        call("view", "/memories/blank"),
        call("view", "/memories"),
    ],
    "deletions and renames": [
        create("/memories/a/one", "1\n"),
        create("/memories/a/b/two", "2\n"),
        create(NOTES, "n\n"),
        rename(NOTES, "/memories/a/one"),
        rename(NOTES, "/memories/a"),
        rename("/memories/none", "/memories/some"),
        rename("/memories", "/memories/some"),
        rename(NOTES, "/memories"),
        rename("/memories/a", "/memories/c/d"),
        rename(NOTES, "/memories/moved.md"),
        rename("/memories/c", "/memories/c/inside"),
        rename("/memories/moved.md", "/memories/moved.md"),
        call("view", "/memories/c/d/b/two"),
        call("view", "/memories/moved.md"),
        call("view", "/memories"),
        call("delete", "/memories"),
        call("delete", "/memories/moved.md"),
        call("delete", "/memories/moved.md"),
    ],
    "paths outside": [
        *(
            call("view", path)
            for path in ("/etc/passwd", "memories", "", "/memories/../x", "/memories/../../etc/passwd", "/memories/..")
        ),
        create("/memories/a/../../../out", "x"),
        create("/memories/a/../inside", "x"),
        create("/memories/./b/./c", "x"),
        create("/memoriesx", "below /memories all the same"),
        create("/memories/..hidden/%2e%2e/x", "x"),
        call("view", "/memories/%2e%2e/x"),
        rename("/memories/inside", "/memories/../outside"),
        rename("/elsewhere", "/memories/x"),
        call("delete", "/memories/b/../../.."),
        call("view", "/memories"),
        call("view", "/memories/..hidden"),
    ],
}
FOLDER_LINE = re.compile(r"^\S+\t(?=.*(?:/|memories/?|/[ab]|/deep|hidden)$)", re.MULTILINE)


def reply(tool: Any, given: Call) -> str:
    try:
        return str(tool.call(given))
    except ToolError as error:
        return f"error: {error}"
    except OSError:  # of the SDK, with a path of the machine in it
        return "error of the file system"


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[TrivetMemoryTool]:
    tool = TrivetMemoryTool(tmp_path / "m.db", embedder="none")
    yield tool
    tool.engine.close()


@pytest.mark.parametrize("name", SESSIONS)
def test_the_replies_are_those_of_the_sdk(name: str, tmp_path: Path, ours: TrivetMemoryTool) -> None:
    theirs = BetaLocalFilesystemMemoryTool(str(tmp_path / "files"))
    for given in SESSIONS[name]:
        expected, found = reply(theirs, given), reply(ours, given)
        if expected == "error of the file system":
            assert found.startswith("error: The "), given
        else:  # the size of a folder is a property of the file system
            assert FOLDER_LINE.sub("?\t", found) == FOLDER_LINE.sub("?\t", expected), given
    assert not (tmp_path / "out").exists()


def test_the_definition_is_that_of_the_sdk(ours: TrivetMemoryTool, tmp_path: Path) -> None:
    assert ours.to_dict() == BetaLocalFilesystemMemoryTool(str(tmp_path / "files")).to_dict()
    cached = TrivetMemoryTool(ours.engine, cache_control={"type": "ephemeral"})
    assert cached.to_dict()["cache_control"] == {"type": "ephemeral"}


def test_a_folder_without_files_is_gone(ours: TrivetMemoryTool) -> None:
    ours.call(create("/memories/a/one"))
    ours.call(call("delete", "/memories/a/one"))
    assert reply(ours, call("view", "/memories/a")).startswith("error: The path /memories/a does not exist")


def test_what_trivet_refuses_is_an_error_of_the_tool(ours: TrivetMemoryTool) -> None:
    assert "512" in reply(ours, create("/memories/" + "x" * 600))
    assert "null character" in reply(ours, create("/memories/a\0b"))


def test_other_documents_are_left_alone(ours: TrivetMemoryTool) -> None:
    ours.engine.add("a note about the harbour", id="memories/notes.md")
    assert "does not exist" in reply(ours, call("view", NOTES))
    assert "already exists" in reply(ours, create(NOTES))
    assert ours.clear_all_memory() == "All memory cleared"
    assert ours.engine.get("memories/notes.md") is not None


def test_a_file_keeps_its_creation_time(ours: TrivetMemoryTool) -> None:
    ours.call(create(NOTES, "one\n"))
    before = ours.engine.get("memories/notes.md")
    ours.call(insert(NOTES, 1, "two"))
    ours.call(rename(NOTES, "/memories/a/b.md"))
    after = ours.engine.get("memories/a/b.md")
    assert before and after
    assert (after.created, after.text, after.title) == (before.created, "one\ntwo\n", "b.md")


def test_one_of_many_at_once_creates_a_file(ours: TrivetMemoryTool) -> None:
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda number: reply(ours, create(NOTES, f"{number}")), range(8)))
    assert sorted(replies)[:1] == [f"File created successfully at: {NOTES}"]
    assert sorted(replies)[1:] == [f"error: File {NOTES} already exists"] * 7


def test_the_command_line_finds_a_file(tmp_path: Path) -> None:
    tool = TrivetMemoryTool(tmp_path / "m.db", collection="claude")
    tool.call(create(NOTES, "# Ana\nThe customer prefers invoices on paper.\n"))
    tool.call(create("/memories/door.md", "The greenhouse door sticks.\n"))
    tool.engine.close()
    command = [sys.executable, "-m", "trivet", "search", "how does she want her bills", "--json"]
    environment = {**os.environ, "TRIVET_STORE": str(tmp_path / "m.db")}
    done = subprocess.run([*command, "--collection", "claude"], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["hits"][0]["document"]["id"] == "memories/notes.md"


def test_the_asynchronous_tool(tmp_path: Path) -> None:
    async def work() -> list[str]:
        tool = TrivetAsyncMemoryTool(tmp_path / "m.db", embedder="none")
        replies = [str(await tool.call(given)) for given in (create(NOTES, "one\n"), call("view", NOTES))]
        with pytest.raises(ToolError, match="already exists"):
            await tool.call(create(NOTES))
        replies.append(await tool.clear_all_memory())
        tool.engine.close()
        return replies

    created, shown, cleared = asyncio.run(work())
    assert (created, cleared) == (f"File created successfully at: {NOTES}", "All memory cleared")
    assert shown.endswith("     1\tone\n     2\t")


def test_it_works_over_an_engine_for_one_user(tmp_path: Path) -> None:
    with trivet.open(tmp_path / "m.db", embedder="none") as engine:
        ana, ben = (TrivetMemoryTool(engine.within({"user": name})) for name in ("ana", "ben"))
        ana.call(create("/memories/ana.md"))
        assert "does not exist" in reply(ben, call("view", "/memories/ana.md"))


def test_the_example_prints_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    run_example("anthropic")
    assert capsys.readouterr().out.splitlines() == [
        "File created successfully at: /memories/customers/ana.md",
        "Here's the content of /memories/customers/ana.md with line numbers:",
        "     1\tAna prefers invoices on paper.",
        "     2\tShe is in the office on Tuesdays.",
        "     3\t",
        "memories/customers/ana.md",
    ]


def test_the_code_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = run_section("Claude's memory tool")
    assert names["memory"].to_dict()["name"] == "memory"
    assert "door" in names["memory"].call(call("view", NOTES))
    names["memory"].engine.close()
