"""Cross-encoders in a model folder: Hugging Face weights with a plain classification head, or an ONNX file.

Weights of a supported family become our own graph; any other cross-encoder needs an ONNX file. A model with one label
gives its logit as the score; one with two gives the log-odds of the second label, "relevant".

Query and passage are read as a pair of texts. A model that was trained on one text made of both needs a
``template.txt`` beside it, such as ``Query: {query}`` and, on the next line, ``Sentence: {passage}``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from trivet.concurrency.once_per_process import OncePerProcess
from trivet.errors import InputError, ScorerError
from trivet.models.encoders.encoder import BLOCK_INT8, FP32
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
    tokenizer_file,
)
from trivet.models.encoders.pair_encoder import BUILD, HEADS, head_weights, pair_graph
from trivet.models.encoders.safetensors import read_safetensors
from trivet.models.encoders.session import TextSession, in_threads, open_session
from trivet.models.encoders.tensor_names import FAMILIES, short_named
from trivet.models.encoders.tokenizer import check_package

#: Tokens of query and passage together. Our passages have about 480, and a model that could read 8,000 is slow.
MOST_TOKENS = 512
TEMPLATE = "template.txt"
BATCH = 4  # pairs scored between two checks of the time limit


def load(argument: str) -> FolderScorer:
    """Return the scorer of the spec ``folder:PATH`` or ``folder:PATH?int8``."""
    path, option = parse_folder("scorer", argument)
    check_package(f"scorer 'folder:{argument}'")
    tokenizer_file(path)
    config = read_json(path / "config.json", {})
    if _is_supported(path, config):
        return FolderScorer(path, path / WEIGHTS, config, option or "fp32")
    onnx = onnx_file(path)
    if onnx is None or option:
        missing = f"{WEIGHTS} of a {' or '.join(HEADS)} ForSequenceClassification"
        raise InputError(
            f"scorer 'folder:{argument}': {path} has no {missing}" + ("" if option else f", and no {ONNX_FILES[0]}")
        )
    return FolderScorer(path, onnx, config, "onnx")


def _is_supported(path: Path, config: Mapping[str, Any]) -> bool:
    """Return whether the folder has weights of a supported family, made for classification."""
    kinds = [str(kind) for kind in config.get("architectures") or ()]
    classifies = any(kind.endswith("ForSequenceClassification") for kind in kinds)
    return (path / WEIGHTS).is_file() and config.get("model_type") in HEADS and classifies


class FolderScorer:
    """A cross-encoder run by onnxruntime. Thread-safe. The model is opened by ``open`` or at the first passage."""

    batch = BATCH

    def __init__(self, path: Path, weights: Path, config: dict[str, Any], precision: str) -> None:
        self._path, self._weights, self._config, self._precision = path, weights, config, precision
        self.spec = f"folder:{path}{'?int8' if precision == 'int8' else ''}"
        self._shown = f"folder:…/{path.name}"  # for the messages of a search, which may leave this machine
        tokenizer = read_json(path / "tokenizer_config.json", {})
        self._template = read_template(path / TEMPLATE)
        self._settings = Settings(
            pooling="cls",
            max_tokens=min(MOST_TOKENS, max_tokens(config, {}, tokenizer)),
            lower=False,
            uncased=bool(tokenizer.get("do_lower_case", True)),
            query_prompt="".join(self._template),  # here for the fingerprint
            passage_prompt="",
        )
        if precision != "onnx":
            self._shape = architecture(path, config, self._settings, precision)
        self._model = OncePerProcess(self._open)

    def __repr__(self) -> str:
        return f"FolderScorer({self.spec!r})"

    @cached_property
    def id(self) -> str:
        """A hash of the content, computed at first use: a help page need not hash 90 MB."""
        content = fingerprint(self._weights, tokenizer_file(self._path), self._settings)
        return f"cross-encoder/{self._precision}/{content}" + (f".{BUILD}" if self._precision != "onnx" else "")

    def open(self) -> None:
        """Open the model now."""
        self._model()

    def scores(self, query: str, passages: list[str]) -> list[float]:
        session = self._model()
        return in_threads(lambda passage: self._score(session, query, passage), passages, 2)

    def _score(self, session: TextSession, query: str, passage: str) -> float:
        if self._template:
            before, between, after = self._template
            output = session.run(f"{before}{query}{between}{passage}{after}")
        else:
            output = session.run(query, passage)
        logits: list[float] = [] if output is None else output.reshape(-1).tolist()
        if len(logits) not in (1, 2):
            raise self._error(f"returns {len(logits)} numbers a pair; a cross-encoder has 1 or 2 labels")
        return logits[1] - logits[0] if len(logits) == 2 else logits[0]

    def _open(self) -> TextSession:
        graph = self._graph()
        session = open_session(graph, self._error, fuse=isinstance(graph, str))
        tokenizer = read_tokenizer(self._path, self._settings)
        return TextSession(tokenizer, session, ("logits",), self._error)

    def _graph(self) -> bytes | str:
        """Return our own graph, or the path of the ONNX file."""
        if self._precision == "onnx":
            return str(self._weights)
        kind = self._config["model_type"]
        family, tensors = FAMILIES[kind], read_safetensors(self._weights)
        weights = short_named(tensors, family, self._shape.layers, str(self._weights))
        weights |= head_weights(tensors, kind, str(self._weights))
        return pair_graph(self._shape, weights, kind, BLOCK_INT8 if self._precision == "int8" else FP32)

    def _error(self, message: str) -> ScorerError:
        return ScorerError(f"scorer {self._shown!r}: {message}")


def read_template(file: Path) -> tuple[str, ...]:
    """Return the texts before the query, between query and passage, and after; none where there is no such file."""
    if not file.is_file():
        return ()
    try:
        text = file.read_text(encoding="utf-8").removesuffix("\n")
    except (OSError, ValueError) as error:
        raise InputError(f"{file} cannot be read: {error}") from None
    found = re.fullmatch(r"(.*)\{query\}(.*)\{passage\}(.*)", text, flags=re.DOTALL)
    if found is None or text.count("{query}") != 1 or text.count("{passage}") != 1:
        # the passage comes last, because a text that is too long is cut at its end
        raise InputError(f"{file}: write {{query}} once and, after it, {{passage}} once")
    return found.groups()
