"""How well does this passage answer this question?

``load_scorer`` turns a spec, a string that can be printed, into a ``Scorer``; the engine asks it through a ``Panel``.
Nothing heavy is imported before a spec asks for it, and one spec is one model per process. Whoever runs us says which
scorer it is, never a request.
"""

from __future__ import annotations

import inspect
import threading
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from trivet.errors import InputError

if TYPE_CHECKING:
    from trivet.types import Scorer


@dataclass(frozen=True, slots=True)
class Scheme:
    """Where a kind of scorer is loaded from, and how its spec is written."""

    module: str
    form: str
    loader: str = "load"


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
        return _checked(spec)
    with _lock:
        if spec not in _loaded:
            _loaded[spec] = _load(spec)
        return _loaded[spec]


def _load(spec: str) -> Scorer:
    name, _, argument = spec.partition(":")
    scheme = SCHEMES.get(name)
    if scheme is None and spec.strip() and Path(spec).expanduser().is_dir():
        scheme, argument = SCHEMES["folder"], spec
    if scheme is None:
        forms = "; ".join(["none", *(known.form for known in SCHEMES.values())])
        raise InputError(f"scorer {spec!r} is neither a known form nor an existing folder. Known forms: {forms}")
    module = import_module(f"trivet.scorers.{scheme.module}")
    return cast("Scorer", getattr(module, scheme.loader)(argument))


def _checked(candidate: Scorer) -> Scorer:
    missing = [name for name in MEMBERS if inspect.getattr_static(candidate, name, None) is None]
    if missing:
        raise InputError(
            f"scorer {type(candidate).__name__!r} lacks {', '.join(missing)}: a scorer has {', '.join(MEMBERS)}"
        )
    return candidate
