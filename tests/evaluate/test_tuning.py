"""Tuning finds planted gains, keeps the start without one, and reports no more than the test shows."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import trivet
from trivet.errors import InputError
from trivet.evaluate import tuning
from trivet.evaluate.dataset import Dataset, Topic
from trivet.evaluate.lab import Lab
from trivet.evaluate.space import Space
from trivet.evaluate.tuning import choose, deal, held_out, tune
from trivet.evaluate.tuning_result import Tuned, differences
from trivet.filters import Eq
from trivet.profile import PROFILES, Profile, named

pytest.importorskip("ir_measures")
pytest.importorskip("scipy.stats")

QUESTIONS = 44
#: Words count most, and here they mislead: on three questions in four only meaning knows the answer.
WORDY = Profile(name="wordy", normalize="minmax").with_changes({"alpha": 0.1})
BALANCE = Space(({"alpha": (0.1, 0.3, 0.5, 0.7, 0.9)},))


class Knowing:
    """An embedder for which ``key7`` and ``answer7`` mean the same, and nothing else means anything alike."""

    id = spec = "knowing"
    dim = QUESTIONS + 1
    unrelated = 0.0

    def embed_queries(self, texts: list[str]) -> Any:
        return self._embed(texts)

    def embed_passages(self, texts: list[str]) -> Any:
        return self._embed(texts)

    def _embed(self, texts: list[str]) -> Any:
        rows = np.zeros((len(texts), self.dim), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            known = re.search(r"(?:key|answer)(\d+)", text)
            row[int(known[1]) if known else QUESTIONS] = 1.0
        return rows


def documents() -> list[dict[str, Any]]:
    right = [{"id": f"right{n}", "text": f"answer{n} plain{n}", "title": "", "meta": {}} for n in range(QUESTIONS)]
    decoys = [{"id": f"decoy{n}", "text": f"story{n} told{n} again", "title": "", "meta": {}} for n in range(QUESTIONS)]
    return right + decoys


def topic(number: int) -> Topic:
    """Meaning finds the answer and words find the decoy; of every fourth it is the other way round."""
    other = (number + 1) % QUESTIONS
    text = f"plain{number} key{other}" if number % 4 == 0 else f"story{number} told{number} key{number}"
    return Topic(f"t{number:02}", text, stratum=f"s{number % 3}")


def dataset(numbers: Sequence[int] = range(QUESTIONS)) -> Dataset:
    topics = tuple(topic(number) for number in numbers)
    qrels = {topic.id: {f"right{int(topic.id[1:])}": 1} for topic in topics}
    return Dataset("planted", "test", documents(), topics, qrels, f"digest{len(numbers)}")


@pytest.fixture(scope="module")
def engine() -> Iterator[trivet.Engine]:
    with trivet.open(":memory:", embedder=Knowing()) as engine:
        engine.add(documents())
        engine.wait()
        yield engine


@pytest.fixture(scope="module")
def lab(engine: trivet.Engine) -> Lab:
    return Lab(dataset(), engine)


@pytest.fixture(scope="module")
def found(lab: Lab) -> Tuned:
    return tune(lab, WORDY, space=BALANCE)


@pytest.fixture(scope="module")
def doubtful(engine: trivet.Engine) -> Lab:
    """Meaning is right on 24 questions and words on 16: more than its own noise, and less than anybody should go by."""
    by_meaning, by_words = ([n for n in range(QUESTIONS) if bool(n % 4) is known] for known in (True, False))
    topics = [topic(n) for n in by_meaning[:24]]
    topics += [Topic(f"t{n:02}", f"plain{n} key{(n + 1) % QUESTIONS}") for n in [*by_words, *by_meaning[24:29]]]
    qrels = {each.id: {f"right{int(each.id[1:])}": 1} for each in topics}
    return Lab(replace(dataset(), topics=tuple(topics), qrels=qrels), engine)


@pytest.fixture(scope="module")
def by_luck(engine: trivet.Engine) -> Callable[[int], Lab]:
    """Judgements dealt at random among what any of the profiles shows: some profile is always best."""
    shown = [Lab(dataset(), engine).rerun(WORDY.with_changes({"alpha": alpha})) for alpha in (0.1, 0.9)]

    def dealt(seed: int) -> Lab:
        dice = random.Random(seed)
        qrels = {each.id: {dice.choice(dice.choice(shown).answers[each.id].ids): 1} for each in dataset().topics}
        return Lab(replace(dataset(), qrels=qrels), engine)

    return dealt


class TestTune:
    def test_a_planted_optimum_is_found(self, found: Tuned) -> None:
        assert found.changed
        assert found.profile.weights["dense"] > 0.5
        assert found.profile.name == "tuned"
        assert (found.topics, found.folds, found.tried) == (QUESTIONS, 5, 5)
        assert found.pair.n == QUESTIONS
        assert found.pair.difference == pytest.approx(0.3691 / 2, abs=1e-4)  # a second place is worth 0.6309
        assert found.p < 0.05
        assert found.reason.startswith("changed alpha 0.1 -> 0.")
        assert "out of sample" in found.reason
        assert found.warnings == ()

    def test_a_planted_optimum_is_kept(self, lab: Lab, found: Tuned) -> None:
        again = tune(lab, found.profile, space=BALANCE)
        assert again.profile is found.profile
        assert not again.changed
        assert again.reason == "kept tuned: no other setting (of 4) gains more than its own noise"

    def test_the_default_space_finds_it_too(self, lab: Lab) -> None:
        seen: list[tuple[str, int, int]] = []
        found = tune(lab, WORDY, progress=lambda *told: seen.append(told))
        assert found.changed
        assert seen[-1] == ("tune", found.tried, found.tried)
        assert len(seen) == found.tried > 30

    @pytest.mark.parametrize("seed", range(8))
    def test_what_is_right_by_chance_changes_nothing(self, by_luck: Callable[[int], Lab], seed: int) -> None:
        found = tune(by_luck(seed), WORDY.with_changes({"alpha": 0.5}), space=BALANCE)
        assert not found.changed
        assert found.profile is found.start
        assert found.reason.startswith("kept wordy: ")

    def test_what_each_fold_chose_is_kept(self, found: Tuned) -> None:
        assert len(found.chosen) == 5 * tuning.REPEATS
        assert all(item["alpha"] > 0.5 for item in found.chosen)
        assert sum(found.votes.values()) == len(found.chosen)

    def test_the_same_seed_gives_the_same_whatever_the_order(
        self, by_luck: Callable[[int], Lab], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tuning, "CAUTION", 0.0)  # every fold has a favourite
        lab, start = by_luck(0), WORDY.with_changes({"alpha": 0.5})
        topics = lab.dataset.topics
        shuffled = replace(lab.dataset, topics=tuple(random.Random(1).sample(topics, len(topics))))
        found = tune(lab, start, space=BALANCE)
        assert len(found.votes) > 1
        assert tune(Lab(shuffled, lab.engine), start, space=BALANCE) == found
        assert tune(lab, start, space=BALANCE, seed=1).chosen != found.chosen

    def test_another_measure(self, lab: Lab) -> None:
        found = tune(lab, WORDY, space=BALANCE, measure="mrr@5")
        assert found.measure == found.pair.measure == "RR@5"
        assert found.changed

    def test_too_few_topics_change_nothing_and_it_says_so(self, engine: trivet.Engine) -> None:
        few = [number for number in range(16) if number % 4]
        found = tune(Lab(dataset(few), engine), WORDY, space=BALANCE)
        assert found.pair.wins == 12
        assert found.p < 0.05
        assert not found.changed
        assert found.profile is WORDY
        assert "too few topics (12) to decide" in found.reason
        assert "judge 18 more" in found.warnings[0]

    def test_a_gain_that_is_not_shown_is_told_as_such(self, doubtful: Lab) -> None:
        found = tune(doubtful, WORDY, space=BALANCE)
        assert found.proposed.weights["dense"] > 0.5
        assert found.pair.difference > 0
        assert 0.05 < found.p < 0.5
        assert not found.changed
        assert found.profile is WORDY
        assert found.reason.startswith("kept wordy: a gain from changing alpha 0.1 -> 0.")
        assert "is not shown" in found.reason
        needed = re.search(r"about ([\d,]+) topics would be needed", found.warnings[0])
        assert needed
        assert int(needed[1].replace(",", "")) > 40

    def test_without_a_model_trigrams_are_weighed(self) -> None:
        with trivet.open(":memory:", embedder="none") as engine:
            engine.add(documents())
            found = tune(Lab(dataset(), engine), named("default"))
        assert found.tried == 5
        assert {name for item in found.chosen for name in item} <= {"trigram_weight"}
        assert any("dense" in warning for warning in found.warnings)
        assert found.model is None

    def test_what_only_trigrams_find_is_learnt_without_a_model(self) -> None:
        topics = tuple(Topic(f"t{n:02}", f"plian{n}{n}{n}") for n in range(40))
        with trivet.open(":memory:", embedder="none") as engine:
            engine.add([{"id": f"d{n}", "text": f"plain{n}{n}{n}"} for n in range(40)])
            qrels = {topic.id: {f"d{n}": 1} for n, topic in enumerate(topics)}
            found = tune(Lab(Dataset("typos", "test", (), topics, qrels, "d"), engine), Profile())
        assert found.changed
        assert found.profile.weights["trigram"] > 0
        assert found.profile.weights["dense"] == 0.5  # a model may come yet

    def test_a_single_leg_that_nothing_can_be_weighed_against_is_refused(self) -> None:
        with trivet.open(":memory:", embedder="none") as engine:
            engine.add(documents())
            only = Profile(weights={"trigram": 1.0})
            with pytest.raises(InputError, match="nothing but the profile to start from"):
                tune(Lab(dataset(), engine), only)


class TestHoldout:
    LEARNT, KEPT = range(14), range(14, QUESTIONS)

    def test_it_is_judged_on_the_held_out_topics_alone(self, engine: trivet.Engine) -> None:
        held = dataset(self.KEPT)
        found = tune(Lab(dataset(self.LEARNT), engine), WORDY, space=BALANCE, holdout=held)
        assert found.changed
        assert (found.topics, found.pair.n, found.folds) == (14, 30, 1)
        assert found.holdout == held.identity
        assert len(found.chosen) == 1
        assert "too few judged topics: 14; at least 30 are needed" in found.warnings[0]

    def test_the_choice_does_not_look_at_them(self, engine: trivet.Engine) -> None:
        held = dataset(self.KEPT)
        wrong = replace(held, qrels={topic.id: {"decoy0": 1} for topic in held.topics})
        one, other = (
            tune(Lab(dataset(self.LEARNT), engine), WORDY, space=BALANCE, holdout=each) for each in (held, wrong)
        )
        assert one.proposed == other.proposed
        assert not other.changed
        assert other.profile is WORDY

    @pytest.mark.parametrize(
        ("holdout", "told"),
        [
            (lambda: dataset(range(10, QUESTIONS)), "it shares topics with planted/test#digest14: 4 of 34"),
            (
                lambda: replace(dataset(range(14, 44)), topics=(Topic("t03", "other words"),)),
                "it shares topics with planted/test#digest14: 1 of 1",
            ),
            (
                lambda: replace(dataset(range(14, 44)), topics=(Topic("other", "STORY1 told1, key1?"),)),
                "every query of planted/test#digest30 is also in planted/test#digest14",
            ),
            (lambda: replace(dataset(range(14, 44)), documents=documents()[:-1]), "about other documents"),
        ],
    )
    def test_one_that_proves_nothing_is_refused(
        self, engine: trivet.Engine, holdout: Callable[[], Dataset], told: str
    ) -> None:
        with pytest.raises(InputError, match=told):
            tune(Lab(dataset(self.LEARNT), engine), WORDY, space=BALANCE, holdout=holdout())

    def test_a_question_that_was_learnt_from_is_left_out_and_counted(self, engine: trivet.Engine) -> None:
        held = dataset(self.KEPT)
        twin = Topic("twin", "STORY1 told1, key1?")
        twice = replace(held, topics=(*held.topics, twin), qrels={**held.qrels, "twin": {"right1": 1}})
        found = tune(Lab(dataset(self.LEARNT), engine), WORDY, space=BALANCE, holdout=twice)
        assert found.pair.n == 30
        assert "hold-out queries that are training queries too, left out: 1" in found.warnings

    def test_the_same_words_in_another_scope_are_another_question(self, engine: trivet.Engine) -> None:
        twin = replace(topic(1), id="twin", where=Eq("id", "right1"))
        held = replace(dataset(self.KEPT), topics=(twin,), qrels={"twin": {"right1": 1}})
        assert tune(Lab(dataset(self.LEARNT), engine), WORDY, space=BALANCE, holdout=held).pair.n == 1


class TestEvidence:
    def test_a_tuned_profile_comes_back_from_toml(self, found: Tuned) -> None:
        text = found.to_toml()
        assert Profile.from_toml(text) == found.profile
        head = text.split("\n\n")[0].splitlines()
        assert all(line.startswith("# ") for line in head)
        for said in (
            found.dataset,
            "44 judged topics",
            "5-fold cross-validation",
            "nDCG@10",
            f"{found.pair.mean_baseline:.4f}",
            f"{found.pair.mean_challenger:.4f}",
            f"{found.pair.low:+.4f} to {found.pair.high:+.4f}",
            f"one-sided p = {found.p:.4f}",
            found.made["commit"],
            found.made["at"],
            "knowing",
            WORDY.identity,
        ):
            assert said in "\n".join(head)

    def test_a_kept_one_comes_back_as_it_was(self, engine: trivet.Engine) -> None:
        kept = tune(Lab(dataset(range(12)), engine), PROFILES["composite"], space=BALANCE)
        assert not kept.changed
        assert Profile.from_toml(kept.to_toml()) == PROFILES["composite"]
        assert "# warning: " in kept.to_toml()

    def test_a_hold_out_is_named(self, engine: trivet.Engine) -> None:
        held = dataset(TestHoldout.KEPT)
        text = tune(Lab(dataset(TestHoldout.LEARNT), engine), WORDY, space=BALANCE, holdout=held).to_toml()
        assert f"a hold-out: {held.identity}, 30 topics" in text

    def test_no_name_of_a_folder_breaks_the_toml(self, found: Tuned) -> None:
        odd = replace(found, dataset='a\nname = "b"\x00/test#1')
        assert Profile.from_toml(odd.to_toml()) == found.profile

    def test_it_goes_to_json(self, found: Tuned) -> None:
        plain = json.loads(json.dumps(found.to_dict()))
        assert plain["changed"] is True
        assert Profile.from_dict(plain["profile"]) == found.profile
        assert plain["pair"]["difference"] == found.pair.difference
        assert plain["p"] == found.pair.p / 2
        assert len(plain["chosen"]) == len(found.chosen)

    def test_p_is_one_sided(self, found: Tuned) -> None:
        assert replace(found, pair=replace(found.pair, difference=-0.1, p=0.02)).p == pytest.approx(0.99)
        assert replace(found, pair=replace(found.pair, difference=0.1, p=0.02)).p == pytest.approx(0.01)

    def test_differences_name_what_ranks_and_nothing_else(self) -> None:
        other = named("snippets").with_changes({"fusion": "convex", "normalize": "dbsf", "alpha": 0.25, "k": 5})
        assert differences(named("snippets"), other) == "alpha 0.5 -> 0.25, fusion rrf -> convex, normalize dbsf"
        assert differences(WORDY, WORDY.with_changes({"rrf_k": 5, "trigram_depth": 9})) == ""
        deeper = WORDY.with_changes({"dense_depth": "2k", "rerankers": ["dedup"]})
        assert differences(WORDY, deeper) == "dense_depth 100 -> 2k, rerankers  -> dedup"


class TestChoose:
    def test_nothing_gained_is_the_start(self) -> None:
        assert choose(np.zeros((10, 3))) == 0
        assert choose(np.array([[0.0, -0.1, 0.0]] * 10)) == 0

    def test_the_surer_gain_is_worth_more_than_the_larger(self) -> None:
        sure = np.full(16, 0.05)
        wild = np.array([0.9, -0.7] * 8)  # mean 0.1, standard error 0.21
        assert choose(np.stack([np.zeros(16), wild, sure], axis=1)) == 2
        assert choose(np.stack([np.zeros(16), wild], axis=1)) == 0

    def test_more_topics_make_it_sure(self) -> None:
        wild = np.array([0.9, -0.7] * 500)
        assert choose(np.stack([np.zeros(1000), wild, np.full(1000, 0.05)], axis=1)) == 1

    def test_one_topic_is_nothing_to_go_by(self) -> None:
        assert choose(np.array([[0.0, 1.0]])) == 0


class TestOutOfSample:
    def test_no_topic_is_judged_by_what_it_chose_itself(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Each candidate is the best there is, for one topic; for any other it is a loss."""
        monkeypatch.setattr(tuning, "CAUTION", 0.0)
        topics = [Topic(f"t{n}", f"question number{n}") for n in range(20)]
        table = np.full((20, 21), 0.4)
        table[:, 0] = 0.5
        table[range(20), range(1, 21)] = 10.0
        assert choose(table - table[:, :1]) > 0
        after, picked = tuning._cross_validate(table, held_out(topics, 5, 0))
        assert np.allclose(after, 0.4)
        assert len(picked) == 5 * tuning.REPEATS

    def test_every_repeat_deals_anew(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tuning, "CAUTION", 0.0)
        topics = [Topic(f"t{n}", f"question number{n}") for n in range(20)]
        table = np.random.default_rng(3).normal(size=(20, 9))
        _, picked = tuning._cross_validate(table, held_out(topics, 5, 0))
        assert len({tuple(picked[start : start + 5]) for start in range(0, len(picked), 5)}) > 1


