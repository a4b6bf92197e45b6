"""The forward index has the positions that analysing the text again would give."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trivet
from trivet.rerank.learned import evidence
from trivet.stores.sqlite import forward_index
from trivet.stores.sqlite.forward_index import Draft, ForwardIndex, Positions
from trivet.text.analysis import Analyzer

ENGLISH = Analyzer("en")
TEXTS = (
    ("Kettles", "Boil the kettle; kettles boil. See src/kettle_plan.py and HTTPServer2Go."),
    ("", "the the the"),
    ("Übersicht über Tee", "Café crème, ＡＢＣ and 東京タワー in the kettle's state-of-the-art box"),
    ("Tea", ""),
    ("!!!", "v1.2.3 of C++ isn't 1,000 times os.path"),
)


def saved(folder: Path, texts: list[tuple[int, str, str]], analyzer: Analyzer = ENGLISH) -> ForwardIndex:
    draft = Draft()
    for pid, title, text in texts:
        (heading, after), (words, tail) = analyzer.halves(title), analyzer.halves(text)
        draft.add(pid, heading + after, words + tail)
    draft.save(folder)
    return ForwardIndex(folder)


def expected(title: str, text: str, sought: set[str], analyzer: Analyzer = ENGLISH) -> Positions:
    places: dict[str, list[int]] = {}
    for place, term in enumerate(analyzer.terms(text)):
        if term in sought:
            places.setdefault(term, []).append(place)
    return set(analyzer.terms(title)) & sought, places


def check(found: ForwardIndex, texts: list[tuple[int, str, str]], sought: set[str]) -> None:
    places = found.positions([pid for pid, _, _ in texts], sought)
    assert places == {pid: expected(title, text, sought) for pid, title, text in texts}


@given(
    st.lists(st.tuples(st.text(max_size=20), st.text(max_size=60)), min_size=1, max_size=6),
    st.sampled_from(["en", "fr", "zh", "none"]),
    st.randoms(use_true_random=False),
)
@settings(deadline=None, max_examples=60)
def test_any_text_is_told_as_its_analysis_tells_it(
    tmp_path_factory: pytest.TempPathFactory, texts: list[tuple[str, str]], language: str, chance: object
) -> None:
    analyzer = Analyzer(language)
    numbered = [(pid, *each) for pid, each in enumerate([*texts, *TEXTS], start=3)]
    terms = sorted({term for _, title, text in numbered for term in analyzer.terms(f"{title}\n{text}")})
    sought = {*terms[::2], "not-there"}
    found = saved(tmp_path_factory.mktemp("f"), numbered, analyzer).positions([pid for pid, _, _ in numbered], sought)
    assert found == {pid: expected(title, text, sought, analyzer) for pid, title, text in numbered}


@given(st.text(max_size=30), st.text(max_size=80))
@settings(deadline=None)
def test_two_halves_make_the_line_of_the_whole(title: str, text: str) -> None:
    (heading, after), (words, tail) = ENGLISH.halves(title), ENGLISH.halves(text)
    assert " ".join(heading + words + after + tail) == ENGLISH.line(f"{title}\n{text}")


def test_segments_of_about_one_size_become_one_and_say_the_same(tmp_path: Path) -> None:
    numbered = [(pid, *TEXTS[pid % len(TEXTS)]) for pid in range(1, 41)]
    for start in range(0, 40, 10):
        saved(tmp_path, numbered[start : start + 10])
        ForwardIndex(tmp_path).merge()
    assert len(list(tmp_path.glob("*.npz"))) == 1
    assert len(ForwardIndex(tmp_path)) == 40
    check(ForwardIndex(tmp_path), numbered, {"kettl", "the", "tea", "os.path", "東京"})


def test_a_much_smaller_segment_stays_by_itself_and_is_read_too(tmp_path: Path) -> None:
    numbered = [(pid, *TEXTS[pid % len(TEXTS)]) for pid in range(1, 43)]
    saved(tmp_path, numbered[:40])
    saved(tmp_path, numbered[40:]).merge()
    assert len(list(tmp_path.glob("*.npz"))) == 2
    check(ForwardIndex(tmp_path), numbered, {"kettl", "boil"})


def test_none_grows_beyond_what_is_held_in_memory_to_make_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forward_index, "MOST", 15)
    numbered = [(pid, *TEXTS[pid % len(TEXTS)]) for pid in range(1, 31)]
    for start in range(0, 30, 10):
        saved(tmp_path, numbered[start : start + 10]).merge()
    assert len(list(tmp_path.glob("*.npz"))) == 3
    check(ForwardIndex(tmp_path), numbered, {"kettl"})


@pytest.mark.parametrize("last", [3, 7, 12])
def test_what_a_killed_writer_left_behind_is_there_once(tmp_path: Path, last: int) -> None:
    """It had saved passages 4 to 9; the next writer begins behind its checkpoint and saves from 4 on again."""
    texts = [(number, f"Note {number}", f"kettle word{number}") for number in range(1, last + 1)]
    saved(tmp_path, texts[:3])
    saved(tmp_path, texts[3:9] or texts[:1])
    found = saved(tmp_path, texts[3:] or texts[2:])
    found.merge()
    again = ForwardIndex(tmp_path)
    check(again, texts, {"kettl", "kettle", "note", "word3", "word5"})
    assert sum(len(part.pids) for part in again.terms_of(np.array([pid for pid, _, _ in texts]))) == len(texts)


def test_segments_that_were_never_committed_are_dropped(tmp_path: Path) -> None:
    texts = [(number, "", f"kettle word{number}") for number in range(1, 10)]
    saved(tmp_path, texts[:3])
    saved(tmp_path, texts[3:]).drop_after(3)
    assert len(ForwardIndex(tmp_path)) == 3


class TestDamage:
    def test_a_passage_whose_bytes_changed_is_not_told(self, tmp_path: Path) -> None:
        numbered = [(pid, *TEXTS[0]) for pid in (1, 2, 3)]
        saved(tmp_path, numbered)
        (file,) = tmp_path.glob("*.units")
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
        found = ForwardIndex(tmp_path)
        assert sorted(found.positions([1, 2, 3], {"kettl"})) == [1, 3]
        assert found.problems("words") == [f"words: {file.name} is damaged; run rebuild"]

    @pytest.mark.parametrize("suffix", ["npz", "units"])
    def test_a_file_that_was_cut_off_is_not_read(self, tmp_path: Path, suffix: str) -> None:
        saved(tmp_path, [(1, *TEXTS[0])])
        (file,) = tmp_path.glob(f"*.{suffix}")
        file.write_bytes(file.read_bytes()[:-5])
        found = ForwardIndex(tmp_path)
        assert found.positions([1], {"kettl"}) == {}
        assert len(found.problems("words")) == 1

    def test_a_sound_one_has_no_problems(self, tmp_path: Path) -> None:
        assert saved(tmp_path, [(1, *TEXTS[0]), (2, *TEXTS[1])]).problems("words") == []


def widened(folder: Path) -> None:
    """Rewrite the segments as an older trivet wrote them: 32 bits a number."""
    for segment in ForwardIndex(folder)._segments:
        numbers, ends = segment.terms()
        numbers.astype("<i4").tofile(segment.path.with_suffix(".terms"))
        starts = np.concatenate([[0], ends[:-1]])
        sums = [zlib.crc32(numbers[a:b].astype("<i4").tobytes()) for a, b in zip(starts, ends, strict=True)]
        table = segment.table | {"ends": ends, "sums": np.array(sums, dtype=np.uint32)}
        np.savez(segment.path.with_suffix(".npz"), **table)
        segment.path.unlink()


def test_segments_of_an_older_trivet_are_read_and_merged_into_new_ones(tmp_path: Path) -> None:
    numbered = [(pid, *TEXTS[pid % len(TEXTS)]) for pid in range(1, 21)]
    sought = {"kettl", "the", "tea", "os.path", "東京"}
    for start in (0, 10):
        saved(tmp_path, numbered[start : start + 10])
    widened(tmp_path)
    assert len(list(tmp_path.glob("*.terms"))) == 2
    found = ForwardIndex(tmp_path)
    check(found, numbered, sought)
    assert not found.problems("words")
    found.merge()
    assert not list(tmp_path.glob("*.terms"))
    check(ForwardIndex(tmp_path), numbered, sought)


def test_terms_beyond_sixteen_bits_are_told_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trivet.stores.sqlite.term_numbers.COMMON", 5)  # most terms of these texts are rare
    numbered = [(pid, *TEXTS[pid % len(TEXTS)]) for pid in range(1, 13)]
    check(saved(tmp_path, numbered), numbered, {"kettl", "the", "tea", "os.path", "東京", "crème"})


def test_a_search_answers_alike_with_and_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """On disk, in the tail, of several passages, replaced: what is not known here is analysed."""
    from trivet.stores.sqlite import term_index

    monkeypatch.setattr(term_index, "TAIL_LIMIT", 8)
    asked: list[int] = []
    with trivet.open(":memory:", embedder="hashing:32") as engine:
        engine.add(
            [
                {"id": f"d{at}", "title": title, "text": text or "x", "meta": {"session": "s"}}
                for at, (title, text) in enumerate(TEXTS * 4)
            ]
        )
        engine.add(
            {
                "id": "long",
                "title": "Boiling",
                "text": "\n\n".join(f"The kettle number {n} boils." * 20 for n in range(9)),
            }
        )
        engine.add({"id": "d3", "title": "Tea", "text": "Another kettle, in the tail"})
        engine.wait()
        collection = engine._collection
        places = type(collection.lexical).positions

        def told(self: object, pids: list[int], terms: set[str]) -> object:
            found = places(self, pids, terms)
            asked.append(len(found))
            return found

        monkeypatch.setattr(type(collection.lexical), "positions", told)
        quick = [engine.search(text, k=12) for text in ("boil the Kettle", "kettles of Tea", "os.path in Tokyo 東京")]
        monkeypatch.setattr(type(collection.lexical), "positions", lambda self, pids, terms: {})
        slow = [engine.search(text, k=12) for text in ("boil the Kettle", "kettles of Tea", "os.path in Tokyo 東京")]
    assert max(asked) > 5
    for one, other in zip(quick, slow, strict=True):
        assert [(hit.id, hit.score, hit.adjustments) for hit in one] == [
            (hit.id, hit.score, hit.adjustments) for hit in other
        ]


def test_evidence_is_the_same_from_places_and_from_texts() -> None:
    from trivet.types import Document, Hit, Passage

    hits = [
        Hit(at, str(at), 1.0 / at, 0.5, Document(str(at), text, title), Passage(0, 0, len(text), text))
        for at, (title, text) in enumerate(TEXTS, start=1)
    ]
    content = ENGLISH.content("boil the Kettle of Tea")

    def known(ids: object, sought: set[str]) -> dict[str, Positions]:
        return {hit.id: expected(hit.document.title, hit.passage.text, set(sought)) for hit in hits[1:]}

    plain = evidence(hits, content, ENGLISH.terms)
    assert evidence(hits, content, ENGLISH.terms, known) == plain  # type: ignore[arg-type]
    assert any(item.words for item in plain) and any(item.runs for item in plain)


def test_damage_that_a_search_meets_is_mended_by_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from trivet.stores.sqlite import term_index

    monkeypatch.setattr(term_index, "TAIL_LIMIT", 2)
    with trivet.open(tmp_path / "m.db", embedder="none") as engine:
        engine.add(
            [
                {"id": f"d{at}", "title": title, "text": text or "x", "meta": {"session": "s"}}
                for at, (title, text) in enumerate(TEXTS)
            ]
        )
        before = engine.search("boil the Kettle")
        (file,) = (tmp_path / "m.db.index").rglob("*.units")
        file.write_bytes(bytes(file.stat().st_size))
    with trivet.open(tmp_path / "m.db") as engine:
        after = engine.search("boil the Kettle")
        assert [(hit.id, hit.score) for hit in after] == [(hit.id, hit.score) for hit in before]
        assert engine.verify().ok
