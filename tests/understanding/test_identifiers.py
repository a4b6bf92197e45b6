"""Which words mean exactly themselves?"""

from __future__ import annotations

import pytest

from trivet.understanding.identifiers import MAX_IDENTIFIERS, find_identifiers


@pytest.mark.parametrize(
    "name",
    [
        "E1234",
        "ORA-00942",
        "CVE-2021-44228",
        "ERR_CONNECTION_RESET",
        "snake_case_name",
        "getUserName",
        "os.path.join",
        "std::sort",
        "src/parts/lamp.py",
        "./run/start.sh",
        "1.2.3",
        "v2.0.1-rc1",
        "0x80070005",
        "9f1c2ab",
        "123e4567-e89b-12d3-a456-426614174000",
    ],
)
def test_names(name: str) -> None:
    assert find_identifiers(f"why does {name} fail") == (name,)
    assert find_identifiers(f"({name})") == (name,)


@pytest.mark.parametrize(
    "text",
    [
        "plain words only",
        "in 2026 and 1999",
        "the end.Then another",
        "CD34 and IL-10 cells",
        "mRNA levels",
        "3.5 percent",
        "NASA and the WHO",
        "decade facade",
        "e-mail from ana@example.org",
    ],
)
def test_words_numbers_and_genes_are_not(text: str) -> None:
    assert find_identifiers(text) == ()


def test_there_is_an_end_to_it() -> None:
    assert len(find_identifiers(" ".join(f"E{n}" for n in range(1000, 1100)))) == MAX_IDENTIFIERS
