"""examples/memory.ipynb runs from top to bottom and prints what is stored in it."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

PATH = Path(__file__).parent.parent / "examples/memory.ipynb"
WRITE = "run `.venv/bin/jupyter-execute --inplace examples/memory.ipynb` and read the changes"


def printed(notebook: nbformat.NotebookNode) -> list[str]:
    """Return what each cell printed; tables have figures that differ from machine to machine."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return ["".join(item.text for item in cell.outputs if item.output_type == "stream") for cell in cells]


def test_it_runs_and_prints_what_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(variable, str(tmp_path))
    notebook = nbformat.read(PATH, as_version=4)
    stored = printed(notebook)
    client = NotebookClient(notebook, resources={"metadata": {"path": str(tmp_path)}})
    client.create_kernel_manager()
    assert client.km is not None
    client.km.transport, client.km.ip = "ipc", str(tmp_path / "kernel")  # no ports that another test may take
    client.execute()
    assert printed(notebook) == stored, WRITE
    assert len([text for text in stored if text]) >= 7


def test_the_hits_are_stored_as_a_table_with_bars() -> None:
    outputs = [item for cell in nbformat.read(PATH, as_version=4).cells for item in cell.get("outputs", ())]
    tables = [item.data["text/html"] for item in outputs if "text/html" in item.get("data", ())]
    assert any('title="dense' in table and "background:" in table for table in tables)
