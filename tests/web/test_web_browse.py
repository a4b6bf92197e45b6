"""The Browse view: list, filter, edit, delete, restore, follow links, add files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from boatyard import notes
from playwright.sync_api import Locator, Page, Route, expect

from made_files import pdf

Look = Callable[..., Page]


def ids(page: Page) -> set[str | None]:
    return {row.get_attribute("data-id") for row in page.locator(".documents li").all()}


def test_facets_and_the_timeline_are_filters(look: Look, site: Any) -> None:
    page = look(f"{site.url}/?view=browse")
    expect(page.locator(".documents li")).to_have_count(len(notes()))
    yard = {note["id"] for note in notes() if note["meta"]["place"] == "yard"}
    page.get_by_role("button", name=f"yard {len(yard)}").click()
    expect(page.locator(".documents li")).to_have_count(len(yard))
    assert ids(page) == yard
    assert "where=place%3Dyard" in page.url
    expect(page.get_by_role("button", name=f"yard {len(yard)}")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="2025-03: 1 document").click()
    expect(page.locator(".documents li")).to_have_count(1)
    march = {note["id"] for note in notes() if note["id"] in yard and note["created"].startswith("2025-03")}
    assert ids(page) == march
    expect(page.locator(".chip")).to_have_count(3)
    page.go_back()
    expect(page.locator(".documents li")).to_have_count(len(yard))


def test_superseded_and_copies_are_shown(look: Look, site: Any) -> None:
    page = look(f"{site.url}/?view=browse")
    expect(page.locator("li[data-id=winch] .replaced")).to_have_text("superseded")
    expect(page.locator("li[data-id=key] .replaced")).to_have_text("duplicate")
    page.get_by_role("button", name="duplicates 2").click()
    expect(page.locator(".documents li")).to_have_count(2)
    assert ids(page) == {"key", "key-copy"}
    page.locator(".open").first.click()
    expect(page.locator(".redundancy")).to_contain_text("Duplicate of key-copy")


def test_with_nothing_to_review_no_count_is_shown(look: Look, bare: Any) -> None:
    with bare.http as client:
        for name in ("oar", "sail"):
            client.put(f"{bare.home}/documents/{name}", json={"text": f"The {name} is in the shed."}).raise_for_status()
    page = look(bare.page("browse"))
    expect(page.locator(".documents li")).to_have_count(2)
    expect(page.locator(".sidebar")).to_contain_text("note")
    assert page.locator(".sidebar").inner_text().startswith("kind")


def test_links_are_a_graph_one_can_walk(look: Look, site: Any) -> None:
    page = look(f"{site.url}/?view=browse&id=mast")
    expect(page.locator("#drawer h2")).to_have_text("Mast step")
    page.get_by_role("link", name="see-also → Varnish").click()
    expect(page.locator("#drawer h2")).to_have_text("Varnish")
    assert "id=varnish" in page.url
    expect(page.get_by_role("link", name="← see-also Mast step")).to_be_visible()
    page.get_by_label("Path to this document").get_by_role("button", name="mast").click()
    expect(page.locator("#drawer h2")).to_have_text("Mast step")


def test_an_edited_document_is_found_by_its_new_words(look: Look, yard: Any) -> None:
    page = look(yard.page("browse", id="anchor"))
    page.get_by_label("Text", exact=True).fill("Sixty metres of galvanised hawser, coiled by the capstan.")
    page.get_by_role("slider", name="Importance").evaluate("(slider) => { slider.value = 0.9; }")
    page.get_by_label("Metadata, as JSON").fill('{"place": "quay", "crew": 2}')
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#notices")).to_contain_text("Saved anchor")
    found = yard.search("galvanised hawser capstan")["hits"][0]
    assert found["id"] == "anchor"
    assert found["document"]["importance"] == 0.9
    assert found["document"]["meta"] == {"place": "quay", "crew": 2}, "a key that was taken out is gone"
    assert found["document"]["created"].startswith("2025-10"), "and what was not touched is as it was"
    page.get_by_label("Metadata, as JSON").fill("{")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#drawer").get_by_role("alert")).to_contain_text("metadata: not JSON")


def test_a_deleted_document_comes_back_whole(look: Look, yard: Any) -> None:
    before = yard.get(f"{yard.home}/documents/mast")
    linked = yard.get(f"{yard.home}/documents/winch")["links"]
    for id, whole in (("mast", before), ("winch", yard.get(f"{yard.home}/documents/winch"))):
        page = look(yard.page("browse", id=id))
        page.get_by_role("button", name="Delete").click()
        expect(page.locator("#notices")).to_contain_text(f"Deleted {id}")
        with yard.http as client:
            assert client.get(f"{yard.home}/documents/{id}").status_code == 404
        page.get_by_role("button", name="Undo").click()
        expect(page.locator("#notices")).to_contain_text(f"{id} was restored")
        assert yard.get(f"{yard.home}/documents/{id}") == whole
    assert linked == [{"source": "winch-new", "target": "winch", "type": "supersedes", "weight": 1.0}]


def test_a_link_is_made(look: Look, yard: Any) -> None:
    page = look(yard.page("browse", id="tide"))
    page.get_by_label("Link to").fill("crane")
    page.get_by_role("button", name="Link", exact=True).click()
    expect(page.get_by_role("link", name="see-also → Crane")).to_be_visible()
    assert {link["target"] for link in yard.get(f"{yard.home}/documents/tide")["links"]} == {"paint", "crane"}


def imported(page: Page, name: str) -> Locator:
    """Return the line of a file in the list of imported files."""
    return page.locator("#imports > ul > li", has=page.get_by_text(name, exact=True))


def drop(page: Page, files: dict[str, str], event: str = "drop") -> None:
    """Drag files over the header of the page, and let them go there."""
    page.evaluate(
        """([files, kinds]) => {
          const moved = new DataTransfer();
          for (const [name, text] of Object.entries(files)) moved.items.add(new File([text], name));
          for (const kind of kinds)
            document.querySelector("header")
              .dispatchEvent(new DragEvent(kind, { dataTransfer: moved, bubbles: true, cancelable: true }));
        }""",
        [files, ["dragover"] if event == "dragover" else ["dragover", event]],
    )


def test_files_are_dropped_on_any_view_and_each_shows_its_progress(look: Look, bare: Any) -> None:
    page = look(bare.page(q="lightship"), bypass_csp=True)
    expect(page.get_by_text("No hits")).to_be_visible()
    drop(page, {"a.md": "x"}, event="dragover")
    expect(page.locator("body")).to_have_class("dropping")
    held: list[Route] = []
    page.route("**/import?*", lambda route: held.append(route))
    drop(page, {"a.md": "# Lights\n\nThe lightship is red.", "b.png": "\x89PNG\r\n\x1a\n\0"})
    expect(page.locator("body")).not_to_have_class("dropping")
    expect(imported(page, "a.md")).to_contain_text("being read")
    expect(imported(page, "a.md").get_by_role("progressbar")).to_be_visible()
    expect(imported(page, "b.png")).to_contain_text("waiting")
    held[0].continue_()
    expect(imported(page, "a.md")).to_have_attribute("data-state", "done")
    page.unroute("**/import?*")  # the second file goes on
    expect(imported(page, "b.png")).to_contain_text("refused: binary")
    expect(page.locator(".hit")).to_have_attribute("data-id", "a.md")  # the search is run again
    page.get_by_label("Close the list of files").click()
    expect(page.locator("#imports")).to_be_hidden()


@pytest.mark.parametrize("how", ["chosen", "dropped"])
def test_files_become_documents_with_progress(look: Look, bare: Any, tmp_path: Path, how: str) -> None:
    page = look(bare.page("browse"))
    expect(page.get_by_text("This collection is empty")).to_be_visible()
    lines = [json.dumps({"id": f"n{at}", "text": f"buoy number {at}"}) for at in range(450)]
    many = tmp_path / "buoys.jsonl"
    many.write_text("\n".join([*lines, "not json", json.dumps({"id": "last", "text": "the lightship"})]) + "\n")
    one = tmp_path / "harbour.md"
    one.write_text("---\npilot: Ada\n---\n# Harbour rules\n\nNo wake inside the mole.\n")
    if how == "chosen":
        page.locator("input[type=file]").set_input_files([many, one])
    else:
        drop(page, {path.name: path.read_text() for path in (many, one)})
    expect(page.locator("#imports")).to_contain_text("2 of 2 files: 452 documents added, 1 broken")
    expect(imported(page, "buoys.jsonl")).to_contain_text("451 added")
    expect(imported(page, "buoys.jsonl").locator(".wrong")).to_contain_text("line 451: ")
    expect(imported(page, "harbour.md")).to_contain_text("1 added")
    assert bare.get(f"{bare.home}/stats")["documents"] == 452
    rules = bare.get(f"{bare.home}/documents/harbour.md")
    assert rules["title"] == "Harbour rules"
    assert rules["meta"]["pilot"] == "Ada", "front matter becomes fields"
    expect(page.locator(".documents li")).to_have_count(50)
    page.get_by_role("button", name="More").click()
    expect(page.locator(".documents li")).to_have_count(100)


def test_a_dropped_pdf_is_read_or_refused_by_name(look: Look, bare: Any, tmp_path: Path) -> None:
    files = {
        "manual.pdf": pdf("Introduction", "The zephyr valve closes."),
        "locked.pdf": pdf("x", password="door"),
        "photo.png": b"\x89PNG\r\n\x1a\n\0",
        "alt.txt": "Die Tür klemmt, größere Kisten.".encode("cp1252"),
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    page = look(bare.page("browse"))
    page.locator("input[type=file]").set_input_files([tmp_path / name for name in files])
    expect(page.locator("#imports")).to_contain_text("4 of 4 files: 2 documents added, 2 files refused")
    expect(imported(page, "locked.pdf")).to_contain_text("refused: encrypted; save it without a password")
    expect(imported(page, "photo.png")).to_contain_text("refused: binary (PNG)")
    expect(imported(page, "alt.txt").locator(".wrong")).to_contain_text("read as cp1252")
    assert bare.get(f"{bare.home}/stats")["documents"] == 2
    page.goto(bare.page(q="zephyr"))
    expect(page.locator(".hit .place").first).to_have_text("page 2")


def test_an_export_of_many_pieces_comes_in_whole(look: Look, yard: Any, bare: Any, tmp_path: Path) -> None:
    """An export has a header and is sent in pieces; each piece is read with the header."""
    with yard.http as client:
        documents = [{"id": f"long-{at}", "text": f"keel {at} " + "plank " * 700} for at in range(300)]
        client.post(f"{yard.home}/documents", json={"documents": documents}).raise_for_status()
        exported = client.get(f"{yard.home}/export").text
    file = tmp_path / "export.jsonl"
    file.write_text(exported + "half a li\n")
    assert file.stat().st_size > 2 * 512 * 1024
    page = look(bare.page("browse"))
    page.locator("input[type=file]").set_input_files(file)
    expect(page.locator("#imports")).to_contain_text(f"{300 + len(notes())} documents added, 1 broken")
    expect(imported(page, "export.jsonl").locator(".wrong")).to_contain_text(f"line {302 + len(notes())}: ")
    assert bare.get(f"{bare.home}/stats")["documents"] == 300 + len(notes())
    assert bare.get(f"{bare.home}/documents/mast")["links"] == yard.get(f"{yard.home}/documents/mast")["links"]


def test_collections_are_there_to_choose_and_to_make(look: Look, start: Callable[..., Any]) -> None:
    site = start()
    page = look(f"{site.url}/?view=browse")
    page.get_by_label("Name of a new collection").fill("dinghies")
    page.get_by_label("Name of a new collection").press("Enter")
    expect(page.get_by_text("This collection is empty")).to_be_visible()
    assert site.get("/v1/collections")["collections"] == ["default", "dinghies"]
    page.get_by_label("Collection", exact=True).select_option("default")
    expect(page.locator(".documents li")).to_have_count(len(notes()))
    assert "c=default" in page.url
