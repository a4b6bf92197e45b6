"""The commands of a page run in order and stop at the first that fails."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

TOOL = Path(__file__).parents[2] / "tools/run_page.py"
PAGE = """
```sh
name=heron
cat given.txt > said
```

1. Indented.

    ```sh
    echo "$name at 7601" >> said
    ```

```python
raise SystemExit
```

```sh
false | cat
echo never >> said
```
"""


@pytest.fixture
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("run_page", TOOL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("ports", "port"), [([], "7601"), (["--ports", "76", "77"], "7701")])
def test_blocks_share_a_shell_and_end_at_a_failure(
    tool: ModuleType, tmp_path: Path, ports: list[str], port: str
) -> None:
    (tmp_path / "page.md").write_text(PAGE)
    (tmp_path / "given.txt").write_text("given\n")
    folder = tmp_path / "new"
    given = ["--folder", str(folder), "--give", str(tmp_path / "given.txt")]
    assert tool.main([str(tmp_path / "page.md"), *given, *ports]) == 1
    assert (folder / "said").read_text() == f"given\nheron at {port}\n"


def test_the_page_of_the_cluster_has_commands(tool: ModuleType) -> None:
    text = tool.script((TOOL.parents[1] / "docs/how-to/operate-postgresql.md").read_text(encoding="utf-8"))
    assert "citus_update_node" in text and "```" not in text
