from __future__ import annotations

import pytest

from trivet.errors import EmbedderError, InputError
from trivet.models.embedders import load_embedder


def test_the_size_is_known_and_no_text_is_embedded() -> None:
    supplied = load_embedder("vectors:384")
    assert supplied is not None
    assert (supplied.dim, supplied.spec, supplied.id, supplied.unrelated) == (384, "vectors:384", "vectors/384", 0.0)
    with pytest.raises(
        EmbedderError, match=r"'vectors:384' embeds no text .the query 'cat' has no vector.: give the vector"
    ):
        supplied.embed_queries(["cat"])
    with pytest.raises(
        EmbedderError, match=r"the document 'dog' has no vector.*or open the collection with an embedder"
    ):
        supplied.embed_passages(["dog"])


@pytest.mark.parametrize("spec", ["vectors", "vectors:", "vectors:0", "vectors:lots", "vectors:65537"])
def test_a_size_is_needed(spec: str) -> None:
    with pytest.raises(InputError, match=r"give the dimension.*'vectors:384'"):
        load_embedder(spec)
