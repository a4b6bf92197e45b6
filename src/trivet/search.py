"""The spine: in which order is a question answered?

This file alone knows it: scope → legs → fusion → links → fetch → rerankers → page. All else is a leaf with one verb.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from trivet import deadline, intake
from trivet.concepts import concepts
from trivet.errors import InputError, ModelReplacedError, NotFoundError, StoreError
from trivet.explaining import Explainer
from trivet.filters import And, Filter, Not, Or, Range, both, epoch, fields_of, parse_filter
from trivet.fusion import fuse
from trivet.fusion.weighing import WEIGHINGS
from trivet.inquiry import Answers, Asked
from trivet.intake import MAX_QUERY
from trivet.legs.alike import Alike
from trivet.legs.dense import Dense
from trivet.legs.graph import Graph, heads
from trivet.legs.lexical import Lexical
from trivet.legs.question import Leg, Question
from trivet.legs.trigram import Trigram
from trivet.legs.wordings import Wordings
from trivet.links import follow
from trivet.models import Models
from trivet.moments import within
from trivet.paging import Pages
from trivet.profile import LEGS, PROFILES, SEEDED, Profile, named
from trivet.rerank import Tools
from trivet.stores.contract import Scoring, Shelf, State, read_again
from trivet.stores.scoped import Scoped
from trivet.types import Degraded, Explanation, Hit, Query, Ranking, Results, Stage
from trivet.understanding import Understood, understand

if TYPE_CHECKING:
    from trivet.threads import Legs
    from trivet.types import Vector

MAX_WORDINGS = 16  # each is asked of every leg
PROFILES_KEPT = 64  # made of others by changes for one request
TRIES = 5  # a collection re-embedded this often within one search is not waited for
REWRITTEN_TRIES = 3  # times that what was ranked may be rewritten meanwhile before what it says now is shown


class Search:
    """Questions to one collection."""

    def __init__(self, shelf: Shelf, models: Models, legs: Legs, tools: Tools) -> None:
        self._shelf, self._models, self._threads, self._pages = shelf, models, legs, Pages(shelf, tools)
        self._parsed: tuple[str, Profile] | None = None
        self._changed: dict[tuple[str, str, str], Profile] = {}
        self._told: tuple[Profile, str] | None = None
        self._asking: Callable[[], AbstractContextManager[None]] = getattr(shelf, "asking", nullcontext)

    def settings(self, stored: str) -> Profile:
        """The stored settings as a profile; parsed again only when they have changed."""
        kept = self._parsed
        if kept is None or kept[0] != stored:
            kept = self._parsed = (stored, Profile.from_json(stored))
        return kept[1]

    def run(
        self,
        query: str,
        where: Any,
        profile: str | Profile | None,
        exclude: str | Iterable[str],
        vector: Any,
        offset: int,
        at: datetime | str | float | None,
        overrides: Mapping[str, Any],
        as_of: datetime | str | float | None = None,
    ) -> Results:
        with self._asking():
            return read_again(lambda: self._run(query, where, profile, exclude, vector, offset, at, overrides, as_of))

    def _run(
        self,
        query: str,
        where: Any,
        profile: str | Profile | None,
        exclude: str | Iterable[str],
        vector: Any,
        offset: int,
        at: Any,
        overrides: Mapping[str, Any],
        as_of: Any,
    ) -> Results:
        started = time.perf_counter()
        for attempt in range(1, TRIES + 1):
            chosen, asked, answers = self._consult(query, where, profile, _ids(exclude), vector, at, overrides, as_of)
            deadline.check()
            fusing = time.perf_counter()
            self._fuse(answers, chosen, asked)
            deadline.check()
            following = time.perf_counter()
            with self._shelf.snapshot():  # what the filter allows and what is shown are of one state
                asked = self._held_to_now(asked, answers)
                linked = chosen.follow_links and self._shelf.has_chains(asked.state.version)
                if linked:
                    follow(self._shelf, asked, answers)
                deadline.check()
                fetching = time.perf_counter()
                page = self._pages.page(answers, _offset(offset), asked, chosen)
                ended = time.perf_counter()
                if chosen.neighbours:
                    page.hits = [
                        replace(hit, context=self._pages.around(hit, chosen.neighbours, asked)) for hit in page.hits
                    ]
            if not answers.rewritten or attempt == REWRITTEN_TRIES:
                break
        trace = (
            *asked.stages,
            *answers.stages,
            Stage("fusion", (following - fusing) * 1000, _told(chosen, answers.weights)),
            *([Stage("links", (fetching - following) * 1000, f"{len(answers.stands_for)} replaced")] if linked else []),
            Stage("fetch", (ended - fetching) * 1000 - page.rerank_ms),
            Stage("rerank", page.rerank_ms, ", ".join(page.notes)),
            Stage("total", (ended - started) * 1000),
        )
        degraded = (*asked.degraded, *answers.degraded, *page.degraded)
        return Results(query, tuple(page.hits), self._identity(chosen), trace, degraded, len(answers.pool))

    def _held_to_now(self, asked: Asked, answers: Answers) -> Asked:
        """Hold the pool to the state of the snapshot: others may have written since the filter was looked up."""
        state, where = self._shelf.state(), asked.query.where
        recalled = where is not None and any(field == "accessed" for field, _ in fields_of(where))  # is no new version
        if (state.version, state.token) == (asked.state.version, asked.state.token) and not recalled:
            return asked
        scope = self._shelf.recheck(where, asked.exclude)
        if scope is not None:
            scope.expect(int(candidate.key) for candidate in answers.pool)
            answers.pool = [candidate for candidate in answers.pool if int(candidate.key) in scope]
        return replace(asked, state=state, scope=scope)

    def _identity(self, profile: Profile) -> str:
        """Told in every answer, and mostly the last one's."""
        kept = self._told
        if kept is None or kept[0] is not profile:
            kept = self._told = (profile, str(profile))
        return kept[1]

    def _consult(
        self,
        query: str,
        where: Any,
        profile: str | Profile | None,
        exclude: tuple[str, ...],
        vector: Any,
        at: Any,
        overrides: Mapping[str, Any],
        as_of: Any = None,
    ) -> tuple[Profile, Asked, Answers]:
        """What the legs say; asked again when the model they began with was replaced under them."""
        for attempt in range(1, TRIES + 1):
            deadline.check()
            state = self._shelf.state()
            chosen = self._profile(state, profile, {key: overrides[key] for key in overrides if key != "queries"})
            asked = self._ask(state, query, where, exclude, vector, at, chosen, as_of)
            if others := _wordings(overrides.get("queries")):
                asked = replace(asked, legs=[Wordings(leg, others) for leg in asked.legs])
            try:
                return chosen, asked, self._answers(asked, chosen)
            except ModelReplacedError:
                if attempt == TRIES:
                    raise
        raise AssertionError("unreachable")

    def seen(
        self, query: str, where: Any, profile: Profile, exclude: tuple[str, ...], at: Any, count: int
    ) -> tuple[Query, list[Hit], Tools]:
        """What the first reranker would see and be lent: for whoever learns from it."""
        chosen, asked, answers = self._consult(query, where, profile, exclude, None, at, {})
        self._fuse(answers, chosen, asked)
        with self._shelf.snapshot():
            asked = self._held_to_now(asked, answers)
            if chosen.follow_links and self._shelf.has_chains(asked.state.version):
                follow(self._shelf, asked, answers)
            return asked.query, self._pages.hits(answers.pool[:count], answers, asked), self._pages.lent(answers)

    def rankings(self, query: str, where: Any, profile: Profile, exclude: tuple[str, ...] = ()) -> tuple[Ranking, ...]:
        """What each leg says, before anything is made of it."""
        return tuple(self._consult(query, where, profile, exclude, None, None, {})[2].rankings)

    def _profile(self, state: State, profile: str | Profile | None, overrides: Mapping[str, Any]) -> Profile:
        """The profile to answer by. One made of a stored or shipped one by plain changes is checked once, not at every
        search: callers ask the same way again and again."""
        if profile is None:
            chosen = self.settings(state.settings)
        elif isinstance(profile, str):
            chosen = named(profile)
        elif isinstance(profile, Profile):
            chosen = profile
        else:
            raise InputError(f"profile: {profile!r} is not a name or a Profile; known: {', '.join(PROFILES)}")
        if not overrides:
            return chosen
        if isinstance(profile, Profile) or not _is_plain(overrides):
            return chosen.with_changes(overrides)
        asked = (profile or "", "" if profile else state.settings, repr(overrides))
        made = self._changed.get(asked)
        if made is None:
            if len(self._changed) >= PROFILES_KEPT:
                self._changed.clear()
            made = self._changed[asked] = chosen.with_changes(overrides)
        return made

    def _ask(
        self,
        state: State,
        query: str,
        where: Any,
        exclude: tuple[str, ...],
        vector: Any,
        at: Any,
        profile: Profile,
        as_of: Any,
    ) -> Asked:
        degraded: list[Degraded] = []
        if not isinstance(query, str):
            raise InputError(f"query: {type(query).__name__} is not text")
        if not query.strip() and vector is None:
            raise InputError("query: it is empty; ask something, or list documents with `documents(where=…)`")
        text = intake.clean(query)
        if len(text) > MAX_QUERY:
            degraded.append(Degraded("query", f"{len(text):,} characters; only the first {MAX_QUERY:,} were used"))
            text = text[:MAX_QUERY]
        moment = datetime.fromtimestamp(epoch(at, "at"), UTC) if at is not None else datetime.now(UTC)
        left_out = tuple(intake.check_id(id, "exclude") for id in exclude)
        allowed = _valid(parse_filter(where), as_of)
        begun = time.perf_counter()
        understood = self._understand(text, moment, profile, allowed, left_out)
        notes = understood.notes if understood else ()
        stages = [Stage("understand", (time.perf_counter() - begun) * 1000, ", ".join(notes))] if notes else []
        parsed = both(allowed, understood.where if understood else None)
        scope = self._shelf.scope(parsed, left_out, state.version)
        given: Vector | None = None
        if vector is not None:
            if state.model is None:
                raise InputError(
                    "vector: the collection has no model; open it with embedder='vectors:DIM' to bring your own"
                )
            given = intake.vector_bytes(vector, state.model.dim, "vector")
        sought = understood.text if understood else text
        legs, missing = self._legs(state, profile, given is not None, sought, scope is not None)
        exact, lenient = (understood.identifiers, True) if understood else ((), False)
        questions = {
            leg.name: Question(
                sought,
                state.version,
                scope,
                given,
                profile.match,
                profile.gates.get(leg.name),
                exact,
                lenient,
                profile.expansion,
            )
            for leg in legs
        }
        asked = Query(text, parsed, moment, understood, self._shelf.analyzer.content)
        return Asked(asked, legs, questions, state, (*degraded, *missing), scope, left_out, tuple(stages))

    def _understand(
        self, text: str, at: datetime, profile: Profile, allowed: Filter | None, exclude: Sequence[str]
    ) -> Understood | None:
        """What the question asks for beyond its words, where the profile wants to know; by what the caller may see."""
        if profile.understanding == "plain" or not text.strip():
            return None
        shelf = self._shelf
        as_filter = profile.temporal == "filter"

        def holds(where: Filter) -> bool:
            found = shelf.page(both(allowed, where), 0, len(exclude) + 1)
            return any(document.id not in exclude for _, document in found)

        def fields() -> list[str]:
            return shelf.fields(allowed)

        timed = as_filter or any(step.name == "temporal" for step in profile.rerankers)
        found = understand(text, fields, holds, at, shelf.analyzer.language, timed)
        if as_filter and found.window is not None:
            asked_for = within(found.window.begin, found.window.end, fields())
            found = replace(found, where=both(found.where, asked_for), fields=(*found.fields, str(found.window)))
        return found

    def _legs(
        self, state: State, profile: Profile, has_vector: bool, text: str, filtered: bool
    ) -> tuple[list[Leg], list[Degraded]]:
        """The legs with a weight; what should take part and cannot is degraded. Nothing is counted for a caller with a
        filter: the numbers are of the whole collection."""
        has_text = bool(text.strip())
        legs: list[Leg] = []
        degraded: list[Degraded] = []
        weights, shelf = profile.weights, self._shelf
        if weights["lexical"] > 0 and has_text:
            legs.append(Lexical(shelf.analyzer.query, shelf, shelf.fetch))
        if weights["trigram"] > 0 and has_text:
            spelling, keywords = shelf.spelling, shelf.analyzer.keywords
            legs.append(Alike(keywords, spelling) if isinstance(spelling, Scoring) else Trigram(keywords, spelling))
        if weights["dense"] > 0:
            embedder = self._models.embedder_of(state.model)
            if state.model is None or embedder is None:
                alone = "found by words alone: " if legs else ""
                degraded.append(Degraded("dense", f"{alone}{self._models.why_none}"))
            elif state.model.spec.startswith("vectors:") and not has_vector:
                degraded.append(Degraded("dense", "the caller brings the vectors of this collection, and gave none"))
            else:
                legs.append(Dense(embedder, state.model, shelf))
                if isinstance(shelf, Scoped):
                    if shelf.pending():
                        degraded.append(Degraded("dense", "some passages are not embedded yet"))
                elif state.pending:
                    told = f"{state.pending:,} of {state.passages:,} passages are not embedded yet"
                    told = "some passages are perhaps not embedded yet" if filtered else told
                    degraded.append(
                        Degraded(
                            "dense", f"{told} ({self._models.backlog.error})" if self._models.backlog.error else told
                        )
                    )
        if weights["graph"] > 0:
            walked: Any = shelf if hasattr(shelf, "ties") else None
            if walked is not None:
                legs.append(Graph(partial(concepts, stop_words=shelf.analyzer.stop_words), walked))
            else:
                degraded.append(Degraded("graph", "this store keeps no graph; connections are walked in SQLite only"))
        return legs, degraded

    def _answers(self, asked: Asked, profile: Profile) -> Answers:
        """The legs that find by themselves, then those that go on from what these found."""
        answers = Answers()

        def wave(legs: Sequence[Leg]) -> None:
            self._threads.wave(legs, asked.questions, profile, is_current, answers)

        def is_current(leg: str) -> bool:
            return self._shelf.is_current(leg, asked.state)

        wave([leg for leg in asked.legs if leg.name not in SEEDED])
        seeded = [leg for leg in asked.legs if leg.name in SEEDED]
        if seeded:
            seeds = heads(answers.rankings)
            for leg in seeded:
                asked.questions[leg.name] = replace(asked.questions[leg.name], seeds=seeds)
            wave(seeded)
        failed = [item for item in (*asked.degraded, *answers.degraded) if item.part in LEGS]
        # a walk that has nowhere to begin finds nothing, which is no answer
        if failed and not any(len(ranking) or ranking.leg not in SEEDED for ranking in answers.rankings):
            raise StoreError("search: no leg answered: " + "; ".join(f"{item.part}: {item.reason}" for item in failed))
        return answers

    def _fuse(self, answers: Answers, profile: Profile, asked: Asked) -> None:
        """With the weights that the question itself is given."""
        rankings = answers.rankings
        weights = WEIGHINGS[profile.weighing](asked.query.text, rankings, profile.weights)
        answers.weights = weights
        answers.pool = fuse(profile.fusion, rankings, weights, rrf_k=profile.rrf_k, normalize=profile.normalize)

    def _visible(self, id: str, allowed: Filter | None) -> int | None:
        """The row number of a document; None where there is none that the filter allows."""
        checked = intake.check_id(id, "id")

        def found() -> int | None:
            with self._shelf.snapshot():
                did = self._shelf.dids([checked]).get(checked)
                scope = self._shelf.recheck(allowed, ())
                return did if did is None or scope is None or did in scope else None

        return read_again(found)

    def explain(
        self, query: str, id: str, where: Any, profile: str | Profile | None, options: Mapping[str, Any]
    ) -> Explanation:
        """Why is this document an answer, or why is it not? Every leg's rank and score for it, even far down."""
        overrides = {name: value for name, value in options.items() if not (name == "k" and value is None)}
        vector, exclude = overrides.pop("vector", None), overrides.pop("exclude", ())
        offset, at, as_of = overrides.pop("offset", 0), overrides.pop("at", None), overrides.pop("as_of", None)
        allowed = _valid(parse_filter(where), as_of)
        did = self._visible(id, allowed)
        if did is None:
            told = f"there is no document {id!r} in collection {self._shelf.name!r}"
            if allowed is None:
                raise NotFoundError(f"id: {told}")
            # one that the filter hides is not told from one that does not exist
            chosen = self._profile(self._shelf.state(), profile, overrides)
            return Explanation(query, id, None, (), str(chosen), None, f"{told} that the filter allows")
        results = self.run(query, where, profile, exclude, vector, offset, at, overrides, as_of)
        chosen, asked, answers = self._consult(query, where, profile, _ids(exclude), vector, at, overrides, as_of)
        self._fuse(answers, chosen, asked)
        return Explainer(self._shelf, self._pages.path, chosen, asked, answers).explain(query, id, did, results)


