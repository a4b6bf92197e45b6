"""Planted weights are found, noise changes nothing, and bad input is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest

import trivet
from trivet.errors import InputError
from trivet.evaluate import learning_to_rank
from trivet.evaluate.dataset import Dataset, Topic
from trivet.evaluate.lab import Lab
from trivet.evaluate.learning_to_rank import Example, examples, fit, learn, ndcg, weights, with_learned
from trivet.evaluate.tuning_result import Tuned
from trivet.profile import PROFILES, Profile, Step
from trivet.rerank.learned import FEATURES, Learned

pytest.importorskip("ir_measures")
pytest.importorskip("scipy.stats")

PLANTED = {"words": 2.0, "runs": 3.0}


def synthetic(seed: int, topics: int, planted: dict[str, float], noise: float = 0.0) -> list[Example]:
    """Topics whose three right hits are those that the planted line puts first."""
    dice = np.random.default_rng(seed)
    made = []
    for _ in range(topics):
        rows = dice.normal(size=(20, 1 + len(FEATURES)))
        line = np.array([1.0, *(planted.get(name, 0.0) for name in FEATURES)])
        first = np.argsort(-(rows @ line + noise * dice.normal(size=20)))[:3]
        grades = np.zeros(20)
        grades[first] = 1.0
        made.append(Example(rows, grades, learning_to_rank._gain(np.ones(3))))
    return made


class TestFit:
    def test_a_planted_line_is_found_again(self) -> None:
        found = asdict(fit([synthetic(1, 300, PLANTED, noise=0.5)], ridge=0.0))
        for name in FEATURES:
            assert found[name] == pytest.approx(PLANTED.get(name, 0.0), rel=0.15, abs=0.2), name

    def test_it_orders_topics_it_has_not_seen(self) -> None:
        learned = fit([synthetic(1, 100, PLANTED, noise=0.5)])
        unseen = synthetic(2, 100, PLANTED, noise=0.5)
        before = np.mean([ndcg(item, Learned(**dict.fromkeys(FEATURES, 0.0))) for item in unseen])
        after = np.mean([ndcg(item, learned) for item in unseen])
        best = np.mean([ndcg(item, Learned(**dict.fromkeys(FEATURES, 0.0) | PLANTED)) for item in unseen])
        assert before < 0.6 < 0.9 < after
        assert after == pytest.approx(best, abs=0.02)

    def test_noise_has_no_line(self) -> None:
        found = asdict(fit([synthetic(3, 300, {}, noise=0.5)]))
        assert max(map(abs, found.values())) < 0.2

    def test_what_no_topic_speaks_of_stays_where_it_is_pulled(self) -> None:
        silent = synthetic(1, 100, PLANTED)
        for item in silent:
            item.rows[:, 1 + FEATURES.index("assistant")] = 0.0
        assert fit([silent]).assistant == 0.0
        assert fit([silent], towards={"assistant": 0.685}).assistant == 0.685
        # and a strong pull holds what topics do speak of, too
        assert fit([silent], ridge=1e6, towards={"words": 1.5}).words == pytest.approx(1.5, abs=0.01)

    def test_every_group_counts_the_same_however_many_topics_it_has(self) -> None:
        small, large = synthetic(1, 40, {"words": 4.0}, 0.5), synthetic(2, 400, {"words": -4.0}, 0.5)
        together, even = fit([small, large]).words, fit([small, large[:40]]).words
        assert abs(together - even) < 0.5
        assert abs(together) < 1.0 < 2.0 < abs(fit([large]).words)

    def test_weights_stay_in_their_range(self) -> None:
        found = fit([synthetic(1, 100, {"words": 40.0, "runs": -40.0}, noise=0.5)], ridge=0.0)
        assert (found.words, found.runs) == (10.0, -10.0)

    def test_nothing_to_tell_right_from_wrong(self) -> None:
        rows = np.random.default_rng(0).normal(size=(5, 1 + len(FEATURES)))
        for grades in (np.zeros(5), np.ones(5)):
            with pytest.raises(InputError, match="no topic has both a relevant and a non-relevant hit; judge more"):
                fit([[Example(rows, grades, 1.0)]])
        with pytest.raises(InputError, match="no topic has both a relevant and"):
            fit([])

    def test_verdicts_the_wrong_way_round(self) -> None:
        upside_down = [replace(item, rows=-item.rows) for item in synthetic(1, 50, {})]
        with pytest.raises(InputError, match="check whether the judgements are inverted"):
            fit([upside_down])

    def test_where_scores_mislead_the_evidence_has_to_tell(self) -> None:
        """Of every two hits the wrong one, an assistant's, has the higher score: only who spoke tells them apart."""
        rows = np.zeros((2, 1 + len(FEATURES)))
        rows[0, [0, 1 + FEATURES.index("assistant")]] = 1.0
        rows[1, 0] = -1.0
        misled = [Example(rows, np.array([0.0, 1.0]), 1.0)] * 40
        learned = fit([misled], towards=asdict(Learned(assistant=0.0)))
        assert learned.assistant < -2.0
        assert ndcg(misled[0], learned) == 1.0