class TestDeal:
    TOPICS = tuple(Topic(f"t{n}", f"question number{n}", stratum="rare" if n < 10 else "common") for n in range(53))

    def test_folds_are_disjoint_cover_all_and_are_level(self) -> None:
        sizes = Counter(deal(self.TOPICS, 5, 0))
        assert sorted(sizes) == [0, 1, 2, 3, 4]
        assert sum(sizes.values()) == 53
        assert set(sizes.values()) == {10, 11}

    def test_every_stratum_is_spread(self) -> None:
        folds = deal(self.TOPICS, 5, 0)
        assert Counter(folds[:10]) == dict.fromkeys(range(5), 2)

    def test_a_seed_is_a_deal(self) -> None:
        assert deal(self.TOPICS, 5, 1) == deal(self.TOPICS, 5, 1)
        assert deal(self.TOPICS, 5, 1) != deal(self.TOPICS, 5, 2)

    @pytest.mark.parametrize("seed", range(5))
    def test_a_question_asked_twice_is_in_one_fold(self, seed: int) -> None:
        twins = [replace(topic, id=f"{topic.id}b", text=f"  {topic.text.upper()}?") for topic in self.TOPICS]
        folds = deal([*self.TOPICS, *twins], 5, seed)
        assert folds[:53] == folds[53:]

    def test_too_few_questions_for_the_folds(self) -> None:
        with pytest.raises(InputError, match=r"folds: 5 is more than the number of different queries \(4\)"):
            deal([*self.TOPICS[:4], replace(self.TOPICS[0], id="again")], 5, 0)


