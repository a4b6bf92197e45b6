"""``trivet import``: files, folders, JSONL and Markdown, and the reasons for skipped files.

Also covers ``trivet.files``: ``gitignore``, ``importer``, ``jsonl``, ``names`` and ``paths``.
"""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path

import pytest

from trivet.files import importer, markdown, reader
from trivet.files.gitignore import Ignore


def write(root: Path, contents: dict[str, str | bytes]) -> Path:
    for name, content in contents.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


@pytest.fixture
def docs(clean_place: Path) -> Path:
    return write(
        clean_place / "docs",
        {
            "guide.md": "intro\n# Key rotation\nRotate the keys every month.\n",
            "sub/tool.py": "def rotate():\n    return 'keys'\n",
            "sub/notes.txt": "plain words\n",
            ".gitignore": "build/\n*.tmp\n",
            "build/out.txt": "made\n",
            "scratch.tmp": "x\n",
            "sub/.gitignore": "!kept.tmp\n/secret.txt\n",
            "sub/kept.tmp": "kept after all\n",
            "sub/secret.txt": "not this\n",
            "sub/deeper/secret.txt": "but this\n",
            ".hidden/a.md": "# no\n",
            "logo.png": b"\x89PNG\0\0",
            "latin.txt": b"caf\xe9",
            "empty.md": "  \n",
            "records.jsonl": '{"a": 1}\n',
        },
    )


def test_a_folder(cli, docs: Path) -> None:
    ran = cli("import", docs, "--json")
    assert ran.code == 0, ran.err
    told = ran.json
    assert (told["added"], told["updated"], told["unchanged"], told["pending"]) == (6, 0, 0, 0)
    assert told["notes"] == [{"path": "latin.txt", "reason": "read as cp1252"}]
    assert {item["path"]: item["reason"].partition("; name")[0] for item in told["skipped"]} == {
        ".gitignore": "hidden",
        ".hidden": "hidden",
        "sub/.gitignore": "hidden",
        "build": "ignored by .gitignore",
        "scratch.tmp": "ignored by .gitignore",
        "sub/secret.txt": "ignored by .gitignore",
        "logo.png": "binary (PNG)",
        "empty.md": "empty",
        "records.jsonl": "JSONL in a folder",
    }
    guide = cli("get", "guide.md", "--json").json
    assert (guide["title"], guide["kind"], guide["meta"]["path"]) == ("Key rotation", "markdown", "guide.md")
    modified = (docs / "guide.md").stat().st_mtime
    assert abs(datetime.fromisoformat(guide["created"]).timestamp() - modified) < 0.001
    tool = cli("get", "sub/tool.py", "--json").json
    assert (tool["title"], tool["kind"], tool["meta"]["language"]) == ("tool.py", "code", "python")


def test_the_summary_names_reasons(cli, docs: Path) -> None:
    ran = cli("import", docs)
    assert ran.out.startswith("6 added · 0 updated · 0 unchanged · 9 skipped")
    assert "  noted 1: read as cp1252: latin.txt\n" in ran.out
    assert "  skipped 1: binary: logo.png\n" in ran.out
    assert ran.err == ""


