from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import trivet
from trivet.errors import EmbedderError, InputError, StoreError
from trivet.evaluate import Dataset, Lab, Run, Topic, load
from trivet.evaluate.lab import PATIENCE_MS
from trivet.filters import Eq
from trivet.fusion import FUSIONS
from trivet.fusion.normalize import NORMALIZERS
from trivet.fusion.weighing import WEIGHINGS
from trivet.models.embedders.hashing import Hashing
from trivet.profile import MATCHES, PROFILES, Profile, Step

WORDS = Profile(name="words", weights={"lexical": 1.0})
BOTH = Profile(name="both", weights={"lexical": 1.0, "dense": 1.3})
ALL_LEGS = Profile(name="all", weights={"lexical": 1.0, "trigram": 0.7, "dense": 1.3})


def told(run: Run) -> dict[str, Any]:
    """Everything but the time."""
    return {topic: replace(answer, ms=0.0) for topic, answer in run.answers.items()}


def check_equal(lab: Lab, profile: Profile, topics: Sequence[Topic] | None = None) -> Run:
    """The re-fusion path gives the shipped path's ids, scores, relevances, legs and degradations."""
    shipped, fused = lab.run(profile, topics), lab.rerun(profile, topics)
    assert told(fused) == told(shipped)
    assert all(answer.ms == 0.0 for answer in fused.answers.values())
    assert shipped.name == fused.name == profile.name
    return shipped


@pytest.fixture
def demo_topics(demo_lab: Lab) -> list[Topic]:
    """Some of every stratum, and all that are scoped."""
    by_stratum: dict[str, list[Topic]] = {}
    for topic in demo_lab.dataset.topics:
        by_stratum.setdefault(topic.stratum, []).append(topic)
    chosen = [topic for topics in by_stratum.values() for topic in topics[:1]]
    return [*chosen, *(topic for topic in demo_lab.dataset.topics if topic.where is not None and topic not in chosen)]


# ---- rerun is run


def patient(profile: Profile) -> Profile:
    """Return the profile without a time limit for the reader, which a busy machine would reach."""
    steps = [
        replace(step, options={"budget_ms": 600_000.0}) if step.name == "reader" else step for step in profile.rerankers
    ]
    return replace(profile, rerankers=tuple(steps))


@pytest.mark.parametrize("name", list(PROFILES))
def test_shipped_profiles_are_answered_alike(demo_lab: Lab, name: str) -> None:
    run = check_equal(demo_lab, patient(PROFILES[name]))
    assert list(run.answers) == [topic.id for topic in demo_lab.dataset.topics]
    assert sum(len(answer.ids) for answer in run.answers.values()) > 5 * len(run.answers)
    known = ("does not read", "in another script")  # the questions in a script that a model does not know
    late = [
        reason for one in run.answers.values() for reason in one.degraded if not any(map(reason.__contains__, known))
    ]
    assert late == []


@pytest.mark.parametrize("fusion", list(FUSIONS))
@pytest.mark.parametrize("normalize", list(NORMALIZERS))
def test_fusions_and_normalizers(demo_lab: Lab, demo_topics: list[Topic], fusion: str, normalize: str) -> None:
    # the trigrams of the demo's long notes take their time
    check_equal(demo_lab, replace(ALL_LEGS, fusion=fusion, normalize=normalize), demo_topics[:2])
    check_equal(demo_lab, replace(BOTH, fusion=fusion, normalize=normalize), demo_topics)


