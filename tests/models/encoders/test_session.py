from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from trivet.errors import ScorerError
from trivet.models.encoders.session import TextSession, in_threads
from trivet.models.encoders.tokenizer import TokenizersPackage


def tokenizer() -> Tokenizer:
    made = Tokenizer(models.WordLevel({"[UNK]": 0, "cat": 1, "mat": 2, "?": 3}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return made


class Session:
    """Stands in for an onnxruntime session: its output is the sum of its input ids."""

    def __init__(self, inputs: dict[str, str], outputs: list[str]) -> None:
        self._inputs, self._outputs = inputs, outputs
        self.feeds: list[dict[str, np.ndarray]] = []
        self.asked: list[str] = []

    def get_inputs(self) -> list[Any]:
        return [SimpleNamespace(name=name, type=type) for name, type in self._inputs.items()]

    def get_outputs(self) -> list[Any]:
        return [SimpleNamespace(name=name) for name in self._outputs]

    def run(self, outputs: list[str], feeds: dict[str, np.ndarray]) -> list[Any]:
        self.asked += outputs
        self.feeds.append(feeds)
        if feeds["input_ids"].max() == 0:
            raise RuntimeError("no such row")
        return [feeds["input_ids"].sum(axis=1)]


def opened(session: Session, max_tokens: int = 8) -> TextSession:
    return TextSession(TokenizersPackage(tokenizer(), max_tokens), session, ("logits",), ScorerError)


def test_a_graph_gets_the_inputs_it_names_in_its_own_types() -> None:
    session = Session({"input_ids": "tensor(int32)", "attention_mask": "tensor(int64)"}, ["state", "logits"])
    assert opened(session).run("cat mat") == [3]
    (feeds,) = session.feeds
    assert feeds["input_ids"].tolist() == [[1, 2]] and feeds["input_ids"].dtype == np.int32
    assert feeds["attention_mask"].tolist() == [[1, 1]] and feeds["attention_mask"].dtype == np.int64
    assert session.asked == ["logits"], "the named output before the first"


def test_without_a_named_output_the_first_is_read() -> None:
    session = Session({"input_ids": "tensor(int64)"}, ["state", "other"])
    opened(session).run("cat")
    assert session.asked == ["state"]


def test_of_a_pair_the_longer_text_is_cut_first() -> None:
    session = Session({"input_ids": "tensor(int64)"}, ["logits"])
    opened(session, max_tokens=4).run("cat", "mat " * 9)
    assert session.feeds[0]["input_ids"].tolist() == [[1, 2, 2, 2]]


def test_broken_unicode_is_read_as_a_question_mark_and_no_token_is_no_output() -> None:
    session = Session({"input_ids": "tensor(int64)"}, ["logits"])
    assert opened(session).run("\ud800") == [3]
    assert opened(session).run(" ") is None
    assert len(session.feeds) == 1


def test_failures_are_the_callers_error() -> None:
    with pytest.raises(ScorerError, match="asks for input 'pixel_values'; known inputs: input_ids"):
        opened(Session({"pixel_values": "tensor(float)"}, ["logits"]))
    session = opened(Session({"input_ids": "tensor(int64)"}, ["logits"]))
    with pytest.raises(ScorerError, match="the model failed on 'dog': no such row"):
        session.run("dog")


def test_results_come_in_order_and_few_items_need_no_thread() -> None:
    assert in_threads(lambda item: item * 2, range(20), 2) == [item * 2 for item in range(20)]
    assert in_threads(lambda _: threading.get_ident(), [1, 2], 3) == [threading.get_ident()] * 2
    assert threading.get_ident() not in in_threads(lambda _: threading.get_ident(), [1, 2], 2)
