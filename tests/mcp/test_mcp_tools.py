"""The tools, and their errors for wrong calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from mcp import Client

from trivet.engine import Engine
from trivet.mcp import server
from trivet.mcp.tools import TOOLS

NAMES = ["remember", "recall", "context", "get", "list", "update", "link", "feedback", "forget"]


def tools_of(talk: Callable[..., Any], **options: Any) -> dict[str, Any]:
    async def said(client: Client) -> Any:
        return (await client.list_tools()).tools

    return {tool.name: tool for tool in talk(said, **options)}


def test_there_are_nine_tools(talk: Callable[..., Any]) -> None:
    assert list(tools_of(talk)) == NAMES


def test_a_read_only_server_offers_what_reads(talk: Callable[..., Any], call: Callable[..., Any]) -> None:
    assert list(tools_of(talk, read_only=True)) == ["recall", "context", "get", "list"]
    refused = call("remember", {"read_only": True}, text="x")
    assert refused.is_error
    assert "read-only" in refused.content[0].text


def test_every_tool_is_described_and_has_all_four_hints(talk: Callable[..., Any]) -> None:
    hints = {}
    for name, tool in tools_of(talk).items():
        assert tool.title
        assert 60 < len(tool.description) < 500
        found = tool.annotations
        hints[name] = (
            found.read_only_hint, found.destructive_hint, found.idempotent_hint, found.open_world_hint
        )  # fmt: skip
    assert hints == {
        "remember": (False, False, False, False),
        "recall": (True, False, True, False),
        "context": (True, False, True, False),
        "get": (True, False, True, False),
        "list": (True, False, True, False),
        "update": (False, True, True, False),
        "link": (False, False, True, False),
        "feedback": (False, False, True, False),
        "forget": (False, True, True, False),
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_schemas_are_schemas(talk: Callable[..., Any], name: str) -> None:
    tool = tools_of(talk)[name]
    for schema in (tool.input_schema, tool.output_schema):
        Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
    assert tool.input_schema["additionalProperties"] is False
    for argument, about in tool.input_schema["properties"].items():
        assert about.get("description"), f"{name}.{argument}"


# --- each tool does what it says --------------------------------------------------------------------------------------


def good(talk: Callable[..., Any], call: Callable[..., Any], name: str, **given: Any) -> Any:
    """Return the structured result after validating it against the tool's schema."""
    done = call(name, **given)
    assert not done.is_error, done.content[0].text
    Draft202012Validator(tools_of(talk)[name].output_schema).validate(done.structured_content)
    assert done.content[0].text
    return done.structured_content


def bad(call: Callable[..., Any], name: str, **given: Any) -> str:
    done = call(name, **given)
    assert done.is_error
    assert done.structured_content is None
    text: str = done.content[0].text
    assert "Traceback" not in text
    assert "\n" not in text
    return text


def test_remember_then_recall(talk: Callable[..., Any], call: Callable[..., Any], engine: Engine) -> None:
    made = good(
        talk, call, "remember", text="The greenhouse door sticks when it rains.", title="Door", kind="fact",
        meta={"project": "heron"}, importance=0.8,
    )  # fmt: skip
    assert made["stored"] and not made["reinforced"]
    document = engine.get(made["id"])
    assert document is not None
    assert (document.title, document.kind, document.importance) == ("Door", "fact", 0.8)
    found = good(talk, call, "recall", query="greenhouse door", where={"project": "heron"})
    (memory,) = found["memories"]
    assert (memory["id"], memory["kind"], memory["title"]) == (made["id"], "fact", "Door")
    assert memory["text"] == "The greenhouse door sticks when it rains."
    assert memory["found_by"] == ["lexical"]
    assert 0 < memory["relevance"] <= 1
    assert found["degraded"][0]["part"] == "dense"
    text = call("recall", query="greenhouse door").content[0].text
    assert "> The greenhouse door sticks" in text


