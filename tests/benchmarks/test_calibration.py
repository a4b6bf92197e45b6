"""Is relevance fitted and judged as the docs say? By hand, on made-up hits, and on the set that ships."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trivet.evaluate import load

FITTED = sorted((Path(__file__).parents[2] / "benchmarks/results").glob("calibration-*.json"))
SURE = np.array([0.0, 10.0, 0.0, 0.0, 0.0])  # relevance goes with strength alone, and steeply


@pytest.fixture
def calibration(script: Any) -> Any:
    return script("calibration")


def part(calibration: Any, name: str, line: Any, topics: int, seed: int) -> Any:
    """Ten hits a topic, each right as often as the line says."""
    chance = np.random.default_rng(seed)
    found = []
    for _ in range(topics):
        rows = chance.random((10, 4)) * [1.0, 1.0, 2.0, 1.0] - [0.0, 0.0, 1.0, 0.0]
        told = 1.0 / (1.0 + np.exp(-(line[0] + rows @ np.array(line[1:]))))
        found.append(calibration.Asked(rows, (chance.random(10) < told).astype(float), True))
    return calibration.Part(name, found)


def topic(calibration: Any, *hits: tuple[float, int], answerable: bool = True) -> Any:
    """Hits of that relevance under ``LOGIT``, right or not."""
    rows = np.array([[np.log(told / (1 - told)) + 20.0, 0.0, 0.0, 0.0] for told, _ in hits])
    return calibration.Asked(rows, np.array([float(right) for _, right in hits]), answerable)


LOGIT = np.array([-20.0, 1.0, 0.0, 0.0, 0.0])


def test_the_line_that_made_the_judgements_is_found(calibration: Any) -> None:
    line = [-2.0, 1.0, 3.0, 1.5, 2.0]
    assert calibration.fit([part(calibration, "one", line, 2_000, 0)]) == pytest.approx(line, abs=0.15)


def test_every_set_counts_the_same(calibration: Any) -> None:
    small, large = (
        part(calibration, "small", [-3, 1, 3, 1, 1], 200, 1),
        part(calibration, "large", [0, 1, 3, 1, 1], 200, 2),
    )
    tenfold = calibration.Part("large", list(large.topics) * 10)
    assert calibration.fit([small, tenfold]) == pytest.approx(calibration.fit([small, large]))
    assert calibration.fit([tenfold]) != pytest.approx(calibration.fit([small, large]), abs=0.3)


def test_what_no_leg_has_a_word_for_is_no_answer(calibration: Any) -> None:
    rows = np.array([[0.0, 0.0, 0.0, 0.0], [0.5, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.5]])
    found = calibration.Asked(rows, np.ones(3), True).relevances(SURE)
    assert list(found) == [0.0, pytest.approx(1 / (1 + np.exp(-5.0))), 0.5]


def test_nothing_to_learn_from_is_said(calibration: Any) -> None:
    with pytest.raises(SystemExit, match="no right hit"):
        calibration.fit([calibration.Part("one", [topic(calibration, (0.5, 0), (0.2, 0))])])


def test_bins_by_hand(calibration: Any) -> None:
    """0.05 is wrong; of two at 0.85 one is right; 1.0 is in the last bin, not past it."""
    told, right = np.array([0.05, 0.85, 0.89, 1.0]), np.array([0.0, 1.0, 0.0, 1.0])
    bins = calibration.reliability(told, right, np.full(4, 0.25))
    assert [(item["from"], item["hits"]) for item in bins] == [(0.0, 1), (0.8, 2), (0.9, 1)]
    assert bins[1] == {"from": 0.8, "hits": 2, "share": 0.5, "told": pytest.approx(0.87), "right": 0.5}


def test_the_calibration_error_by_hand(calibration: Any) -> None:
    items = [topic(calibration, (0.9, 1), (0.2, 0)), topic(calibration, (0.9, 0), (0.2, 0))]
    found = calibration.judged([calibration.Part("one", items)], LOGIT)
    assert found["calibration_error"] == pytest.approx(0.5 * 0.4 + 0.5 * 0.2)
    assert found["log_loss"] == pytest.approx(-(np.log(0.9) + np.log(0.1) + 2 * np.log(0.8)) / 4, abs=1e-4)


def test_who_is_still_answered(calibration: Any) -> None:
    items = [
        topic(calibration, (0.9, 0), (0.6, 1)),
        topic(calibration, (0.3, 1)),
        topic(calibration, (0.95, 0)),  # no right hit was found
        topic(calibration, (0.4, 0), answerable=False),
        topic(calibration, (0.7, 0), (0.1, 0), answerable=False),
    ]
    rows = calibration.abstention([calibration.Part("one", items)], LOGIT, [0.0, 0.5, 0.8])
    assert [row["answered"] for row in rows] == pytest.approx([2 / 3, 1 / 3, 0.0])
    assert [row["kept"] for row in rows] == pytest.approx([1.0, 0.5, 0.0])
    assert [row["false_answers"] for row in rows] == pytest.approx([1.0, 0.5, 0.0])


def test_the_threshold_is_the_highest_the_rule_allows(calibration: Any) -> None:
    """Of twenty answered topics one may be lost: that at 0.3, not the next at 0.5."""
    relevances = [0.3, 0.5, *(0.9 for _ in range(18))]
    items = [topic(calibration, (told, 1)) for told in relevances]
    assert calibration.chosen([calibration.Part("one", items)], LOGIT) == pytest.approx(0.5)
    assert calibration.chosen([calibration.Part("one", items[1:])], LOGIT) == pytest.approx(0.5)
    assert calibration.chosen([calibration.Part("one", items[:19])], LOGIT) < 0.3 + 1e-9


@pytest.mark.skipif(not FITTED, reason="nothing was fitted yet: make calibration")
def test_what_ships_is_what_was_fitted(calibration: Any) -> None:
    (file,) = FITTED
    told = json.loads(file.read_text())
    assert dict(zip(calibration.NAMES, calibration.SHIPPED, strict=True)) == told["line"]


def test_topics_are_for_learning_or_for_judging(calibration: Any) -> None:
    ids = [f"q{number}" for number in range(200)]
    even = [id for id in ids if calibration.for_learning("kitchen", "test", id)]
    assert 70 < len(even) < 130
    assert all(calibration.for_learning("scifact", "train", id) for id in ids)
    assert not any(calibration.for_learning("scifact", "test", id) for id in ids)


@pytest.mark.slow
def test_the_set_that_ships_is_read_judged_and_told(
    calibration: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``read`` itself stops where the relevance of a hit is not the one it worked out."""
    dataset = load("demo")
    found = calibration.read(dataset, str(tmp_path / "vectors"))
    assert found.keys() == {topic.id for topic in (*dataset.topics, *dataset.unanswerable)}
    silent = [item for item in found.values() if not item["answerable"]]
    assert len(silent) == len(dataset.unanswerable) > 0
    assert not any(any(item["right"]) for item in silent)
    assert any(any(item["right"]) for item in found.values())
    for name in ("one", "other"):
        kept = {"set": name, "split": "test", "identity": f"{name}/test#0", "commit": "0", "topics": found}
        (tmp_path / f"{name}.test.json").write_text(json.dumps(kept))
    monkeypatch.setattr("sys.argv", ["calibration", "--parts", str(tmp_path), "--out", str(tmp_path / "out.json")])
    calibration.main()
    told = json.loads((tmp_path / "out.json").read_text())
    assert told["sets"].keys() == {"one", "other"} and told["sets"]["one"] == told["sets"]["other"]
    assert told["judged"]["hits"] == sum(told["sets"][name]["all"]["hits"] for name in ("one", "other"))
    assert told["read"] == {"one/test#0": "0", "other/test#0": "0"}
    assert told["abstention"][0]["kept"] == 1.0 and told["abstention"][0]["false_answers"] == 1.0
    assert f"{told['threshold']:.2f}" in capsys.readouterr().out


def test_a_relevance_that_is_not_the_one_worked_out_is_refused(
    calibration: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "probability", lambda standing: 0.123)
    with pytest.raises(SystemExit, match="is shown with relevance"):
        calibration.read(load("demo").sample([load("demo").topics[0].id]), str(tmp_path))
