"""Send requests until one makes the service fail. ``requesting.py NAME INPUTS SEED FOLDER``

The app in this process, with the routes of its own description; bodies are anything: right ones, nearly right ones,
bytes. No answer may be a 500, hold a traceback or a path of this machine, and every refusal is a problem document.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

import trivet
from robust.searching import documents, filters, questions, settings_of
from robust.targets import NAMES, SEEDS
from robust.watch import Watch
from trivet.http.app import create
from trivet.http.config import Config

LEFT_OUT = ("chat", "conversations", "tune", "evaluations", "sessions", "projects", "jobs")  # a model, or minutes each
FINE = (503, 504)  # busy, too slow: documented

anything = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)),
    max_leaves=12,
)
asked = st.builds(lambda query, where, how: {"query": query, "where": where, **how}, questions, filters, settings_of)
told = st.fixed_dictionaries({"text": st.text(max_size=40)}, optional={"id": st.text(max_size=6), "meta": anything})
bodies = st.one_of(
    st.one_of(anything, asked, told, st.builds(lambda items: {"documents": items}, st.lists(told, max_size=3))).map(
        lambda value: json.dumps(value).encode()
    ),
    st.sampled_from(SEEDS),
    st.binary(max_size=60),
)
KINDS = ("application/x-ndjson", "text/plain", "application/json; charset=utf-16", "")
kinds = st.sampled_from(("application/json",) * 6 + KINDS)


def routes(app: Any) -> list[tuple[str, str]]:
    found = [(method.upper(), path) for path, said in app.openapi()["paths"].items() for method in said]
    return [route for route in found if not any(part in route[1] for part in LEFT_OUT)]


@st.composite
def requests(draw: st.DrawFn, known: list[tuple[str, str]]) -> tuple[str, str, bytes, str]:
    method, path = draw(st.sampled_from(known))
    for name, usual in (("collection", "default"), ("id", "d1")):
        other = draw(st.one_of(st.just(usual), st.text(min_size=1, max_size=5)))
        path = path.replace(f"{{{name}}}", _quoted(other))
    query = draw(st.dictionaries(st.sampled_from(NAMES), st.text(max_size=5), max_size=2))
    asked = "&".join(f"{key}={_quoted(value)}" for key, value in query.items())
    path = f"{path}?{asked}" if asked else path
    return method, path, draw(bodies), draw(kinds)


def _quoted(text: str) -> str:
    return "".join(f"%{byte:02x}" for byte in text.encode("utf-8", "replace"))


def main(name: str, inputs: int, number: int, folder: Path) -> None:
    watch = Watch(name, folder / f"{name}.faults", ())
    store = folder / "requesting.db"
    with trivet.open(store, embedder="hashing") as engine:
        engine.add(documents())
    app = create(Config(store=str(store), embedder="hashing", log_level="critical"))
    with TestClient(app, "http://127.0.0.1:8787", raise_server_exceptions=False) as client:

        @seed(number)
        @settings(
            max_examples=inputs, deadline=None, database=None, suppress_health_check=list(HealthCheck),
            phases=(Phase.generate,),
        )  # fmt: skip
        @given(requests(routes(app)))
        def ask(request: tuple[str, str, bytes, str]) -> None:
            method, path, body, kind = request
            with watch.input(request):
                answer = client.request(method, path, content=body, headers={"content-type": kind} if kind else {})
                text = answer.text
                if answer.status_code >= 500 and answer.status_code not in FINE:
                    watch.fault("crashed", f"{answer.status_code}: {text[:300]}")
                if answer.status_code >= 400:
                    watch.refused += 1
                    if answer.headers.get("content-type", "") != "application/problem+json" and method != "HEAD":
                        watch.fault("wrong", f"no problem document: {answer.status_code} {text[:200]}")
                if "Traceback (most recent" in text or str(folder) in text:
                    watch.fault("leaked", f"the inside of the service: {text[:300]}")

        ask()
        while watch.inputs < inputs:
            seed(watch.inputs)(ask)()
    watch.summary()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
