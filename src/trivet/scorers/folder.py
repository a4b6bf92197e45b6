"""How do I use a cross-encoder that lies in a folder?

Two layouts, as for embedders: sentence-transformers (config.json, tokenizer.json or vocab.txt, model.safetensors) with
the plain head of a BERT-family classifier, which becomes our own graph; and ONNX (model.onnx or onnx/model.onnx with
tokenizer.json), which runs as it is. One label is the score; of two, the log-odds of the second, "relevant", are.

Question and passage are read as a pair of texts. A model that was trained on one text made of both says how in a
``template.txt`` beside it: ``Query: {query}``, a line further ``Sentence: {passage}``.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trivet.embedders.bert_names import FAMILIES, short_named
from trivet.embedders.encoder import BLOCK_INT8, FP32
from trivet.embedders.folder import (
    ONNX_FILES,
    Settings,
    architecture,
    fingerprint,
    max_tokens,
    read_json,
    read_tokenizer,
    tokenizer_file,
)
from trivet.embedders.local import CHARACTERS, WORKERS, open_session
from trivet.embedders.safetensors import read_safetensors
from trivet.errors import EmbedderError, InputError, ScorerError
from trivet.scorers.pair_graph import BUILD, HEADS, head_weights, pair_graph

if TYPE_CHECKING:
    import numpy.typing as npt
    from tokenizers import Encoding, Tokenizer

#: Tokens of question and passage together: our passages have about 480, and a model that could read 8,000 is slow.
MOST_TOKENS = 512
TEMPLATE = "template.txt"
#: Pairs scored between two looks at the clock.
BATCH = 4

#: What a graph may ask for, made from the encoding of one pair.
INPUTS: Mapping[str, Callable[[Encoding], list[int]]] = {
    "input_ids": lambda pair: pair.ids,
    "attention_mask": lambda pair: pair.attention_mask,
    "token_type_ids": lambda pair: pair.type_ids,
}


def load(argument: str) -> FolderScorer:
    """``folder:PATH`` or ``folder:PATH?int8``."""
    named, _, option = argument.partition("?")
    path = Path(named).expanduser().resolve()
    if option not in ("", "int8"):
        raise InputError(f"scorer 'folder:{argument}': option {option!r} is not known; write '?int8' or nothing")
    if not named or not path.is_dir():
        raise InputError(f"scorer 'folder:{argument}': {path} is not a folder")
    tokenizer_file(path)
    config = read_json(path / "config.json", {})
    if _is_buildable(path, config):
        return FolderScorer(path, path / "model.safetensors", config, option or "fp32")
    onnx = next((path / name for name in ONNX_FILES if (path / name).is_file()), None)
    if onnx is None or option:
        wanted = f"model.safetensors of a {' or '.join(HEADS)} ForSequenceClassification"
        raise InputError(
            f"scorer 'folder:{argument}': {path} has no {wanted}" + ("" if option else f", and no {ONNX_FILES[0]}")
        )
    return FolderScorer(path, onnx, config, "onnx")


def _is_buildable(path: Path, config: Mapping[str, Any]) -> bool:
    """Weights of a family we build, made for classifying."""
    kinds = [str(kind) for kind in config.get("architectures") or ()]
    classifies = any(kind.endswith("ForSequenceClassification") for kind in kinds)
    return (path / "model.safetensors").is_file() and config.get("model_type") in HEADS and classifies


class FolderScorer:
    """A cross-encoder run by onnxruntime. Thread-safe; nothing heavy happens before the first passage."""

    batch = BATCH

    def __init__(self, path: Path, weights: Path, config: dict[str, Any], precision: str) -> None:
        self._path, self._weights, self._config, self._precision = path, weights, config, precision
        self.spec = f"folder:{path}{'?int8' if precision == 'int8' else ''}"
        self._shown = f"folder:…/{path.name}"  # in what a search says of it, which may leave this machine
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
        self._lock = threading.Lock()
        self._opened: tuple[int, _Opened] | None = None

    def __repr__(self) -> str:
        return f"FolderScorer({self.spec!r})"

    @cached_property
    def id(self) -> str:
        """Told by content, read when it is first asked for: 90 MB are not hashed to show a help page."""
        made = fingerprint(self._weights, tokenizer_file(self._path), self._settings)
        return f"cross-encoder/{self._precision}/{made}" + (f".{BUILD}" if self._precision != "onnx" else "")

    def open(self) -> None:
        self._model()

    def scores(self, query: str, passages: list[str]) -> list[float]:
        opened = self._model()
        if len(passages) < 2:
            return [opened.score(query, passage) for passage in passages]
        with ThreadPoolExecutor(WORKERS) as workers:
            return list(workers.map(lambda passage: opened.score(query, passage), passages))

    def _model(self) -> _Opened:
        with self._lock:
            if self._opened is None or self._opened[0] != os.getpid():  # a session does not survive a fork
                self._opened = os.getpid(), self._open()
            return self._opened[1]

    def _open(self) -> _Opened:
        try:
            graph = self._graph()
            session = open_session(graph, fuse=isinstance(graph, str))
        except EmbedderError as error:
            raise ScorerError(f"scorer {self._shown!r}: {error}") from error
        tokenizer = read_tokenizer(self._path, self._settings)
        return _Opened(self._shown, tokenizer, session, self._settings.max_tokens, self._template)

    def _graph(self) -> bytes | str:
        """Our own graph, or the name of the file that holds another's."""
        if self._precision == "onnx":
            return str(self._weights)
        kind = self._config["model_type"]
        family, tensors = FAMILIES[kind], read_safetensors(self._weights)
        weights = short_named(tensors, family, self._shape.layers, str(self._weights))
        weights |= head_weights(tensors, kind, family.embeddings["word_emb"], str(self._weights))
        return pair_graph(self._shape, weights, kind, BLOCK_INT8 if self._precision == "int8" else FP32)


