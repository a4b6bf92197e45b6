"""Kinds of models that installed packages add through entry points."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PLUG_IN = """
class Constant:
    unrelated, batch = 0.0, 8
    def __init__(self, argument):
        self.spec, self.id, self.dim = f"constant:{argument}", f"constant/{argument}", int(argument)
    def embed_queries(self, texts):
        import numpy
        return numpy.full((len(texts), self.dim), self.dim ** -0.5, dtype="float32")
    embed_passages = embed_queries
    def scores(self, query, passages):
        return [float(len(passage)) for passage in passages]

def half(argument):
    return object()
"""
ENTRY_POINTS = """
[trivet.embedders]
constant = trivet_test_models:Constant
half = trivet_test_models:half
[trivet.scorers]
constant = trivet_test_models:Constant
"""
PROGRAM = """
import trivet
from trivet.errors import InputError
from trivet.models.embedders import load_embedder

with trivet.open(":memory:", embedder="constant:4", scorer="constant:1") as engine:
    engine.add([{"id": "a", "text": "red door"}, {"id": "b", "text": "a much longer red door"}])
    found = engine.search("red", rerankers=[{"name": "cross_encoder", "weight": 1.0, "head": 0}])
    print([hit.id for hit in found], found.degraded)
for spec in ("half:1", "third:1"):
    try:
        load_embedder(spec)
    except InputError as error:
        print(error)
"""


def test_a_package_adds_an_embedder_and_a_scorer(tmp_path: Path) -> None:
    (tmp_path / "trivet_test_models.py").write_text(PLUG_IN)
    info = tmp_path / "trivet_test_models-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: trivet-test-models\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert done.returncode == 0, done.stderr
    ranking, half, unknown = done.stdout.splitlines()
    assert ranking == "['b', 'a'] ()", "the scorer prefers the longer passage"
    assert half.startswith("embedder 'object' lacks spec, id, dim")
    assert "'third:1' is neither a known form" in unknown and "constant:…" in unknown
