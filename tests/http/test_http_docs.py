"""docs/reference/http.md and the OpenAPI document contain every route, setting and error."""

from __future__ import annotations

import importlib
import json
import re
import tomllib
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest

from trivet.http import problem_details
from trivet.http.app import create
from trivet.http.config import Config, resolve

ROOT = Path(__file__).parents[2]
PAGE, CHAT = ((ROOT / "docs" / name).read_text() for name in ("reference/http.md", "how-to/chat.md"))
SCHEMA = create(Config()).openapi()
OPERATIONS = [
    (method.upper(), path, operation) for path, item in SCHEMA["paths"].items() for method, operation in item.items()
]


@pytest.mark.parametrize(("method", "path"), [(method, path) for method, path, _ in OPERATIONS])
def test_every_route_is_on_its_page(method: str, path: str) -> None:
    assert f"| `{method} {path}` |" in PAGE or f"`{method} {path}" in CHAT


def test_no_route_on_the_page_is_made_up() -> None:
    listed = PAGE.count("\n| `GET /") + sum(
        PAGE.count(f"\n| `{method} /") for method in ("POST", "PUT", "PATCH", "DELETE")
    )
    assert listed == sum("conversations" not in operation["tags"] for _, _, operation in OPERATIONS)


@pytest.mark.parametrize("item", fields(Config), ids=lambda item: item.name)
def test_every_setting_is_on_the_page_with_its_default(item: Any) -> None:
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{item.name}` |")]
    default = item.default if item.default_factory is MISSING else ""
    shown = {"()": "none", "": "none", "False": "false"}.get(str(default), str(default))
    assert f"| {shown} |" in row
    assert f"TRIVET_{item.name.upper()}" in row


def test_every_failure_is_on_the_page_and_in_the_description() -> None:
    for status, _ in problem_details.KINDS.values():
        assert str(status) in PAGE
    for method, path, operation in OPERATIONS:
        answers = operation["responses"]
        if path != "/healthz":
            assert "503" in answers, (method, path)
        for status, answer in answers.items():
            assert "X-Request-ID" in answer["headers"]
            if int(status) >= 400:
                assert list(answer["content"]) == [problem_details.MEDIA_TYPE], (method, path, status)
        if "requestBody" in operation:
            assert "413" in answers, (method, path)


def test_every_body_has_an_example() -> None:
    for method, path, operation in OPERATIONS:
        for content in operation.get("requestBody", {}).get("content", {}).values():
            assert "example" in str(content) or "example" in str(_referred(content["schema"])), (method, path)


def _referred(schema: Any) -> list[Any]:
    parts = [schema, *schema.get("oneOf", ()), *schema.get("anyOf", ())]
    names = [part["$ref"].rsplit("/", 1)[1] for part in parts if "$ref" in part]
    return [SCHEMA["components"]["schemas"][name] for name in names]


def test_every_operation_has_a_name_for_generated_clients() -> None:
    names = [operation["operationId"] for _, _, operation in OPERATIONS]
    assert len(names) == len(set(names))
    for name in names:
        assert re.fullmatch(r"[a-z]+(_[a-z]+){0,3}", name) and "_v1" not in name, name


def test_every_tag_is_described() -> None:
    described = {tag["name"] for tag in SCHEMA["tags"] if tag["description"]}
    assert described == {tag for _, _, operation in OPERATIONS for tag in operation["tags"]}


def test_the_servers_are_this_one_and_the_default() -> None:
    assert [server["url"] for server in SCHEMA["servers"]] == ["/", f"http://{Config().host}:{Config().port}"]


def test_the_examples_are_accepted(client: Any) -> None:
    """In the order a caller would send them."""
    home = "/v1/collections/default"
    for text in ("door-8", "door-7"):
        client.put(f"{home}/documents/{text}", json={"text": text, "meta": {"building": "north", "floor": 1}})
    uploaded = client.post("/v1/files", files={"file": ("a.txt", b"The side door sticks.")}).json()["id"]
    for number in range(5):  # enough judged questions to begin a job
        client.post(f"{home}/feedback", json={"query": f"door number {number}", "id": "door-7"})
    for method, path, operation in OPERATIONS:
        content = operation.get("requestBody", {}).get("content", {}).get("application/json")
        if content is None or path.endswith("/revert"):
            continue
        for schema in _referred(content["schema"]):
            for example in schema.get("examples", ()):
                url = path.replace("{collection}", "default").replace("{id}", "door-7")
                if path.endswith("/{collection}"):
                    url = "/v1/collections/made"
                sent = {**example, **({"file_id": uploaded} if "file_id" in example else {})}
                answer = client.request(method, url, json=sent)
                assert answer.status_code < 300, (method, path, answer.text)


def test_the_deployed_configuration_is_one() -> None:
    text = (ROOT / "deploy/trivet.toml").read_text()
    found, _ = resolve({}, {}, ROOT / "deploy/trivet.toml")
    assert found.workers == tomllib.loads(text)["workers"]
    for name in ("trivet.service", "Containerfile"):
        assert "Not run" in (ROOT / "deploy" / name).read_text()


def test_the_image_is_built_from_what_a_wheel_needs_and_no_more() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    kept = {line[1:] for line in lines if line.startswith("!")}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "*" in lines and kept == {"pyproject.toml", "src", project["readme"], *project["license-files"]}


def test_the_load_on_the_page_is_that_of_the_result_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    service = importlib.import_module("service")
    (name,) = re.findall(r"load:start (\S+) -->", PAGE)
    found = json.loads((ROOT / "benchmarks/results" / name).read_text())
    assert service.block(found, name) in PAGE


def test_a_wrong_method_and_a_slow_body_are_in_the_description() -> None:
    for method, path, operation in OPERATIONS:
        assert "405" in operation["responses"], (method, path)
        body = operation.get("requestBody", {}).get("content", {})
        if "application/json" in body:  # an import that falls silent is told in its last line: it has begun to answer
            assert "408" in operation["responses"], (method, path)
