"""``trivet import`` of files that are not plain text: what a hit says, and what is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from made_files import docx, epub, notebook, parquet, pdf, pptx

LONG = "The pump is quiet and needs no oil. " * 90

FILES = {
    "manual.pdf": pdf("Introduction", "The zephyr valve closes."),
    "guide.docx": docx(("Heading 1", "Setup"), ("", LONG), ("Heading 2", "Limits"), ("", f"A quokka lift. {LONG}")),
    "talk.pptx": pptx(("Plan", "Buy", ""), ("Costs", "The narwhal budget", "")),
    "book.epub": epub([f"<h1>Spring</h1><p>{LONG}</p>", f"<h1>Summer</h1><p>The ocelot path. {LONG}</p>"]),
    "page.html": b"<html><head><title>News</title></head><body><p>A walrus visited the greenhouse.</p></body></html>",
    "mail.eml": b"Subject: Keys\nFrom: ada@example.org\n\nThe axolotl key is lost.\n",
    "box.mbox": b"From a\nSubject: One\nMessage-ID: <one@x>\n\nThe wombat call.\n",
    "work.ipynb": notebook(("markdown", f"# Load\n{LONG}"), ("markdown", f"## Clean\nThe ibis rows. {LONG}")),
    "stock.csv": b"id,name,place\nk7,Hose,the lynx shelf\nk8,Seal,north\n",
    "more.tsv": b"name\tplace\nClamp\tthe puffin drawer\n",
    "rows.parquet": parquet({"name": ["Bolt"], "place": ["the gecko box"]}),
    "größe.txt": "Die Tür am Dachs klemmt für größere Kisten.".encode("cp1252"),
}
FOUND = {
    "zephyr": ("manual.pdf", "page 2"),
    "quokka": ("guide.docx", "Setup > Limits"),
    "narwhal": ("talk.pptx", "slide 2, Costs"),
    "ocelot": ("book.epub", "Summer"),
    "walrus": ("page.html", ""),
    "axolotl": ("mail.eml", ""),
    "wombat": ("box.mbox#one@x", ""),
    "ibis": ("work.ipynb", "Load > Clean"),
    "lynx": ("stock.csv#k7", "row 1"),
    "puffin": ("more.tsv#1", "row 1"),
    "gecko": ("rows.parquet#1", "row 1"),
    "Dachs": ("größe.txt", ""),
}


@pytest.fixture
def folder(clean_place: Path) -> Path:
    path = clean_place / "files"
    path.mkdir()
    for name, content in FILES.items():
        (path / name).write_bytes(content)
    return path


def test_a_hit_says_where_it_is(cli, folder: Path) -> None:
    ran = cli("import", folder)
    assert ran.code == 0, ran.err
    assert ran.out.startswith("13 added")
    assert "noted 1: read as cp1252: größe.txt" in ran.out
    for word, (id, location) in FOUND.items():
        hit = cli("search", word, "--json").json["hits"][0]
        assert (hit["id"], hit["location"]) == (id, location), word
    assert "guide.docx  Setup > Limits" in cli("search", "quokka").out
    shown = [cli("search", word).out for word in FOUND]
    assert not any("\ufffd" in out for out in shown), "the end of a page is no odd character"


def test_it_is_repeated_without_a_change_and_updates_what_changed(cli, folder: Path) -> None:
    cli("import", folder)
    (folder / "manual.pdf").write_bytes(pdf("Introduction", "The sirocco valve."))
    (folder / "stock.csv").write_bytes(FILES["stock.csv"] + b"k9,Nut,the heron tin\n")
    told = cli("import", folder, "--json").json
    assert (told["added"], told["updated"], told["unchanged"]) == (1, 1, 12)


def test_a_row_can_be_filtered_by_its_cells(cli, folder: Path) -> None:
    cli("import", folder)
    hits = cli("search", "Hose Seal", "--where", "place=north", "--json").json["hits"]
    assert [hit["id"] for hit in hits] == ["stock.csv#k8"]


REFUSED = {
    "locked.pdf": (pdf("x", password="door"), "encrypted; save it without a password"),
    "scan.pdf": (pdf("", ""), "a scan: no text in 2 pages; recognise its text first, as with ocrmypdf"),
    "photo.png": (b"\x89PNG\r\n\x1a\n\0", "binary (PNG)"),
    "renamed.txt": (pdf("x"), "binary (PDF)"),
    "half.docx": (docx(("", "x"))[:900], "broken: file is not a zip file"),
    "old.docx": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0", "not the ZIP container that its suffix says, but an old or"),
    "tool": (b"words\0", "binary"),
}


def test_what_cannot_be_read_is_skipped_in_a_folder_and_an_error_where_it_was_named(cli, clean_place: Path) -> None:
    folder = clean_place / "bad"
    folder.mkdir()
    for name, (content, _) in REFUSED.items():
        (folder / name).write_bytes(content)
    ran = cli("import", folder, "--json")
    assert ran.code == 0
    skipped = {item["path"]: item["reason"] for item in ran.json["skipped"]}
    assert ran.json["added"] == 0
    for name, (_, reason) in REFUSED.items():
        assert skipped[name].startswith(reason)
        named = cli("import", folder / name)
        assert named.code == 2
        assert f"trivet: {name}: {reason}" in named.err
    assert cli("stats", "--json").json["documents"] == 0


def test_a_binary_in_a_pipe_is_refused(cli) -> None:
    ran = cli("import", "-", piped=pdf("x"))
    assert ran.code == 2
    assert "stdin is neither JSONL nor a text: binary (PDF)" in ran.err


def test_a_text_in_an_old_encoding_in_a_pipe_is_noted(cli) -> None:
    ran = cli("import", "-", piped="Die Tür klemmt für größere Kisten.".encode("cp1252"))
    assert ran.out.startswith("1 added")
    assert "noted 1: read as cp1252: stdin" in ran.out
