"""Notebooks of each version, and JSON that is none."""

from __future__ import annotations

import json

import pytest

from made_files import notebook
from trivet.files import formats
from trivet.files.formats import UnreadableError


def test_markdown_and_code_cells_in_order() -> None:
    cells = (("markdown", "# Pump\nintro"), ("code", "x = 1\n# not a heading"), ("code", ""), ("raw", "as it is"))
    [part] = formats.parts(notebook(*cells), "ipynb")
    assert part.text == "# Pump\nintro\n\n```python\nx = 1\n# not a heading\n```\n\nas it is"
    assert (part.title, part.kind, part.meta) == ("Pump", "notebook", {"cells": 4, "language": "python"})


def test_a_notebook_of_version_3() -> None:
    cells = [{"cell_type": "heading", "level": 2, "source": "Old"}, {"cell_type": "code", "input": "y = 2"}]
    content = json.dumps({"nbformat": 3, "metadata": {}, "worksheets": [{"cells": cells}]}).encode()
    assert formats.parts(content, "ipynb")[0].text == "## Old\n\n```\ny = 2\n```"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (notebook(), "empty"),
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "no cells"),
        (b'{"cells": 3}', "no cells"),
        (b'{"metadata": 3, "cells": []}', "broken IPYNB"),
    ],
)
def test_what_cannot_be_read_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(UnreadableError, match=reason):
        formats.parts(content, "ipynb")
