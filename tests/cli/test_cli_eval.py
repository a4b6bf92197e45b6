"""``trivet eval``: scores, findings, runs and output files."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import trivet
from trivet.evaluate import MEASURES, Lab, evaluate, load

Runs = Callable[..., Path]
DEFAULT = trivet.PROFILES["default"]


def row(out: str, first: str) -> list[str]:
    """Return the cells of the first line that begins with this word."""
    return next(line.split() for line in out.splitlines() if line.split()[:1] == [first])


def right(at: int) -> list[str]:
    return [f"d{at}", f"d{(at + 1) % 40}"]


def second(at: int) -> list[str]:
    return [f"d{(at + 1) % 40}", f"d{at}"]


def wrong(at: int) -> list[str]:
    return [f"d{(at + 1) % 40}"]


class TestOneProfile:
    def test_the_table_is_what_the_library_says(self, cli, vectors: Path) -> None:
        ran = cli("eval", "demo")
        assert (ran.code, ran.err) == (0, "")
        assert "\x1b" not in ran.out
        with Lab.fill(load("demo"), embedder="hashing", cache=vectors) as lab:
            found = evaluate(lab, DEFAULT)
        head, cells = row(ran.out, "profile"), row(ran.out, "default")
        assert [name for name in head if name not in ("profile", "95", "%")] == list(MEASURES)
        assert cells[1] == f"{found.mean('nDCG@10'):.4f}"
        assert cells[3:] == [f"{found.mean(measure):.4f}" for measure in MEASURES[1:]]
        low, high = map(float, cells[2].split("–"))
        assert low < found.mean("nDCG@10") < high

    def test_strata_findings_and_where_it_is_from(self, cli) -> None:
        out = cli("eval", "demo").out
        assert row(out, "paraphrase")[1] == "10"
        for told in (
            "in the top k of lexical only",
            "relevant of the returned",
            "hits, though nothing is relevant",
            "hits, though the query is nonsense",
            "queries without a hit",
            "degraded",
            "time, p50 / p95",
            "and to embed the query",
            "demo/test#",
            "41 topics, 339 documents",
            "hashing",
            "commit ",
            str(DEFAULT),
        ):
            assert told in out, told
        assert "best" not in out

    def test_json_holds_what_the_table_shows(self, cli) -> None:
        out, told = cli("eval", "demo", "--fast").out, cli("eval", "demo", "--fast", "--json").json
        (found,) = told["evaluations"]
        assert f"{found['overall']['nDCG@10']:.4f}" == row(out, "default")[1]
        assert f"{found['strata']['exact']['nDCG@10']:.4f}" == row(out, "exact")[2]
        assert told["dataset"] == found["dataset"]
        assert told["dataset"] in out
        assert (told["documents"], told["best"], told["pairs"], told["headroom"]) == (339, None, [], {})
        assert len(found["answers"]) == 41
        assert "answers" not in cli("eval", "demo", "--fast", "--slim", "--json").json["evaluations"][0]

    def test_fast_gives_the_same_answers_without_times(self, cli) -> None:
        slow, fast = (cli("eval", "demo", "--json", *flag).json["evaluations"][0] for flag in ((), ("--fast",)))
        assert slow["scores"] == fast["scores"]
        assert slow["findings"]["p95_ms"] > 0
        assert fast["findings"]["p95_ms"] == 0
        assert "p95" not in cli("eval", "demo", "--fast").out

    def test_measures_are_those_asked_for(self, cli) -> None:
        out = cli("eval", "demo", "-m", "MRR@10", "-m", "recall@5").out
        assert row(out, "profile") == ["profile", "RR@10", "95", "%", "R@5"]
        assert "RR@10 by stratum" in out

    def test_a_measure_deeper_than_the_page_is_told(self, cli) -> None:
        told = "R@100: default returns 10 hits only; ask for more with -k"
        assert f"note: {told}" in cli("eval", "demo", "-m", "R@100").out
        assert told in cli("eval", "demo", "-m", "R@100", "--json").json["evaluations"][0]["notes"]
        assert "note:" not in cli("eval", "demo", "-m", "R@100", "-k", "100").out

    def test_changes(self, cli, trees: Path) -> None:
        changes = ("--alpha", "0.25", "--weight", "trigram=0.5", "--set", "fusion=rrf", "-k", "7")
        ran = cli("eval", trees, *changes)
        legs = "lexical=0.75@100 trigram=0.5@50 dense=0.25@100 graph=0.4@50 by query"
        assert f"rrf k=60 {legs} → learned → avoid → temporal k=7" in ran.out

    def test_headroom(self, cli) -> None:
        ran = cli("eval", "demo", "--headroom", "--fast")
        told = cli("eval", "demo", "--headroom", "--fast", "--json").json["headroom"]["default"]
        assert f"{told['best_mean']:.4f} at {told['best_alpha']:g}" in ran.out
        assert f"{told['oracle_mean']:.4f}" in ran.out
        assert told["mean"] <= told["best_mean"] <= told["oracle_mean"]

    def test_without_a_model(self, cli, trees: Path) -> None:
        ran = cli("eval", trees, "--embedder", "none", "--alpha", "0")
        assert ran.code == 0
        assert row(ran.out, "default")[1] == "1.0000"
        assert "no model · commit" in ran.out
        assert "embed the question" not in ran.out

    def test_a_part_that_does_not_answer_is_told(self, cli, trees: Path) -> None:
        ran = cli("eval", trees, "--embedder", "none")
        assert "note: default: degraded on 40 topics: dense: " in ran.out

    def test_another_system_s_embedder_is_refused_in_one_line(self, cli) -> None:
        ran = cli("eval", "demo", "--embedder", "folder:nowhere")
        assert ran.code in (1, 2)
        assert ran.err.startswith("trivet: ")
        assert ran.err.count("\n") == 1


class TestSeveral:
    def test_best_needs_the_test(self, cli, trees: Path, trec: Runs) -> None:
        ran = cli("eval", trees, "--run", trec("right", right), "--run", trec("wrong", wrong))
        assert "right is best on nDCG@10: better than wrong (p <0.001)" in ran.out
        assert cli("eval", trees, "--run", "right.trec", "--run", "wrong.trec", "--json").json["best"] == "right"

    def test_without_a_difference_nothing_is_called_best(self, cli, trees: Path, trec: Runs) -> None:
        trec("one", right)
        trec("other", lambda at: right(at) if at else second(at))
        ran = cli("eval", trees, "--run", "one.trec", "--run", "other.trec")
        assert "one has the highest mean: no difference shown to other (p = 1.00)" in ran.out
        assert "best" not in ran.out
        assert cli("eval", trees, "--run", "one.trec", "--run", "other.trec", "--json").json["best"] is None

    def test_one_of_two_is_not_all(self, cli, trees: Path, trec: Runs) -> None:
        trec("one", right)
        trec("other", lambda at: right(at) if at else second(at))
        trec("wrong", wrong)
        ran = cli("eval", trees, "--run", "one.trec", "--run", "other.trec", "--run", "wrong.trec")
        assert (
            "one has the highest mean: better than wrong (p <0.001), no difference shown to other (p = 1.00); "
            "Holm-corrected over 3 pairs"
        ) in ran.out
        assert "best" not in ran.out

    def test_few_topics_are_said_to_be_few(self, cli, trees: Path, trec: Runs) -> None:
        trec("right", right)
        trec("wrong", wrong)
        ran = cli("eval", trees, "--stratum", "leaf", "--run", "right.trec", "--run", "wrong.trec")
        assert "20 topics are too few to tell which is better" in ran.out

    def test_a_row_for_each_profile(self, cli) -> None:
        ran = cli("eval", "demo", "-p", "default", "-p", "memories", "-p", "snippets", "--fast")
        told = cli("eval", "demo", "-p", "default", "-p", "memories", "-p", "snippets", "--fast", "--json").json
        assert [item["name"] for item in told["evaluations"]] == ["default", "memories", "snippets"]
        for item in told["evaluations"]:
            assert row(ran.out, item["name"])[1] == f"{item['overall']['nDCG@10']:.4f}"
        assert len(told["pairs"]) == 3
        assert row(ran.out, "exact")[1:] == [
            "7", *(f"{item['strata']['exact']['nDCG@10']:.4f}" for item in told["evaluations"])
        ]  # fmt: skip

    def test_a_profile_from_a_file_is_called_by_it(self, cli, clean_place: Path) -> None:
        (clean_place / "words first.toml").write_text("[weights]\nlexical = 1.0\ndense = 0.0\n")
        ran = cli("eval", "demo", "-p", "default", "-p", "words first.toml", "--fast")
        assert row(ran.out, "words-first")[1] != row(ran.out, "default")[1]

    def test_two_of_one_name_are_told_apart(self, cli, clean_place: Path) -> None:
        (clean_place / "mine.toml").write_text('name = "default"\nrrf_k = 5.0\nfusion = "rrf"\n')
        told = cli("eval", "demo", "-p", "default", "-p", "mine.toml", "--fast", "--json").json
        assert [item["name"] for item in told["evaluations"]] == [item["identity"] for item in told["evaluations"]]

    def test_a_profile_and_a_run(self, cli, trees: Path, trec: Runs) -> None:
        ran = cli("eval", trees, "-p", "default", "--run", trec("wrong", wrong))
        assert row(ran.out, "wrong")[1] == "0.0000"
        assert row(ran.out, "default")[1] > "0.9"
        assert row(ran.out, "relevance")[-1] == "–"


class TestRuns:
    def test_unanswered_topics_count_as_0(self, cli, trees: Path, clean_place: Path) -> None:
        (clean_place / "half.trec").write_text("".join(f"q{at} Q0 d{at} 1 1.0 half\n" for at in range(20)))
        ran = cli("eval", trees, "--run", "half.trec", "-m", "R@5")
        assert row(ran.out, "half")[1] == "0.5000"
        assert "note: judged topics that are not in the run, counted as 0: 20" in ran.out

    def test_self_matches_are_dropped_on_request(self, cli, beir, clean_place: Path) -> None:
        documents = [{"_id": str(at), "text": f"note {at} about rivers"} for at in range(4)]
        queries = [{"_id": "0", "text": "note 0 about rivers"}]
        folder = beir(documents, queries, ["0\t1\t1"])
        (clean_place / "self.trec").write_text("0 Q0 0 1 2.0 x\n0 Q0 1 2 1.0 x\n")
        asked = ("eval", folder, "-m", "Success@1", "--json")
        for extra in (("--run", "self.trec"), ()):
            kept, dropped = (cli(*asked, *extra, *flag).json["evaluations"][0] for flag in ((), ("--drop-self",)))
            assert "0" in kept["answers"][0]["ids"]
            assert "0" not in dropped["answers"][0]["ids"]
        assert dropped["overall"]["Success@1"] >= kept["overall"]["Success@1"]

    @pytest.mark.parametrize(
        ("text", "code", "told"),
        [
            (None, 1, "run: there is no file 'x.trec'"),
            ("q0 Q0 d0 1 1.0 x\nq1 d1\n", 2, "x.trec, line 2: expected 'topic Q0 document rank score tag'"),
            ("q0 Q0 d0 1 1.0 x\nq0 Q0 d0 2 0.5 x\n", 2, "x.trec: topic 'q0' lists"),
            ("z Q0 d0 1 1.0 x\n", 2, "run: none of its topics (1) is in trees/test#"),
        ],
    )
    def test_a_bad_one(self, cli, trees: Path, clean_place: Path, text: str | None, code: int, told: str) -> None:
        if text is not None:
            (clean_place / "x.trec").write_text(text)
        ran = cli("eval", trees, "--run", "x.trec")
        assert (ran.code, ran.out) == (code, "")
        assert told in ran.err
        assert ran.err.count("\n") == 1

    def test_an_outside_scorer_agrees(self, cli, clean_place: Path) -> None:
        import pytrec_eval

        ran = cli("eval", "demo", "--run-out", "out/default.trec", "-m", "nDCG@10", "-m", "R@5", "-m", "AP@10")
        assert ran.err == "wrote out/default.trec\n"
        run: dict[str, dict[str, float]] = {}
        for line in (clean_place / "out/default.trec").read_text().splitlines():
            topic, _, id, _, score, tag = line.split()
            run.setdefault(topic, {})[id] = float(score)
            assert tag == "default"
        qrels = {topic: dict(grades) for topic, grades in load("demo").qrels.items()}
        scored = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10", "recall.5", "map_cut.10"}).evaluate(run)
        means = [
            f"{sum(scored.get(topic, {}).get(name, 0.0) for topic in qrels) / len(qrels):.4f}"
            for name in ("ndcg_cut_10", "recall_5", "map_cut_10")
        ]
        cells = row(ran.out, "default")
        assert means == [cells[1], *cells[3:]]

    def test_its_own_run_scores_the_same(self, cli) -> None:
        ours = cli("eval", "demo", "--run-out", "mine.trec", "--json").json["evaluations"][0]
        again = cli("eval", "demo", "--run", "mine.trec", "--json").json["evaluations"][0]
        assert again["overall"] == ours["overall"]

    @pytest.mark.parametrize("target", ["runs/", "runs/{profile}.trec", "existing"])
    def test_several_go_into_several_files(self, cli, clean_place: Path, target: str) -> None:
        (clean_place / "existing").mkdir()
        ran = cli("eval", "demo", "-p", "default", "-p", "memories", "--run-out", target, "--fast")
        assert ran.code == 0
        folder = clean_place / ("existing" if target == "existing" else "runs")
        assert sorted(path.name for path in folder.iterdir()) == ["default.trec", "memories.trec"]

    def test_several_do_not_go_into_one(self, cli, clean_place: Path) -> None:
        ran = cli("eval", "demo", "-p", "default", "-p", "memories", "--run-out", "one.trec")
        assert (ran.code, ran.out) == (2, "")
        assert "2 runs do not fit into one file; name a folder such as runs/, or write {profile}" in ran.err
        assert not (clean_place / "one.trec").exists()

    def test_an_id_with_a_blank_is_refused_before_the_work(self, cli, beir) -> None:
        folder = beir([{"_id": "a b", "text": "x"}], [{"_id": "q", "text": "x"}], ["q\ta b\t1"])
        ran = cli("eval", folder, "--run-out", "x.trec")
        assert (ran.code, ran.out) == (2, "")
        assert "--run-out: the id 'a b' contains a blank" in ran.err
        assert cli("eval", folder).code == 0


class TestFiles:
    def test_save(self, cli, clean_place: Path) -> None:
        ran = cli("eval", "demo", "-p", "default", "-p", "memories", "--save", "results", "--fast")
        written = sorted((clean_place / "results").iterdir())
        assert sorted(ran.err.splitlines()) == [f"wrote results/{path.name}" for path in written]
        record = json.loads(written[0].read_text())
        commit, identity = record["made"]["commit"], record["identity"].replace("#", "-")
        dataset = record["dataset"].replace("#", "-").replace("/", "-")
        assert written[0].name == f"eval-{commit}-{identity}-{dataset}.json"
        assert {"answers", "texts", "qrels"} <= set(record)

    def test_slim(self, cli, clean_place: Path) -> None:
        cli("eval", "demo", "--save", "results", "--slim", "--fast")
        (written,) = (clean_place / "results").iterdir()
        assert not {"answers", "texts", "qrels"} & set(json.loads(written.read_text()))

    def test_report(self, cli, clean_place: Path) -> None:
        ran = cli("eval", "demo", "-p", "default", "-p", "memories", "--headroom", "--report", "out/page.html")
        assert (ran.code, ran.err) == (0, "wrote out/page.html\n")
        page = (clean_place / "out/page.html").read_text()
        assert page.lstrip().lower().startswith("<!doctype html")
        assert "memories" in page

    @pytest.mark.parametrize(
        ("flags", "code", "told"),
        [
            (["--save", "file"], 1, "--save: 'file' cannot be created"),
            (["--save", "file/below"], 1, "--save: 'file/below' cannot be created"),
            (["--run-out", "file/x.trec"], 1, "--run-out: 'file' cannot be created"),
            (["--report", "."], 2, "--report: '.' is a folder; name a file"),
            (["--report", "file/x.html"], 1, "--report: 'file' cannot be created"),
        ],
    )
    def test_a_place_that_cannot_be_is_told_before_the_work(
        self, cli, clean_place: Path, flags: list[str], code: int, told: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def never(*_: Any, **__: Any) -> None:
            raise AssertionError("asked")

        monkeypatch.setattr(Lab, "fill", never)
        (clean_place / "file").write_text("")
        ran = cli("eval", "demo", *flags)
        assert (ran.code, ran.out) == (code, "")
        assert told in ran.err
        assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        ([], 2, "See `trivet eval --help`"),
        (["nowhere"], 1, "dataset: there is no folder 'nowhere'; give one in BEIR layout, or 'demo'"),
        (["demo", "--split", "dev"], 1, "split: demo has no 'dev'; it has: test, train"),
        (["demo", "--stratum", "nope"], 2, "stratum: demo has no topic of 'nope'; it has: 'paraphrase'"),
        (["demo", "--stratum", "typo", "--without", "typo"], 2, "stratum: no topic of demo is left"),
        (["demo", "-m", "goodness"], 2, "measure: 'goodness' is unknown"),
        (["demo", "-p", "nope"], 2, "profile: 'nope' is unknown; known: default"),
        (["demo", "-p", "default", "-p", "default"], 2, f"--profile: {DEFAULT.identity} was named twice"),
        (["demo", "-p", "nope.toml"], 2, "--profile: cannot read 'nope.toml'"),
        (["demo", "--alpha", "2"], 2, "alpha: 2.0 is out of range"),
        (["demo", "--set", "rrf"], 2, "--set: 'rrf' is not key=value"),
        (["demo", "-k", "0"], 2, "k: 0 is out of range"),
        (["demo", "--language", "xx"], 2, "language 'xx' is unknown"),
        (["demo", "--passage-size", "-1"], 2, "passage_size: -1"),
    ],
)
def test_a_wrong_call_is_told_in_one_line(cli, arguments: list[str], code: int, told: str) -> None:
    ran = cli("eval", *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert told in ran.err
    assert ran.err.startswith("trivet: ")
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("missing", ["ir_measures", "scipy.stats"])
@pytest.mark.parametrize("command", [["eval"], ["compare", "--alpha", "1"], ["sweep", "--over", "alpha=0,1"]])
def test_a_missing_extra_prints_its_pip_line(
    cli, monkeypatch: pytest.MonkeyPatch, missing: str, command: list[str]
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    ran = cli(command[0], "demo", *command[1:])
    assert (ran.code, ran.out) == (2, "")
    assert "pip install 'trivet[eval]'" in ran.err
    assert ran.err.count("\n") == 1
