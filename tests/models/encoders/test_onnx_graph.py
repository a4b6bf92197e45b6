from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from trivet.models.encoders.onnx_graph import DATA_TYPES, FLOAT, INT, MESSAGES, OnnxGraph, message_classes

KNOWN = {
    "Model": onnx.ModelProto,
    "OperatorSetId": onnx.OperatorSetIdProto,
    "Graph": onnx.GraphProto,
    "Node": onnx.NodeProto,
    "Attribute": onnx.AttributeProto,
    "Tensor": onnx.TensorProto,
    "ValueInfo": onnx.ValueInfoProto,
    "Type": onnx.TypeProto,
    "TensorType": onnx.TypeProto.Tensor,
    "TensorShape": onnx.TensorShapeProto,
    "Dimension": onnx.TensorShapeProto.Dimension,
}


def test_every_message_is_compared() -> None:
    assert set(KNOWN) == set(MESSAGES)


@pytest.mark.parametrize("message", MESSAGES)
def test_field_numbers_are_those_of_onnx(message: str) -> None:
    theirs = KNOWN[message].DESCRIPTOR.fields_by_name
    ours = message_classes()[message].DESCRIPTOR.fields_by_name
    assert {name: field.number for name, field in ours.items()} == {name: theirs[name].number for name in ours}


def test_the_enumerations_are_those_of_onnx() -> None:
    assert {
        name: getattr(onnx.TensorProto, name.removesuffix("32").upper() if name == "float32" else name.upper())
        for name in DATA_TYPES
    } == DATA_TYPES
    assert (FLOAT, INT) == (onnx.AttributeProto.FLOAT, onnx.AttributeProto.INT)


def small_graph() -> bytes:
    graph = OnnxGraph()
    value = graph.input("x", "float32", 1, "length")
    doubled = graph.node("Mul", value, graph.constant("two", np.array([2.0], dtype=np.float32)))
    halves = graph.nodes(2, "Split", doubled, axis=-1, num_outputs=2)
    leaky = graph.node("LeakyRelu", halves[1], alpha=0.5)
    graph.output(graph.node("Add", halves[0], leaky), "y", "float32", 1, "half")
    return graph.serialised()


def test_a_written_graph_passes_onnx_checker() -> None:
    onnx.checker.check_model(onnx.load_from_string(small_graph()), full_check=True)


def test_a_written_graph_computes_what_it_says() -> None:
    session = ort.InferenceSession(small_graph(), providers=["CPUExecutionProvider"])
    (answer,) = session.run(None, {"x": np.array([[1.0, 2.0, -3.0, 4.0]], dtype=np.float32)})
    assert answer.tolist() == [[2.0 * 1 + 0.5 * 2 * -3, 2.0 * 2 + 2.0 * 4]]


def test_a_constant_named_twice_is_stored_once() -> None:
    graph = OnnxGraph()
    for _ in range(2):
        assert graph.constant("two", np.array([2], dtype=np.int64)) == "two"
    stored = onnx.load_from_string(graph.serialised()).graph.initializer
    assert [(tensor.name, onnx.numpy_helper.to_array(tensor).tolist()) for tensor in stored] == [("two", [2])]
