"""onnxruntime sessions: a tokenizer and a graph that read one text, or one pair of texts, at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from trivet.errors import TrivetError

if TYPE_CHECKING:
    import numpy.typing as npt

    from trivet.models.encoders.tokenizer import Encoding, Tokenizer

T = TypeVar("T")
V = TypeVar("V")
Error = Callable[[str], TrivetError]

#: Texts run at the same time in bulk; the other cores are the caller's. Each text has one thread: two threads that wait
#: for each other lose half their speed as soon as another process needs a core (219 -> 111 texts/s).
WORKERS = min(2, os.cpu_count() or 1)
#: Characters kept for each token before tokenising: no ordinary token has 64, and 10 MB need not be tokenised for 512.
CHARACTERS = 64

#: Bytes from which on a tensor is saved in the file of the weights, which is mapped.
MAPPED_FROM = 1024
WEIGHTS = "weights.bin"  # that file

#: The inputs that a graph may have, from the encoding of a text.
INPUTS: Mapping[str, Callable[[Encoding], list[int]]] = {
    "input_ids": lambda encoding: encoding.ids,
    "attention_mask": lambda encoding: encoding.attention_mask,
    "token_type_ids": lambda encoding: encoding.type_ids,
}


def open_session(model: bytes | str, error: Error, *, fuse: bool, threads: int = 1, save: Path | None = None) -> Any:
    """Return an onnxruntime session of a graph or of a file. ``fuse`` False keeps our own choice of kernels.

    ``save`` is a file for the graph; its weights go into a second file beside it.
    """
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # failures are raised; stderr belongs to the caller
    level = ort.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if fuse else level.ORT_ENABLE_BASIC
    if save is not None:
        entry = "session.optimized_model_external_initializers"
        options.optimized_model_filepath = str(save)
        options.add_session_config_entry(f"{entry}_file_name", WEIGHTS)
        options.add_session_config_entry(f"{entry}_min_size_in_bytes", str(MAPPED_FROM))
    try:
        return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as failure:  # onnxruntime's exceptions share no base class
        raise error(
            f"onnxruntime {ort.__version__} cannot load the model (1.22 is the oldest that can): {failure}"
        ) from failure


class TextSession:
    """A tokenizer with a session. Thread-safe, as both of its parts are."""

    def __init__(self, tokenizer: Tokenizer, session: Any, outputs: Sequence[str], error: Error) -> None:
        """``outputs`` are the names of the outputs to read, the first that the graph has; else its first one."""
        self._tokenizer, self._session, self._error = tokenizer, session, error
        self._characters = tokenizer.limit * CHARACTERS
        self._inputs = {item.name: np.int32 if "int32" in item.type else np.int64 for item in session.get_inputs()}
        if unknown := [name for name in self._inputs if name not in INPUTS]:
            raise error(f"the ONNX model asks for input {unknown[0]!r}; known inputs: {', '.join(INPUTS)}")
        there = [item.name for item in session.get_outputs()]
        self._output = next((name for name in outputs if name in there), there[0])

    def run(self, text: str, pair: str | None = None) -> npt.NDArray[np.float32] | None:
        """Return the output for a text or a pair of texts; None where the tokenizer finds no token."""
        encoding = self._tokenizer.encode(self._readable(text), None if pair is None else self._readable(pair))
        if not encoding.ids:
            return None
        feeds = {name: np.array([INPUTS[name](encoding)], dtype=kind) for name, kind in self._inputs.items()}
        try:
            output: npt.NDArray[np.float32] = self._session.run([self._output], feeds)[0]
        except Exception as failure:  # onnxruntime's exceptions share no base class
            raise self._error(f"the model failed on {(pair or text)[:60]!r}: {failure}") from failure
        return output

    def _readable(self, text: str) -> str:
        """Return the beginning of a text as valid Unicode: a lone surrogate, as in broken files, becomes "?"."""
        return text[: self._characters].encode("utf-8", "replace").decode("utf-8")


def in_threads(function: Callable[[V], T], items: Sequence[V], bulk: int) -> list[T]:
    """Call the function for each item, in ``WORKERS`` threads from ``bulk`` items on."""
    if len(items) < bulk:
        return list(map(function, items))
    with ThreadPoolExecutor(WORKERS) as workers:
        return list(workers.map(function, items))
