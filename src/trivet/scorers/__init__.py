"""How well does this passage answer this question?

``load_scorer`` turns a spec, a string that can be printed, into a ``Scorer``; the engine asks it through a ``Panel``.
Nothing heavy is imported before a spec asks for it, and one spec is one model per process. Whoever runs us says which
scorer it is, never a request.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, cast

from trivet import schemes
from trivet.schemes import Scheme

if TYPE_CHECKING:
    from trivet.types import Scorer


#: What stands before the first colon of a spec. A rerank endpoint's spec is its URL, so both its schemes are here.
SCHEMES: dict[str, Scheme] = {
    "folder": Scheme("folder", "folder:PATH, folder:PATH?int8"),
    "http": Scheme("http", "http://HOST/rerank, http://HOST/v1/rerank#MODEL", "load_http"),
    "https": Scheme("http", "https://HOST/v2/rerank#MODEL", "load_https"),
    "llm": Scheme("llm", "llm:http://HOST/v1#MODEL"),
    "words": Scheme("words", "words (shared words, for tests)"),
}

#: What an object must have to be taken as a scorer.
MEMBERS = ("spec", "id", "batch", "scores")

_loaded: dict[str, Scorer] = {}
_lock = threading.Lock()


def load_scorer(spec: str | Scorer | None) -> Scorer | None:
    """The scorer a spec names; None for ``None`` and ``"none"``; a scorer is given back as it is."""
    if spec is None or spec == "none":
        return None
    if not isinstance(spec, str):
        schemes.check(spec, "scorer", MEMBERS)
        return spec
    with _lock:
        if spec not in _loaded:
            _loaded[spec] = cast("Scorer", schemes.load(spec, "scorer", __name__, SCHEMES))
        return _loaded[spec]
