"""The first stage of a search: turn a request into a plan."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from trivet.engine import validation
from trivet.engine.request import Plan, SearchRequest, Setup
from trivet.engine.validation import MAX_QUERY
from trivet.errors import InputError
from trivet.filters import And, Filter, Not, Or, Range, both, epoch, parse_filter, plain_value
from trivet.legs.leg import Leg, LegContext, LegQuery
from trivet.legs.rephrased import Rephrased
from trivet.profile import PROFILES, Profile, named
from trivet.text.document_dates import within
from trivet.text.query import understand
from trivet.text.tokens import clean
from trivet.types import Degraded, Query, Stage, Understood

if TYPE_CHECKING:
    from trivet.engine.models import CollectionModels
    from trivet.stores.contract import Collection, LegScope, State
    from trivet.types import Vector

MAX_WORDINGS = 16  # of one query: each is asked of every leg
PROFILES_KEPT = 64  # profiles with overrides that are kept for the next request
_PLAIN = (int, float, str, bool, type(None))


class Planner:
    """Plans searches of one collection."""

    def __init__(self, collection: Collection, models: CollectionModels) -> None:
        self._collection, self._models = collection, models
        self._stored: tuple[str, Profile] | None = None
        self._overridden: dict[tuple[str, str, str], Profile] = {}
        self._setups: dict[int, Setup] = {}  # by the identity of the profile

    def settings(self, stored: str) -> Profile:
        """Return the stored settings as a profile; parsed again only when they have changed."""
        kept = self._stored
        if kept is None or kept[0] != stored:
            kept = self._stored = (stored, Profile.from_json(stored))
        return kept[1]

    def profile(self, state: State, request: SearchRequest) -> Profile:
        """Return the profile to search with.

        A stored or named profile with plain overrides is built and checked once, not at every search.
        """
        profile, overrides = request.profile, request.overrides
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
        key = (profile or "", "" if profile else state.settings, repr(overrides))
        made = self._overridden.get(key)
        if made is None:
            if len(self._overridden) >= PROFILES_KEPT:
                self._overridden.clear()
            made = self._overridden[key] = chosen.with_changes(overrides)
        return made

    def _setup(self, profile: Profile) -> Setup:
        """Return the profile made ready; kept, because most searches use the same few."""
        kept = self._setups.get(id(profile))
        if kept is None:
            if len(self._setups) >= PROFILES_KEPT:
                self._setups.clear()
            kept = self._setups[id(profile)] = Setup.of(profile)
        return kept

    def plan(self, request: SearchRequest) -> Plan:
        """Validate the request, understand the query, look the filter up and build the legs."""
        state = self._collection.state()
        setup = self._setup(self.profile(state, request))
        profile = setup.profile
        text, degraded = _text(request)
        exclude = excluded(request.exclude)
        at = datetime.fromtimestamp(epoch(request.at, "at"), UTC) if request.at is not None else datetime.now(UTC)
        where = None if request.where is None else parse_filter(request.where)
        where = valid_at(where, request.as_of)
        started = time.perf_counter()
        understood = self._understand(text, at, setup, where, exclude)
        notes = understood.notes if understood else ()
        stages = (Stage("understand", (time.perf_counter() - started) * 1000, ", ".join(notes)),) if notes else ()
        if understood and understood.where is not None:
            where = both(where, understood.where)
        scope = self._collection.filters.scope(where, exclude, state.version)
        vector = _vector(request.vector, state)
        sought = understood.text if understood else text
        legs, missing = self._legs(state, setup, vector is not None, bool(sought.strip()), scope is not None)
        if wordings := _wordings(request.queries):
            legs = [Rephrased(leg, wordings) for leg in legs]
        return Plan(
            setup,
            Query(text, where, at, understood, self._collection.analyzer.content),
            legs,
            {leg.name: _leg_query(leg.name, sought, state, scope, vector, profile, understood) for leg in legs},
            state,
            scope,
            exclude,
            _offset(request.offset),
            (*degraded, *missing),
            stages,
        )

    def _understand(
        self, text: str, at: datetime, setup: Setup, where: Filter | None, exclude: Sequence[str]
    ) -> Understood | None:
        """Read the query for fields, negation, identifiers and times, if the profile says so."""
        profile = setup.profile
        if profile.understanding == "plain" or not text.strip():
            return None
        documents, as_filter = self._collection.documents, profile.temporal == "filter"

        def holds(condition: Filter) -> bool:
            found = documents.page(both(where, condition), 0, len(exclude) + 1)
            return any(document.id not in exclude for _, document in found)

        def fields() -> list[str]:
            return documents.fields(where)

        found = understand(text, fields, holds, at, self._collection.analyzer.language, setup.timed)
        if as_filter and found.window is not None:
            dated = within(found.window.begin, found.window.end, fields())
            found = replace(found, where=both(found.where, dated), fields=(*found.fields, str(found.window)))
        return found

    def _legs(
        self, state: State, setup: Setup, has_vector: bool, has_text: bool, filtered: bool
    ) -> tuple[list[Leg], list[Degraded]]:
        """Build the legs that have a weight; one that cannot take part is degraded."""
        embedder = None
        if "dense" in setup.legs and state.model is not None:
            embedder = self._models.known.get(state.model.id) or self._models.embedder_of(state.model)
        context = LegContext(
            self._collection,
            state,
            has_text,
            has_vector,
            has_text and any(name in setup.legs for name in ("lexical", "trigram")),
            filtered,
            embedder,
            self._models.why_none,
            self._models.backlog.error,
        )
        legs: list[Leg] = []
        degraded: list[Degraded] = []
        for kind in setup.legs.values():
            leg = kind.build(context)
            if isinstance(leg, Degraded):
                degraded.append(leg)
            elif leg is not None:
                legs.append(leg)
                if leg.incomplete:
                    degraded.append(Degraded(leg.name, leg.incomplete, pending=True))
        return legs, degraded


def _leg_query(
    leg: str,
    text: str,
    state: State,
    scope: LegScope | None,
    vector: Vector | None,
    profile: Profile,
    understood: Understood | None,
) -> LegQuery:
    exact, lenient = (understood.identifiers, True) if understood else ((), False)
    gate, expansion = profile.gates.get(leg), profile.expansion
    sessions = not profile.context  # the context stage does what these edges do, for more candidates
    return LegQuery(text, state.version, scope, vector, profile.match, gate, exact, lenient, expansion, sessions)


def _text(request: SearchRequest) -> tuple[str, list[Degraded]]:
    """Return the cleaned query text, cut where it is too long."""
    query = request.query
    if not isinstance(query, str):
        raise InputError(f"query: {type(query).__name__} is not text")
    if not query.strip() and request.vector is None:
        raise InputError("query: it is empty; give at least one word, or list documents instead of searching")
    text = clean(query)
    if len(text) <= MAX_QUERY:
        return text, []
    return text[:MAX_QUERY], [Degraded("query", f"{len(text):,} characters; only the first {MAX_QUERY:,} were used")]


def _vector(given: Any, state: State) -> Vector | None:
    if given is None:
        return None
    if state.model is None:
        raise InputError(
            "vector: the collection has no model; create it with the embedder vectors:DIM to bring your own"
        )
    return validation.unit_vector(given, state.model.dim, "vector")


def valid_at(where: Filter | None, as_of: Any) -> Filter | None:
    """Add to the filter: valid at that time, from ``valid_from`` on and before ``valid_to``."""
    if as_of is None:
        return where
    moment = epoch(as_of, "as_of")
    # Exclude what is not valid: few documents have bounds and an index knows these, so the negation is quicker.
    valid = Not(Or((Range("valid_from", gt=moment), Range("valid_to", lte=moment))))
    return valid if where is None else And((where, valid))


def _is_plain(value: Any) -> bool:
    """Tell whether ``repr`` shows all of a value: numbers, texts, and lists and mappings of them."""
    if type(value) is dict:
        return all(_is_plain(part) for item in value.items() for part in item)
    return all(map(_is_plain, value)) if type(value) in (list, tuple) else type(value) in _PLAIN


def _offset(value: Any) -> int:
    if type(value) is not int:
        value = plain_value(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(f"offset: {value!r} is not a whole number from 0 up")
    return value


def _wordings(given: Any) -> tuple[str, ...]:
    """Return the other wordings of the query, cleaned as the query is."""
    if given is None:
        return ()
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise InputError(f"queries: {given!r} is not a list of texts: other wordings of the query")
    texts = list(given)
    if wrong := [text for text in texts if not isinstance(text, str)]:
        raise InputError(f"queries: {wrong[0]!r} is not text")
    if len(texts) > MAX_WORDINGS:
        raise InputError(f"queries: {len(texts)} wordings are too many; give up to {MAX_WORDINGS}")
    return tuple(text for text in (clean(text)[:MAX_QUERY] for text in texts) if text.strip())


def excluded(given: Any) -> tuple[str, ...]:
    """Return the ids to leave out, checked."""
    if not isinstance(given, Iterable):
        raise InputError(f"exclude: {given!r} is not an id or a list of ids")
    return tuple(validation.check_id(id, "exclude") for id in ((given,) if isinstance(given, str) else given))
