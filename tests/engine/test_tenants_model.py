"""Many callers with filters of their own, against a model that goes through a list of documents.

Each step is one operation by one caller, through ``engine.within``. The model says what every caller may see, and what
becomes of the operation; afterwards what each of them sees is compared with it. Refused writes change nothing.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import trivet
from trivet.engine import Engine
from trivet.errors import InputError, NotFoundError, TakenError, TrivetError
from trivet.filters import And, Eq, Exists, Filter, In, Not, Or, Range, fields_of, matches, values_of
from trivet.types import Document

TENANTS, TEAMS = ("alice", "bob", "carol"), ("red", "blue")
IDS = [f"d{number}" for number in range(24)]
WORDS = ("pump", "greenhouse", "door", "roof", "rain", "valve")


def some_filter(chance: random.Random, depth: int = 0) -> Filter:
    """A nested filter over several fields."""
    if depth < 3 and chance.random() < 0.45:
        parts = tuple(some_filter(chance, depth + 1) for _ in range(chance.randint(1, 3)))
        return chance.choice([And(parts), Or(parts), Not(parts[0])])
    return chance.choice(
        [
            Eq("tenant", chance.choice(TENANTS)),
            In("team", tuple(chance.sample(TEAMS, chance.randint(1, 2)))),
            Range("level", gte=chance.randint(0, 3)),
            Range("level", gt=0, lt=chance.randint(1, 5)),
            Exists("tag"),
            Eq("kind", chance.choice(("note", "memo"))),
            In("tag", ("x", "y")),
        ]
    )


def some_meta(chance: random.Random) -> dict[str, Any]:
    meta: dict[str, Any] = {}
    if chance.random() < 0.8:
        meta["tenant"] = chance.choice(TENANTS) if chance.random() < 0.9 else chance.sample(TENANTS, 2)
    if chance.random() < 0.6:
        meta["team"] = chance.choice(TEAMS)
    if chance.random() < 0.6:
        meta["level"] = chance.randint(0, 5)
    if chance.random() < 0.4:
        meta["tag"] = chance.sample(["x", "y", "z"], chance.randint(1, 2))
    return meta


def inside(where: Filter, document: Document) -> bool:
    """Every value of the fields satisfies the filter; written apart from ``scoped.holds``."""
    if isinstance(where, And):
        return all(inside(part, document) for part in where.parts)
    if isinstance(where, Or):
        return any(inside(part, document) for part in where.parts)
    if isinstance(where, Eq | In | Range):
        found = values_of(document, where.field)
        name = where.field if where.field == "kind" else f"meta.{where.field}"
        singles = [
            Document("", "", kind=str(value)) if name == "kind" else Document("", "", meta={where.field: value})
            for value in found
        ]
        return bool(found) and all(matches(where, single) for single in singles)
    return matches(where, document)


@dataclass
class Model:
    """What is stored, and what each caller may see of it."""

    documents: dict[str, Document] = field(default_factory=dict)
    links: set[tuple[str, str]] = field(default_factory=set)
    judged: dict[tuple[str, str], bool] = field(default_factory=dict)

    def seen(self, where: Filter) -> dict[str, Document]:
        return {id: document for id, document in self.documents.items() if matches(where, document)}

    def remove(self, ids: set[str]) -> None:
        for id in ids:
            del self.documents[id]
        self.links = {link for link in self.links if ids.isdisjoint(link)}


class Play:
    """One random history, by the engine and by the model."""

    def __init__(self, whole: Engine, seed: int, callers: int) -> None:
        self.chance = random.Random(seed)
        self.whole, self.model = whole, Model()
        filters = [some_filter(self.chance) for _ in range(callers)]
        self.callers = [(where, whole.within(where)) for where in filters]
        self.steps: list[Callable[[Filter, Engine], None]] = [
            *([self.add] * 4), self.patch, self.delete, self.delete_where, self.link, self.unlink, self.remember,
            self.touch, self.feedback, self.forget_feedback, self.search, self.get, self.page, self.facets,
            self.explain, self.count,
        ]  # fmt: skip

    def step(self) -> None:
        where, engine = self.chance.choice(self.callers)
        self.chance.choice(self.steps)(where, engine)

    def made(self, where: Filter, id: str, text: str, kind: str, meta: dict[str, Any]) -> Document:
        """The document as it is stored for a caller: what the filter fixes is set where it is absent."""
        from trivet.stores.scoped import filled

        plain = filled({"kind": kind, "meta": meta}, where)
        return Document(id, text, kind=plain["kind"], meta=plain["meta"])

    def text(self) -> str:
        return " ".join(self.chance.choices(WORDS, k=4)) + f" {self.chance.randint(0, 10**6)}"

    def add(self, where: Filter, engine: Engine) -> None:
        id, text, meta = self.chance.choice(IDS), self.text(), some_meta(self.chance)
        document = self.made(where, id, text, self.chance.choice(("note", "memo")), meta)
        known = self.model.documents.get(id)
        call = lambda: engine.add({"id": id, "text": text, "kind": document.kind, "meta": meta})  # noqa: E731
        if not inside(where, document):
            refused(InputError, call)
        elif known is not None and not matches(where, known):
            refused(TakenError, call)
        else:
            call()
            if known is None:
                self.model.judged = {pair: good for pair, good in self.model.judged.items() if pair[1] != id}
            self.model.documents[id] = document

    def remember(self, where: Filter, engine: Engine) -> None:
        text, meta = self.text(), some_meta(self.chance)
        document = self.made(where, "", text, "note", meta)
        if not inside(where, document):
            refused(InputError, lambda: engine.remember(text, kind="note", meta=meta))
            return
        done = engine.remember(text, kind="note", meta=meta)
        assert done.stored
        assert {item.id for item in done.similar} <= set(self.model.seen(where))
        again = engine.remember(text, kind="note", meta=meta)
        assert (again.id, again.stored) == (done.id, False)
        engine.delete(done.id)

    def patch(self, where: Filter, engine: Engine) -> None:
        id, meta = self.chance.choice(IDS), some_meta(self.chance)
        known = self.model.documents.get(id)
        call = lambda: engine.patch(id, meta=meta)  # noqa: E731
        if known is None or not matches(where, known):
            refused(NotFoundError, call)
            return
        changed = Document(id, known.text, kind=known.kind, meta={**known.meta, **meta})
        names = [name for name, _ in fields_of(where)]
        same = all(values_of(known, name) == values_of(changed, name) for name in names)
        if inside(where, changed) or same:
            call()
            self.model.documents[id] = changed
        else:
            refused(InputError, call)

    def delete(self, where: Filter, engine: Engine) -> None:
        ids = self.chance.sample(IDS, 2)
        gone = set(ids) & set(self.model.seen(where))
        assert engine.delete(ids) == len(gone)
        self.model.remove(gone)

    def delete_where(self, where: Filter, engine: Engine) -> None:
        asked = And((some_filter(self.chance), Eq("kind", "memo"), Range("level", gte=4)))
        gone = {id for id, document in self.model.seen(where).items() if matches(asked, document)}
        try:
            count = engine.delete(where=asked)
        except InputError as error:
            assert "no document has a field" in str(error)
            return
        assert count == len(gone)
        self.model.remove(gone)

    def link(self, where: Filter, engine: Engine) -> None:
        source, target = self.chance.sample(IDS, 2)
        if {source, target} <= set(self.model.seen(where)):
            engine.link(source, target)
            self.model.links.add((source, target))
        else:
            refused(NotFoundError, lambda: engine.link(source, target))

    def unlink(self, where: Filter, engine: Engine) -> None:
        source, target = self.chance.choice(sorted(self.model.links) or [("d0", "d1")])
        there = (source, target) in self.model.links and {source, target} <= set(self.model.seen(where))
        assert engine.unlink(source, target) == there
        if there:
            self.model.links.remove((source, target))

    def touch(self, where: Filter, engine: Engine) -> None:
        ids = self.chance.sample(IDS, 3)
        assert engine.touch(ids) == len(set(ids) & set(self.model.seen(where)))

    def feedback(self, where: Filter, engine: Engine) -> None:
        id, query = self.chance.choice(IDS), self.chance.choice(WORDS)
        if id in self.model.seen(where):
            engine.feedback(query, id)
            self.model.judged[query, id] = True
        else:
            refused(NotFoundError, lambda: engine.feedback(query, id))

    def forget_feedback(self, where: Filter, engine: Engine) -> None:
        query = self.chance.choice(WORDS)
        gone = {pair for pair in self.model.judged if pair[0] == query and pair[1] in self.model.seen(where)}
        assert engine.forget_feedback(query) == len(gone)
        self.model.judged = {pair: good for pair, good in self.model.judged.items() if pair not in gone}

    def search(self, where: Filter, engine: Engine) -> None:
        word = self.chance.choice(WORDS)
        found = engine.search(word, k=100, profile="keyword" if "keyword" in trivet.PROFILES else None)
        seen = self.model.seen(where)
        assert {hit.id for hit in found} <= set(seen)
        assert {id for id, document in seen.items() if word in document.text.split()} <= {hit.id for hit in found}

    def get(self, where: Filter, engine: Engine) -> None:
        id = self.chance.choice(IDS)
        found = engine.get(id)
        assert (found.id if found else None) == (id if id in self.model.seen(where) else None)

    def page(self, where: Filter, engine: Engine) -> None:
        ids: list[str] = []
        after = None
        while True:
            found = engine.page(after=after, limit=self.chance.randint(1, 5))
            ids += [document.id for document in found]
            if (after := found.next) is None:
                break
        assert sorted(ids) == sorted(self.model.seen(where))

    def facets(self, where: Filter, engine: Engine) -> None:
        seen = self.model.seen(where).values()
        for facet in engine.facets(values=50):
            for value, count in facet.values:
                assert count == sum(matches(Eq(facet.field, value), document) for document in seen)
        keys = {key for document in seen for key in document.meta}
        assert {facet.field for facet in engine.facets()} == {"kind", *keys}

    def explain(self, where: Filter, engine: Engine) -> None:
        id = self.chance.choice(IDS)
        if id in self.model.seen(where):
            engine.explain("pump", id)
        else:
            refused(NotFoundError, lambda: engine.explain("pump", id))

    def count(self, where: Filter, engine: Engine) -> None:
        seen = set(self.model.seen(where))
        stats = engine.stats()
        assert stats.documents == len(seen)
        assert stats.links == sum({source, target} <= seen for source, target in self.model.links)

    def check(self) -> None:
        """What each caller sees is what the model says; and so is what is stored."""
        stored = {document.id: document for document in self.whole.documents()}
        assert set(stored) == set(self.model.documents)
        for id, document in self.model.documents.items():
            assert (stored[id].text, stored[id].kind, stored[id].meta) == (document.text, document.kind, document.meta)
        for where, engine in self.callers:
            seen = set(self.model.seen(where))
            assert {document.id for document in engine.documents()} == seen
            links = {(link.source, link.target) for link in engine.links()}
            assert links == {pair for pair in self.model.links if seen.issuperset(pair)}
            judged = {(item.query, item.id) for item in engine.feedbacks()}
            assert judged == {pair for pair in self.model.judged if pair[1] in seen}


def refused(kind: type[TrivetError], call: Callable[[], Any]) -> None:
    with pytest.raises(kind):
        call()


@pytest.mark.parametrize("seed", range(12))
def test_everyone_sees_what_the_model_says(seed: int) -> None:
    with trivet.open(":memory:", embedder="none") as whole:
        play = Play(whole, seed, callers=6)
        for _ in range(60):
            play.step()
            play.check()


def test_two_at_once_stay_within_their_filters(tmp_path: Path) -> None:
    """Two threads, each bound to a tenant, write and read at the same time; each one's own history is its model's."""
    with trivet.open(tmp_path / "memory.db", embedder="none") as whole:
        wrong: list[BaseException] = []
        models: dict[str, set[str]] = {}

        def live(tenant: str, seed: int) -> None:
            chance, own = random.Random(seed), whole.within({"tenant": tenant})
            mine: set[str] = set()
            try:
                for number in range(80):
                    id = f"{tenant}-{chance.randint(0, 15)}"
                    action = chance.randint(0, 5)
                    if action <= 2:
                        own.add(f"{tenant} pump {number}", id=id)
                        mine.add(id)
                    elif action == 3:
                        assert own.delete(id) == (id in mine)
                        mine.discard(id)
                    elif action == 4:
                        assert own.delete(where="kind=note") == len(mine)
                        mine.clear()
                    else:
                        assert {hit.id for hit in own.search("pump", k=50)} == mine
                    assert {document.id for document in own.documents()} == mine
                    assert own.stats().documents == len(mine)
                models[tenant] = mine
            except BaseException as error:  # told by the test's own thread
                wrong.append(error)

        threads = [threading.Thread(target=live, args=(name, at)) for at, name in enumerate(("alice", "bob"))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong, wrong
        assert {document.id for document in whole.documents()} == models["alice"] | models["bob"]