@pytest.mark.parametrize(
    "changes",
    [
        {"rrf_k": 2.0, "fusion": "rrf"},
        {"weighing": "query"},
        {"weighing": "query", "normalize": "zscore", "rerankers": ["dedup"]},
        {"alpha": 0.0},
        {"alpha": 1.0},
        {"dense_gate": 0.7, "lexical_gate": 4.0},
        {"trigram_gate": 0.6},
        {"min_relevance": 0.35},
        {"min_relevance": 0.999},
        {"k": 1},
        {"k": 3, "depths": {"lexical": "2k", "dense": "k+1", "trigram": "1k"}},
        {"k": 25, "depths": {"lexical": "2k", "dense": "k+1", "trigram": "1k"}},
        {"depths": {"lexical": 4, "trigram": 3, "dense": 5}, "k": 2},
        {"match": "all"},
        {"match": "any"},
        {"rerankers": ["dedup", "exact"], "pool": 5},
        {"rerankers": [{"name": "importance", "floor": 0.1}], "pool": 40},
        {"rerankers": [{"name": "composite", "recency": 0.6, "half_life": 0.01}], "min_relevance": 0.2},
        {"rerankers": [{"name": "dedup", "limit": 2}]},
    ],
    ids=str,
)
def test_settings(demo_lab: Lab, demo_topics: list[Topic], changes: dict[str, Any]) -> None:
    check_equal(demo_lab, ALL_LEGS.with_changes(changes), demo_topics[:5])
    check_equal(demo_lab, BOTH.with_changes(changes), demo_topics)


def test_unanswerable_topics(demo_lab: Lab) -> None:
    check_equal(demo_lab, PROFILES["default"], demo_lab.dataset.unanswerable)


def test_the_shipped_path_is_search(demo_lab: Lab, demo_topics: list[Topic]) -> None:
    run = demo_lab.run(PROFILES["default"], demo_topics)
    for topic in demo_topics:
        found = demo_lab.engine.search(topic.text, where=topic.where, profile="default")
        assert run.answers[topic.id].ids == tuple(hit.id for hit in found)
        assert run.answers[topic.id].scores == tuple(hit.score for hit in found)
        heads = tuple(tuple(part.leg for part in hit.contributions if part.rank <= len(found)) for hit in found)
        assert run.answers[topic.id].legs == heads
        assert run.answers[topic.id].ms > 0


