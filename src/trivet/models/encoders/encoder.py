"""BERT-type encoders as ONNX graphs.

A graph reads one text at a time: without padding there is no mask, and the int8 vectors of a text never depend on other
texts in a batch. On one core a batch is no faster, since its activations do not fit into the cache. The kernels were
chosen by measurement (granite, one thread, 128 tokens, ms a text): a fused SkipLayerNormalization takes 3.0 where Add
and LayerNormalization take 0.5, and attention takes 3.5 with a mask and 2.2 without. So the session must not fuse
(``session.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trivet.models.encoders.onnx_graph import OnnxGraph

Floats = npt.NDArray[np.float32]

BUILD = 1  # part of every local model's id; raise it when a change here changes vectors
BLOCK = 64  # input channels that share one scale in a block-quantised matrix


@dataclass(frozen=True, slots=True, eq=False)
class Blocked:
    """An (out, in) int8 matrix with one scale for every ``BLOCK`` inputs."""

    values: npt.NDArray[np.int8]
    scales: Floats

    @classmethod
    def of(cls, matrix: Floats) -> Blocked:
        """Return a float matrix quantised."""
        blocks = matrix.reshape(len(matrix), -1, BLOCK)
        scales = np.maximum(np.abs(blocks).max(axis=2), np.float32(1e-12)) / np.float32(127)
        return cls(np.rint(blocks / scales[:, :, None]).astype(np.int8).reshape(matrix.shape), scales)

    def floats(self) -> Floats:
        """Return the matrix as floats again."""
        blocks = self.values.reshape(*self.scales.shape, BLOCK).astype(np.float32)
        return (blocks * self.scales[:, :, None]).reshape(self.values.shape)


@dataclass(frozen=True, slots=True)
class Architecture:
    """The sizes and choices that, with the weights, make an encoder."""

    hidden: int
    layers: int
    heads: int
    pooling: str
    activation: str = "gelu"
    layer_norm_eps: float = 1e-12
    position_offset: int = 0


#: Tensors by their short names: word_emb, pos_emb, type_emb, emb_ln, and for layer 0 l0.qkv, l0.ao (attention output),
#: l0.aln (its norm), l0.f1, l0.f2 (feed-forward), l0.fln (its norm), each with .w (weight) and .b (bias).
Weights = Mapping[str, Floats | Blocked]
#: Matrix name -> kernel; ``""`` stands for every matrix that is not named.
Plan = Mapping[str, str]

FP32: Plan = {"": "float"}
BLOCK_INT8: Plan = {"": "block"}


def encoder_graph(shape: Architecture, weights: Weights, plan: Plan) -> bytes:
    """Return a serialised model: ``input_ids`` (1, length) int64 in, ``sentence_embedding`` (1, hidden) float32 out."""
    build = Builder(shape, weights, plan)
    state = build.embeddings(build.graph.input("input_ids", "int64", 1, "length"))
    for layer in range(shape.layers):
        state = build.layer(state, layer)
    build.graph.output(POOLINGS[shape.pooling](build, state), "sentence_embedding", "float32", 1, shape.hidden)
    return build.graph.serialised()


class Builder:
    """Writes an encoder into a graph, for one text or for a pair (``pair_encoder.py``)."""

    def __init__(self, shape: Architecture, weights: Weights, plan: Plan) -> None:
        self.graph, self.shape, self.weights, self.plan = OnnxGraph(), shape, weights, plan

    def floats(self, name: str) -> Floats:
        tensor = self.weights[name]
        return tensor.floats() if isinstance(tensor, Blocked) else tensor

    def constant(self, name: str) -> str:
        return self.graph.constant(name, self.floats(name))

    def ints(self, *values: int) -> str:
        return self.graph.constant("ints_" + "_".join(map(str, values)), np.array(values, dtype=np.int64))

    def norm(self, value: str, name: str) -> str:
        gain, bias = self.constant(f"{name}.w"), self.constant(f"{name}.b")
        return self.graph.node("LayerNormalization", value, gain, bias, axis=-1, epsilon=self.shape.layer_norm_eps)

    def linear(self, value: str, name: str) -> str:
        return KERNELS[self.plan.get(name, self.plan[""])](self, value, name)

    def first_token(self, value: str) -> str:
        return self.graph.node("Slice", value, self.ints(0), self.ints(1), self.ints(1))

    def embeddings(self, ids: str, types: str = "") -> str:
        """Add the embedding layer. ``types`` names the input that tells the two texts of a pair apart."""
        graph, words = self.graph, self.weights["word_emb"]
        if isinstance(words, Blocked):
            # The table stays int8 (granite: 19 MB instead of 77), and only the rows that are read are scaled.
            rows = graph.node("Cast", graph.node("Gather", graph.constant("word_emb", words.values), ids), to=1)
            blocks = graph.node("Reshape", rows, self.ints(0, 0, -1, BLOCK))
            scales = graph.node("Gather", graph.constant("word_emb.scales", words.scales), ids)
            scaled = graph.node("Mul", blocks, graph.node("Unsqueeze", scales, self.ints(-1)))
            embedded = graph.node("Reshape", scaled, self.ints(0, 0, self.shape.hidden))
        else:
            embedded = graph.node("Gather", graph.constant("word_emb", words), ids)
        positions = self.floats("pos_emb")[self.shape.position_offset :]
        if "type_emb" in self.weights and not types:  # in one text every token has the same type
            positions = positions + self.floats("type_emb")[0]
        length = graph.node("Shape", ids, start=1, end=2)
        by_place = graph.node("Slice", graph.constant("positions", positions), self.ints(0), length, self.ints(0))
        summed = graph.node("Add", embedded, by_place)
        if types:
            summed = graph.node("Add", summed, graph.node("Gather", self.constant("type_emb"), types))
        return self.norm(summed, "emb_ln")

    def layer(self, state: str, number: int) -> str:
        """Add one transformer layer."""
        graph, name = self.graph, f"l{number}"
        query, key, value = graph.nodes(3, "Split", self.linear(state, f"{name}.qkv"), axis=-1, num_outputs=3)
        if self.shape.pooling == "cls" and number == self.shape.layers - 1:
            query, state = self.first_token(query), self.first_token(state)  # CLS pooling reads no other row
        attended = graph.fused("MultiHeadAttention", query, key, value, num_heads=self.shape.heads)
        state = self.norm(graph.node("Add", state, self.linear(attended, f"{name}.ao")), f"{name}.aln")
        inner = graph.fused(ACTIVATIONS[self.shape.activation], self.linear(state, f"{name}.f1"))
        return self.norm(graph.node("Add", state, self.linear(inner, f"{name}.f2")), f"{name}.fln")


def _float(build: Builder, value: str, name: str) -> str:
    matrix = build.graph.constant(f"{name}.w", build.floats(f"{name}.w").T)
    return build.graph.node("Add", build.graph.node("MatMul", value, matrix), build.constant(f"{name}.b"))


def _tensor(build: Builder, value: str, name: str) -> str:
    """One activation scale for the whole text, one weight scale per output: the fastest, and bad at outlier channels.

    Weights use 7 bits: with 8, CPUs without VNNI overflow when they add two products in 16 bits; 255 · 64 · 2 fits.
    """
    matrix = build.floats(f"{name}.w")
    scales = np.maximum(np.abs(matrix).max(axis=1), np.float32(1e-12)) / np.float32(64)
    values = build.graph.constant(f"{name}.q", np.rint(matrix / scales[:, None]).astype(np.int8).T)
    scaling = build.graph.constant(f"{name}.scales", scales)
    return build.graph.fused("DynamicQuantizeMatMul", value, values, scaling, "", build.constant(f"{name}.b"))


def _block(build: Builder, value: str, name: str) -> str:
    """One scale for every ``BLOCK`` inputs of a row, on both sides: an outlier only affects its own block."""
    tensor = build.weights[f"{name}.w"]
    blocked = tensor if isinstance(tensor, Blocked) else Blocked.of(tensor)
    outputs, inputs = blocked.values.shape
    shifted = (blocked.values.astype(np.int16) + 128).astype(np.uint8).reshape(outputs, -1, BLOCK)
    values = build.graph.constant(f"{name}.q", shifted)
    scales = build.graph.constant(f"{name}.scales", blocked.scales)
    bias = build.constant(f"{name}.b")
    # accuracy_level 4: activations become int8 too; otherwise the kernel first unpacks the weights to float32
    sizes = {"K": inputs, "N": outputs, "bits": 8, "block_size": BLOCK, "accuracy_level": 4}
    return build.graph.fused("MatMulNBits", value, values, scales, "", "", bias, **sizes)


def _cls(build: Builder, state: str) -> str:
    return build.graph.node("Squeeze", state, build.ints(1))


def _mean(build: Builder, state: str) -> str:
    return build.graph.node("ReduceMean", state, build.ints(1), keepdims=0)


KERNELS: Mapping[str, Callable[[Builder, str, str], str]] = {"float": _float, "tensor": _tensor, "block": _block}
POOLINGS: Mapping[str, Callable[[Builder, str], str]] = {"cls": _cls, "mean": _mean}
#: config.json's hidden_act -> onnxruntime operator
ACTIVATIONS = {"gelu": "Gelu", "gelu_new": "FastGelu", "gelu_pytorch_tanh": "FastGelu", "gelu_fast": "FastGelu"}
