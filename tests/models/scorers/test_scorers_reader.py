"""The built-in reader ranks an answer above what is about something else, and a damaged file is refused by name."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest

from trivet.errors import InputError, ScorerError
from trivet.models.encoders import reader_model
from trivet.models.scorers import load_scorer, reader

QUERY = "Why does the greenhouse door stick?"
ANSWER = "The greenhouse door swells when it rains, so it sticks in wet weather."
SAME_SUBJECT = "The greenhouse door was painted green in April."
OTHER = "The quarterly report is due on Friday."


@pytest.fixture(scope="module")
def model() -> reader.ReaderScorer:
    found = load_scorer("reader")
    assert isinstance(found, reader.ReaderScorer)
    return found


def test_an_answer_reads_better_than_its_subject_and_that_better_than_anything_else(model: reader.ReaderScorer) -> None:
    answer, subject, other = model.scores(QUERY, [ANSWER, SAME_SUBJECT, OTHER])
    assert answer > subject > other
    assert answer > 0 > other


def test_the_scores_do_not_depend_on_what_is_read_with_them(model: reader.ReaderScorer) -> None:
    together = model.scores(QUERY, [ANSWER, OTHER, SAME_SUBJECT])
    assert together == [model.scores(QUERY, [text])[0] for text in (ANSWER, OTHER, SAME_SUBJECT)]


@pytest.mark.parametrize("passage", ["", "\ud800", "long " * 1_000_000, "端口 8443"])
def test_any_text_has_a_score(model: reader.ReaderScorer, passage: str) -> None:
    (score,) = model.scores(QUERY, [passage])
    assert -15 < score < 0


def test_the_files_are_within_their_limit_and_named_in_the_notice() -> None:
    folder = resources.files(reader_model.PACKAGE).joinpath(reader_model.FOLDER)
    assert sum(len(file.read_bytes()) for file in folder.iterdir() if file.is_file()) <= 25_000_000
    assert "Apache-2.0" in folder.joinpath("NOTICE").read_text(encoding="utf-8")


def test_it_takes_no_argument() -> None:
    with pytest.raises(InputError, match=r"reader:small.*write 'reader'"):
        load_scorer("reader:small")


def _copied(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copy the model into a package of its own and let the scorer read that."""
    package = folder / f"copied_{folder.name}"  # a name of its own, since an imported package stays imported
    (package / "reader").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    for file in resources.files(reader_model.PACKAGE).joinpath(reader_model.FOLDER).iterdir():
        (package / "reader" / file.name).write_bytes(file.read_bytes())
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(reader_model, "PACKAGE", package.name)
    return package / "reader"


@pytest.mark.parametrize("name", ["config.json", "model.int8.safetensors", "tokenizer.json"])
def test_a_damaged_file_is_refused_by_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = _copied(tmp_path, monkeypatch) / name
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    with pytest.raises(ScorerError, match=rf"{name} has sha256 .*force-reinstall"):
        reader.ReaderScorer().scores(QUERY, [ANSWER])


def test_a_missing_file_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (_copied(tmp_path, monkeypatch) / "model.int8.safetensors").unlink()
    with pytest.raises(ScorerError, match=r"model.int8.safetensors cannot be read .*force-reinstall"):
        reader.ReaderScorer().open()