class TestNdcg:
    def test_by_hand(self) -> None:
        rows = np.zeros((3, 1 + len(FEATURES)))
        rows[:, 0] = (3.0, 2.0, 1.0)
        rows[2, 1 + FEATURES.index("words")] = 1.0
        item = Example(rows, np.array([0.0, 0.0, 1.0]), 1.0)
        assert ndcg(item, Learned(**dict.fromkeys(FEATURES, 0.0))) == pytest.approx(0.5)  # third: 1 / log2(4)
        assert ndcg(item, Learned(**dict.fromkeys(FEATURES, 0.0) | {"words": 5.0})) == pytest.approx(1.0)

    def test_what_was_not_found_counts(self) -> None:
        item = Example(np.ones((1, 1 + len(FEATURES))), np.array([1.0]), learning_to_rank._gain(np.ones(2)))
        assert ndcg(item, Learned()) == pytest.approx(1 / (1 + 1 / np.log2(3)))


class TestProfiles:
    WEIGHTS = Learned(words=2.0)

    def test_in_the_place_of_the_old_weights(self) -> None:
        before = PROFILES["default"]
        after = with_learned(before, self.WEIGHTS)
        assert [step.name for step in after.rerankers] == [step.name for step in before.rerankers]
        assert weights(after) == asdict(self.WEIGHTS)
        assert Profile.from_toml(after.to_toml()) == after

    def test_else_before_what_drops_copies_or_last(self) -> None:
        deduped = Profile(rerankers=(Step("importance"), Step("dedup"), Step("cap")))
        assert [step.name for step in with_learned(deduped, self.WEIGHTS).rerankers] == [
            "importance",
            "learned",
            "dedup",
            "cap",
        ]
        assert [step.name for step in with_learned(Profile(), self.WEIGHTS).rerankers] == ["learned"]

    def test_the_weights_of_a_profile(self) -> None:
        assert weights(PROFILES["default"]) == asdict(Learned())
        assert weights(Profile()) == {}
        assert weights(Profile(rerankers=(Step("learned", {"runs": 0.5}),)))["runs"] == 0.5


# --- on a store -------------------------------------------------------------------------------------------------------

QUESTIONS = 40
START = Profile(name="words", weights={"lexical": 1.0}, rerankers=(Step("dedup"),), k=10)


def documents() -> list[dict[str, Any]]:
    """To every question six answers with the same words, the shorter the better; who said the best of them varies.

    ``man3-1`` is the second shortest of those that people gave to question 3.
    """
    made = []
    for n in range(QUESTIONS):
        said = ["man", "bot", "bot", "man", "man", "bot"] if n % 2 else ["bot", "man", "bot", "man", "bot", "man"]
        for length, who in enumerate(said):
            text = f"kettle{n} stove{n} {' '.join(f'filler{n}x{at}' for at in range(3 * length))}"
            role = "assistant" if who == "bot" else "user"
            made.append({"id": f"{who}{n}-{said[:length].count(who)}", "text": text, "meta": {"role": role}})
    return made


def asked(right: str) -> Dataset:
    topics = tuple(Topic(f"t{n:02}", f"kettle{n} stove{n}") for n in range(QUESTIONS))
    qrels = {topic.id: {f"{right}{n}-0": 1} for n, topic in enumerate(topics)}
    return Dataset("spoken", "test", documents(), topics, qrels, f"d{right}")


@pytest.fixture(scope="module")
def engine() -> Iterator[trivet.Engine]:
    with trivet.open(":memory:", embedder="none") as engine:
        engine.add(documents())
        yield engine


@pytest.fixture(scope="module")
def found(engine: trivet.Engine) -> Tuned:
    return learn(Lab(asked("man"), engine), with_learned(START, Learned(**dict.fromkeys(FEATURES, 0.0))))


class TestExamples:
    def test_a_topic_as_the_reranker_sees_it(self, engine: trivet.Engine) -> None:
        lab = Lab(asked("man"), engine)
        found = examples(lab, START, lab.dataset.topics, lab.dataset.qrels, None)["t00"]
        assert found.rows.shape == (6, 1 + len(FEATURES))
        assert found.grades.tolist() == [0, 1, 0, 0, 0, 0], "an assistant's is first, and wrong"
        assert found.rows[:, 1 + FEATURES.index("assistant")].tolist() == [1, 0, 1, 0, 1, 0]
        assert sorted(found.rows[:, 0], reverse=True) == found.rows[:, 0].tolist()
        assert np.std(found.rows[:, 0]) == pytest.approx(1.0)
        assert found.ideal == 1.0

    def test_its_line_gives_the_order_of_the_search(self, engine: trivet.Engine) -> None:
        """What is fitted is what runs: the same weights, the same order."""
        lab = Lab(asked("man"), engine)
        table = examples(lab, START, lab.dataset.topics, lab.dataset.qrels, None)
        for strength in (-3.0, 0.0, 3.0):
            learned = Learned(**dict.fromkeys(FEATURES, 0.0) | {"assistant": strength, "words": 1.0})
            run = lab.rerun(with_learned(START, learned))
            for topic, item in table.items():
                place = run.answers[topic].ids.index(f"man{int(topic[1:])}-0")
                assert ndcg(item, learned) == pytest.approx(1 / np.log2(2 + place))

    def test_a_question_with_nothing_found(self, engine: trivet.Engine) -> None:
        nothing = Topic("none", "zzyzx")
        lab = Lab(replace(asked("man"), topics=(nothing,), qrels={"none": {"man0-0": 1}}), engine)
        found = examples(lab, START, [nothing], lab.dataset.qrels, None)["none"]
        assert found.rows.shape == (0, 1 + len(FEATURES))
        assert ndcg(found, Learned()) == 0.0


