from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivet.errors import InputError
from trivet.text import analysis
from trivet.text.analysis import LANGUAGES, Analyzer
from trivet.text.stop_words import STOP_WORDS
from trivet.text.tokens import MAX_TERM, fold

anything = st.text(st.characters(exclude_categories=()))
plain_words = st.lists(st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=12), max_size=20)
name_words = st.lists(st.text("abcdefghijklmnopqrstuvwxyz", min_size=2, max_size=8), min_size=2, max_size=4)

english = Analyzer()


def is_run(needle: tuple[str, ...], haystack: list[str]) -> bool:
    return any(tuple(haystack[at : at + len(needle)]) == needle for at in range(len(haystack)))


def test_a_question_has_the_keywords_of_seed_002() -> None:
    assert english.keywords("When was Stargate Atlantis cancelled?") == ["stargate", "atlantis", "cancelled"]


def test_plain_words_are_stemmed_and_one_term_each() -> None:
    assert english.terms("The cats were running") == ["the", "cat", "were", "run"]


@given(plain_words)
def test_a_plain_word_is_exactly_one_term(words: list[str]) -> None:
    assert len(english.terms(" ".join(words))) == len(words)


def test_documents_keep_stop_words_and_queries_drop_them() -> None:
    assert english.terms("to be or not to be") == ["to", "be", "or", "not", "to", "be"]
    assert english.query("what is the capital of France").terms == ("capit", "franc")
    assert english.query("to be or not to be").terms == ("to", "be", "or", "not")


def test_quoted_spans_are_phrases_with_their_stop_words() -> None:
    query = english.query('who said "to be or not to be" and “Guten Tag”?')
    assert query.phrases == (("to", "be", "or", "not", "to", "be"), ("guten", "tag"))
    assert query.required == ("said", "guten", "tag")


def test_words_in_place_come_before_wholes_and_humps() -> None:
    assert english.terms("GatewaySession.reconnect fails often") == [
        "gatewaysess", "reconnect", "fail", "often", "gateway", "session", "gatewaysession.reconnect",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("document", "query"),
    [
        ("GatewaySession.reconnect()", "GatewaySession.reconnect"),
        ("GatewaySession.reconnect()", "gateway session"),
        ("GatewaySession.reconnect()", "gatewaysession"),
        ("fails with E_MQTT_7031", "e_mqtt_7031"),
        ("fails with E_MQTT_7031", "7031"),
        ("see src/trivet/types.py", "types.py"),
        ("released v1.2.3 today", "1.2.3"),
        ("released v1.2.3 today", "v1.2"),
        ("send an e-mail", "email"),
        ("the JavaScript engine", "javascript engine"),
        ("written in C++", "c++"),
        ("the .NET runtime", ".net"),
        ("it costs 1,000 euros", "1000"),
        ("un café noir", "cafe"),
        ("die Straße", "strasse"),
        ("我的猫很可爱", "猫"),
        ("我的猫很可爱", "可爱"),
        ("東京タワー", "タワー"),
        ("서울에서 부산까지", "부산"),
        ("สวัสดีครับ", "สวัสดี"),
    ],
)
def test_a_query_finds_its_document(document: str, query: str) -> None:
    assert set(english.query(query).required) <= set(english.terms(document))


@given(name_words, st.sampled_from(["_", "-", ".", "/", "::", "@"]))
def test_the_whole_and_each_word_of_a_joined_name_find_it(words: list[str], joiner: str) -> None:
    name = joiner.join(words)
    found = set(english.terms(f"before {name} after"))
    for query in (name, name.upper(), *words):
        assert set(english.query(query).terms) <= found


@given(name_words)
def test_the_whole_and_each_hump_of_a_camel_name_find_it(words: list[str]) -> None:
    name = "".join(word.capitalize() for word in words)
    found = set(english.terms(name))
    for query in (name, name.lower(), *words):
        assert set(english.query(query).required) <= found


