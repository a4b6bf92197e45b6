"""Documents over HTTP: add, read, change, list, import, export and delete."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

HOME = "/v1/collections/default"
DOCUMENTS = f"{HOME}/documents"


def test_one_is_added_and_read(client: TestClient) -> None:
    made = client.post(DOCUMENTS, json={"id": "door", "text": "The side door sticks.", "meta": {"floor": 1}})
    assert made.status_code == 201
    assert made.json()["ids"] == ["door"]
    found = client.get(f"{DOCUMENTS}/door").json()
    assert found["text"] == "The side door sticks."
    assert found["meta"] == {"floor": 1}
    assert found["links"] == []


def test_many_are_added_as_texts_and_as_objects(client: TestClient) -> None:
    made = client.post(
        DOCUMENTS, json={"documents": ["one", {"id": "b", "text": "two", "links": ["c"]}, {"text": "3"}]}
    )
    assert made.json()["added"] == 3
    assert made.json()["ids"][1] == "b"


def test_all_or_none(client: TestClient) -> None:
    answer = client.post(DOCUMENTS, json={"documents": [{"id": "a", "text": "good"}, {"id": "b", "text": " "}]})
    assert answer.status_code == 422
    assert "text" in answer.json()["errors"][0]["field"]
    assert client.get(f"{DOCUMENTS}/a").status_code == 404


def test_an_id_may_hold_slashes_and_any_script(client: TestClient) -> None:
    for id in ("guide/setup.md", "a b", "ключ", "100%", "q?x=1#y"):
        assert client.put(f"{DOCUMENTS}/{_quoted(id)}", json={"text": f"of {id}"}).status_code == 201, id
        assert client.get(f"{DOCUMENTS}/{_quoted(id)}").json()["id"] == id


def _quoted(id: str) -> str:
    from urllib.parse import quote

    return quote(id, safe="/")


def test_upsert_tells_new_from_old(client: TestClient) -> None:
    assert client.put(f"{DOCUMENTS}/x", json={"text": "one"}).status_code == 201
    again = client.put(f"{DOCUMENTS}/x", json={"text": "two"})
    assert again.status_code == 200
    assert again.json()["updated"] == 1
    other = client.put(f"{DOCUMENTS}/x", json={"id": "y", "text": "two"})
    assert other.status_code == 422
    assert other.json()["errors"][0]["field"] == "id"


def test_patch_changes_only_what_is_named(client: TestClient) -> None:
    client.put(f"{DOCUMENTS}/x", json={"text": "one", "title": "kept", "importance": 0.2})
    changed = client.patch(f"{DOCUMENTS}/x", json={"importance": 0.9})
    assert changed.json()["importance"] == 0.9
    assert (changed.json()["title"], changed.json()["text"]) == ("kept", "one")
    assert client.patch(f"{DOCUMENTS}/none", json={"importance": 0.9}).status_code == 404
    assert client.patch(f"{DOCUMENTS}/x", json={"importance": 7}).status_code == 422


def test_delete_by_id_ids_and_filter(client: TestClient) -> None:
    for id in "abcd":
        client.put(f"{DOCUMENTS}/{id}", json={"text": id, "kind": "note" if id < "c" else "plan"})
    assert client.delete(f"{DOCUMENTS}/a").json() == {"deleted": 1}
    assert client.delete(f"{DOCUMENTS}/a").status_code == 404
    assert client.delete(DOCUMENTS, params={"where": "kind=plan"}).json() == {"deleted": 2}
    assert client.delete(DOCUMENTS, params={"id": ["b", "zz"]}).json() == {"deleted": 1}
    assert client.delete(DOCUMENTS).status_code == 422, "nothing named is not everything"


def test_forget_takes_the_feedback_too(client: TestClient) -> None:
    client.post(DOCUMENTS, json={"documents": [{"id": id, "text": "a door", "meta": {"n": 1}} for id in "abc"]})
    for id in "abc":
        client.post(f"{HOME}/feedback", json={"query": "door", "id": id, "good": True})

    def judged() -> set[str]:
        return {item["id"] for item in client.get(f"{HOME}/feedback").json()["feedback"]}

    assert client.delete(f"{DOCUMENTS}/a").json() == {"deleted": 1} and judged() == {"a", "b", "c"}
    assert client.delete(f"{DOCUMENTS}/b?forget=true").json() == {"deleted": 1} and judged() == {"a", "c"}
    assert client.delete(DOCUMENTS, params={"where": "n=1", "forget": "true"}).json() == {"deleted": 1}
    assert judged() == {"a"}


def test_a_document_expires(client: TestClient) -> None:
    client.post(DOCUMENTS, json={"id": "a", "text": "a door", "expires": "2100-01-01T00:00:00Z"})
    assert client.get(f"{DOCUMENTS}/a").json()["expires"].startswith("2100-01-01")
    assert client.patch(f"{DOCUMENTS}/a", json={"expires": None}).json()["expires"] is None
    client.post(DOCUMENTS, json={"id": "b", "text": "a door", "expires": 1})
    assert client.get(f"{DOCUMENTS}/b").status_code == 404


def test_the_list_has_every_document_once(client: TestClient) -> None:
    client.post(DOCUMENTS, json={"documents": [{"id": f"d{at}", "text": f"text {at}"} for at in range(25)]})
    seen: list[str] = []
    after: str | None = None
    while True:
        page = client.get(DOCUMENTS, params={"limit": 10, **({"after": after} if after else {})}).json()
        seen += [item["id"] for item in page["documents"]]
        after = page["next"]
        if after is None:
            break
    assert seen == [f"d{at}" for at in range(25)]
    assert client.get(DOCUMENTS, params={"after": "no cursor"}).status_code == 422


def test_the_list_can_be_filtered(client: TestClient) -> None:
    client.post(DOCUMENTS, json={"documents": [{"id": f"d{at}", "text": "x", "meta": {"n": at}} for at in range(5)]})
    found = client.get(DOCUMENTS, params={"where": ["n>=1", '{"n": {"lt": 3}}']}).json()["documents"]
    assert [item["id"] for item in found] == ["d1", "d2"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"text": 7}, "text"),
        ({"text": "x", "importance": 2}, "importance"),
        ({"text": "x", "importance": "0.5"}, "importance"),
        ({"text": "x", "titel": "y"}, "titel"),
        ({"text": "x", "valid_from": "soon"}, "valid_from"),
        ({"documents": [{"text": "x"}, {"text": 1}]}, "documents.1.text"),
        ({"documents": [{"text": "x", "meta": []}]}, "documents.0.meta"),
        ([], "body"),
    ],
)
def test_what_is_wrong_is_named(client: TestClient, body: Any, field: str) -> None:
    answer = client.post(DOCUMENTS, json=body)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert field in [error["field"] for error in answer.json()["errors"]]


def test_a_body_that_is_no_json(client: TestClient) -> None:
    broken = client.post(DOCUMENTS, content=b'{"text": ', headers={"content-type": "application/json"})
    assert broken.status_code == 400
    form = client.post(DOCUMENTS, content=b"text=x", headers={"content-type": "application/x-www-form-urlencoded"})
    assert form.status_code == 415
    deep = client.post(DOCUMENTS, content=b"[" * 200_000, headers={"content-type": "application/json"})
    assert deep.status_code in (400, 422)


def test_lone_surrogates_do_not_break_an_answer(client: TestClient) -> None:
    raw = b'{"id": "s", "text": "half \\ud83d of a pair"}'
    answer = client.post(DOCUMENTS, content=raw, headers={"content-type": "application/json"})
    assert answer.status_code in (201, 422)
    assert client.post(f"{HOME}/search", content=b'{"query": "\\ud83d"}', headers={"content-type": "application/json"})


# --- import and export ------------------------------------------------------------------------------------------------


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_an_import_tells_its_progress_and_its_broken_lines(client: TestClient) -> None:
    body = [json.dumps({"id": f"d{at}", "text": f"text number {at}"}) for at in range(450)]
    body[7] = '{"broken'
    body[9] = '{"id": "no text"}'
    told = lines(client.post(f"{HOME}/import", content="\n".join(body)).text)
    assert [line["read"] for line in told[:-1]] == [200, 400, 449]
    last = told[-1]
    assert (last["done"], last["added"], last["broken"]) == (True, 448, 2)
    assert [item["line"] for item in last["problems"]] == ["body line 8", "body line 10"]
    assert client.get(f"{HOME}/stats").json()["documents"] == 448


def test_an_export_goes_into_another_collection(client: TestClient) -> None:
    client.post(DOCUMENTS, json={"documents": [{"id": f"d{at}", "text": f"number {at}"} for at in range(450)]})
    client.post(f"{HOME}/feedback", json={"query": "number 3", "id": "d3"})
    client.patch(f"{HOME}/settings", json={"k": 3})
    whole = client.get(f"{HOME}/export")
    assert whole.headers["content-type"] == "application/x-ndjson"
    assert len(whole.text.splitlines()) == 452
    client.put("/v1/collections/copy")
    assert lines(client.post("/v1/collections/copy/import", content=whole.content).text)[-1]["added"] == 450
    assert client.get("/v1/collections/copy/export").text.splitlines()[1:] == whole.text.splitlines()[1:]
    assert client.get("/v1/collections/copy/settings").json()["k"] == 3


def test_an_import_of_nothing_and_without_a_last_newline(client: TestClient) -> None:
    assert lines(client.post(f"{HOME}/import", content=b"").text)[-1]["read"] == 0
    assert lines(client.post(f"{HOME}/import", content=b'\n\n{"text": "one"}').text)[-1]["added"] == 1


def test_an_import_into_what_is_not_there(client: TestClient) -> None:
    assert client.post("/v1/collections/none/import", content=b"{}").status_code == 404


def test_a_line_without_end_is_refused(service: Any) -> None:
    client = service(max_body_bytes=10_000)
    answer = client.post(f"{HOME}/import", content=b'{"text": "one"}\n{"text": "' + b"x" * 50_000)
    last = lines(answer.text)[-1]
    assert last["done"] is False
    assert "10,000 bytes" in last["error"]


# --- links and feedback -----------------------------------------------------------------------------------------------


def test_links(client: TestClient) -> None:
    client.post(DOCUMENTS, json={"documents": [{"id": "a", "text": "old"}, {"id": "b", "text": "new"}]})
    made = client.post(f"{HOME}/links", json={"source": "b", "target": "a", "type": "part-of"})
    assert made.status_code == 201
    assert client.get(f"{HOME}/links", params={"id": "a"}).json()["links"] == [made.json()]
    assert client.post(f"{HOME}/links", json={"source": "b", "target": "zz"}).status_code == 404
    assert client.get(f"{HOME}/links", params={"id": "zz"}).status_code == 404
    assert client.delete(f"{HOME}/links", params={"source": "b", "target": "a"}).json() == {"removed": 1}
    assert client.delete(f"{HOME}/links", params={"source": "b", "target": "a"}).status_code == 404


def test_feedback(client: TestClient) -> None:
    client.put(f"{DOCUMENTS}/a", json={"text": "answer"})
    assert client.post(f"{HOME}/feedback", json={"query": "q", "id": "a", "good": False}).status_code == 201
    (given,) = client.get(f"{HOME}/feedback").json()["feedback"]
    assert (given["query"], given["id"], given["good"]) == ("q", "a", False)
    assert client.post(f"{HOME}/feedback", json={"query": "q", "id": "zz"}).status_code == 404
    assert client.delete(f"{HOME}/feedback", params={"query": "q"}).json() == {"forgotten": 1}


# --- collections ------------------------------------------------------------------------------------------------------


def test_collections_are_made_listed_and_dropped(client: TestClient) -> None:
    assert client.put("/v1/collections/tickets", json={"words_only": True, "language": "de"}).status_code == 201
    again = client.put("/v1/collections/tickets")
    assert again.status_code == 200
    assert again.json()["model"] is None
    assert again.json()["language"] == "de"
    assert client.put("/v1/collections/tickets", json={"language": "fr"}).status_code == 422
    assert client.get("/v1/collections").json() == {"collections": ["default", "tickets"]}
    assert client.delete("/v1/collections/tickets").status_code == 204
    assert client.get("/v1/collections/tickets").status_code == 404
    assert client.delete("/v1/collections/default").status_code == 409


def test_a_request_cannot_choose_the_embedder(client: TestClient) -> None:
    answer = client.put("/v1/collections/mine", json={"embedder": "http://10.0.0.1/v1#model"})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "embedder"


def test_a_collection_dropped_and_made_elsewhere_is_found_again(service: Any) -> None:
    one, two = service(), service()
    for client in (one, two):
        assert client.put("/v1/collections/tickets").status_code in (200, 201)
    one.delete("/v1/collections/tickets")
    assert two.get("/v1/collections/tickets").status_code == 404
    one.put("/v1/collections/tickets")
    one.put("/v1/collections/tickets/documents/a", json={"text": "new"})
    assert two.get("/v1/collections/tickets/documents/a").json()["text"] == "new"


# --- remembering ------------------------------------------------------------------------------------------------------

REMEMBER = f"{HOME}/remember"
SECRET = "AKIA" + "Q2W3E4R5T6Y7U2I3"


def test_what_is_told_again_is_reinforced(client: TestClient) -> None:
    first = client.post(REMEMBER, json={"text": "The side door sticks.", "meta": {"floor": 1}})
    assert (first.status_code, first.json()["stored"]) == (201, True)
    again = client.post(REMEMBER, json={"text": "the side  door STICKS.", "meta": {"floor": 1}})
    assert again.status_code == 200
    assert again.json() == {**first.json(), "stored": False, "reinforced": True}
    assert client.get(f"{DOCUMENTS}/{first.json()['id']}").json()["accesses"] == 1


def test_what_says_nearly_the_same_is_told_with_a_suggestion(client: TestClient) -> None:
    client.post(REMEMBER, json={"id": "a", "text": "The side door sticks in wet weather.", "meta": {"site": "north"}})
    near = {"text": "The side door sticks in dry weather.", "meta": {"site": "north"}}
    (alike,) = client.post(REMEMBER, json=near).json()["similar"]
    assert (alike["id"], alike["suggestion"]) == ("a", "supersede")
    assert (alike["relation"], alike["changed"]) == ("contradicting", "wet → dry")
    elsewhere = {"text": "The side door sticks in cold weather.", "meta": {"site": "south"}}
    assert client.post(REMEMBER, json={**elsewhere, "where": {"site": "south"}}).json()["similar"] == []
    assert client.post(REMEMBER, json={"text": "x", "where": {"site": {"near": 1}}}).status_code == 422
    deep: Any = {"site": "north"}
    for _ in range(12):
        deep = {"$not": deep}
    assert client.post(REMEMBER, json={"text": "x", "where": deep}).status_code == 422


def test_an_id_is_replaced_or_only_new(client: TestClient) -> None:
    told = {"id": "a", "text": "One."}
    assert client.post(REMEMBER, json=told).status_code == 201
    taken = client.post(REMEMBER, json={"id": "a", "text": "Two.", "only_new": True})
    assert (taken.status_code, taken.json()["type"].rsplit("/", 1)[1]) == (409, "conflict")
    assert client.get(f"{DOCUMENTS}/a").json()["text"] == "One."
    assert client.post(REMEMBER, json={**told, "only_new": True}).status_code == 200, "the same again is no conflict"
    assert client.post(REMEMBER, json={"id": "a", "text": "Two."}).status_code == 201
    assert client.get(f"{DOCUMENTS}/a").json()["text"] == "Two."


def test_secrets_are_taken_out_where_that_is_asked_for(client: TestClient) -> None:
    told = client.post(REMEMBER, json={"text": f"{SECRET} opens it", "redact": True}).json()
    assert told["redacted"] == ["api key"]
    added = client.post(DOCUMENTS, params={"redact": True}, json={"text": f"{SECRET}, {SECRET}"}).json()
    assert added["redacted"] == {"api key": 2}
    put = client.put(f"{DOCUMENTS}/p", params={"redact": True}, json={"text": "x", "title": SECRET}).json()
    assert put["redacted"] == {"api key": 1}
    line = json.dumps({"text": f"line {SECRET}"}).encode()
    last = json.loads(client.post(f"{HOME}/import", params={"redact": "true"}, content=line).text.splitlines()[-1])
    assert last["redacted"] == {"api key": 1}
    assert SECRET not in client.get(f"{HOME}/export").text
    assert "redacted" not in json.loads(client.post(f"{HOME}/import", content=b"").text)


def markdown(client: TestClient, text: str | bytes, **params: Any) -> dict[str, Any]:
    headers = {"Content-Type": "text/markdown; charset=utf-8"}
    body = text.encode() if isinstance(text, str) else text
    lines = client.post(f"{HOME}/import", params=params, content=body, headers=headers).text.splitlines()
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def test_a_markdown_text_with_its_front_matter(client: TestClient) -> None:
    client.put(f"{DOCUMENTS}/hatch", json={"text": "The hatch."})
    text = "---\ntitle: Tür\ntags: [north]\nkind: decision\n---\nSee [[hatch]], [[nowhere]].\r\n"
    assert markdown(client, text, id="door.md")["added"] == 1
    found = client.get(f"{DOCUMENTS}/door.md").json()
    assert (found["title"], found["kind"], found["meta"]) == ("Tür", "decision", {"tags": ["north"]})
    assert found["text"] == "See [[hatch]], [[nowhere]].\r\n"
    assert [link["target"] for link in found["links"]] == ["hatch"]
    assert markdown(client, "---\nid: own\n---\nx", id="door.md")["added"] == 1
    assert client.get(f"{DOCUMENTS}/own").status_code == 200
    broken = markdown(client, "---\na: 1\nb: c: d\n---\nx", id="y")
    assert (broken["broken"], broken["problems"][0]["line"]) == (1, "body line 3")
    assert markdown(client, "---\nlinks: 3\n---\nx")["problems"][0]["reason"].startswith("links: 3")
    assert "UTF-8" in markdown(client, b"caf\xe9")["error"]