class TestLearn:
    def test_who_is_right_is_learnt(self, found: Tuned) -> None:
        assert found.changed
        assert weights(found.profile)["assistant"] < -1.0
        assert (found.profile.name, found.what, found.tried) == ("tuned", "weights", len(FEATURES))
        assert (found.topics, found.folds, found.pair.n) == (QUESTIONS, 5, QUESTIONS)
        assert found.pair.mean_challenger == pytest.approx(1.0)
        assert found.pair.mean_baseline == pytest.approx((1 + 1 / np.log2(3)) / 2)  # first, or second
        assert "learned.assistant 0 -> -" in found.reason
        assert found.p < 0.05

    def test_every_fold_is_told(self, found: Tuned) -> None:
        assert len(found.chosen) == 25
        assert found.spreads["assistant"][0] <= found.spreads["assistant"][1] < 0
        text = found.to_toml()
        assert f"{len(FEATURES)} weights fitted" in text
        assert "the folds chose: assistant " in text
        assert Profile.from_toml(text) == found.profile
        assert json.loads(json.dumps(found.to_dict()))["what"] == "weights"

    def test_what_is_right_by_chance_changes_nothing(self, engine: trivet.Engine) -> None:
        for seed in range(4):
            dice = np.random.default_rng(seed)
            even = asked("man")
            names = [document["id"] for document in even.documents]
            qrels = {t.id: {names[6 * int(t.id[1:]) + int(dice.integers(6))]: 1} for t in even.topics}
            start = with_learned(START, Learned())
            kept = learn(Lab(replace(even, qrels=qrels), engine), start)
            assert not kept.changed
            assert kept.profile is start
            assert kept.reason.startswith("kept words: ")

    def test_no_topic_is_judged_by_weights_it_helped_to_fit(
        self, engine: trivet.Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lab = Lab(asked("man"), engine)
        table = examples(lab, START, lab.dataset.topics, lab.dataset.qrels, None)
        monkeypatch.setattr(learning_to_rank, "examples", lambda *_: table)
        names = {id(item): topic for topic, item in table.items()}
        fitted: list[set[str]] = []
        real = learning_to_rank.fit

        def spy(groups: Any, **how: Any) -> Learned:
            kept = [list(group) for group in groups]
            fitted.append({names[id(item)] for group in kept for item in group})
            return real(kept, **how)

        asked_of: list[set[str]] = []
        rerun = lab.rerun
        monkeypatch.setattr(learning_to_rank, "fit", spy)
        monkeypatch.setattr(
            lab, "rerun", lambda profile, topics: asked_of.append({t.id for t in topics}) or rerun(profile, topics)
        )
        learn(lab, START)
        everyone = set(table)
        judged = [topics for topics in asked_of if topics != everyone]
        assert fitted[0] == everyone
        assert len(fitted) == 1 + 25 == 1 + len(judged)
        for learnt, held in zip(fitted[1:], judged, strict=True):
            assert learnt | held == everyone
            assert not learnt & held

    def test_a_hold_out(self, engine: trivet.Engine) -> None:
        whole = asked("man")
        one, other = (replace(whole, topics=half, digest=name) for half, name in (
            (whole.topics[:8], "one"), (whole.topics[8:], "other"),
        ))  # fmt: skip
        found = learn(Lab(one, engine), with_learned(START, Learned(assistant=0.0)), holdout=other)
        assert found.changed
        assert (found.topics, found.pair.n, found.folds, len(found.chosen)) == (8, 32, 1, 1)

    def test_nothing_wrong_to_learn_from(self, engine: trivet.Engine) -> None:
        lab = Lab(asked("man"), engine)
        both = {
            topic.id: {f"{who}{int(topic.id[1:])}-{at}": 1 for who in ("man", "bot") for at in range(3)}
            for topic in lab.dataset.topics
        }
        with pytest.raises(InputError, match="no topic has both a relevant and"):
            learn(Lab(replace(lab.dataset, qrels=both), engine), START)

    @pytest.mark.parametrize(
        ("options", "told"),
        [({"measure": "nDGC@10"}, "measure"), ({"folds": 1}, "folds: 1"), ({"seed": -1}, "seed is -1")],
    )
    def test_bad_input(self, engine: trivet.Engine, options: Any, told: str) -> None:
        with pytest.raises(InputError, match=told):
            learn(Lab(asked("man"), engine), START, **options)
