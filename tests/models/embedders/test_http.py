from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from trivet.errors import EmbedderError, InputError
from trivet.models.embedders import load_embedder
from trivet.models.embedders.http import KEYS, HttpModel

FAST = "backoff=0.001"
SECRET = "sk-do-not-print-me"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The base URL of ``endpoint.py``, running in a process of its own."""
    script = Path(__file__).with_name("endpoint.py")
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        process.terminate()


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*KEYS, *(name for name in os.environ if name.lower().endswith("_proxy"))]:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def open_model() -> Iterator[Any]:
    opened: list[HttpModel] = []

    def make(spec: str) -> HttpModel:
        opened.append(HttpModel(spec))
        return opened[-1]

    yield make
    for model in opened:
        model.close()


def requests(server: str, model: str) -> list[dict[str, Any]]:
    with httpx.Client() as client:
        return [entry for entry in client.get(server.removesuffix("/v1") + "/log").json() if entry["model"] == model]


def unit(*values: float) -> list[float]:
    return (np.array(values) / np.linalg.norm(values)).tolist()


def test_vectors_come_normalised_and_blank_texts_are_not_sent(server: str, open_model: Any) -> None:
    rows = open_model(f"{server}#ok-1").embed_passages(["cat", " ", "a\ud800"])
    np.testing.assert_allclose(rows, [unit(3, ord("c"), 1), [0, 0, 0], unit(2, ord("a"), 1)], rtol=1e-6)
    assert rows.dtype == np.float32
    (request,) = requests(server, "ok-1")
    assert (request["path"], request["input"], request["authorization"]) == ("/v1/embeddings", ["cat", "a?"], None)


def test_the_size_is_learnt_by_asking_once(server: str, open_model: Any) -> None:
    model = open_model(f"{server}#ok-dim")
    assert (model.dim, model.dim, model.embed_passages([]).shape) == (3, 3, (0, 3))
    assert len(requests(server, "ok-dim")) == 1


def test_a_size_in_the_spec_needs_no_request_and_is_held_to(server: str, open_model: Any) -> None:
    assert open_model(f"{server}?dim=3#ok-given").dim == 3
    assert requests(server, "ok-given") == []
    with pytest.raises(EmbedderError, match="returned 3 dimensions where 4 were expected"):
        open_model(f"{server}?dim=4#ok-wrong").embed_passages(["cat"])


def test_dimensions_and_foreign_options_reach_the_server(server: str, open_model: Any) -> None:
    model = open_model(f"{server}?dimensions=3&api-version=2024-02-01&batch=7#ok-azure")
    assert model.embed_passages(["cat"]).shape == (1, 3)
    (request,) = requests(server, "ok-azure")
    assert (request["path"], request["dimensions"]) == ("/v1/embeddings?api-version=2024-02-01", 3)


def test_batches_hold_both_limits_and_rows_keep_their_order(server: str, open_model: Any) -> None:
    texts = ["a" * size for size in (4, 4, 4, 30, 1, 1, 1, 1, 1)]
    rows = open_model(f"{server}?batch=4&characters=10#ok-batches").embed_passages(texts)
    sent = [[len(text) for text in request["input"]] for request in requests(server, "ok-batches")]
    assert sent == [[4, 4], [4], [30], [1, 1, 1, 1], [1]]
    np.testing.assert_allclose(rows[:, 0] / rows[:, 2], [len(text) for text in texts], rtol=1e-5)


def test_a_query_asked_again_is_not_sent_again(server: str, open_model: Any) -> None:
    model = open_model(f"{server}#ok-queries")
    assert np.array_equal(model.embed_queries(["cat", "dog"])[::-1], model.embed_queries(["dog", "cat"]))
    assert len(requests(server, "ok-queries")) == 1


@pytest.mark.parametrize(("model", "attempts"), [("busy-1", 3), ("flaky-1", 2)])
def test_a_refusal_that_passes_is_waited_out(model: str, attempts: int, server: str, open_model: Any) -> None:
    rows = open_model(f"{server}?{FAST}#{model}").embed_passages(["cat"])
    np.testing.assert_allclose(rows, [unit(3, ord("c"), 1)], rtol=1e-6)
    assert len(requests(server, model)) == attempts


def test_a_server_that_stays_down_is_given_up(server: str, open_model: Any) -> None:
    with pytest.raises(EmbedderError, match=r"returned status 500: .*out of memory.*\(tried 3 times\)"):
        open_model(f"{server}?{FAST}&attempts=3#down-1").embed_passages(["cat"])
    assert len(requests(server, "down-1")) == 3


def test_a_slow_answer_is_a_timeout(server: str, open_model: Any) -> None:
    with pytest.raises(EmbedderError, match=r"did not respond within 0\.05 s \(tried 2 times\)"):
        open_model(f"{server}?{FAST}&attempts=2&timeout=0.05#slow-1").embed_passages(["cat"])


def test_an_unreachable_server_is_named(open_model: Any) -> None:
    with socket.socket() as taken:  # bound and not listening: connections to it are refused
        taken.bind(("127.0.0.1", 0))
        spec = f"http://127.0.0.1:{taken.getsockname()[1]}/v1?{FAST}&attempts=2#m"
        with pytest.raises(EmbedderError, match=r"127\.0\.0\.1.*could not be reached.*\(tried 2 times\)"):
            open_model(spec).embed_passages(["cat"])


@pytest.mark.parametrize("model", ["shuffled-1", "unnumbered-1"])
def test_rows_are_put_in_the_order_of_the_texts(model: str, server: str, open_model: Any) -> None:
    rows = open_model(f"{server}#{model}").embed_passages(["a", "bb", "ccc"])
    np.testing.assert_allclose(rows[:, 0] / rows[:, 2], [1, 2, 3], rtol=1e-5)


@pytest.mark.parametrize(
    ("model", "what"),
    [
        ("short", "returned 1 vectors for 2 texts"),
        ("doubled", "returned 1 vectors for 2 texts"),
        ("nan", "NaN or infinite value in row 0"),
        ("ragged", "did not return embeddings"),
        ("page", "did not return JSON: <html>Welcome"),
        ("list", r"did not return embeddings: \[1, 2\]"),
        ("empty", r"returned vectors of shape \(2, 0\)"),
    ],
)
def test_a_wrong_answer_is_said_clearly(model: str, what: str, server: str, open_model: Any) -> None:
    with pytest.raises(EmbedderError, match=what) as caught:
        open_model(f"{server}#{model}").embed_passages(["cat", "dog"])
    assert server in str(caught.value)


def test_a_model_that_changes_size_is_refused(server: str, open_model: Any) -> None:
    model = open_model(f"{server}#growing-1")
    model.embed_passages(["cat"])
    with pytest.raises(EmbedderError, match="returned 4 dimensions where 3 were expected"):
        model.embed_passages(["cat"])


def test_a_zero_vector_stays_zero(server: str, open_model: Any) -> None:
    assert open_model(f"{server}#zero").embed_passages(["cat"]).tolist() == [[0, 0, 0]]


@pytest.mark.parametrize("variable", KEYS)
def test_the_key_goes_to_the_server_and_nowhere_else(
    variable: str, server: str, open_model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, SECRET)
    model = open_model(f"{server}#refused-{variable}")
    with pytest.raises(EmbedderError, match=r"returned status 401: .*bad key Bearer …") as caught:
        model.embed_passages(["cat"])
    assert [request["authorization"] for request in requests(server, f"refused-{variable}")] == [f"Bearer {SECRET}"]
    for shown in (str(caught.value), repr(caught.value.__cause__), repr(model), model.id, model.spec):
        assert SECRET not in shown


def test_a_key_read_with_its_line_break_is_trimmed(
    server: str, open_model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f"{SECRET}\n")
    open_model(f"{server}#ok-trimmed").embed_passages(["cat"])
    assert requests(server, "ok-trimmed")[0]["authorization"] == f"Bearer {SECRET}"


@pytest.mark.parametrize("key", [f"{SECRET}\nX: y", f"{SECRET}\u2013"])
def test_a_key_that_cannot_be_sent_is_refused_and_not_repeated(
    key: str, server: str, open_model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(EmbedderError, match="copy it again") as caught:
        open_model(f"{server}#ok-unsendable").embed_passages(["cat"])
    assert SECRET not in str(caught.value)
    assert requests(server, "ok-unsendable") == []


def test_our_own_key_goes_before_openais(server: str, open_model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "theirs")
    monkeypatch.setenv("TRIVET_EMBED_API_KEY", "ours")
    open_model(f"{server}#ok-keys").embed_passages(["cat"])
    assert requests(server, "ok-keys")[0]["authorization"] == "Bearer ours"


def test_unrelated_is_measured_on_the_server(server: str, open_model: Any) -> None:
    assert 0.5 < open_model(f"{server}#ok-unrelated").unrelated <= 1.0


def test_ids_tell_models_servers_and_sizes_apart() -> None:
    specs = ["http://a/v1#m", "http://b/v1#m", "http://a:81/v1#m", "http://a/v2#m", "http://a/v1#n"]
    ids = [HttpModel(spec).id for spec in [*specs, "http://a/v1?dimensions=64#m"]]
    assert len(set(ids)) == len(ids)
    assert ids[0] == "m@a/v1"


def test_options_that_change_no_vector_change_no_id() -> None:
    assert HttpModel("http://a/v1?batch=3&timeout=9&dim=4#m").id == HttpModel("https://a/v1/#m").id


def test_load_embedder_knows_urls() -> None:
    for spec in ("http://localhost:11434/v1#nomic-embed-text", "https://api.openai.com/v1#text-embedding-3-small"):
        model = load_embedder(spec)
        assert isinstance(model, HttpModel)
        assert model.spec == spec


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        ("http://host/v1", "write the base URL and the model"),
        ("http://#m", "write a URL, as in 'http://localhost:11434/v1#MODEL'"),
        ("https:host#m", "write a URL"),
        ("http://host/v1?dim=none#m", "option dim='none' must be a number above 0"),
        ("http://host/v1?batch=0#m", "option batch='0' must be a number above 0"),
        ("http://host/v1?timeout=inf#m", "option timeout='inf' must be a number above 0"),
        ("http://host/v1?timeout=nan#m", "option timeout='nan' must be a number above 0"),
    ],
)
def test_a_wrong_spec_is_refused_before_any_request(spec: str, what: str) -> None:
    with pytest.raises(InputError, match=what):
        load_embedder(spec)


@pytest.mark.parametrize("spec", [f"http://u:{SECRET}@host/v1#m", f"http://host/v1?api_key={SECRET}#m"])
def test_a_secret_in_the_spec_is_refused_and_not_repeated(spec: str) -> None:
    with pytest.raises(InputError, match="TRIVET_EMBED_API_KEY") as caught:
        load_embedder(spec)
    assert SECRET not in str(caught.value)
