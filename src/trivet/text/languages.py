"""The language that texts are written in: by their script, and in Latin script by their stop words.

Cheap and careful: only the seven languages with a list of stop words are told apart in Latin script, and a mixture, a
list of names or source code is of no language.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from trivet.text.stop_words import STOP_WORDS
from trivet.text.tokens import fold, raw_tokens

CHARACTERS = 500  # read of each text
LEAST = 30  # words or letters: fewer say nothing
#: Share of stop words: 0.5 to 0.6 in sentences of these languages; up to 0.24 in Romanian, and in code with comments.
SHARE = 0.3
LEAD = 1.3  # times as many as in the next language: Spanish and Portuguese share many
#: Of one question in Latin script: stop words of another language, and how many times as many as of a known one. "El
#: Paso to Los Angeles" has two.
LEAST_IN_QUESTION, LEAD_IN_QUESTION = 3, 2

NAMES = {
    "en": "English", "de": "German", "fr": "French", "es": "Spanish", "it": "Italian", "pt": "Portuguese",
    "nl": "Dutch", "zh": "Chinese", "ja": "Japanese", "ko": "Korean", "th": "Thai", "el": "Greek", "hy": "Armenian",
    "ta": "Tamil",
}  # fmt: skip
#: First word of the names of letters -> language, where a script has one; others are named by the script.
SCRIPTS = {"CJK": "zh", "HANGUL": "ko", "THAI": "th", "GREEK": "el", "ARMENIAN": "hy", "TAMIL": "ta"}
NOT_READ = "the model does not read"  # how the note on a question in another language begins
KANA = ("HIRAGANA", "KATAKANA")
KANA_SHARE = 0.1  # of the letters: Japanese; Chinese texts have none


@dataclass(frozen=True, slots=True)
class Language:
    """A language by its name, and its code where that is known."""

    name: str
    code: str = ""


def language_of(texts: Iterable[str]) -> Language | None:
    """Return the language of most of the texts, taken together; None where that is not clear."""
    beginnings = [text[:CHARACTERS] for text in texts]
    script = _script(beginnings)
    if script == "LATIN":
        code = _by_stop_words(beginnings)
        return Language(NAMES[code], code) if code else None
    if script is None:
        return None
    code = "ja" if script in KANA else SCRIPTS.get(script, "")
    return Language(NAMES.get(code, script.capitalize()), code)


def is_foreign(question: str, known: tuple[str, ...]) -> bool:
    """Tell whether a question in Latin script is clearly in none of the known languages; False where none is known."""
    words = [fold(token.lower()) for token in raw_tokens(question[:CHARACTERS])]
    counts = {code: sum(word in stop_words for word in words) for code, stop_words in STOP_WORDS.items()}
    most = max(counts.values())
    ours = max((counts.get(code, most) for code in known), default=most)
    return most >= max(LEAST_IN_QUESTION, SHARE * len(words), LEAD_IN_QUESTION * ours)


def _script(texts: list[str]) -> str | None:
    """Return the script of at least half of the letters, Japanese as HIRAGANA."""
    counts: Counter[str] = Counter()
    for text in texts:
        if text.isascii():
            counts["LATIN"] += sum(map(str.isalpha, text))
        else:
            counts.update(unicodedata.name(letter, "?").split()[0] for letter in text if letter.isalpha())
    total, kana = counts.total(), counts["HIRAGANA"] + counts["KATAKANA"]
    if total < LEAST:
        return None
    if kana >= KANA_SHARE * total:
        return KANA[0]
    script, most = counts.most_common(1)[0]
    return script if most * 2 >= total else None


def _by_stop_words(texts: list[str]) -> str:
    """Return the code of the language that has by far the most of the words as stop words; empty where none has."""
    words = [fold(token.lower()) for text in texts for token in raw_tokens(text)]
    found = {code: sum(word in known for word in words) for code, known in STOP_WORDS.items()}
    (code, most), (_, second) = Counter(found).most_common(2)
    return code if len(words) >= LEAST and most >= SHARE * len(words) and most >= LEAD * second else ""
