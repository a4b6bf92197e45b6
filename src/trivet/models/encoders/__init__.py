"""BERT-type encoders run by onnxruntime: model folders, ONNX graphs and sessions, for embedders and scorers."""