def test_again_reads_only_what_changed(cli, docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("import", docs)
    read: list[str] = []
    reading = reader.read
    monkeypatch.setattr(reader, "read", lambda file, resolve: read.append(file.id) or reading(file, resolve))
    assert cli("import", docs).out.startswith("0 added · 0 updated · 6 unchanged")
    assert [id for id in read if id not in ("latin.txt", "logo.png", "empty.md")] == []
    (docs / "guide.md").write_text("# Key rotation\nEvery week from now on.\n")
    os.utime(docs / "sub/tool.py")
    # a touched file is read again: the same content, but another time
    assert cli("import", docs, "--json").json["updated"] == 2
    assert "sub/notes.txt" not in read


def test_an_interrupted_import_goes_on(cli, clean_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(clean_place / "many", {f"{number:02}.txt": f"text {number}" for number in range(10)})
    monkeypatch.setattr(importer, "BATCH_DOCUMENTS", 3)
    reading = reader.read

    def stopped(file: reader.File, resolve: markdown.Resolve) -> object:
        if file.id == "07.txt":
            raise KeyboardInterrupt
        return reading(file, resolve)

    with monkeypatch.context() as patched:
        patched.setattr(reader, "read", stopped)
        ran = cli("import", "many")
    assert ran.code == 130
    assert ran.err == "trivet: interrupted; what was written is kept, and the same command continues from there\n"
    assert cli("import", "many").out.startswith("4 added · 0 updated · 6 unchanged")


def test_a_link_out_of_the_folder_is_not_followed(cli, clean_place: Path) -> None:
    """A folder from a stranger may link to a private file of the user who imports it."""
    folder = clean_place / "cloned"
    (folder / "sub").mkdir(parents=True)
    (clean_place / "private.txt").write_text("the key of the house")
    (folder / "kept.txt").write_text("of the folder")
    (folder / "notes.txt").symlink_to(clean_place / "private.txt")
    (folder / "sub" / "up.txt").symlink_to("../../private.txt")
    (folder / "sub" / "same.txt").symlink_to("../kept.txt")
    told = cli("import", folder, "--json").json
    assert (told["added"], {item["path"]: item["reason"] for item in told["skipped"]}) == (
        2,
        dict.fromkeys(("notes.txt", "sub/up.txt"), "a link to a file outside the folder"),
    )
    assert "key of the house" not in cli("export", "-").out


def test_huge_files_are_left_out(cli, clean_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_BYTES", 1_000_000)
    write(clean_place / "docs", {"big.log": "a" * 1_500_000, "small.log": "b"})
    skipped = cli("import", "docs", "--json").json["skipped"]
    assert skipped == [{"path": "big.log", "reason": "larger than 1 MB (1.5 MB)"}]


def test_the_store_itself_is_not_imported(cli, clean_place: Path) -> None:
    write(clean_place, {"a.txt": "words"})
    cli("import", ".")
    assert cli("import", ".", "--json").json["skipped"] == []


def test_rules_above_the_folder_hold_in_a_repository(cli, clean_place: Path) -> None:
    write(clean_place, {".git/HEAD": "ref", ".gitignore": "*.log\n", "docs/a.log": "no", "docs/b.md": "yes"})
    assert cli("import", "docs", "--json").json["added"] == 1
    assert cli("import", "docs", "--no-ignore", "--json").json["added"] == 1
    assert not Ignore.above(clean_place).layers


def test_named_files_keep_their_name_and_prefixes_part_folders(cli, clean_place: Path) -> None:
    write(clean_place, {"one/README.md": "# One", "two/README.md": "# Two", ".env.md": "# Hidden but named"})
    told = cli("import", "one", "two", ".env.md", "--json").json
    assert told["added"] == 2
    assert "the same id" in told["skipped"][0]["reason"]
    assert cli("import", "two", "--prefix", "two/", "--json").json["added"] == 1
    assert cli("get", "two/README.md", "--json").json["title"] == "Two"
    assert cli("get", ".env.md").code == 0


def test_jsonl_with_broken_lines_keeps_the_good_ones(cli, clean_place: Path) -> None:
    lines = ['{"id": "a", "text": "one"}', "{broken", '{"id": "b"}', "[1]", '{"id": "c", "txt": "x"}', "", b"\xff"]
    good = '{"id": "d", "text": "two", "meta": {"n": 1}}'
    content = b"\n".join(line.encode() if isinstance(line, str) else line for line in [*lines, good])
    write(clean_place, {"data.jsonl": content})
    ran = cli("import", "data.jsonl")
    assert ran.code == 2
    assert ran.out.startswith("2 added · 0 updated · 0 unchanged · 0 skipped · 5 broken")
    told = ran.err.splitlines()
    assert [line.split(": ")[1] for line in told] == [f"data.jsonl line {number}" for number in (2, 3, 4, 5, 7)]
    assert "did you mean 'text'" in told[3]
    assert cli("get", "a").code == cli("get", "d").code == 0


def test_jsonl_and_text_through_a_pipe(cli) -> None:
    ran = cli("import", "-", "--json", piped='{"id": "a", "text": "one"}\n{"id": "b", "text": "two"}\n')
    assert ran.json["added"] == 2
    assert cli("import", "-", "--json", piped="just some text\nof two lines").json["added"] == 1
    assert cli("import", "-", "--json", piped="just some text\nof two lines").json["unchanged"] == 1
    assert cli("import", "-", piped=b"\0\1\2").code == 2


def test_ids_given_twice_are_counted(cli) -> None:
    told = cli("import", "-", "--json", piped='{"id": "a", "text": "one"}\n{"id": "a", "text": "two"}\n').json
    assert (told["added"], told["repeated"]) == (1, 1)
    assert cli("get", "a", "--json").json["text"] == "two"


def test_an_export_comes_back(cli, clean_place: Path) -> None:
    cli("add", "hello world", "--id", "a", "--meta", "n=1")
    cli("add", "second", "--id", "b", "--link", "a:part-of")
    cli("settings", "--set", "rrf_k=7", "--set", "fusion=rrf")
    streamed = cli("export", "-", "--vectors").out
    assert cli("import", "-", "--store", "copy.db", "--json", piped=streamed).json["added"] == 2
    assert cli("settings", "--store", "copy.db", "--json").json["rrf_k"] == 7
    ours, theirs = (cli("get", "b", "--store", name, "--json").json for name in ("memory.db", "copy.db"))
    assert {**ours, "updated": 0} == {**theirs, "updated": 0}
    assert cli("stats", "--store", "copy.db", "--json").json["embedded"] == 2


def test_no_wait_leaves_the_meaning_for_later(cli, clean_place: Path) -> None:
    lines = "\n".join(json.dumps({"id": str(number), "text": f"text {number}"}) for number in range(40))
    ran = cli("import", "-", "--no-wait", piped=lines)
    assert ran.code == 0
    done = cli("reembed", "--json").json
    assert done["pending"] == 0
    assert cli("stats", "--json").json["embedded"] == 40


def test_a_missing_path_stops_before_anything_is_made(cli, clean_place: Path) -> None:
    ran = cli("import", "nowhere")
    assert ran.code == 2
    assert "there is no file or folder 'nowhere'" in ran.err
    assert not (clean_place / "memory.db").exists()


def test_a_header_without_settings_is_one_and_a_wrong_one_is_named(cli, clean_place: Path) -> None:
    write(clean_place, {"data.jsonl": '{"trivet": 1}\n{"text": "x"}\n'})
    assert cli("import", "data.jsonl").code == 0
    for header, told in (
        ('{"trivet": 2}', "export format 2"),
        ('{"trivet": 1, "settings": 3}', "settings: int is not"),
    ):
        write(clean_place, {"data.jsonl": header + '\n{"text": "x"}\n'})
        ran = cli("import", "data.jsonl")
        assert ran.code == 2
        assert f"data.jsonl line 1: {told}" in ran.err


# --- a memory folder --------------------------------------------------------------------------------------------------

SECRET = "AKIA" + "Q2W3E4R5T6Y7U2I3"


@pytest.fixture
def memories(clean_place: Path) -> Path:
    return write(
        clean_place / "memories",
        {
            "doors/side.md": (
                "---\nid: side-door\ntitle: Side door\ntype: decision\ntags: [north, wet]\nimportance: 0.8\n"
                "created: 2024-05-06\nupdated: 2024-06-01T10:00:00Z\nvalid_from: 2024-05-01\nvalid_to: 2025-05-01\n"
                "author: Müller 🦡\nroom: 007\nlinks:\n  - {target: old, type: supersedes}\n  - other-store-id\n"
                "---\nLift the handle.\n\n---\n\n"
                "See [[Roof hatch|the hatch]], [[hatch]], [[doors/Front]], [[nowhere]].\n"
            ),
            "doors/old.md": "\ufeff---\r\ntitle: Old door\r\n---\r\nGone.\r\n",
            "doors/front.md": "# Front\nNo front matter; see [[side-door]] and `[[hatch]]`.\n",
            "hatch.md": "---\naliases: [Roof hatch]\n---\n# Hatch\nChecked in March.\n",
            "empty.md": "---\n---\nJust text.\n",
            "headless.md": "---\ntitle: Only a title\n---\n",
        },
    )


def test_front_matter_becomes_fields_and_the_rest_metadata(cli, memories: Path) -> None:
    assert cli("import", memories, "--json").json["added"] == 6
    found = cli("get", "side-door", "--json").json
    assert found["text"].startswith("Lift the handle.\n\n---\n\nSee ")
    assert (found["title"], found["kind"], found["importance"]) == ("Side door", "decision", 0.8)
    times = {name: found[name][:10] for name in ("created", "updated", "valid_from", "valid_to")}
    assert list(times.values()) == ["2024-05-06", "2024-06-01", "2024-05-01", "2025-05-01"]
    meta = found["meta"]
    assert meta.pop("bytes") > 0
    own = {"tags": ["north", "wet"], "author": "Müller 🦡", "room": "007"}
    assert meta == {**own, "path": "doors/side.md", "extension": "md"}
    going_out = {(link["target"], link["type"]) for link in found["links"] if link["source"] == "side-door"}
    assert going_out == {
        ("doors/old.md", "supersedes"),
        ("other-store-id", "see-also"),
        ("hatch.md", "see-also"),
        ("doors/front.md", "see-also"),
    }
    old = cli("get", "doors/old.md", "--json").json
    assert (old["title"], old["text"]) == ("Old door", "Gone.\r\n")
    front = cli("get", "doors/front.md", "--json").json
    assert [link["target"] for link in front["links"] if link["source"] == "doors/front.md"] == ["side-door"]
    assert cli("get", "empty.md", "--json").json["text"] == "Just text.\n"
    assert cli("get", "headless.md", "--json").json["title"] == "Only a title"


def test_a_memory_folder_again_changes_nothing_and_finds_new_targets(cli, memories: Path) -> None:
    cli("import", memories)
    told = cli("import", memories, "--json").json
    assert (told["added"], told["updated"], told["unchanged"]) == (0, 0, 6)
    write(memories, {"nowhere.md": "It is somewhere now."})
    told = cli("import", memories, "--json").json
    assert (told["added"], told["updated"]) == (1, 1), "who names it is read again"
    targets = {link["target"] for link in cli("get", "side-door", "--json").json["links"]}
    assert "nowhere.md" in targets


def test_broken_front_matter_is_named_by_file_and_line_and_the_others_go_in(cli, memories: Path) -> None:
    bad = {"colons.md": "---\ntitle: a\nwhen: b: c\n---\nx", "worth.md": "---\nimportance: 7\n---\nx"}
    bad |= {"when.md": "---\ncreated: yesterday\n---\nx", "links.md": "---\nlinks: 3\n---\nx"}
    write(memories, bad)
    ran = cli("import", memories)
    assert ran.code == 2
    assert ran.out.startswith("6 added")
    assert "4 broken" in ran.out
    told = sorted(ran.err.splitlines())
    assert told[0].startswith("trivet: colons.md line 3: front matter: mapping values are not allowed")
    assert told[1].startswith("trivet: links.md: links: 3 is not a target")
    assert told[2].startswith("trivet: when.md: created")
    assert told[3].startswith("trivet: worth.md: importance")
    assert cli("get", "colons.md").code == 1


def test_a_prefix_is_before_every_id_and_links_hold(cli, memories: Path) -> None:
    cli("import", memories, "--prefix", "m/")
    targets = {link["target"] for link in cli("get", "m/side-door", "--json").json["links"]}
    assert "m/hatch.md" in targets
    assert "hatch.md" not in targets


def test_secrets_are_taken_out_and_counted(cli, clean_place: Path) -> None:
    lines = [
        {"id": "a", "text": f"key {SECRET} and {SECRET}"},
        {"feedback": {"query": SECRET, "id": "a", "good": True}},
    ]
    write(
        clean_place,
        {
            "in/note.md": f"---\nkey: {SECRET}\n---\nThe key is {SECRET}.\n",
            "in.jsonl": "\n".join(json.dumps(line) for line in lines),
        },
    )
    cli("import", "in")  # without --redact
    ran = cli("import", "in", "in.jsonl", "--redact")
    assert "  redacted 5 × api key\n" in ran.out
    assert SECRET not in cli("export", "-").out
    assert cli("import", "in", "--redact", "--json").json["redacted"] == {"api key": 2}


def test_what_programs_wrote_is_counted_by_kind_and_can_be_included(cli, clean_place: Path) -> None:
    for name, text in {
        "a.py": "# Generated by make\n",
        "b.py": "# @generated\n",
        "uv.lock": "x",
        "c.py": "c = 1",
    }.items():
        (clean_place / "src").mkdir(exist_ok=True)
        (clean_place / "src" / name).write_text(text)
    ran = cli("import", "src")
    assert ran.out.startswith("1 added · 0 updated · 0 unchanged · 3 skipped")
    assert "  skipped 3 that programs wrote (--generated imports them): 2 generated, 1 lock file\n" in ran.out
    assert cli("import", "src", "--generated").out.startswith("3 added · 0 updated · 1 unchanged · 0 skipped")