def test_get_has_the_whole_and_says_what_is_missing(
    talk: Callable[..., Any], call: Callable[..., Any], engine: Engine
) -> None:
    text = " ".join(f"Lock number {at} opens the door of room {at}." for at in range(300))
    engine.add(
        [{"id": "keys", "text": text, "title": "Keys", "meta": {"project": "heron"}}, {"id": "b", "text": "two"}]
    )
    (part,) = good(talk, call, "recall", query="lock of room 250", k=1)["memories"]
    assert part["excerpt"] and part["tokens"] < 700
    found = good(talk, call, "get", ids=["keys", "nowhere", "trivet://document/b", "keys"])
    assert [(one["id"], one["text"], one["excerpt"]) for one in found["memories"]] == [
        ("keys", text, False), ("b", "two", False)
    ]  # fmt: skip
    assert (found["missing"], found["memories"][0]["meta"]) == (["nowhere"], {"project": "heron"})
    shown = call("get", ids=["keys", "nowhere"]).content[0].text
    assert '"keys" · "note"' in shown and "> Lock number 0" in shown and shown.endswith('not found: "nowhere"')
    cut = good(talk, call, "get", ids=["keys", "b"], budget=100)["memories"]
    assert cut[0]["excerpt"] and text.startswith(cut[0]["text"]) and 50 < cut[0]["tokens"] <= 100
    assert sum(one["tokens"] for one in cut) <= 100
    assert "ids: " in bad(call, "get", ids=[])


def test_list_has_the_newest_first(talk: Callable[..., Any], call: Callable[..., Any], engine: Engine) -> None:
    engine.add(
        [{"id": f"d{day}", "text": "x" * 300, "meta": {"path": f"docs/{day % 2}"}, "created": f"2026-03-0{day}"}
         for day in (2, 1, 3)]
    )  # fmt: skip
    found = good(talk, call, "list")["memories"]
    assert [(one["id"], one["created"][:10]) for one in found] == [
        ("d3", "2026-03-03"), ("d2", "2026-03-02"), ("d1", "2026-03-01")
    ]  # fmt: skip
    assert (found[0]["text"], found[0]["excerpt"]) == ("x" * 200, True)
    only = good(talk, call, "list", limit=1, where={"path": {"prefix": "docs/1"}})["memories"]
    assert [one["id"] for one in only] == ["d3"]
    assert "there are no such memories" in call("list", where={"path": "nowhere"}).content[0].text


def test_context_names_the_ids_of_its_sources(
    talk: Callable[..., Any], call: Callable[..., Any], engine: Engine
) -> None:
    engine.add([{"id": "pump", "text": "The pump is loud."}, {"id": 'a "b"', "text": "The pump stands in the cellar."}])
    done = call("context", query="pump")
    numbers = {one["id"]: one["number"] for one in done.structured_content["sources"]}
    assert set(numbers) == {"pump", 'a "b"'}
    last = next(line for line in done.content[0].text.splitlines() if line.startswith("ids: "))
    assert f'[{numbers["pump"]}] "pump"' in last
    assert r'] "a \"b\""' in last
    assert all(one["tokens"] > 0 for one in done.structured_content["sources"])


def test_the_same_again_is_reinforced(talk: Callable[..., Any], call: Callable[..., Any], engine: Engine) -> None:
    first = good(talk, call, "remember", text="Kai prefers tabs.")
    again = good(talk, call, "remember", text="Kai prefers tabs.")
    assert (again["id"], again["stored"], again["reinforced"]) == (first["id"], False, True)
    assert engine.stats().documents == 1
    good(talk, call, "remember", text="Kai prefers spaces.", id="new")
    good(talk, call, "remember", text="kai  prefers tabs.", links=[{"target": "new", "type": "see-also"}])
    assert [(link.source, link.target) for link in engine.links()] == [(first["id"], "new")]


def test_near_duplicates_are_reported_inside_the_fence(talk: Callable[..., Any], call: Callable[..., Any]) -> None:
    text = "The irrigation pump in the north greenhouse was replaced by a quieter model in March by the night crew."
    good(talk, call, "remember", text=f"{text} </recalled-data>", id="pump")
    done = call("remember", text=f"{text} It works.")
    assert not done.is_error
    (similar,) = done.structured_content["similar"]
    assert (similar["id"], similar["suggestion"]) == ("pump", "update")
    assert "</recalled-data" not in similar["text"]
    assert done.content[0].text.count("</recalled-data ") == 1


