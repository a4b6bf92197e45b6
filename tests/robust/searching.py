"""Search until a query fails or shows what its filter hides. ``searching.py NAME INPUTS SEED FOLDER``

Whole searches on a small store. What a filter means is said here a second time, as simply as it can be, and every hit
is held to it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import trivet
from robust.watch import Watch
from trivet.errors import TrivetError

DOCUMENTS = 60
FLOORS, TAGS = (0, 1, 2, 3.5), ("wet", "dry", "löss", "7")
Filter = dict[str, Any]


def documents() -> list[dict[str, Any]]:
    words = ("door", "sticks", "harbour", "写真", "retry_backoff_ms", "Grüße", "otter's", "C++", "a.b.c", "42")
    made = []
    for at in range(DOCUMENTS):
        text = " ".join(words[(at * step) % len(words)] for step in (1, 3, 7)) + f" number {at}"
        meta: dict[str, Any] = {"tags": [TAGS[at % 4], TAGS[at % 3]], "deep": {"yes": at % 2 == 0}}
        if at % 5:
            meta["floor"] = FLOORS[at % 4]
        kind = ("note", "log")[at % 2]
        made.append({"id": f"d{at}", "text": text, "kind": kind, "meta": meta, "importance": at / DOCUMENTS})
    return made


# --- filters, and what they mean --------------------------------------------------------------------------------------

scalars = st.one_of(
    st.sampled_from([*FLOORS, *TAGS, True, False, "note", "log", "d1", "d2", 0.5]),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
)
names = st.sampled_from(["floor", "tags", "deep.yes", "kind", "id", "importance", "meta.floor", "meta.tags"])


@st.composite
def conditions(draw: st.DrawFn) -> Filter:
    op = draw(st.sampled_from(["", "eq", "ne", "in", "nin", "exists", "gt", "gte", "lt", "lte"]))
    name = draw(names)
    if op == "exists":
        return {name: {op: draw(st.booleans())}}
    value = draw(st.lists(scalars, max_size=3)) if op in ("in", "nin") else draw(scalars)
    return {name: {op: value} if op else value}


filters = st.recursive(
    conditions(),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"$and": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"$or": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"$not": inner}),
    ),
    max_leaves=5,
)


def allows(where: Filter, document: dict[str, Any]) -> bool:
    ((name, said),) = where.items()
    if name == "$and":
        return all(allows(part, document) for part in said)
    if name == "$or":
        return any(allows(part, document) for part in said)
    if name == "$not":
        return not allows(said, document)
    ((op, wanted),) = said.items() if isinstance(said, dict) else (("eq", said),)
    values = values_of(document, name)
    if op in ("ne", "nin"):
        return not holds(op.replace("ne", "eq").replace("nin", "in"), values, wanted)
    return holds(op, values, wanted)


def holds(op: str, values: list[Any], wanted: Any) -> bool:
    if op == "exists":
        return bool(values) == wanted
    if op == "in":
        return any(holds("eq", values, each) for each in wanted)
    alike = [value for value in values if isinstance(value, str) == isinstance(wanted, str)]
    compared = {"eq": lambda v: v == wanted, "gt": lambda v: v > wanted, "gte": lambda v: v >= wanted}
    compared |= {"lt": lambda v: v < wanted, "lte": lambda v: v <= wanted}
    return any(compared[op](value) for value in alike)


def values_of(document: dict[str, Any], name: str) -> list[Any]:
    if name in ("kind", "id", "importance"):
        return [document[name]]
    found: Any = document["meta"]
    for part in name.removeprefix("meta.").split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return [] if found is None else found if isinstance(found, list) else [found]


# --- questions --------------------------------------------------------------------------------------------------------

PARTS = (
    *(
        "door",
        "sticks",
        '"door sticks"',
        "-harbour",
        "not",
        "AND",
        "OR",
        "NEAR/3",
        "(",
        ")",
        "*",
        "tags:wet",
        "floor:1",
    ),
    *("写真", "retry_backoff_ms", "last week", "2024-02-30", "'", "\\", "%", "d1", "\x00", "\ud800", "deep.yes:true"),
)
questions = st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PARTS), max_size=8).map(" ".join))
odd = st.one_of(st.none(), st.booleans(), st.integers(-5, 10**6), st.floats(), st.text(max_size=4), st.just([]))


def mostly(right: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.integers(0, 11).flatmap(lambda chance: right if chance else odd)


settings_of = st.fixed_dictionaries(
    {},
    optional={
        "k": mostly(st.integers(1, 30)),
        "alpha": mostly(st.floats(0, 1)),
        "fusion": mostly(st.sampled_from(["rrf", "convex", "combsum", "combmnz", "isr"])),
        "rrf_k": mostly(st.integers(0, 100)),
        "min_relevance": mostly(st.floats(0, 1)),
        "profile": mostly(st.sampled_from(["default", "memories", "chunks", "episodes", "composite", "snippets"])),
        "weights": mostly(st.fixed_dictionaries({"trigram": st.floats(0, 2), "graph": st.floats(0, 2)})),
        "offset": mostly(st.integers(0, 5)),
        "exclude": mostly(st.lists(st.sampled_from(["d1", "d2", "nobody", 7, None]), max_size=2)),
        "as_of": mostly(st.just("2024-05-01")),
        "at": mostly(st.just(1_700_000_000)),
    },
)


def main(name: str, inputs: int, number: int, folder: Path) -> None:
    watch = Watch(name, folder / f"{name}.faults", (TrivetError,))
    known = {item["id"]: item for item in documents()}
    with trivet.open(folder / "searching.db", embedder="hashing") as engine:
        engine.add(list(known.values()))
        engine.wait()

        @seed(number)
        @settings(
            max_examples=inputs, deadline=None, database=None, suppress_health_check=list(HealthCheck),
            phases=(Phase.generate,),
        )  # fmt: skip
        @given(questions, st.one_of(st.none(), filters), settings_of)
        def ask(question: str, where: Filter | None, how: dict[str, Any]) -> None:
            with watch.input((question, where, how)):
                found = engine.search(question, where=where, **how)
                for hit in found:
                    if where is not None and not allows(where, known[hit.id]):
                        watch.fault("leaked", f"{hit.id} is not allowed by the filter")
                    if isinstance(how.get("exclude"), list) and hit.id in how["exclude"]:
                        watch.fault("leaked", f"{hit.id} was excluded")
                if where is not None:
                    wanted = {id for id, item in known.items() if allows(where, item)}
                    if wanted != {document.id for document in engine.documents(where)}:
                        watch.fault("wrong", "the filter does not mean what it says")

        ask()
        while watch.inputs < inputs:  # it ends before, where it thinks to have seen everything
            seed(watch.inputs)(ask)()
    watch.summary()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