class TestSpace:
    @pytest.mark.parametrize("name", list(PROFILES))
    def test_around_every_profile_there_is_something_to_choose(self, name: str) -> None:
        start = named(name)
        choices = Space.around(start).candidates(start)
        assert choices[0].profile is start
        assert choices[0].changes == {}
        digests = [choice.profile.identity for choice in choices]
        assert len(set(digests)) == len(digests)
        assert 30 < len(digests) < 200
        kept = ("k", "min_relevance", "timeouts", "rerankers", "gates", "match", "name")
        assert all(getattr(choice.profile, each) == getattr(start, each) for choice in choices for each in kept)

    def test_around_a_start_of_another_fusion_its_own_is_tried(self) -> None:
        start = Profile(fusion="comb_mnz")
        found = {choice.profile.fusion for choice in Space.around(start).candidates(start)}
        assert found == {"comb_mnz", "convex", "rrf"}

    def test_trigrams_only_where_the_start_asks_them(self) -> None:
        asked = {
            name: {choice.profile.weights["trigram"] for choice in Space.around(named(name)).candidates(named(name))}
            for name in ("default", "chunks")
        }
        assert asked == {"default": {0.0}, "chunks": {0.0, 0.75, 1.5, 3.0}}
        wanted = Space.around(named("default"), trigrams=True).candidates(named("default"))
        assert {choice.profile.weights["trigram"] for choice in wanted} == {0.0, 0.1, 0.2, 0.4, 0.8}

    def test_the_start_keeps_its_weighing_unless_that_is_tried_too(self) -> None:
        start = Profile(weighing="query")
        alone = Space(({"alpha": (0.2,)},)).candidates(start)[1]
        assert alone.profile.weighing == "query"
        assert alone.changes == {"alpha": 0.2}
        fixed = Space(({"alpha": (0.2,), "weighing": ("fixed",)},)).candidates(start)[1]
        assert fixed.profile.weighing == "fixed"

    def test_two_that_rank_alike_are_one(self) -> None:
        assert len(Space(({"alpha": (0.5, 0.3)}, {"alpha": (0.3, 0.5)})).candidates(Profile())) == 2

    @pytest.mark.parametrize(
        ("grid", "told"),
        [
            ({"alhpa": (0.1, 0.2)}, "alhpa: unknown setting; did you mean 'alpha'"),
            ({"alpha": (0.1, 2)}, "alpha: 2 is out of range"),
            ({"alpha": ()}, "alpha is .*give the values to try"),
            ({"fusion": "rrf"}, "fusion is 'rrf'; give the values to try"),
            ({"k": (5, 10)}, "k does not change the order of hits"),
            ({"dense_timeout": (5, 10)}, "dense_timeout does not change the order"),
            ({"alpha": (0.1,)}, "nothing but the profile to start from"),
            ({"rrf_k": tuple(range(2_500))}, "more than 2,000 combinations"),
        ],
    )
    def test_one_that_cannot_be_searched_is_refused(self, lab: Lab, grid: Any, told: str) -> None:
        with pytest.raises(InputError, match=told):
            tune(lab, WORDY, space=Space((grid,)))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"measure": "nDGC@10"}, "measure: 'nDGC@10' is unknown"),
        ({"folds": 1}, "folds: 1 is out of range"),
        ({"folds": 45}, "folds: 45 is more than the number of different queries (44)"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_bad_input(lab: Lab, options: Any, told: str) -> None:
    with pytest.raises(InputError, match=re.escape(told)):
        tune(lab, WORDY, space=BALANCE, **options)
