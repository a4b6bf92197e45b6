"""Here is the name of a model: give me its vectors.

``load_embedder`` turns a spec, a string that can be stored and printed, into an ``Embedder``. Nothing heavy is imported
before a spec asks for it, and one spec is one model per process.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, cast

from trivet import schemes
from trivet.schemes import Scheme

if TYPE_CHECKING:
    from trivet.types import Embedder


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
        schemes.check(spec, "embedder", MEMBERS)
        return spec
    with _lock:
        if spec not in _loaded:
            _loaded[spec] = cast("Embedder", schemes.load(spec, "embedder", __name__, SCHEMES))
            # "granite" and "builtin" are one model: it is opened once, under the spec it gives itself.
            _loaded[spec] = _loaded.setdefault(_loaded[spec].spec, _loaded[spec])
        return _loaded[spec]