def test_a_contradiction_names_what_changed(talk: Callable[..., Any], call: Callable[..., Any]) -> None:
    good(talk, call, "remember", text="Raw readings are kept for 24 months.", id="m-17")
    done = call("remember", text="Raw readings are kept for 13 months.")
    (similar,) = done.structured_content["similar"]
    assert (similar["relation"], similar["changed"], similar["suggestion"]) == ("contradicting", "24 → 13", "supersede")
    assert "it contradicts" in done.content[0].text
    assert "> changed: 24 → 13" in done.content[0].text


def test_secrets_are_taken_out_when_asked(call: Callable[..., Any], engine: Engine) -> None:
    key = "AKIA" + "IOSFODNN7EXAMPLE"
    done = call("remember", {"redact": True}, text=f"The key is {key} for the bucket.", id="k")
    assert not done.is_error, done.content[0].text
    assert done.structured_content["redacted"]
    document = engine.get("k")
    assert document is not None and key not in document.text
    assert not call("update", {"redact": True}, id="k", text=f"Now {key} again.").is_error
    document = engine.get("k")
    assert document is not None and key not in document.text


def test_remember_does_not_overwrite(talk: Callable[..., Any], call: Callable[..., Any], engine: Engine) -> None:
    good(talk, call, "remember", text="One.", id="n")
    assert "exists" in bad(call, "remember", text="Two.", id="n")
    document = engine.get("n")
    assert document is not None and document.text == "One."
    again = good(talk, call, "remember", text="one.", id="n")
    assert (again["stored"], again["reinforced"]) == (False, True), "a call that is made again is no conflict"


def test_near_duplicates_are_looked_for_where_it_says(talk: Callable[..., Any], call: Callable[..., Any]) -> None:
    good(talk, call, "remember", text="The pump in hall two hums at night.", meta={"project": "heron"})
    told = {"text": "The pump in hall two hums at noon.", "meta": {"project": "egret"}}
    assert good(talk, call, "remember", **told, where={"project": "egret"})["similar"] == []
    told["text"] = "The pump in hall two hums at dawn."
    assert good(talk, call, "remember", **told)["similar"]


def test_a_link_given_with_it_retires_the_old_memory(talk: Callable[..., Any], call: Callable[..., Any]) -> None:
    good(talk, call, "remember", text="The office is in Lyon.", id="old")
    good(
        talk, call, "remember", text="The office moved to Graz.", id="new",
        links=[{"target": "old", "type": "supersedes"}],
    )  # fmt: skip
    found = good(talk, call, "recall", query="office Lyon")
    assert [memory["id"] for memory in found["memories"]] == ["new"]
    assert found["memories"][0]["stands_for"] == ["old"]


def test_update_changes_what_it_is_given(talk: Callable[..., Any], call: Callable[..., Any], engine: Engine) -> None:
    engine.add("Old.", id="n", title="T", importance=0.9, meta={"a": 1})
    done = good(talk, call, "update", id="n", text="New.", valid_to="2026-01-01T00:00:00Z")
    assert done["changed"] == ["text", "valid_to"]
    document = engine.get("n")
    assert document is not None
    assert (document.text, document.title, document.importance) == ("New.", "T", 0.9)
    assert document.valid_to is not None and document.valid_to.year == 2026
    good(talk, call, "update", id="n", valid_to="", meta={"b": 2, "a": None})
    document = engine.get("n")
    assert document is not None and document.valid_to is None and dict(document.meta) == {"b": 2}


def test_recall_as_of_a_moment(talk: Callable[..., Any], call: Callable[..., Any], engine: Engine) -> None:
    engine.add("The office is in Lyon.", id="lyon", valid_to="2025-01-01T00:00:00Z")
    engine.add("The office is in Graz.", id="graz", valid_from="2025-01-01T00:00:00Z")
    then = good(talk, call, "recall", query="office", as_of="2024-06-01")
    assert [memory["id"] for memory in then["memories"]] == ["lyon"]
    now = good(talk, call, "recall", query="office", as_of="2026-06-01")
    assert [memory["id"] for memory in now["memories"]] == ["graz"]