LEGS = ("lexical", "trigram", "dense")
DEPTHS = st.one_of(st.integers(1, 70), st.sampled_from(["1k", "2k", "k+3", "3k+1"]))
RERANKERS = st.lists(
    st.sampled_from(
        [
            Step("dedup"),
            Step("dedup", {"limit": 3}),
            Step("exact"),
            Step("importance", {"floor": 0.3}),
            Step("composite", {"recency": 0.5, "half_life": 20.0}),
            Step("composite", {"form": "multiplicative"}),
        ]
    ),
    max_size=2,
    unique_by=lambda step: step.name,
)
PROFILE = st.builds(
    Profile,
    name=st.just("random"),
    k=st.integers(1, 30),
    weights=st.fixed_dictionaries({leg: st.sampled_from([0.0, 0.3, 1.0, 5.0]) for leg in LEGS}).filter(
        lambda weights: any(weights.values())
    ),
    weighing=st.sampled_from(list(WEIGHINGS)),
    depths=st.fixed_dictionaries(dict.fromkeys(LEGS, DEPTHS)),
    gates=st.fixed_dictionaries(
        {}, optional={"lexical": st.floats(0, 6), "trigram": st.floats(0, 1), "dense": st.floats(-1, 1)}
    ),
    match=st.sampled_from(MATCHES),
    fusion=st.sampled_from(list(FUSIONS)),
    normalize=st.sampled_from(list(NORMALIZERS)),
    rrf_k=st.sampled_from([0.0, 2.0, 60.0]),
    pool=DEPTHS,
    rerankers=RERANKERS.map(tuple),
    min_relevance=st.sampled_from([0.0, 0.0, 0.1, 0.5]),
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(profile=PROFILE)
def test_any_profile_is_answered_alike(small_lab: Lab, profile: Profile) -> None:
    """One lab for all examples: what an earlier one left in memory must not show in a later one."""
    check_equal(small_lab, profile)


def test_the_order_of_calls_does_not_matter(small_lab: Lab) -> None:
    profiles = [
        ALL_LEGS,
        replace(ALL_LEGS, k=3, gates={"dense": 0.4}),
        replace(ALL_LEGS, match="all", fusion="rrf"),
        replace(ALL_LEGS, depths={"lexical": "2k", "dense": 7}, k=4, rerankers=(Step("dedup"),)),
        WORDS,
    ]
    right = [told(small_lab.run(profile)) for profile in profiles]
    assert len({str(each) for each in right}) == len(profiles)  # they differ, or the test shows nothing
    for order in ([0, 1, 0, 2, 3, 4, 0], [4, 3, 2, 1, 0, 1, 2]):
        for at in order:
            assert told(small_lab.rerun(profiles[at])) == right[at]


def test_the_same_question_in_several_scopes(small_lab: Lab) -> None:
    scopes = [None, *(Eq("scope", f"room-{room}") for room in range(3)), Eq("year", 2001)]
    topics = [Topic(f"t{at}", "the kettle by the gate", where=where) for at, where in enumerate(scopes)]
    answers = check_equal(small_lab, replace(ALL_LEGS, k=60), topics).answers
    assert len({answer.ids for answer in answers.values()}) == len(topics)
    assert told(small_lab.rerun(replace(ALL_LEGS, k=60), topics[::-1])) == told(Run("", answers))


def test_what_the_legs_say_is_the_same_before_anything_is_made_of_it(small_lab: Lab) -> None:
    rankings = small_lab.rankings(ALL_LEGS)
    run = small_lab.run(replace(ALL_LEGS, k=60, pool=60))
    for topic, answer in run.answers.items():
        by_leg = {ranking.leg: len(ranking) for ranking in rankings[topic]}
        assert by_leg == {leg: sum(leg in legs for legs in answer.legs) for leg in by_leg}


def test_legs_are_asked_once(small: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    real = trivet.engine.leg_threads.LegThreads.rank

    def counted(self: Any, leg: Any, question: Any, depth: int) -> Any:
        asked.append(leg.name)
        return real(self, leg, question, depth)

    with Lab.fill(small, embedder="hashing:64", cache=tmp_path) as lab:
        lab.run(ALL_LEGS)
        monkeypatch.setattr(trivet.engine.leg_threads.LegThreads, "rank", counted)
        lab.rerun(ALL_LEGS)
        assert len(asked) == 3 * len(small.topics)
        lab.rerun(replace(ALL_LEGS, fusion="rrf", weights={"lexical": 1.0, "dense": 0.1}, min_relevance=0.1))
        assert len(asked) == 3 * len(small.topics)
        lab.rerun(replace(ALL_LEGS, depths={"dense": 33}))
        assert len(asked) == 4 * len(small.topics)


# ---- self-matches


@pytest.mark.parametrize("profile", [ALL_LEGS, WORDS, PROFILES["default"]], ids=lambda profile: profile.name)
def test_self_matches_are_dropped_on_request(small: Dataset, small_lab: Lab, profile: Profile) -> None:
    plain = check_equal(small_lab, replace(profile, rerankers=()))
    assert "q3" in plain.answers["q3"].ids[:2]
    without = check_equal(Lab(small, small_lab.engine, drop_self=True), replace(profile, rerankers=()))
    assert "q3" not in without.answers["q3"].ids and "d7" in without.answers["q3"].ids
    for topic in ("q0", "q1", "q2", "q5"):  # nothing is called like these
        assert without.answers[topic] == replace(plain.answers[topic], ms=without.answers[topic].ms)


def test_a_scope_holds_beside_a_dropped_self_match(small: Dataset, small_lab: Lab) -> None:
    scoped = replace(small.topics[1], id="d1")  # in room-1 itself
    lab = Lab(replace(small, topics=(scoped,), qrels={"d1": {"d4": 1}}), small_lab.engine, drop_self=True)
    ids = check_equal(lab, replace(ALL_LEGS, k=100)).answers["d1"].ids
    assert "d1" not in ids
    rooms = {document["id"]: document["meta"]["scope"] for document in small.documents}
    assert {rooms[id] for id in ids} == {"room-1"}


# ---- without a model, and when a part does not answer


def test_a_lab_without_a_model(small: Dataset) -> None:
    with Lab.fill(small, embedder="none") as lab:
        assert lab.model is None and lab.embedding_ms() == []
        run = check_equal(lab, PROFILES["default"])
        for answer in run.answers.values():
            assert [reason for reason in answer.degraded if reason.startswith("dense: found by words alone")]
            legs = {leg for item in answer.legs for leg in item}  # some none: dedup made room for one further down
            assert legs <= {"lexical", "graph"}
        assert not any(answer.degraded for answer in check_equal(lab, WORDS).answers.values())
        for ask in (lab.run, lab.rerun):
            with pytest.raises(StoreError, match="no leg answered: dense"):
                ask(PROFILES["episodes"])


class Moody(Hashing):
    """Does not embed questions while ``away``, and takes its time when told."""

    away = False
    seconds = 0.0

    def embed_queries(self, texts: list[str]) -> Any:
        time.sleep(self.seconds)
        if self.away:
            raise EmbedderError("the endpoint is away")
        return super().embed_queries(texts)


@pytest.fixture
def moody(small: Dataset) -> Iterator[tuple[Lab, Moody]]:
    """A lab over a caller's own engine."""
    model = Moody(64)
    with trivet.open(":memory:", embedder=model) as engine:
        engine.add(list(small.documents))
        engine.wait()
        yield Lab(small, engine), model


def test_degraded_answers_are_carried(moody: tuple[Lab, Moody]) -> None:
    lab, model = moody
    whole = check_equal(lab, PROFILES["default"])
    model.away = True
    half = lab.run(replace(PROFILES["default"], k=11))
    for answer in half.answers.values():
        assert answer.degraded == ("dense: the endpoint is away",)
    assert told(lab.rerun(PROFILES["default"])) == told(whole)  # what the legs said before is still known
    model.away = False


def test_a_leg_that_failed_is_asked_again(moody: tuple[Lab, Moody]) -> None:
    lab, model = moody
    model.away = True
    failed = lab.rerun(PROFILES["default"])
    assert all(answer.degraded == ("dense: the endpoint is away",) for answer in failed.answers.values())
    model.away = False
    check_equal(lab, PROFILES["default"])


def test_a_leg_that_was_late_is_not_left_out_for_good(moody: tuple[Lab, Moody]) -> None:
    """Time limits are the product's; what is fused anew has no time."""
    lab, model = moody
    right = told(lab.run(ALL_LEGS))
    model.seconds = 0.01
    assert told(lab.rerun(replace(ALL_LEGS, timeouts=dict.fromkeys(LEGS, 1.0)))) == right


def test_the_first_question_waits_for_the_indexes(
    small: Dataset, small_lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index of trigrams over 65,000 abstracts takes a minute to build: the limit of a search must not cut it off."""
    limits: list[float] = []
    search = small_lab.engine.search

    def watched(*given: Any, **options: Any) -> Any:
        limits.append(options["profile"].timeouts["trigram"])
        return search(*given, **options)

    monkeypatch.setattr(small_lab.engine, "search", watched)
    lab = Lab(small, small_lab.engine)
    lab.run(WORDS)
    lab.run(ALL_LEGS)
    lab.run(ALL_LEGS)
    own, count = ALL_LEGS.timeouts["trigram"], len(small.topics)
    assert limits == [own] * (1 + count) + [PATIENCE_MS] + [own] * 2 * count


# ---- moments


def test_every_topic_is_asked_at_one_moment(small: Dataset, small_lab: Lab) -> None:
    """Freshness would differ from one run to the next if each asked for the time."""
    fresh = Profile(name="fresh", rerankers=(Step("composite", {"recency": 1.0, "half_life": 0.01}),))
    first = told(small_lab.run(fresh))
    time.sleep(0.05)
    assert told(small_lab.run(fresh)) == first == told(small_lab.rerun(fresh))


def test_a_topics_own_moment_is_when_it_is_asked(tmp_path: Path) -> None:
    documents = [
        {"id": "old", "text": "the bell rings", "created": "2020-01-01T00:00:00Z", "updated": "2020-01-01T00:00:00Z"},
        {"id": "new", "text": "the bell rings", "created": "2024-01-01T00:00:00Z", "updated": "2024-01-01T00:00:00Z"},
    ]
    topics = (Topic("then", "bell", at="2020-01-31T00:00:00"), Topic("later", "bell", at="2024-01-31T00:00:00"))
    dataset = Dataset("bells", "test", documents, topics, {topic.id: {"old": 1} for topic in topics}, "0")
    fresh = replace(WORDS, rerankers=(Step("composite", {"relevance": 0.0, "recency": 1.0, "importance": 0.0}),))
    with Lab.fill(dataset, embedder="none") as lab:
        run = check_equal(lab, fresh)
        score = {topic: dict(zip(answer.ids, answer.scores, strict=True)) for topic, answer in run.answers.items()}
        assert score["then"] == {"new": 1.0, "old": pytest.approx(0.5)}  # a half-life of 30 days
        assert score["later"]["new"] == pytest.approx(0.5) and score["later"]["old"] < 1e-9


# ---- filling and closing


def test_filling_tells_how_far_it_is(small: Dataset, tmp_path: Path) -> None:
    steps: list[tuple[str, int, int]] = []

    def note(step: str, done: int, total: int) -> None:
        steps.append((step, done, total))

    with Lab.fill(small, embedder="hashing:64", cache=tmp_path, progress=note) as lab:
        assert ("add", 60, 60) in steps and ("embed", 60, 60) in steps
        assert lab.model == "hashing/64/1"
        lab.run(WORDS, progress=note)
        lab.rerun(WORDS, small.topics[:2], progress=note)
    assert steps[-2:] == [("ask", 9, 9), ("fuse", 2, 2)]


def test_what_fill_made_is_gone_at_close(small: Dataset, tmp_path: Path) -> None:
    with Lab.fill(small, embedder="none") as lab:
        engine = lab.engine
        assert engine.stats().documents == 60
    with pytest.raises(StoreError, match="closed"):
        engine.search("kettle")


def test_a_callers_engine_stays_open(small: Dataset, open_store: Callable[..., Any]) -> None:
    engine = open_store()
    engine.add(list(small.documents))
    with Lab(small, engine) as lab:
        check_equal(lab, WORDS)
    assert engine.search("kettle").hits


def test_a_model_that_fails_is_told(small: Dataset, tmp_path: Path) -> None:
    class Broken(Hashing):
        def embed_passages(self, texts: list[str]) -> Any:
            raise RuntimeError("the weights are gone")

    with pytest.raises(EmbedderError, match="the weights are gone"):
        Lab.fill(small, embedder=Broken(64), cache=tmp_path)


def test_a_document_the_store_refuses_is_told(small: Dataset, tmp_path: Path) -> None:
    broken = replace(small, documents=[*small.documents, {"id": "x", "text": "y", "meta": {"a": float("nan")}}])
    with pytest.raises(InputError, match="'x'"):
        Lab.fill(broken, embedder="hashing:64", cache=tmp_path)


def test_without_topics_there_is_nothing_to_ask(small_lab: Lab) -> None:
    for ask in (small_lab.run, small_lab.rerun):
        with pytest.raises(InputError, match="there is none to ask"):
            ask(WORDS, ())


def test_a_run_may_be_named(small_lab: Lab) -> None:
    assert small_lab.run(WORDS, name="mine").name == small_lab.rerun(WORDS, name="mine").name == "mine"


def test_embedding_is_timed_past_every_cache(small: Dataset, tmp_path: Path) -> None:
    """A model keeps the last queries: the second profile's would take no time at all."""

    class Listening(Hashing):
        def embed_queries(self, texts: list[str]) -> Any:
            asked.extend(texts)
            return super().embed_queries(texts)

    asked: list[str] = []
    with Lab.fill(small, embedder=Listening(64), cache=tmp_path) as lab:
        lab.run(PROFILES["default"])
        for _ in range(2):
            spent = lab.embedding_ms()
            assert len(spent) == len(small.topics) - 3 and min(spent) > 0
    assert len(asked) == len(set(asked)) == 3 * len(small.topics)
    assert {text.strip() for text in asked} == {topic.text for topic in small.topics}


def test_the_demo_is_found(demo_lab: Lab) -> None:
    """The lab's first use: most of the demo's questions have a right note among the first five."""
    dataset = load("demo")
    run = demo_lab.run(PROFILES["default"])
    found = sum(
        any(dataset.qrels[topic].get(id, 0) > 0 for id in run.answers[topic].ids[:5]) for topic in dataset.qrels
    )
    assert found / len(dataset.qrels) > 0.8
