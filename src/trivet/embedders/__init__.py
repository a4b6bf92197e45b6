"""Here is the name of a model: give me its vectors.

``load_embedder`` turns a spec, a string that can be stored and printed, into an ``Embedder``. Nothing heavy is imported
before a spec asks for it, and one spec is one model per process.
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
    from trivet.types import Embedder


@dataclass(frozen=True, slots=True)
class Scheme:
    """Where a kind of embedder is loaded from, and how its spec is written."""

    module: str
    form: str
    loader: str = "load"


#: What stands before the first colon of a spec. An endpoint's spec is its URL, so both its schemes are here.
SCHEMES: dict[str, Scheme] = {
    "granite": Scheme("granite", "granite, granite:fp32"),
    "builtin": Scheme("granite", "builtin (the same as granite)"),
    "hashing": Scheme("hashing", "hashing, hashing:DIM"),
    "folder": Scheme("folder", "folder:PATH, folder:PATH?int8"),
    "http": Scheme("http", "http://HOST/v1#MODEL", "load_http"),
    "https": Scheme("http", "https://HOST/v1#MODEL", "load_https"),
    "fastembed": Scheme("optional", "fastembed:NAME", "load_fastembed"),
    "sentence-transformers": Scheme("optional", "sentence-transformers:NAME", "load_sentence_transformers"),
    "vectors": Scheme("supplied", "vectors:DIM (the caller gives every vector)"),
}

#: What an object must have to be taken as an embedder.
MEMBERS = ("spec", "id", "dim", "unrelated", "embed_queries", "embed_passages")

_loaded: dict[str, Embedder] = {}
_lock = threading.Lock()


def load_embedder(spec: str | Embedder | None) -> Embedder | None:
    """The embedder a spec names; None for ``None`` and ``"none"``; an embedder is given back as it is."""
    if spec is None or spec == "none":
        return None
    if not isinstance(spec, str):
        return _checked(spec)
    with _lock:
        if spec not in _loaded:
            _loaded[spec] = _load(spec)
            # "granite" and "builtin" are one model: it is opened once, under the spec it gives itself.
            _loaded[spec] = _loaded.setdefault(_loaded[spec].spec, _loaded[spec])
        return _loaded[spec]


def _load(spec: str) -> Embedder:
    name, _, argument = spec.partition(":")
    scheme = SCHEMES.get(name)
    if scheme is None and spec.strip() and Path(spec).expanduser().is_dir():
        scheme, argument = SCHEMES["folder"], spec
    if scheme is None:
        forms = "; ".join(["none", *(known.form for known in SCHEMES.values())])
        raise InputError(f"embedder {spec!r} is neither a known form nor an existing folder. Known forms: {forms}")
    module = import_module(f"trivet.embedders.{scheme.module}")
    return cast("Embedder", getattr(module, scheme.loader)(argument))


def _checked(candidate: Embedder) -> Embedder:
    # getattr_static: asking an endpoint for its ``dim`` would already call it
    missing = [name for name in MEMBERS if inspect.getattr_static(candidate, name, None) is None]
    if missing:
        raise InputError(
            f"embedder {type(candidate).__name__!r} lacks {', '.join(missing)}: an embedder has {', '.join(MEMBERS)}"
        )
    return candidate
