"""The built-in scorer: a cross-encoder of six layers that was distilled for trivet and is shipped with it.

It reads the query and a passage together and returns a logit: above 0 the passage is likely to answer the query, below
-5 it is not about it. It reads English. The recipe is in ``training/``, the model card in
docs/explanation/reader-model-card.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trivet.concurrency.once_per_process import OncePerProcess
from trivet.errors import InputError

if TYPE_CHECKING:
    from trivet.models.encoders.session import TextSession

#: sha256 of the model's config.json, which holds those of its other files.
SHA256 = "4587139d863580a4903c226b8393b300ba07f17529a629466e7addfce080bb4e"
BATCH = 4  # pairs scored between two checks of the time limit


def load(argument: str) -> ReaderScorer:
    """Return the scorer of the spec ``reader``, which has no argument."""
    if argument:
        raise InputError(f"scorer 'reader:{argument}': it takes no argument; write 'reader'")
    return ReaderScorer()


class ReaderScorer:
    """The shipped cross-encoder. Thread-safe. The model is opened by ``open`` or at the first passage."""

    spec, batch = "reader", BATCH
    id = f"reader/{SHA256[:12]}"

    def __init__(self) -> None:
        self._model = OncePerProcess(_open)

    def open(self) -> None:
        """Open the model now."""
        self._model()

    def scores(self, query: str, passages: list[str]) -> list[float]:
        from trivet.models.encoders.session import in_threads

        session = self._model()

        def score(passage: str) -> float:
            output = session.run(query, passage)
            assert output is not None  # a pair has at least its marks
            return float(output[0, 0])

        return in_threads(score, passages, 2)


def _open() -> TextSession:
    from trivet.models.encoders.reader_model import open_reader  # imports numpy and onnxruntime

    return open_reader(SHA256)