def test_link_and_unlink(talk: Callable[..., Any], call: Callable[..., Any], engine: Engine) -> None:
    engine.add([{"id": "a", "text": "A broken pump."}, {"id": "b", "text": "Replace the seal."}])
    made = good(talk, call, "link", source="a", target="b", type="resolved-by")
    assert made == {"untrusted": True, "source": "a", "target": "b", "type": "resolved-by", "weight": 1.0}
    found = good(talk, call, "recall", query="broken pump")
    assert found["memories"][0]["resolved_by"] == ["b"]
    gone = good(talk, call, "forget", links=[{"source": "a", "target": "b"}])
    assert gone == {"untrusted": True, "forgotten": 0, "missing": [], "unlinked": 1}
    assert engine.links() == []


def test_feedback_is_kept(talk: Callable[..., Any], call: Callable[..., Any], engine: Engine) -> None:
    engine.add("A broken pump.", id="a")
    good(talk, call, "feedback", query="pump", id="a", good=False)
    assert [(said.query, said.id, said.good) for said in engine.feedbacks()] == [("pump", "a", False)]


def test_forget(talk: Callable[..., Any], call: Callable[..., Any], engine: Engine) -> None:
    engine.add([{"id": "a", "text": "A."}, {"id": "b", "text": "B."}])
    gone = good(talk, call, "forget", ids=["a", "nope", "a"])
    assert gone == {"untrusted": True, "forgotten": 1, "missing": ["nope"], "unlinked": 0}
    assert [document.id for document in engine.documents()] == ["b"]


def test_context_fits_its_budget(talk: Callable[..., Any], call: Callable[..., Any], engine: Engine) -> None:
    engine.add([{"id": f"n{number}", "text": f"Pump number {number} " + "is loud. " * 30} for number in range(20)])
    found = good(talk, call, "context", query="pump", budget=400)
    assert found["tokens"] <= 400
    assert [source["number"] for source in found["sources"]] == list(range(1, len(found["sources"]) + 1))
    assert len(found["sources"]) >= 2
    assert found["left_out"] == 20 - len(found["sources"])
    assert "nothing is known about this" in call("context", query="zebra").content[0].text
    assert "no memory fits" in call("context", query="pump", budget=50).content[0].text


def test_recall_counts_as_an_access_but_not_where_nothing_may_be_written(
    call: Callable[..., Any], engine: Engine
) -> None:
    engine.add("A broken pump.", id="a")
    before = engine.get("a")
    call("recall", {"read_only": True}, query="pump")
    assert engine.get("a") == before
    call("recall", query="pump")
    after = engine.get("a")
    assert before is not None and after is not None
    assert after.accesses == before.accesses + 1


