"""How is a model run in this process?

``LocalModel`` is everything known without opening the weights; the session is opened at the first text and, because an
onnxruntime session does not survive a fork, again in a child process.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from trivet.embedders.query_cache import QueryCache
from trivet.embedders.rows import live_texts, scatter, unit_rows
from trivet.errors import EmbedderError

if TYPE_CHECKING:
    import numpy.typing as npt
    from tokenizers import Tokenizer

    from trivet.types import Vector

#: Texts embedded at the same time in bulk; the rest of the machine is the caller's. Inside one text there is one
#: thread: two that wait for each other lose half as soon as another process wants a core (219 -> 111 texts/s).
WORKERS = min(2, os.cpu_count() or 1)
#: Characters per token kept before tokenising: no ordinary text has 64, and 10 MB must not be tokenised for 512 tokens.
CHARACTERS = 64
#: From this many texts on, the workers are worth starting.
BULK = 8


class Opened:
    """A tokenizer and a session, ready to run one text at a time. Thread-safe, as both of its parts are."""

    def __init__(self, tokenizer: Tokenizer, session: Any, max_tokens: int, pooling: str = "cls") -> None:
        """``pooling`` is for a foreign graph whose output is one state per token; our own graphs pool inside."""
        tokenizer.no_padding()
        tokenizer.enable_truncation(max_tokens)
        self._tokenizer, self._session, self._pooling = tokenizer, session, pooling
        self._characters = max_tokens * CHARACTERS
        self._inputs = {item.name: np.int32 if "int32" in item.type else np.int64 for item in session.get_inputs()}
        unknown = [name for name in self._inputs if name not in INPUTS]
        if unknown:
            raise EmbedderError(f"the ONNX model asks for input {unknown[0]!r}; known inputs: {', '.join(INPUTS)}")
        outputs = [item.name for item in session.get_outputs()]
        self._output = next((name for name in OUTPUTS if name in outputs), outputs[0])

    def vector(self, text: str) -> Vector | None:
        """The text's vector, not yet normalised; None where the tokenizer finds nothing in it."""
        ids = self._tokenizer.encode(text[: self._characters]).ids
        if not ids:
            return None
        feeds = {name: INPUTS[name](ids).astype(kind) for name, kind in self._inputs.items()}
        try:
            state: Vector = self._session.run([self._output], feeds)[0][0]
        except Exception as error:  # onnxruntime's own errors share no base class
            raise EmbedderError(f"the model failed on {text[:60]!r}: {error}") from error
        if state.ndim == 1:
            return state
        pooled: Vector = state[0] if self._pooling == "cls" else state.mean(axis=0)
        return pooled


#: What a graph may ask for, made from the token ids of one text.
INPUTS: Mapping[str, Callable[[list[int]], npt.NDArray[np.int64]]] = {
    "input_ids": lambda ids: np.array([ids], dtype=np.int64),
    "attention_mask": lambda ids: np.ones((1, len(ids)), dtype=np.int64),
    "token_type_ids": lambda ids: np.zeros((1, len(ids)), dtype=np.int64),
}
#: What a graph may answer with, the pooled vector first.
OUTPUTS = ("sentence_embedding", "last_hidden_state", "token_embeddings")


def open_session(model: bytes | str, *, fuse: bool, threads: int = 1) -> Any:
    """An onnxruntime session; ``fuse`` False keeps our own choice of kernels. ``threads`` work on one text."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # what fails comes as an exception; stderr is the caller's
    level = ort.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if fuse else level.ORT_ENABLE_BASIC
    try:
        return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's own errors share no base class
        reason = f"onnxruntime {ort.__version__} cannot load the model (1.22 is the oldest that can): {error}"
        raise EmbedderError(reason) from error


class LocalModel:
    """An embedder run by onnxruntime. Thread-safe; nothing heavy happens before the first text."""

    def __init__(
        self,
        *,
        spec: str,
        id: str,
        dim: int,
        open: Callable[[], Opened],
        unrelated: float | None = None,
        scripts: tuple[str, ...] = (),
        query_prompt: str = "",
        passage_prompt: str = "",
    ) -> None:
        self.spec, self.id, self.dim = spec, id, dim
        self._open, self._unrelated = open, unrelated
        self.scripts = scripts  # first words of the Unicode names of the letters it was trained on; none: all
        self._query_prompt, self._passage_prompt = query_prompt, passage_prompt
        self._lock = threading.Lock()
        self._opened: tuple[int, Opened] | None = None
        self._queries = QueryCache()

    def __repr__(self) -> str:
        return f"LocalModel({self.spec!r})"

    @cached_property
    def unrelated(self) -> float:
        from trivet.embedders.sentences import unrelated_cosine

        return unrelated_cosine(self) if self._unrelated is None else self._unrelated

    def embed_queries(self, texts: list[str]) -> Vector:
        return self._queries.rows(texts, lambda missing: self._embed(missing, self._query_prompt))

    def embed_passages(self, texts: list[str]) -> Vector:
        return self._embed(texts, self._passage_prompt)

    def _embed(self, texts: list[str], prompt: str) -> Vector:
        places, live = live_texts(texts)
        if not live:
            return scatter(texts, self.dim, None, places)
        vector, prompted = self._model().vector, [prompt + text for text in live]
        if len(live) < BULK:
            found = list(map(vector, prompted))
        else:
            with ThreadPoolExecutor(WORKERS) as workers:
                found = list(workers.map(vector, prompted))
        rows = np.zeros((len(live), self.dim), dtype=np.float32)
        for place, row in enumerate(found):
            if row is not None:
                rows[place] = self._fitting(row)
        return scatter(texts, self.dim, unit_rows(rows, self.spec), places)

    def _fitting(self, row: Vector) -> Vector:
        if row.shape == (self.dim,):
            return row
        raise EmbedderError(f"embedder {self.spec!r} gave vectors of shape {row.shape}, its files say {self.dim}")

    def _model(self) -> Opened:
        with self._lock:
            if self._opened is None or self._opened[0] != os.getpid():
                self._opened = os.getpid(), self._open()
            return self._opened[1]