class _Opened:
    """A tokenizer and a session, ready to read one pair at a time."""

    def __init__(
        self, shown: str, tokenizer: Tokenizer, session: Any, max_tokens: int, template: Sequence[str] = ()
    ) -> None:
        tokenizer.no_padding()
        # the longest first: a passage is cut before the question is, and neither is ever all gone
        tokenizer.enable_truncation(max_tokens, strategy="longest_first")
        self._shown, self._tokenizer, self._session, self._template = shown, tokenizer, session, template
        self._characters = max_tokens * CHARACTERS
        self._inputs = {item.name: np.int32 if "int32" in item.type else np.int64 for item in session.get_inputs()}
        if unknown := [name for name in self._inputs if name not in INPUTS]:
            raise ScorerError(
                f"scorer {shown!r}: the ONNX model asks for input {unknown[0]!r}; known inputs: {', '.join(INPUTS)}"
            )
        outputs = [item.name for item in session.get_outputs()]
        self._output = "logits" if "logits" in outputs else outputs[0]

    def score(self, query: str, passage: str) -> float:
        pair = self._encoded(*(valid(text[: self._characters]) for text in (query, passage)))
        feeds = {name: np.array([INPUTS[name](pair)], dtype=kind) for name, kind in self._inputs.items()}
        try:
            logits: npt.NDArray[np.float32] = self._session.run([self._output], feeds)[0].reshape(-1)
        except Exception as error:  # onnxruntime's own errors share no base class
            raise ScorerError(f"scorer {self._shown!r} failed on {passage[:60]!r}: {error}") from error
        if logits.size not in (1, 2):
            raise ScorerError(
                f"scorer {self._shown!r} answers with {logits.size} numbers a pair; a cross-encoder has 1 or 2 labels"
            )
        return float(logits[-1] - logits[0]) if logits.size == 2 else float(logits[0])

    def _encoded(self, query: str, passage: str) -> Encoding:
        if not self._template:
            return self._tokenizer.encode(query, passage)
        before, between, after = self._template
        return self._tokenizer.encode(f"{before}{query}{between}{passage}{after}")


def read_template(file: Path) -> tuple[str, ...]:
    """What stands before the question, between it and the passage, and behind; nothing where there is no such file."""
    if not file.is_file():
        return ()
    try:
        text = file.read_text(encoding="utf-8").removesuffix("\n")
    except (OSError, ValueError) as error:
        raise InputError(f"{file} cannot be read: {error}") from None
    found = re.fullmatch(r"(.*)\{query\}(.*)\{passage\}(.*)", text, flags=re.DOTALL)
    if found is None or text.count("{query}") != 1 or text.count("{passage}") != 1:
        # the passage last: what is too long is cut at the end
        raise InputError(f"{file}: it has to hold {{query}} once and, behind it, {{passage}} once")
    return found.groups()


def valid(text: str) -> str:
    """Valid Unicode: a lone surrogate, as broken files hold, becomes "?"."""
    return text.encode("utf-8", "replace").decode("utf-8")
