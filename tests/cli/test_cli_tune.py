"""``trivet tune``: a gain that holds is taken, any other is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import trivet
from trivet.evaluate import Lab
from trivet.profile import Profile
from trivet.rerank.learned import FEATURES

FILLER = " ".join(f"filler{number}" for number in range(60))
NOISE = [{"_id": f"noise{at}", "text": f"wood wood w{at}"} for at in range(12)]


def documents(split: str) -> list[dict[str, Any]]:
    """Write queries with one rare word among common ones: lexical search finds it, a hash of all words does not."""
    return [{"_id": f"{split}{at}", "text": f"tree{split}{at} {FILLER}"} for at in range(40)]


def queries(split: str) -> list[dict[str, Any]]:
    return [{"_id": f"q{split}{at}", "text": f"wood tree{split}{at}"} for at in range(40)]


@pytest.fixture
def rare(beir: Callable[..., Path]) -> Path:
    corpus = [*documents("x"), *documents("y"), *NOISE]
    asked = [*queries("x"), *queries("y")]
    folder = beir(corpus, asked, [f"qx{at}\tx{at}\t1" for at in range(40)], "rare", "train")
    return beir(corpus, asked, [f"qy{at}\ty{at}\t1" for at in range(40)], folder.name, "test")


MEANING = ("--alpha", "1")


class TestADataset:
    def test_what_holds_is_learnt(self, cli, rare: Path, clean_place: Path) -> None:
        ran = cli("tune", rare, *MEANING, "--out", "made/tuned.toml")
        assert (ran.code, ran.err) == (0, "wrote made/tuned.toml\n")
        assert "\x1b" not in ran.out
        assert "changed alpha 1 -> 0" in ran.out
        assert "40 judged topics" in ran.out
        assert "40 topics, 5-fold cross-validated" in ran.out
        assert "what 25 folds chose" in ran.out
        text = (clean_place / "made/tuned.toml").read_text()
        learnt = Profile.from_toml(text)
        assert learnt.name == "tuned"
        assert learnt.weights["lexical"] > 0
        assert text.startswith("# changed alpha 1 -> 0")
        assert str(learnt) in ran.out
        assert cli("eval", rare, "-p", "made/tuned.toml").code == 0

    def test_a_hold_out(self, cli, rare: Path) -> None:
        ran = cli("tune", rare, *MEANING, "--split", "train", "--holdout", "test")
        assert "changed alpha 1 -> 0" in ran.out
        assert "40 topics, on rare/test#" in ran.out
        assert "chosen on rare/train#" in ran.out

    def test_json_is_what_is_shown(self, cli, rare: Path) -> None:
        asked = ("tune", rare, *MEANING)
        told, out = cli(*asked, "--json").json, cli(*asked).out
        assert told["changed"] is True
        assert told["reason"] in out
        pair = told["pair"]
        assert f"{pair['mean_challenger']:.4f} {pair['difference']:+.4f}" in " ".join(out.split())
        assert len(told["chosen"]) == 25
        assert (told["applied"], told["topics"], told["folds"]) == (False, 40, 5)

    def test_the_default_is_kept_where_nothing_is_gained(self, cli, trees: Path, clean_place: Path) -> None:
        ran = cli("tune", trees, "--alpha", "0", "--out", "kept.toml")
        assert ran.code == 0
        assert "kept default: no other setting" in ran.out
        text = (clean_place / "kept.toml").read_text()
        assert text.startswith("# kept default: no other setting"), "written too, with the reason on top"
        assert Profile.from_toml(text) == trivet.PROFILES["default"].with_changes({"alpha": 0.0})

    def test_too_few_are_said_to_be_few(self, cli, rare: Path, trees: Path) -> None:
        ran = cli("tune", trees, "--stratum", "leaf", "--folds", "4")
        assert ran.code == 0
        assert "note: too few judged topics: 20" in ran.out
        assert "kept default" in ran.out
        assert "what 20 folds chose" in ran.out

    def test_another_start(self, cli, rare: Path) -> None:
        assert cli("tune", rare, "-p", "memories", "--json").json["start"].startswith("memories#")

    def test_without_a_model(self, cli, trees: Path) -> None:
        ran = cli("tune", trees, "--embedder", "none", "--alpha", "0")
        assert ran.code == 0
        assert "no model · commit" in ran.out


class TestRerank:
    """``--rerank`` learns the weights of the reranker ``learned``."""

    @pytest.fixture
    def spoken(self, beir: Callable[..., Path]) -> Path:
        """Write two documents per query with the same words; the shorter one is relevant in one query of four."""
        corpus = []
        for at in range(40):
            meta = {"role": "assistant"}
            corpus.append({"_id": f"bot{at}", "text": f"kettle{at} stove{at}", "metadata": meta})
            corpus.append(
                {"_id": f"man{at}", "text": f"kettle{at} on the stove{at} by day", "metadata": {"role": "user"}}
            )
        asked = [{"_id": f"q{at}", "text": f"kettle{at} stove{at}"} for at in range(40)]
        return beir(
            corpus, asked, [f"q{at}\t{'man' if at % 4 else 'bot'}{at}\t1" for at in range(40)], "spoken", "test"
        )

    START = ("--alpha", "0", "--set", 'rerankers=[{"name": "learned", "assistant": 0.0}]')

    def test_weights_are_learnt_shown_and_written(self, cli, spoken: Path, clean_place: Path) -> None:
        ran = cli("tune", spoken, "--rerank", *self.START, "--out", "mine.toml")
        assert (ran.code, ran.err) == (0, "wrote mine.toml\n")
        assert f"40 judged topics, {len(FEATURES)} weights fitted" in ran.out
        assert "changed learned." in ran.out
        assert "25 folds" in ran.out
        told = {line.split()[0]: line.split()[1:] for line in ran.out.splitlines() if line.split()[:1] == ["assistant"]}
        assert told["assistant"][0] == "+0.00"
        assert float(told["assistant"][1]) < 0
        learnt = Profile.from_toml((clean_place / "mine.toml").read_text())
        assert learnt.name == "tuned"
        (step,) = learnt.rerankers
        assert (step.name, set(step.options)) == ("learned", set(FEATURES))
        assert step.options["assistant"] < 0
        assert cli("eval", spoken, "-p", "mine.toml").code == 0

    def test_json_is_what_is_shown(self, cli, spoken: Path) -> None:
        told = cli("tune", spoken, "--rerank", *self.START, "--json").json
        assert (told["what"], told["changed"], told["tried"]) == ("weights", True, len(FEATURES))
        assert len(told["chosen"]) == 25
        assert set(told["chosen"][0]) == set(FEATURES)

    def test_what_tells_nothing_is_said_in_one_line(self, cli, trees: Path) -> None:
        ran = cli("tune", trees, "--rerank", "-k", "1", "--set", "lexical_depth=1", "--set", "dense_depth=1")
        assert ran.err.count("\n") <= 1
        assert "Traceback" not in ran.err + ran.out


class TestFeedback:
    @pytest.fixture
    def memory(self, clean_place: Path) -> str:
        """Write forty judged queries, and settings with the dense leg only."""
        with trivet.open(clean_place / "memory.db", embedder="hashing") as memory:
            memory.add([{"id": item["_id"], "text": item["text"]} for item in (*documents("x"), *NOISE)])
            memory.wait()
            memory.update_settings(alpha=1.0)
            for at, query in enumerate(queries("x")):
                memory.feedback(query["text"], f"x{at}", True)
                memory.feedback(query["text"], f"noise{at % 12}", False)
        return "memory.db"

    def test_it_is_learnt_from_and_not_applied_unasked(self, cli, memory: str) -> None:
        before = cli("settings", "--json").json
        ran = cli("tune")
        assert (ran.code, ran.err) == (0, "")
        assert "feedback/feedback#" in ran.out
        assert "changed alpha 1 -> 0" in ran.out
        assert cli("settings", "--json").json == before

    def test_apply(self, cli, memory: str) -> None:
        ran = cli("tune", "--store", memory, "--apply")
        settings = cli("settings", "--json").json
        assert settings["name"] == "tuned"
        assert settings["weights"]["lexical"] > 0
        assert f"the settings of memory.db (default) are now {settings['identity']}" in ran.out
        again = cli("tune", "--apply", "--json").json
        assert (again["changed"], again["applied"]) == (False, False)
        assert cli("settings", "--json").json == settings
        assert "the settings of memory.db (default) did not change" in cli("tune", "--apply").out

    def test_weights_of_the_reranker_are_applied_too(self, cli, memory: str) -> None:
        with trivet.open(memory) as opened:
            opened.add([{"id": f"bot{at}", "text": f"treex{at} wood", "meta": {"role": "bot"}} for at in range(40)])
            opened.wait()
            opened.update_settings(alpha=0.0, rerankers=[{"name": "learned", "assistant": 0.0}])
        ran = cli("tune", "--rerank", "--apply")
        settings = cli("settings", "--json").json
        assert f"the settings of memory.db (default) are now {settings['identity']}" in ran.out
        assert settings["rerankers"][0]["assistant"] < 0

    def test_the_variable_names_the_store(self, cli, memory: str, clean_place: Path, monkeypatch) -> None:
        (clean_place / "elsewhere").mkdir()
        monkeypatch.chdir(clean_place / "elsewhere")
        monkeypatch.setenv("TRIVET_STORE", str(clean_place / memory))
        assert cli("tune", "--json").json["changed"] is True
        assert cli("tune", "demo", "--stratum", "typo", "--folds", "2").code == 0, "a dataset needs no store"

    def test_what_was_judged_and_is_gone(self, cli, memory: str) -> None:
        cli("delete", "x0")
        ran = cli("tune", "--json")
        assert ran.json["topics"] == 39
        assert any("of deleted documents" in note for note in ran.json["notes"])
        assert any("without a document judged good" in note for note in ran.json["notes"])

    def test_hardly_any(self, cli) -> None:
        cli("add", "the alarms stayed silent", "--id", "a")
        cli("feedback", "why silent", "a")
        ran = cli("tune")
        assert (ran.code, ran.out) == (2, "")
        assert "feedback: 1 query has a document judged good" in ran.err
        assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["demo", "--store", "memory.db"], 2, "--store and --apply are for feedback"),
        (["demo", "--apply"], 2, "--store and --apply are for feedback"),
        (["--holdout", "test"], 2, "without a dataset only --folds, --measure"),
        (["--stratum", "x"], 2, "without a dataset only --folds, --measure"),
        (["demo", "--folds", "3", "--holdout", "train"], 2, "exclude each other; choose one"),
        (["demo", "--holdout", "test"], 2, "--holdout test is the split to learn from"),
        (["demo", "--holdout", "dev"], 1, "split: demo has no 'dev'; it has: test, train"),
        (["demo", "--folds", "1"], 2, "--folds: 1 is too few"),
        (["demo", "-m", "goodness"], 2, "measure: 'goodness' is unknown"),
        (["demo", "-p", "default", "-p", "memories"], 2, "this command takes one"),
        (["demo", "--out", "."], 2, "--out: '.' is a folder; name a file"),
        (["nowhere"], 1, "there is no folder 'nowhere'"),
        ([], 1, "store: there is no file 'memory.db'"),
        (["-c", "nope"], 1, "store: there is no file 'memory.db'"),
    ],
)
def test_what_cannot_be_is_told_before_the_work(
    cli, arguments: list[str], code: int, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("asked")

    monkeypatch.setattr(Lab, "fill", never)
    ran = cli("tune", *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert told in ran.err
    assert ran.err.startswith("trivet: ")
    assert ran.err.count("\n") == 1


def test_more_folds_than_questions(cli, trees: Path) -> None:
    ran = cli("tune", trees, "--folds", "41")
    assert (ran.code, ran.out) == (2, "")
    assert "folds: 41 is more than the number of different queries (40)" in ran.err
