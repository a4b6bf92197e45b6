"""Count the tests that come with a framework, which every implementation of its interface has to pass."""

from __future__ import annotations

from collections import Counter

import pytest

UPSTREAM = ("langchain_tests", "haystack")

_upstream: set[str] = set()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if getattr(getattr(item, "function", None), "__module__", "").split(".")[0] in UPSTREAM:
            _upstream.add(item.nodeid)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    outcomes: Counter[str] = Counter()
    for outcome in ("passed", "failed", "error", "xfailed", "xpassed", "skipped"):
        reports = terminalreporter.stats.get(outcome, [])
        outcomes[outcome] = sum(report.nodeid in _upstream for report in reports)
    if _upstream:
        counted = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items() if count)
        terminalreporter.write_line(f"upstream conformance: {counted}")
