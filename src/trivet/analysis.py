"""What words does this text have?

One analyser for documents and queries. A document becomes a list of terms in two parts:

* *words in place*: every word once, in reading order, so that a phrase is a run of neighbours. Joined names are taken
  apart (``os.path`` is ``os path``, ``state-of-the-art`` four words); camelCase stays one word, since ``JavaScript``
  and ``javascript`` are the same word. Unspaced scripts (Chinese, Japanese, Korean, Thai...) become bigrams.
* *a tail* behind the last word, where neighbours mean nothing: the whole of each joined name (``os.path``; hyphens and
  underscores are squeezed out, so that ``e-mail``, ``e_mail``, ``eMail`` and ``email`` meet), its dotted components
  (``types.py`` of ``src/types.py``), the humps of camelCase, and the single characters of unspaced scripts.

So the query for a whole name, for any of its words or for any hump of two letters finds the document. A plain word is
exactly one term. Emoji, symbols, control characters and lone surrogates separate words and are no terms themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import Stemmer

from trivet.errors import InputError
from trivet.stop_words import STOP_WORDS
from trivet.tokens import MAX_TERM, Piece, fold, is_plain, names_in, pieces_of, quoted_spans, raw_tokens

#: Part of an index's identity: terms of another version do not match, so the index is rebuilt.
ANALYSIS_VERSION = 1

#: Language code to its Snowball algorithm; None: words are kept as they are written.
LANGUAGES: dict[str, str | None] = {
    "none": None, "zh": None, "ja": None, "ko": None, "th": None,
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english",
    "es": "spanish", "et": "estonian", "eu": "basque", "fa": "persian", "fi": "finnish", "fr": "french", "ga": "irish",
    "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian", "lt": "lithuanian",
    "ne": "nepali", "nl": "dutch", "no": "norwegian", "pl": "polish", "pt": "portuguese", "ro": "romanian",
    "ru": "russian", "sr": "serbian", "sv": "swedish", "ta": "tamil", "tr": "turkish",
}  # fmt: skip

#: Languages whose stemmer knows no accents: fold before stemming. The others read accents: fold after it.
_FOLD_FIRST = frozenset({"en", "id"})
#: Languages that write l'eau, dell'arte; elsewhere O'Brien is one word.
_ELIDING = frozenset({"fr", "it", "ca"})

#: Distinct raw tokens an analyser remembers (some 60 MB at most) before it starts afresh.
MEMO_LIMIT = 1 << 18
#: Characters. Longer raw tokens are blobs or sentences of an unspaced script: they hardly ever come back.
MEMO_TOKEN = 64


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query as the lexical leg reads it; no part of it is syntax.

    ``terms`` is what scores: any of them, each once. ``required`` are the words in place among them, which a document
    should hold all of before the query is broadened. ``phrases`` are the quoted spans, each a run of neighbours with
    its stop words. ``weights`` are of terms that count more or less than once; ``lenient``: for a required word that no
    document has, its nearest ones are looked for.
    """

    terms: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    phrases: tuple[tuple[str, ...], ...] = ()
    weights: tuple[tuple[str, float], ...] = ()
    lenient: bool = False


class _Words(str):
    """The words of one raw token, space-joined, with its tail. A str, so that joining a document stays in C."""

    __slots__ = ("tail",)
    tail: str


class _Memo(dict[str, str]):
    """Raw token to its words: most of a text is words seen before."""

    def __init__(self, analyse: Callable[[str], str]) -> None:
        super().__init__()
        self._analyse = analyse

    def __missing__(self, raw: str) -> str:
        words = self._analyse(raw)
        if len(raw) <= MEMO_TOKEN:
            if len(self) >= MEMO_LIMIT:
                self.clear()
            self[raw] = words
        return words


