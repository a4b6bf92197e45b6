"""Are silences and false answers counted as the page says? By hand, and on the set that ships."""

from __future__ import annotations

from typing import Any

import pytest

from trivet.evaluate import load

# best relevance shown, that of the best right hit, best with the right ones taken away
PART = {"asked": [[0.9, 0.9, 0.2], [0.6, 0.4, 0.6], [0.5, 0.0, 0.5]], "silent": [0.7, 0.1]}


@pytest.fixture
def abstention(script: Any) -> Any:
    return script("abstention")


def test_a_topic_without_a_right_hit_can_lose_none(abstention: Any) -> None:
    assert abstention.rates(PART, 0.5) == {"kept": 0.5, "taken_away": pytest.approx(2 / 3), "unanswerable": 0.5}
    assert abstention.rates(PART, 0.0)["kept"] == 1.0


def test_a_set_that_answers_everything_has_no_rate_of_false_answers(abstention: Any) -> None:
    assert abstention.rates({"asked": PART["asked"], "silent": []}, 0.5)["unanswerable"] is None
    assert abstention.mean([None, 1.0, 0.0]) == 0.5
    assert abstention.mean([None]) is None


def test_told_apart_is_the_share_of_pairs_in_the_right_order(abstention: Any) -> None:
    found = abstention.told_apart(PART)
    assert found["unanswerable"] == pytest.approx(4 / 6)  # .9 above both, .6 and .5 above one
    assert found["taken_away"] == pytest.approx((3 + 2.5 + 1.5) / 9)  # ties are half


def test_the_set_that_ships_is_read(abstention: Any) -> None:
    demo = load("demo")
    found = abstention.read(demo, None)
    assert found["identity"] == demo.identity
    assert all(best <= shown and left <= 1.0 for shown, best, left in found["asked"])
    assert found["asked"] and any(left < shown for shown, _, left in found["asked"])
    page = abstention.page(
        {"made": {"commit": "abc"}, "sets": {"demo": found}},
        {
            "judged": {
                "hits": 1,
                "calibration_error": 0.0,
                "bins": [{"from": 0.8, "hits": 1, "told": 0.8, "right": 0.8}],
            },
            "rule": "none",
            "threshold": 0.1,
        },
        ("a.json", "c.json"),
    )
    assert "| demo |" in page and "`████████████████`" in page
