"""A collection says when its texts are not in its language, or not in that of its model."""

from __future__ import annotations

from pathlib import Path

import pytest

import trivet

GERMAN = (
    "Die Pumpe im Keller wurde ausgetauscht, weil sie zu laut war.",
    "Bitte denk daran, dass am Montag niemand im Büro ist und dass die Katze gefüttert werden muss.",
    "Der Schlüssel der Gartenlaube hängt neben der Haustür, wo er schon immer war.",
    "Wir haben beschlossen, dass die Rechnungen nicht mehr mit der Post verschickt werden.",
)
RUSSIAN = "Насос в подвале заменили, потому что он был слишком громким."
ENGLISH = "The pump in the cellar was replaced because it was too loud, and that is all there is to say about it. " * 3


def advice(path: Path, texts: tuple[str, ...], **options: str) -> str:
    with trivet.open(path / "memory.db", background=False, **options) as memory:  # type: ignore[arg-type]
        memory.add([{"text": text} for text in texts])
        return memory.stats().advice


def test_words_and_meaning(tmp_path: Path) -> None:
    said = advice(tmp_path, GERMAN)
    assert "is German, but its words are analysed as English and its model reads English" in said
    assert 'create it with language="de", embedder="multilingual"' in said


@pytest.mark.parametrize(
    ("texts", "options", "way_out"),
    [
        (GERMAN, {"language": "de"}, "trivet reembed --embedder multilingual"),
        (GERMAN, {"embedder": "hashing"}, 'create it with language="de" ('),
        (GERMAN, {"embedder": "none"}, 'create it with language="de" ('),
        ((ENGLISH,), {"language": "de", "embedder": "none"}, 'create it with language="en" ('),
        ((RUSSIAN,), {}, "trivet reembed --embedder multilingual"),
    ],
)
def test_only_what_does_not_fit_is_named(
    texts: tuple[str, ...], options: dict[str, str], way_out: str, tmp_path: Path
) -> None:
    assert way_out in advice(tmp_path, texts, **options)


@pytest.mark.parametrize(
    ("texts", "options"),
    [
        ((), {}),
        (GERMAN[:1], {}),
        ((ENGLISH,), {}),
        (GERMAN, {"language": "de", "embedder": "hashing"}),
        ((RUSSIAN,), {"embedder": "none"}),
        ((*GERMAN, ENGLISH), {}),
    ],
)
def test_where_it_fits_or_is_not_clear_nothing_is_said(
    texts: tuple[str, ...], options: dict[str, str], tmp_path: Path
) -> None:
    assert advice(tmp_path, texts, **options) == ""


def test_a_bound_caller_hears_of_its_own_texts_only(tmp_path: Path) -> None:
    with trivet.open(tmp_path / "memory.db", embedder="none") as memory:
        memory.add([{"text": text, "meta": {"owner": "ana"}} for text in GERMAN])
        memory.add({"text": ENGLISH, "meta": {"owner": "bob"}})
        assert memory.within({"owner": "bob"}).stats().advice == ""
        assert "German" in memory.within({"owner": "ana"}).stats().advice