def test_phrases_run_through_joined_names_both_ways() -> None:
    for document, phrase in [
        ("a state-of-the-art method", "state of the art method"),
        ("a state of the art method", "state-of-the-art method"),
        ("we call os.path.join here", "call os.path.join here"),
        ("the JavaScript engine of V8", "the javascript engine"),
    ]:
        (terms,) = english.query(f'"{phrase}"').phrases
        assert is_run(terms, english.terms(document))


@given(anything)
def test_any_text_gives_clean_terms(text: str) -> None:
    for term in english.terms(text):
        assert term.split() == [term] and 0 < len(term) <= MAX_TERM
        term.encode("utf-8")
    assert english.line(text).split() == english.terms(text)
    english.keywords(text)


@given(anything)
def test_a_text_is_found_by_itself(text: str) -> None:
    assert set(english.query(text).terms) <= set(english.terms(text))


@given(st.text(st.characters(exclude_categories=(), exclude_characters='"')))
def test_a_text_is_a_phrase_of_any_text_around_it(text: str) -> None:
    phrases = english.query(f'"{text}"').phrases
    assert not phrases or is_run(phrases[0], english.terms(f"before {text} after"))


@given(st.text(st.characters(max_codepoint=0x24F) | st.sampled_from("我的猫データ서울")))
def test_analysing_terms_again_keeps_the_words(text: str) -> None:
    unstemmed = Analyzer("none")
    again = unstemmed.terms(unstemmed.line(text))
    assert set(unstemmed.query(text).required) <= set(again)


@given(anything, st.sampled_from(sorted(LANGUAGES)))
def test_every_language_finds_a_text_by_itself(text: str, language: str) -> None:
    analyzer = Analyzer(language)
    assert set(analyzer.query(text).terms) <= set(analyzer.terms(text))


@pytest.mark.parametrize(
    ("language", "document", "query"),
    [
        ("de", "Die Häuser der Städte", "haus stadt"),
        ("de", "die Größe", "grosse"),
        ("fr", "les cafés de l'avenue", "cafe avenue"),
        ("fr", "l’été", "ete"),
        ("es", "las canciones españolas", "cancion espanola"),
        ("it", "dell'università", "universita"),
        ("ru", "в большом городе", "большие города"),
        ("none", "running", "running"),
    ],
)
def test_other_languages_stem_and_forgive_missing_accents(language: str, document: str, query: str) -> None:
    analyzer = Analyzer(language)
    assert set(analyzer.query(query).required) <= set(analyzer.terms(document))


@pytest.mark.parametrize(
    ("language", "document", "query"),
    [
        ("zh", "我昨天在图书馆借了三本书。", "图书馆的书"),
        ("zh", "我住在广东深圳", "深圳"),
        ("ja", "昨日、東京タワーに登りました。", "東京タワー"),
        ("ja", "データベースの設定を変更する", "設定 変更"),
        ("ko", "어제 도서관에서 책을 빌렸다", "도서관 책"),
        ("en", "the 图书馆 in 深圳", "图书馆"),  # whatever the collection's language
    ],
)
def test_scripts_without_spaces_are_found_by_their_words(language: str, document: str, query: str) -> None:
    analyzer = Analyzer(language)
    terms = set(analyzer.terms(document))
    asked = analyzer.query(query)
    shared = [term for term in asked.terms if term in terms]
    assert len(shared) * 2 > len(asked.terms), (asked.terms, terms)


def test_language_codes_may_carry_a_region() -> None:
    assert Analyzer("en_US").id == Analyzer("en-gb").id == f"en/{analysis.ANALYSIS_VERSION}"


def test_an_unknown_language_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"klingon.*known: .*de, .*en, "):
        Analyzer("klingon")


def test_stop_words_are_written_as_the_analyser_compares_them() -> None:
    assert set(STOP_WORDS) <= set(LANGUAGES)
    for words in STOP_WORDS.values():
        assert all(word == fold(word.casefold()) and word.isalpha() for word in words)


def test_the_memo_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis, "MEMO_LIMIT", 10)
    analyzer = Analyzer()
    text = " ".join(f"Some{number}Name" for number in range(100)) + " " + "x" * 1_000
    assert analyzer.terms(text) == english.terms(text)
    assert len(analyzer._memo) <= 10
