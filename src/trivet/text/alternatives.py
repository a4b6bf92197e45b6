"""Other terms for a German word that no document has: the forms of a verb, and the two parts of a compound.

The stemmer leaves ``klemmt`` and ``klemmende`` apart, and a compound is one term. At query time the collection says
which form or which parts its documents have, so no list of words is needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

#: Terms that are tried together in place of one.
Alternatives = tuple[tuple[str, ...], ...]

SHORTEST = 4  # letters of a first part, and of the base of a verb: a shorter one is found in too many words
SHORTEST_LAST = 3  # letters of a last part: Tür, Rad, Uhr
LINKS = ("", "s", "es", "n", "en", "er")  # between the parts of a compound: Wohnungs-tür, Sonnen-schirm
_PARTICIPLE = re.compile(r"ge(\w+?)e?t")
_VERB = re.compile(r"(\w+?)(?:end|e?st|e?t)")
_FORMS = ("{}t", "{}et", "{}", "{}end", "ge{}t", "ge{}et")


def german(word: str, stem: Callable[[str], str]) -> Alternatives:
    """Return the alternatives for a word in lower case, the likeliest first; ``stem`` makes terms of words."""
    if not word.isalpha():
        return ()
    term = stem(word)
    return tuple(dict.fromkeys(other for other in (*_forms(term), *_parts(word, stem)) if other != (term,)))


def _forms(term: str) -> Iterator[tuple[str, ...]]:
    """Yield the other forms of a verb, from a term that may be one."""
    matches = (_PARTICIPLE.fullmatch(term), _VERB.fullmatch(term))
    for base in (*(match[1] for match in matches if match), term):
        if len(base) >= SHORTEST:
            yield from ((form.format(base),) for form in _FORMS)


def _parts(word: str, stem: Callable[[str], str]) -> Iterator[tuple[str, ...]]:
    """Yield the terms of the two parts at every place where a word may be joined, the longest last part first."""
    for at in range(SHORTEST, len(word) - SHORTEST_LAST + 1):
        for link in LINKS:
            first = word[:at].removesuffix(link)
            if word[:at].endswith(link) and len(first) >= SHORTEST:
                yield stem(first), stem(word[at:])
