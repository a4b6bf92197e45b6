"""The analyser: turns the text of documents and queries into terms, for the lexical index.

A document becomes a list of terms in two parts:

* *words in place*: every word once, in reading order, so that a phrase is a run of neighbours. Joined names are split
  (``os.path`` is ``os path``, ``state-of-the-art`` is four words). camelCase stays one word, because ``JavaScript`` and
  ``javascript`` are the same word. Scripts without spaces (Chinese, Japanese, Korean, Thai...) become bigrams.
* *a tail* after the last word, where order means nothing: each joined name as a whole (``os.path``; without hyphens and
  underscores, so that ``e-mail``, ``e_mail``, ``eMail`` and ``email`` are equal), its dotted components (``types.py``
  of ``src/types.py``), the humps of camelCase, and the single characters of scripts without spaces.

So a query for a whole name, for any of its words or for any hump of at least two letters finds the document. A plain
word is exactly one term. Emoji, symbols, control characters and lone surrogates separate words and are not terms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import Stemmer

from trivet.errors import InputError
from trivet.text.alternatives import Alternatives, german
from trivet.text.stop_words import STOP_WORDS
from trivet.text.tokens import MAX_TERM, Piece, fold, is_plain, names_in, pieces_of, quoted_spans, raw_tokens

#: Part of the identity of an index: terms of different versions do not match, so the index is rebuilt.
ANALYSIS_VERSION = 1

#: Language code -> Snowball algorithm; None: words are not stemmed.
LANGUAGES: dict[str, str | None] = {
    "none": None, "zh": None, "ja": None, "ko": None, "th": None,
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english",
    "es": "spanish", "et": "estonian", "eu": "basque", "fa": "persian", "fi": "finnish", "fr": "french", "ga": "irish",
    "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian", "lt": "lithuanian",
    "ne": "nepali", "nl": "dutch", "no": "norwegian", "pl": "polish", "pt": "portuguese", "ro": "romanian",
    "ru": "russian", "sr": "serbian", "sv": "swedish", "ta": "tamil", "tr": "turkish",
}  # fmt: skip

#: Languages whose stemmer does not know accents: fold before stemming. In the others, fold after it.
_FOLD_FIRST = frozenset({"en", "id"})
#: Languages with elision (l'eau, dell'arte). In others, O'Brien is one word.
_ELIDING = frozenset({"fr", "it", "ca"})
#: Language -> the alternatives of a word that no document has.
_ALTERNATIVES = {"de": german}

#: Distinct raw tokens in the cache of an analyser (at most about 60 MB) before it is cleared.
MEMO_LIMIT = 1 << 18
#: Characters. A longer raw token is a blob or a sentence of a script without spaces, which rarely repeats.
MEMO_TOKEN = 64


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query as the lexical leg reads it. Apart from quotes, nothing in a query is syntax.

    ``terms`` are what is scored, each once. ``required`` are the words in place among them: documents with all of them
    are searched first. ``phrases`` are the quoted spans with their stop words. ``weights`` are of terms that do not
    count exactly once. ``lenient``: a required word that no document has is replaced, by the first of its
    ``alternatives`` that documents have or by a similar word.
    """

    terms: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    phrases: tuple[tuple[str, ...], ...] = ()
    weights: tuple[tuple[str, float], ...] = ()
    lenient: bool = False
    alternatives: Callable[[str], Alternatives] | None = field(default=None, compare=False)  # of a required term


class _Words(str):
    """The words of one raw token, joined by spaces, with its tail. A str, because ``str.join`` is fast."""

    __slots__ = ("tail",)
    tail: str


class _Memo(dict[str, str]):
    """A cache from raw token to words: most tokens of a text have been seen before."""

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
    """Turns text into terms, for one language. Threads may share it."""

    def __init__(self, language: str = "en") -> None:
        if not isinstance(language, str):
            raise InputError(f"language: {language!r} is not a two-letter code such as 'en'")
        code = language.strip().lower().replace("_", "-").partition("-")[0]
        if code not in LANGUAGES:
            raise InputError(f"language {language!r} is unknown; known: {', '.join(sorted(LANGUAGES))}")
        self.language = code
        self.stop_words: frozenset[str] = STOP_WORDS.get(code, frozenset())
        algorithm = LANGUAGES[code]
        # The cache of the stemmer is off, because ``_Memo`` caches its results.
        self._stem: Callable[[str], str] = Stemmer.Stemmer(algorithm, 0).stemWord if algorithm else str
        self._fold_first = code in _FOLD_FIRST or not algorithm
        self._elides = code in _ELIDING
        self._alternatives = _ALTERNATIVES.get(code)
        self._memo = _Memo(self._analyse)

    @property
    def id(self) -> str:
        """Everything that changes the terms; an index stores it."""
        return f"{self.language}/{ANALYSIS_VERSION}"

    def terms(self, text: str) -> list[str]:
        """Return the terms of a document: all words in place, stop words included, then the tail."""
        return self.line(text).split()

    def line(self, text: str) -> str:
        """Return the terms joined by spaces, for an index with a whitespace tokenizer."""
        words, tail = self.halves(text)
        return " ".join(words + tail)

    def halves(self, text: str) -> tuple[list[str], list[str]]:
        """Return the words in place and the tail; each item is the terms of one raw token, joined by spaces."""
        words = list(map(self._memo.__getitem__, raw_tokens(text)))
        return words, [word.tail for word in words if isinstance(word, _Words)]

    def query(self, text: str) -> ParsedQuery:
        """Return the content terms and the quoted phrases of a query; stop words only if there is nothing else."""
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
            alternatives=self._alternatives_of(content) if self._alternatives else None,
        )

    def content(self, text: str) -> tuple[str, ...]:
        """Return the terms of the content words, each once."""
        return self.query(text).required

    def keywords(self, text: str) -> list[str]:
        """Return the content words as written, in lower case."""
        return [piece.surface for piece in self._content(raw_tokens(text))]

    def _content(self, tokens: Iterable[str]) -> list[Piece]:
        pieces = [piece for raw in tokens for piece in pieces_of(raw, elides=self._elides)]
        return [piece for piece in pieces if fold(piece.surface) not in self.stop_words] or pieces

    def _alternatives_of(self, content: Iterable[Piece]) -> Callable[[str], Alternatives]:
        """Return a function that gives the alternatives of a term; they are made for a term that no document has."""

        def alternatives(term: str) -> Alternatives:
            word = next((piece.surface for piece in content if self._term(piece.surface) == term), "")
            others = self._alternatives(word, self._term) if self._alternatives else ()
            return tuple(words for words in others if self.stop_words.isdisjoint(words))

        return alternatives

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
        """Return the other terms of a piece: its characters or parts, and its stem without accents."""
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