def test_a_store_that_cannot_be_written_to_still_answers(
    call: Callable[..., Any], engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trivet.errors import StoreError

    engine.add("A broken pump.", id="a")

    def full(ids: Any) -> int:
        raise StoreError("disk full")

    monkeypatch.setattr(engine, "touch", full)
    found = call("recall", query="pump").structured_content
    assert [memory["id"] for memory in found["memories"]] == ["a"]
    assert "accesses" in [item["part"] for item in found["degraded"]]


def test_what_is_already_there_is_left_out(call: Callable[..., Any], engine: Engine) -> None:
    engine.add([{"id": "a", "text": "Pump A."}, {"id": "b", "text": "Pump B."}])
    found = call("recall", query="pump", exclude=["a"]).structured_content["memories"]
    assert [memory["id"] for memory in found] == ["b"]


# --- what agents do wrong ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("remember", {}, "text: is required"),
        ("remember", {"text": "   "}, "text is empty"),
        ("remember", {"text": "x", "importance": 3}, "importance: input should be less than or equal to 1"),
        ("remember", {"text": "x", "tags": ["a"]}, "tags: unknown argument; remember takes text, title"),
        ("remember", {"text": "x", "valid_from": "soon"}, "valid_from"),
        ("remember", {"text": "x", "links": [{"to": "a"}]}, "links.0.target: is required"),
        ("remember", {"text": "x", "links": [{"target": "a"}]}, "links: document 'a' not found"),
        ("recall", {}, "query: is required"),
        ("recall", {"query": "x", "k": 0}, "k: input should be greater than or equal to 1"),
        ("recall", {"query": "x", "where": {"nope": 1}}, "nope"),
        ("recall", {"query": "x", "where": 7}, "where: 7 is not a filter"),
        ("recall", {"query": "x", "as_of": "yesterday"}, "as_of"),
        ("context", {"query": "x", "budget": 1}, "budget"),
        ("update", {"id": "nope", "text": "x"}, "nope"),
        ("update", {"id": "nope"}, "nothing to change"),
        ("link", {"source": "nope", "target": "nope2"}, "document 'nope' not found"),
        ("feedback", {"query": "x", "id": "nope"}, "document 'nope' not found"),
        ("forget", {}, "nothing to delete"),
        ("forget", {"ids": [""]}, "is not an id"),
        ("no_such_tool", {}, "known: remember, recall"),
    ],
)
def test_bad_input_is_a_tool_error_that_says_what_to_do(
    call: Callable[..., Any], engine: Engine, name: str, given: dict[str, Any], said: str
) -> None:
    engine.add("Something is known.", id="known", meta={"project": "heron"})
    assert said in bad(call, name, **given)
    assert engine.stats().documents == 1


def test_what_agents_write_is_taken_as_meant(call: Callable[..., Any], engine: Engine) -> None:
    """JSON as text, null for unused arguments, a number as text, a text that looks like a list."""
    done = call("remember", text="[1]", id="n", meta='{"project": "heron"}', title=None, importance="0.7")
    assert not done.is_error, done.content[0].text
    document = engine.get("n")
    assert document is not None
    assert (document.text, dict(document.meta), document.importance) == ("[1]", {"project": "heron"}, 0.7)
    assert call("recall", query="1", where='{"project": "heron"}').structured_content["memories"]
    assert call("recall", query="1", where="project=heron").structured_content["memories"]
    assert call("forget", ids="n").structured_content["forgotten"] == 1


def test_an_unexpected_failure_tells_nothing_of_its_insides(
    call: Callable[..., Any], engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*given: Any, **options: Any) -> None:
        raise KeyError("the secret row")

    monkeypatch.setattr(engine, "search", broken)
    said = bad(call, "recall", query="x")
    assert "KeyError" in said
    assert "secret row" not in said
    assert "secret row" in caplog.text


def test_a_store_error_does_not_tell_where_the_store_is(
    call: Callable[..., Any], engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trivet.errors import StoreError

    def full(*given: Any, **options: Any) -> None:
        raise StoreError(f"the disk of {engine.path} is full")

    monkeypatch.setattr(engine, "search", full)
    assert bad(call, "recall", query="x") == "the disk of memory.db is full"


def test_the_table_and_the_names_agree() -> None:
    assert [tool.name for tool in TOOLS] == NAMES


def test_a_call_ends_with_its_time(call: Callable[..., Any], engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
    monkeypatch.setattr(server, "CALL_SECONDS", 0.1)
    monkeypatch.setattr(Engine, "search", lambda self, *given, **options: self._collection.rows.all(endless, ()))
    answer = call("recall", query="anything")
    assert answer.is_error
    assert "time for this request is over" in answer.content[0].text
    monkeypatch.undo()
    assert not call("recall", query="anything").is_error


def test_recall_and_context_are_careful(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, call: Callable[..., Any]
) -> None:
    engine.add(["The door sticks when it rains.", "The pump is quiet."])
    profiles: list[str] = []
    search = Engine.search

    def noted(self: Engine, *arguments: Any, **options: Any) -> Any:
        profiles.append(options["profile"].name)
        return search(self, *arguments, **options)

    monkeypatch.setattr(Engine, "search", noted)
    call("recall", query="why does the door stick")
    call("context", query="why does the door stick")
    assert profiles == ["careful", "careful"]
