"""Embedders in a model folder: sentence-transformers weights or an ONNX file.

Weights of a supported family become the same graph as the built-in model's. Other weights need an ONNX file beside
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trivet.errors import EmbedderError, InputError
from trivet.models.embedders.local import LocalModel, PooledSession
from trivet.models.encoders.encoder import BLOCK_INT8, FP32, Architecture, encoder_graph
from trivet.models.encoders.model_folder import (
    ONNX_FILES,
    WEIGHTS,
    Settings,
    architecture,
    fingerprint,
    max_tokens,
    onnx_file,
    parse_folder,
    read_json,
    read_tokenizer,
    size_of,
    tokenizer_file,
)
from trivet.models.encoders.safetensors import read_safetensors
from trivet.models.encoders.session import open_session
from trivet.models.encoders.tensor_names import FAMILIES, short_named
from trivet.models.encoders.tokenizer import check_package

if TYPE_CHECKING:
    from collections.abc import Callable

#: Modules of a sentence-transformers pipeline that are supported; every vector is normalised anyway.
MODULES = ("Transformer", "Pooling", "Normalize")
POOLINGS = {"pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean"}


def load(argument: str) -> LocalModel:
    """Return the embedder of the spec ``folder:PATH`` or ``folder:PATH?int8``."""
    path, option = parse_folder("embedder", argument)
    check_package(f"embedder 'folder:{argument}'")
    config = read_json(path / "config.json")
    onnx, weights = onnx_file(path), path / WEIGHTS
    family = str(config.get("model_type", "unknown"))
    settings = read_settings(path, config)
    open_model: Callable[[], PooledSession]
    if weights.is_file() and (family in FAMILIES or onnx is None):
        precision = option or "fp32"
        shape = architecture(path, config, settings, precision)
        open_model = partial(open_weights, path, shape, settings, precision)
    elif onnx is not None and not option:
        weights, precision = onnx, "onnx"
        open_model = partial(open_onnx, path, onnx, settings)
    else:
        missing = WEIGHTS if option or onnx is None else "a model"
        raise InputError(f"embedder 'folder:{argument}': {path} has no {missing} (nor, without ?int8, {ONNX_FILES[0]})")
    dim, layers = size_of(path, config, "hidden"), size_of(path, config, "layers")
    return LocalModel(
        spec=f"folder:{path}{'?int8' if option else ''}",
        id=f"{family}-{layers}x{dim}/{precision}/{fingerprint(weights, tokenizer_file(path), settings)}",
        dim=dim,
        open=open_model,
        query_prompt=settings.query_prompt,
        passage_prompt=settings.passage_prompt,
    )


def read_settings(path: Path, config: Mapping[str, Any]) -> Settings:
    """Return what the folder's sentence-transformers files say; ``InputError`` where it is not supported."""
    modules = read_json(path / "modules.json", [])
    for module in modules:
        kind = str(module["type"]).rsplit(".", 1)[-1]
        if kind not in MODULES:
            raise InputError(f"{path / 'modules.json'}: module {kind!r} is not supported, only {', '.join(MODULES)}")
    folder = next((module["path"] for module in modules if str(module["type"]).endswith("Pooling")), "1_Pooling")
    pooling = read_json(path / folder / "config.json", {"pooling_mode_mean_tokens": True})
    modes = [name for name, on in pooling.items() if name.startswith("pooling_mode_") and on is True]
    if len(modes) != 1 or modes[0] not in POOLINGS:
        raise InputError(f"{path / folder / 'config.json'}: pooling {modes} is not supported, only {list(POOLINGS)}")
    sentence = read_json(path / "sentence_bert_config.json", {})
    tokenizer = read_json(path / "tokenizer_config.json", {})
    prompts = read_json(path / "config_sentence_transformers.json", {}).get("prompts") or {}
    if prompts and pooling.get("include_prompt") is False:
        raise InputError(
            f"{path / folder / 'config.json'}: include_prompt false is not supported together with prompts"
        )
    return Settings(
        pooling=POOLINGS[modes[0]],
        max_tokens=max_tokens(config, sentence, tokenizer),
        lower=bool(sentence.get("do_lower_case")),
        uncased=bool(tokenizer.get("do_lower_case", True)),
        query_prompt=prompts.get("query", ""),
        passage_prompt=prompts.get("passage", prompts.get("document", "")),
    )


def open_weights(path: Path, shape: Architecture, settings: Settings, precision: str) -> PooledSession:
    """Return a session of the graph built from the folder's weights."""
    file = path / WEIGHTS
    family = FAMILIES[read_json(path / "config.json")["model_type"]]
    weights = short_named(read_safetensors(file), family, shape.layers, str(file))
    graph = encoder_graph(shape, weights, BLOCK_INT8 if precision == "int8" else FP32)
    session = open_session(graph, EmbedderError, fuse=False)
    return PooledSession(read_tokenizer(path, settings), session)


def open_onnx(path: Path, file: Path, settings: Settings) -> PooledSession:
    """Return a session of the folder's ONNX file."""
    session = open_session(str(file), EmbedderError, fuse=True)
    return PooledSession(read_tokenizer(path, settings), session, settings.pooling)
