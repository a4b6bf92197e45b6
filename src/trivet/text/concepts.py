"""Concepts: the entities that a text names, found by rules, for the graph.

A *concept* is an entity with a key that is the same in every text that names it: a name of one or more words (``Billy
Elliot``, ``Lord of the Rings``), an identifier (``ERR_42``, ``os.path``, ``GatewaySession``), a quotation, the subject
of a title, the two ends of a triple. There is no model and no dictionary: capital letters tell what a name is. In
scripts without capitals, concepts are the words and the pairs of words; in Chinese and Japanese, which have no spaces
either, runs of two to four characters. So there are more concepts than entities, and callers use the rarest first.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from typing import Any, NamedTuple

from trivet.text.tokens import fold, quoted_spans

#: Part of the identity of an index: concepts of different versions do not match.
CONCEPTS_VERSION = 1
MAX_CONCEPTS = 256  # of one text, so that a list of names does not connect everything with everything
MAX_NAME = 120  # characters of a key
RUN = 3  # words of a part of a longer name, at most: "Gmina Susz" of "Lubnowy Gmina Susz County"
QUOTED = 8  # words of a quotation, at most; a longer one is a sentence

_TOKEN = re.compile(r"[^\W_](?:[\w'’.\-/:@&+]*\w)?")
_SPLIT = re.compile(f"({_TOKEN.pattern})")
_POSSESSIVE = re.compile(r"['’]s?$")
_ASIDE = re.compile(r"\s*[(\[（][^()\[\]（）]*[)\]）]\s*$")
_LEVEL = re.compile(r"\s+[>|»]\s+")  # a title that is a path: "Game monetization > Add-ons"
_JOINED = re.compile(r"[a-z][A-Z]|\w[_/:@.]\w")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff々]{2,}")
_KATAKANA = re.compile("[\u30a1-\u30fa\u30fc]{2,}")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff]")
#: Chinese characters that are rarely part of a name: a name ends before them.
_PARTICLES = re.compile("[的了在是和与及或也都就而但被把对从到向于之其这那你我他她它们吗呢吧啊很不没有说去来个]")
#: Korean particles after a noun.
_JOSA = re.compile("(?<=[\uac00-\ud7a3]{2})(?:에서|에게|까지|부터|으로|은|는|이|가|을|를|에|의|와|과|도|로)$")
_JOINERS = "and und et y e in on at to for fur zu"
_LINKERS = "of the de del della di da do dos du des van von der den ter la le les el al bin ibn"
_LEADERS = "the a an der die das le la les el los las il lo i gli"
#: Small words that are between two names as often as inside one: "Karan and Prerana", "Alice in Wonderland".
_BETWEEN = frozenset(_JOINERS.split())
#: Small words that can be inside a name.
_INSIDE = _BETWEEN | frozenset(_LINKERS.split())
_ARTICLES = frozenset(_LEADERS.split())

Concepts = dict[str, str]  # key -> the name as it was first written


class Triple(NamedTuple):
    """A statement: subject, relation, object."""

    subject: str
    relation: str
    object: str


def concepts(text: str, stop_words: frozenset[str] = frozenset()) -> Concepts:
    """Return the concepts of a text. Stop words such as "The" or "When" are never names."""
    found: Concepts = {}
    for key, written in _named(text, stop_words):
        if key not in found and 1 < len(key) <= MAX_NAME:
            found[key] = written
            if len(found) == MAX_CONCEPTS:
                break
    return found


def subjects(title: str) -> Concepts:
    """Return the concepts of a title: the title without a suffix such as "(band)", and the levels of a path."""
    found: Concepts = {}
    for part in (title, *(_LEVEL.split(title) if _LEVEL.search(title) else ())):
        bare = _ASIDE.sub("", part).strip() or part.strip()
        if 1 < len(key := key_of(bare)) <= MAX_NAME:
            found.setdefault(key, bare)
    return found


def key_of(name: str) -> str:
    """Return the key of a name: without case, accents, hyphens and a leading article."""
    composed = name if name.isascii() else unicodedata.normalize("NFKC", name)
    words = [word for token in _TOKEN.findall(composed) if (word := _key(token))]
    while len(words) > 1 and words[0] in _ARTICLES:
        words.pop(0)
    return " ".join(words)


def digest(key: str) -> int:
    """Return the 64-bit digest of a key; with ten million concepts a collision is unlikely."""
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "little")


def triples_of(meta: Mapping[str, Any]) -> tuple[Triple, ...]:
    """Return the triples in the metadata key ``triples`` of a document; ignore what has another form."""
    listed = meta.get("triples")
    if not isinstance(listed, list | tuple):
        return ()
    shaped = (item for item in listed if isinstance(item, list | tuple) and len(item) == 3)
    return tuple(Triple(*item) for item in shaped if all(isinstance(part, str) and key_of(part) for part in item))


def _named(text: str, stop_words: frozenset[str]) -> Iterator[tuple[str, str]]:
    for span in quoted_spans(text):
        if 0 < len(span.split()) <= QUOTED and (key := key_of(span)):
            yield key, span.strip()
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    run: list[tuple[str, str, bool]] = []  # key, as written, whether a name may start or end with it
    before = ""  # the word before this one, if its script has no case
    pieces = _SPLIT.split(text)
    for gap, token in zip(pieces[::2], pieces[1::2], strict=False):
        read = _read(token)
        if read is None and not run:  # true for most tokens
            before = ""
            continue
        word, key, upper, digit, identifies, caseless, unspaced = read or (token, token, *_PLAIN)
        joined = gap == " " or (gap == ". " and bool(run) and len(run[-1][0]) == 1)  # J. R. R. Tolkien
        if run and not joined:
            yield from _parts(run)
            run = []
        if unspaced:
            yield from _unspaced(word)
            before = ""
            continue
        if key in stop_words and not (run and key in _INSIDE):
            yield from _parts(run)
            run, before = [], ""
            continue
        if upper:
            run.append((key, word, True))
        elif run and (digit or key in _INSIDE):
            run.append((key, word, digit))
        elif run:
            yield from _parts(run)
            run = []
        if identifies:
            yield key, word
        if caseless:
            yield key, word
            if before and gap == " ":
                yield f"{before} {key}", f"{before} {word}"
            before = key
        else:
            before = ""
        if run and word != token:  # in "Tolkien's son" the name ends at the 's
            yield from _parts(run)
            run = []
    yield from _parts(run)


_Read = tuple[str, str, bool, bool, bool, bool, bool]
_PLAIN = (False, False, False, False, False)


@lru_cache(maxsize=1 << 15)  # tokens, about 10 MB: most have been seen before
def _read(token: str) -> _Read | None:
    """Return the token without its possessive, its key, and five flags; None for a plain word in lower case.

    The flags: starts with a capital, is digits, is an identifier, has no case, is of a script without spaces.
    """
    if token.isascii() and token.isalpha() and token.islower():
        return None
    word = _POSSESSIVE.sub("", token)
    if not word.isascii() and _UNSPACED.search(word):
        return word, "", *_PLAIN[:4], True
    return word, _key(word), word[0].isupper(), word.isdigit(), _identifies(word), _caseless(word), False


def _parts(run: list[tuple[str, str, bool]]) -> Iterator[tuple[str, str]]:
    """Yield a run of capitalised words as a whole, and the parts of a longer run that have two words or more."""
    if len(run) < 2:
        yield from ((key, written) for key, written, may_end in run if may_end and len(key) > 1)
        return
    between = [at for at, (key, _, _) in enumerate(run) if key in _BETWEEN and at + 1 < len(run)]
    for start, stop in pairwise((-1, *between, len(run))) if between else ():
        yield from _parts(run[start + 1 : stop])
    ends = [at for at, (_, _, may_end) in enumerate(run) if may_end]
    count = len(ends)
    for first in range(count):
        for last in range(count - 1, first - 1, -1):
            words = last - first + 1
            if words == count or 1 < words <= RUN:
                part = run[ends[first] : ends[last] + 1]
                if words > 1 or len(part[0][0]) > 1:
                    yield " ".join(key for key, _, _ in part), " ".join(written for _, written, _ in part)


def _unspaced(word: str) -> Iterator[tuple[str, str]]:
    for run in _KATAKANA.findall(word):
        yield run, run
    for run in _HAN.findall(word):
        for piece in _PARTICLES.split(run):
            if 2 <= len(piece) <= 8:
                yield piece, piece
            for size in (4, 3, 2):
                for at in range(len(piece) - size + 1):
                    yield piece[at : at + size], piece[at : at + size]


def _key(word: str) -> str:
    if word.isascii():
        bare = (_POSSESSIVE.sub("", word) if "'" in word else word).lower()
        return bare if bare.isalnum() else bare.replace("-", "").replace("_", "")
    bare = _JOSA.sub("", _POSSESSIVE.sub("", word))
    return fold(unicodedata.normalize("NFKC", bare).casefold().replace("-", "").replace("_", "").replace("’", "'"))


def _identifies(word: str) -> bool:
    """Return whether the word is an identifier: letters with digits, joined parts, or capitals inside."""
    if len(word) < 3 or not any(letter.isalpha() for letter in word):
        return False
    return _JOINED.search(word) is not None or any(letter.isdigit() for letter in word)


def _caseless(word: str) -> bool:
    return len(word) > 1 and not word.isascii() and word[0].isalpha() and word[0].upper() == word[0].lower()