def _valid(where: Filter | None, as_of: Any) -> Filter | None:
    """The filter, and valid at that moment: from ``valid_from`` on, before ``valid_to``; without bounds, always."""
    if as_of is None:
        return where
    moment = epoch(as_of, "as_of")
    # Said by what is not valid: few documents have bounds, and an index knows them.
    valid = Not(Or((Range("valid_from", gt=moment), Range("valid_to", lte=moment))))
    return valid if where is None else And((where, valid))


def _is_plain(value: Any) -> bool:
    """Does its text say all of it? Numbers, texts, and lists and mappings of them."""
    if type(value) is dict:
        return all(_is_plain(part) for item in value.items() for part in item)
    return all(map(_is_plain, value)) if type(value) in (list, tuple) else type(value) in _PLAIN


_PLAIN = (int, float, str, bool, type(None))


def _told(profile: Profile, weights: Mapping[str, float]) -> str:
    """The fusion's name, and the weights where the question chose them."""
    if profile.weighing == "fixed":
        return profile.fusion
    chosen = " ".join(f"{leg} {weight:.2f}" for leg, weight in weights.items() if weight > 0)
    return f"{profile.fusion}, weighed by {profile.weighing}: {chosen}"


def _offset(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(f"offset: {value!r} is not a whole number from 0 up")
    return value


def _wordings(given: Any) -> tuple[str, ...]:
    """Other wordings of the question, cleaned as it is itself."""
    if given is None:
        return ()
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputError(f"queries: {given!r} is not a list of texts: other wordings of the question")
    texts = list(given)
    if wrong := [text for text in texts if not isinstance(text, str)]:
        raise InputError(f"queries: {wrong[0]!r} is not text")
    if len(texts) > MAX_WORDINGS:
        raise InputError(f"queries: {len(texts)} wordings are too many; give up to {MAX_WORDINGS}")
    return tuple(text for text in (intake.clean(text)[:MAX_QUERY] for text in texts) if text.strip())


def _ids(given: str | Iterable[str]) -> tuple[str, ...]:
    if not isinstance(given, Iterable):
        raise InputError(f"exclude: {given!r} is not an id or a list of ids")
    return (given,) if isinstance(given, str) else tuple(given)
