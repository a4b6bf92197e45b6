"""Advice where the texts of a collection are not in its language or not in the language of its model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trivet.models.embedders import languages_of
from trivet.text.languages import NAMES, Language, language_of

if TYPE_CHECKING:
    from trivet.stores.contract import Collection, Model

SAMPLE = 30  # documents that are read: the first ones


class Languages:
    """The language of a collection's first texts, which is found once as soon as there are enough of them."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._found: tuple[Language | None] | None = None

    def advice(self, model: Model | None) -> str:
        """Say what does not fit, and what to do; empty where everything fits or the language is not clear."""
        found = self._language()
        return (
            ""
            if found is None
            else advice(found, self._collection.analyzer.language, languages_of(model.spec) if model else ())
        )

    def _language(self) -> Language | None:
        if self._found is not None:
            return self._found[0]
        texts = self._collection.documents.texts(SAMPLE)
        found = language_of(text for _, text in texts)
        if len(texts) == SAMPLE:
            self._found = (found,)
        return found


def advice(found: Language, language: str, known: tuple[str, ...]) -> str:
    """Return the advice for texts in ``found``, in a collection of ``language`` whose model reads ``known``."""
    words = bool(found.code) and found.code != language
    meaning = bool(known) and found.code not in known
    if not words and not meaning:
        return ""
    wrong = [f"its words are analysed as {NAMES.get(language, repr(language))}"] if words else []
    wrong += [f"its model reads {' and '.join(NAMES[code] for code in known)}"] if meaning else []
    new = [f'language="{found.code}"'] if words else []
    new += ['embedder="multilingual"'] if meaning else []
    way_out = f"create it with {', '.join(new)}" if words else "trivet reembed --embedder multilingual"
    return f"most of the collection is {found.name}, but {' and '.join(wrong)}: {way_out} (docs/how-to/languages.md)"
