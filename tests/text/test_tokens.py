from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivet.text.tokens import MAX_TERM, clean, comparable, fold, names_in, pieces_of, quoted_spans, raw_tokens

anything = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("src/trivet/types.py, line 3.", ["src/trivet/types.py", "line", "3"]),
        ("std::vector and https://example.com/a", ["std::vector", "and", "https://example.com/a"]),
        ("1,000 and 1,00 and 1,000,000.50", ["1,000", "and", "1", "00", "and", "1,000,000.50"]),
        ("C++ C# .NET i++; x.y().z", ["C++", "C#", ".NET", "i++", "x.y", "z"]),
        ("end.  Next -- then... done", ["end", "Next", "then", "done"]),
        (
            "don’t, O\u2019Brien\u2019s well\u2010known co\u00adoperate",
            ["don't", "O'Brien's", "well-known", "cooperate"],
        ),
        ("don´t ŉ", ["don't", "n"]),
        ("ﬁne １２ ½", ["fine", "12", "1", "2"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("\ud800a\x00b 👍🏽 1️⃣", ["a", "b", "1"]),
        ("", []),
    ],
)
def test_a_raw_token_is_a_name_as_written(text: str, tokens: list[str]) -> None:
    assert raw_tokens(text) == tokens


@pytest.mark.parametrize(
    ("raw", "surfaces"),
    [
        ("GatewaySession.reconnect", ["gatewaysession", "reconnect"]),
        ("E_MQTT_7031", ["e", "mqtt", "7031"]),
        ("__init__", ["init"]),
        ("___", []),
        ("v1.2.3", ["1.2.3"]),
        ("python-3.11.4", ["python", "3.11.4"]),
        ("1,000.50", ["1000.50"]),
        ("C++", ["c++"]),
        (".NET", ["net"]),
        ("Alice's", ["alice"]),
        ("she'll", ["she"]),
        ("won't", ["will"]),
        ("n't", []),
        ("GPUs", ["gpu"]),
        ("Straße", ["strasse"]),
        ("使用os.path模块", ["使用", "os", "path", "模块"]),
        ("データ構造を", ["データ", "構造", "を"]),
    ],
)
def test_the_pieces_of_a_token_are_its_words(raw: str, surfaces: list[str]) -> None:
    assert [piece.surface for piece in pieces_of(raw)] == surfaces


def test_elision_is_a_matter_of_language() -> None:
    assert [piece.surface for piece in pieces_of("l'homme", elides=True)] == ["homme"]
    assert [piece.surface for piece in pieces_of("O'Brien")] == ["obrien"]


@pytest.mark.parametrize(
    ("raw", "parts"),
    [
        ("JavaScript", ("java", "script")),
        ("getHTTPResponseCode", ("get", "http", "response", "code")),
        ("Sha256Hasher", ("sha256", "hasher")),
        ("iPhone", ("phone",)),
        ("v1.2.3", ("1.2",)),
        ("C#", ("c",)),
        ("Title", ()),
        ("LOUD", ()),
        ("3.14", ()),
    ],
)
def test_the_parts_of_a_word(raw: str, parts: tuple[str, ...]) -> None:
    assert pieces_of(raw)[0].parts == parts


@pytest.mark.parametrize(
    ("raw", "names"),
    [
        ("GatewaySession.reconnect", ["gatewaysession.reconnect"]),
        ("src/trivet/types.py", ["src/trivet/types.py", "types.py"]),
        ("e-mail", ["email"]),
        ("my_pkg.some-mod", ["mypkg.somemod", "mypkg", "somemod"]),
        (".env", [".env"]),
        ("word", []),
        ("3.14", []),
        ("使用os.path模块", ["os.path"]),
        ("n't", []),
    ],
)
def test_the_names_in_a_token(raw: str, names: list[str]) -> None:
    assert list(names_in(raw)) == names


def test_naming_conventions_meet() -> None:
    spellings = ["gateway_session", "gateway-session", "GATEWAY_SESSION", "GatewaySession", "gatewaysession"]
    for spelling in spellings:
        found = {*names_in(spelling), *(piece.surface for piece in pieces_of(spelling))}
        assert "gatewaysession" in found


@pytest.mark.parametrize(
    ("word", "folded"),
    [
        ("café", "cafe"),
        ("smørrebrød", "smorrebrod"),
        ("łódź", "lodz"),
        ("ǽ", "ae"),
        ("ёлка", "елка"),
        ("йога", "йога"),
        ("οδός", "οδος"),
        ("がく", "がく"),
        ("한국", "한국"),
        ("हिन्दी", "हिन्दी"),
    ],
)
def test_folding_takes_accents_and_leaves_letters(word: str, folded: str) -> None:
    assert fold(word) == folded
    assert fold(fold(word)) == folded


def test_quoted_spans() -> None:
    assert quoted_spans('a "b c" “d e” „f g“ «h» 「i」 "open') == ["b c", "d e", "f g", "h", "i"]


def test_a_blob_is_cut_and_has_no_name() -> None:
    blob = "aB" * 5_000
    (piece,) = pieces_of(blob)
    assert len(piece.surface) == MAX_TERM and piece.parts == ()
    assert list(names_in("-".join(["word"] * 100))) == []


@given(anything)
def test_any_text_has_tokens_with_words_of_bounded_length(text: str) -> None:
    for raw in raw_tokens(text):
        assert all(0 < len(piece.surface) <= MAX_TERM + 2 for piece in pieces_of(raw, elides=True))
        assert all(0 < len(name) <= MAX_TERM for name in names_in(raw))


@given(st.text())
def test_any_text_can_be_written_down(text: str) -> None:
    cleaned = clean(text)
    assert cleaned.encode("utf-8").decode("utf-8") == cleaned
    if not any("\ud800" <= char <= "\udfff" for char in text):
        assert cleaned == text


def test_a_pair_of_surrogates_is_one_character() -> None:
    assert clean("\ud83d\ude00") == "\U0001f600"


@pytest.mark.parametrize(
    ("text", "folded"),
    [("", ""), (" \t\n", ""), ("  A  b\nC ", "a b c"), ("Ｗｉｄｅ", "wide"), ("ẞ", "ss"), ("İ", "i̇")],
)
def test_comparable(text: str, folded: str) -> None:
    assert comparable(text) == folded


@given(st.text(st.characters(max_codepoint=127)))
def test_the_short_way_for_ascii_is_the_long_way(text: str) -> None:
    assert comparable(text) == comparable(text + " é")[:-1].rstrip()


@given(st.text(), st.text())
def test_white_space_between_does_not_matter(one: str, other: str) -> None:
    assert comparable(f"{one} {other}") == comparable(f"  {one}\n\t{other} ")
