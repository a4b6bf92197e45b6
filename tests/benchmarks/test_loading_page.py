"""docs/evidence/loading.md shows the measured numbers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def page(script: Any) -> Any:
    return script("loading_page")


def told(first: float, again: float) -> dict[str, Any]:
    row = {"documents": 10, "documents_per_s": 5, "wall_s": first, "cpu_s": 3.0, "cores": 1.5}
    return {"first": row, "again": {**row, "wall_s": again}, "start_s": 0.5}


def test_the_share_is_of_the_work(page: Any) -> None:
    assert page.share(told(10.5, 0.8)) == pytest.approx(0.03)
    assert page.share(told(10.5, 0.4)) == 0.0  # no quicker than a start


def test_one_that_is_missed_is_missed(page: Any) -> None:
    good = {name: told(10.5, 0.8) for name in page.REPEATED}
    assert page.met({"again": good})
    assert not page.met({"again": {**good, page.REPEATED[1]: told(10.5, 1.1)}})
    assert "missed" in page.targets({"again": {**good, page.REPEATED[1]: told(10.5, 1.1)}})[1]


def test_the_page_is_that_of_the_result_it_names(page: Any) -> None:
    written = page.PAGE.read_text()
    found = re.search(r"benchmarks/results/(loading-\w+\.json)", written)
    assert found is not None
    results = json.loads((ROOT / "benchmarks/results" / found[1]).read_text())
    assert written == page.page(results, found[1])
