"""Front matter: what is read, what is refused with its line, and that the text below it stays as it was."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from trivet.errors import InputError
from trivet.files import markdown
from trivet.files.markdown import FrontMatterError


@pytest.mark.parametrize(
    ("text", "said", "body"),
    [
        ("---\ntitle: Door\n---\nbody", {"title": "Door"}, "body"),
        ("---\r\ntitle: Tür 🦡\r\n---\r\nbody\r\n", {"title": "Tür 🦡"}, "body\r\n"),
        ("--- \t\ntitle: x\n...\nbody", {"title": "x"}, "body"),
        ("---\n---\nbody", {}, "body"),
        ("---\n\n---\n", {}, ""),
        ("---\ntitle: x\n---", {"title": "x"}, ""),
        ("---\na: 1\n---\none\n---\ntwo", {"a": 1}, "one\n---\ntwo"),
        ("---\na: |\n  x\n  ---\n  y\n---\nbody", {"a": "x\n---\ny\n"}, "body"),
    ],
)
def test_what_stands_above_and_what_below(text: str, said: dict[str, Any], body: str) -> None:
    assert markdown.split(text) == markdown.Matter(body, said)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "---",
        "no fence",
        "\n---\na: 1\n---\n",
        "---\nnever closed\n",
        "---\nprose\n---\n",
        "---\n- a\n---\n",
        "----\n",
    ],
)
def test_what_is_text_stays_text(text: str) -> None:
    assert markdown.split(text) == markdown.Matter(text, {}, found=False)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2024-05-06", "2024-05-06"),
        ("2024-05-06 10:00:00", "2024-05-06 10:00:00"),
        ("12:30", "12:30"),
        ("007", "007"),
        ("0x1F", "0x1F"),
        ("no", "no"),
        ("on", "on"),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ("-12", -12),
        ("1.50", 1.5),
        ("1e3", 1000.0),
        ("1.2.3", "1.2.3"),
        (".inf", ".inf"),
        ("9" * 30, "9" * 30),
        ("[a, 'b: c', 3]", ["a", "b: c", 3]),
        ("{x: {y: 1}}", {"x": {"y": 1}}),
    ],
)
def test_values_are_what_was_written(written: str, meant: Any) -> None:
    assert markdown.split(f"---\nkey: {written}\n---\n").values == {"key": meant}


@pytest.mark.parametrize(
    ("written", "line", "reason"),
    [
        ("a: 1\nb: c: d", 3, "mapping values are not allowed"),
        ("a: 1\nb: 2\na: 3", 4, "'a' occurs twice"),
        ("a: &x [1]\nb: *x", 3, "anchors"),
        ("a: " + "[" * 5000 + "]" * 5000, 2, "nested more than 32 levels"),
        ("a: 1\n\tb: 2", 3, "character"),
        ("a: !!python/object/apply:os.system [x]", 2, "python/object"),
        ("a: !!int x", 2, "invalid literal"),
        ("? [a]\n: 1", 2, "a key is not text"),
        ("a: 1\nb: \x07", 3, "U+0007"),
        ("a: [1", 3, "expected"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(written: str, line: int, reason: str) -> None:
    with pytest.raises(FrontMatterError) as caught:
        markdown.split(f"---\n{written}\n---\nbody")
    assert reason in str(caught.value)
    assert caught.value.line == line


def test_the_laughing_lists_are_refused_before_they_grow() -> None:
    lines = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 60))]
    with pytest.raises(FrontMatterError, match="anchors"):
        markdown.split("\n".join(["---", *lines, "---", ""]))


def test_a_line_of_brackets_takes_no_time() -> None:
    assert not markdown.has_links("[[" + "a" * 1_000_000)
    assert not markdown.has_links("[[a" * 300_000)


def test_names_people_use_for_our_fields() -> None:
    said = {"title": 1984, "type": "decision", "date": "2024-01-01", "modified": "2024-01-02", "due": None, "x": 1}
    fields, meta, links = markdown.fields(said)
    assert fields == {"title": "1984", "kind": "decision", "created": "2024-01-01", "updated": "2024-01-02"}
    assert (meta, links) == ({"x": 1}, [])
    fields, meta, _ = markdown.fields({"kind": "note", "type": "b", "created": "2024", "date": "2023"})
    assert (fields, meta) == ({"kind": "note", "created": "2024"}, {"type": "b", "date": "2023"})


@pytest.mark.parametrize(
    ("given", "tags"),
    [
        ("a", ["a"]),
        ("a, b", ["a", "b"]),
        ("#a #b", ["a", "b"]),
        (["a", "#b", 3], ["a", "b", 3]),
        ("two words", ["two words"]),
    ],
)
def test_tags(given: Any, tags: list[Any]) -> None:
    assert markdown.fields({"tags": given})[1] == {"tags": tags}


def test_links_lead_to_what_is_known() -> None:
    known = {"door": "d.md", "sub/roof": "sub/roof.md"}
    text = "[[Door|shown]] [[door#part]] ![[sub/roof]] [[gone]]\n```\n[[sub/roof]]\n```\n`[[door]]` [[ ]] [[a\nb]]"
    given = [[["door"]], "an-id", "[[gone]]", {"target": "door", "type": "supersedes", "weight": 2}]
    found = markdown.links(text, given, lambda name: known.get(name.lower()))
    assert found == [
        {"target": "d.md"},
        {"target": "an-id"},
        {"target": "d.md", "type": "supersedes", "weight": 2},
        {"target": "sub/roof.md"},
    ]
    with pytest.raises(InputError, match="links: 3 is not a target"):
        markdown.links("", [3], known.get)


@given(some.text(), some.text(), some.sampled_from(["\n", "\r\n"]))
def test_any_text_is_read_or_refused_and_nothing_of_it_is_lost(above: str, below: str, end: str) -> None:
    text = f"---{end}{above}{end}---{end}{below}"
    try:
        found = markdown.split(text)
    except InputError as error:
        assert isinstance(error, FrontMatterError)
        assert 2 <= error.line <= text.count("\n") + 3
        return
    assert text.endswith(found.text)
    assert found.found or found.text == text


@given(
    some.dictionaries(
        some.text(some.characters(codec="utf-8", categories=["L", "N", "P", "Z"]), min_size=1),
        some.one_of(some.text(some.characters(codec="utf-8", exclude_characters="\x7f\x85", exclude_categories=["C"])),
                    some.integers(-(10**17), 10**17), some.booleans()),
        min_size=1,
    )
)  # fmt: skip
def test_what_json_can_say_comes_back(said: dict[str, Any]) -> None:
    """JSON is YAML, so every JSON value comes back unchanged."""
    plain = json.JSONEncoder(ensure_ascii=False).encode
    text = "---\n" + "\n".join(f"{plain(key)}: {plain(value)}" for key, value in said.items()) + "\n---\nbody"
    assert markdown.split(text) == markdown.Matter("body", said)


def test_the_page_names_every_field() -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/import-markdown.md").read_text()
    for field, names in markdown.FIELDS.items():
        (row,) = [line for line in page.splitlines() if re.match(rf"\| [^|]*`{field}`[^|]* \|", line)]
        assert all(f"`{name}`" in row.split("|")[2] for name in names), field


def test_the_pages_example_is_read_as_it_says() -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/import-markdown.md").read_text()
    (text,) = re.findall(r"^```markdown\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    found = markdown.document(text, {"roof hatch": "hatch.md", "old-door": "old.md"}.get)
    assert found["text"] == "Lift the handle first. See [[roof hatch]].\n"
    assert (found["id"], found["title"], found["kind"]) == ("side-door", "The side door", "decision")
    assert found["meta"] == {"tags": ["north", "wet weather"], "author": "Sam"}
    assert found["links"] == [{"target": "old.md", "type": "supersedes"}, {"target": "hatch.md"}]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# One #\n", "One"),
        ("```\n# code\n```\n## Two", "Two"),
        ("#hashtag only", ""),
    ],
)
def test_headings(text: str, title: str) -> None:
    assert markdown.heading(text) == title