class Analyzer:
    """Text to terms, for one language. Threads may share it."""

    def __init__(self, language: str = "en") -> None:
        if not isinstance(language, str):
            raise InputError(f"language: {language!r} is not a two-letter code such as 'en'")
        code = language.strip().lower().replace("_", "-").partition("-")[0]
        if code not in LANGUAGES:
            raise InputError(f"language {language!r} is unknown; known are {', '.join(sorted(LANGUAGES))}")
        self.language = code
        self.stop_words: frozenset[str] = STOP_WORDS.get(code, frozenset())
        algorithm = LANGUAGES[code]
        # Its own cache is off: the memo stands before it.
        self._stem: Callable[[str], str] = Stemmer.Stemmer(algorithm, 0).stemWord if algorithm else str
        self._fold_first = code in _FOLD_FIRST or not algorithm
        self._elides = code in _ELIDING
        self._memo = _Memo(self._analyse)

    @property
    def id(self) -> str:
        """Names everything that changes the terms; an index keeps it."""
        return f"{self.language}/{ANALYSIS_VERSION}"

    def terms(self, text: str) -> list[str]:
        """A document's terms: all words in place, stop words too, then the tail."""
        return self.line(text).split()

    def line(self, text: str) -> str:
        """``terms`` with spaces between them, as an index with a whitespace tokenizer takes it."""
        words, tail = self.halves(text)
        return " ".join(words + tail)

    def halves(self, text: str) -> tuple[list[str], list[str]]:
        """The words in place and the tail; each item holds the terms of one raw token, with spaces between them."""
        words = list(map(self._memo.__getitem__, raw_tokens(text)))
        return words, [word.tail for word in words if isinstance(word, _Words)]

    def query(self, text: str) -> ParsedQuery:
        """A query's content terms and quoted phrases; stop words count only where there is nothing else."""
        tokens = raw_tokens(text)
        content = self._content(tokens)
        required = [term for piece in content for term in self._in_place(piece)]
        tail = [term for piece in content for term in self._variants(piece)]
        wholes = [term for raw in tokens for term in self._wholes(raw)]
        phrases = (self._phrase(span) for span in quoted_spans(text))
        return ParsedQuery(
            terms=_unique(required + tail + wholes),
            required=_unique(required),
            phrases=tuple(dict.fromkeys(phrase for phrase in phrases if phrase)),
        )

    def content(self, text: str) -> tuple[str, ...]:
        """The terms of the content words, each once: what two texts have in common."""
        return self.query(text).required

    def keywords(self, text: str) -> list[str]:
        """The content words, lower-cased and otherwise as written."""
        return [piece.surface for piece in self._content(raw_tokens(text))]

    def _content(self, tokens: Iterable[str]) -> list[Piece]:
        pieces = [piece for raw in tokens for piece in pieces_of(raw, elides=self._elides)]
        return [piece for piece in pieces if fold(piece.surface) not in self.stop_words] or pieces

    def _phrase(self, span: str) -> tuple[str, ...]:
        pieces = (piece for raw in raw_tokens(span) for piece in pieces_of(raw, elides=self._elides))
        return tuple(term for piece in pieces for term in self._in_place(piece))

    def _analyse(self, raw: str) -> str:
        if is_plain(raw):
            return self._term(raw.lower())
        pieces = pieces_of(raw, elides=self._elides)
        words = " ".join(term for piece in pieces for term in self._in_place(piece))
        tail = [term for piece in pieces for term in self._variants(piece)] + self._wholes(raw)
        if not tail:
            return words
        with_tail = _Words(words)
        with_tail.tail = " ".join(tail)
        return with_tail

    def _in_place(self, piece: Piece) -> tuple[str, ...]:
        return piece.grams or (self._term(piece.surface),)

    def _variants(self, piece: Piece) -> list[str]:
        """Other terms a piece is found by: its characters or its parts, and its stem as typed without accents."""
        if piece.grams:
            return list(piece.characters)
        variants = [self._term(part) for part in piece.parts]
        if not (self._fold_first or piece.surface.isascii()):
            variants.append(self._term(fold(piece.surface)))
        return [term for term in variants if term != self._term(piece.surface)]

    def _wholes(self, raw: str) -> list[str]:
        return [self._term(name) for name in names_in(raw)]

    def _term(self, word: str) -> str:
        if word.isascii():
            term = self._stem(word) if word.isalpha() else word
        elif self._fold_first:
            term = self._stem(fold(word))
        else:
            term = fold(self._stem(word))
        return (term or word)[:MAX_TERM]


def _unique(terms: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(terms))
