from __future__ import annotations

import socket
from typing import Any

import httpx
import pytest

from trivet.errors import ScorerError
from trivet.models.http_client import retry_after
from trivet.models.scorers.http import APIS, LONGEST_REST, HttpScorer, api_of

PASSAGES = ["one two", "one", "one two three"]
SECRET = "sk-do-not-print-me"


def requests(server: str, path: str) -> list[dict[str, Any]]:
    with httpx.Client() as client:
        return [entry for entry in client.get(f"{server}/log").json() if entry["path"] == path]


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("/cohere/v2/rerank#m", {"model": "m", "query": "q", "documents": PASSAGES, "top_n": 3}),
        ("/cohere-base/v2#m", {"model": "m", "query": "q", "documents": PASSAGES, "top_n": 3}),
        (
            "/jina/v1/rerank?api=jina#m",
            {"model": "m", "query": "q", "documents": PASSAGES, "top_n": 3, "return_documents": False},
        ),
        (
            "/vllm/v1#m",
            {"model": "m", "query": "q", "documents": PASSAGES, "top_n": 3, "truncate_prompt_tokens": -1},
        ),
        ("/tei/rerank", {"query": "q", "texts": PASSAGES, "truncate": True, "raw_scores": False}),
        ("/tei-base", {"query": "q", "texts": PASSAGES, "truncate": True, "raw_scores": False}),
    ],
)
def test_each_shape_is_asked_and_understood(server: str, path: str, sent: dict[str, Any]) -> None:
    scorer = HttpScorer(f"{server}{path}")
    assert scorer.scores("q", PASSAGES) == [2.0, 1.0, 3.0], "in the order of the passages, not of the answer"
    manner = path.split("/")[1].split("#")[0]
    (asked,) = [entry for entry in httpx.get(f"{server}/log").json() if entry["path"].startswith(f"/{manner}/")]
    assert asked["asked"] == sent
    assert asked["authorization"] is None


@pytest.mark.parametrize(
    ("url", "model", "shape"),
    [
        ("https://api.cohere.com/v2/rerank", "m", "cohere"),
        ("https://api.cohere.com", "m", "cohere"),
        ("https://api.jina.ai/v1/rerank", "m", "jina"),
        ("http://localhost:8000/v1", "m", "vllm"),
        ("http://localhost:8000/v1/rerank", "m", "vllm"),
        ("http://localhost:8000/rerank", "m", "vllm"),
        ("http://localhost:8080", "", "tei"),
        ("http://localhost:8080/rerank", "", "tei"),
    ],
)
def test_the_address_tells_the_shape(url: str, model: str, shape: str) -> None:
    assert api_of(url, model) == shape


def test_a_server_that_asks_for_a_day_is_asked_again_before(server: str) -> None:
    assert retry_after("86400") > LONGEST_REST
    scorer = HttpScorer(f"{server}/endless/rerank")
    with pytest.raises(ScorerError, match="returned status 429"):
        scorer.scores("q", PASSAGES)
    with pytest.raises(ScorerError, match=r"asked for a pause; (600|59\d) s of it are left"):
        scorer.scores("q", PASSAGES)


def test_the_id_holds_what_changes_the_scores() -> None:
    one = HttpScorer("http://localhost:8000/v1#a")
    assert one.id == "vllm:a@localhost:8000/v1/rerank"
    assert one.id != HttpScorer("http://localhost:8000/v1#b").id
    assert one.id != HttpScorer("http://localhost:8001/v1#a").id
    assert one.id == HttpScorer("http://localhost:8000/v1?timeout=3#a").id
    assert HttpScorer("http://localhost:8000/v1?batch=7#a").batch == 7
    assert HttpScorer("http://localhost:8080/rerank").batch == APIS["tei"].batch


def test_the_rest_of_the_query_is_the_servers(server: str) -> None:
    HttpScorer(f"{server}/passed/v1/rerank?api-version=3&timeout=5#m").scores("q", ["a"])
    assert len(requests(server, "/passed/v1/rerank?api-version=3")) == 1


def test_more_than_a_batch_is_asked_in_turns(server: str) -> None:
    assert HttpScorer(f"{server}/turns/rerank?batch=2").scores("q", PASSAGES) == [2.0, 1.0, 3.0]
    assert [len(entry["asked"]["texts"]) for entry in requests(server, "/turns/rerank")] == [2, 1]
    assert HttpScorer(f"{server}/turns/rerank").scores("q", []) == []


@pytest.mark.parametrize("manner", ["busy", "flaky"])
def test_what_may_pass_is_asked_again(server: str, manner: str) -> None:
    assert HttpScorer(f"{server}/{manner}/rerank").scores("q", PASSAGES) == [2.0, 1.0, 3.0]
    assert len(requests(server, f"/{manner}/rerank")) == {"busy": 3, "flaky": 2}[manner]


def test_a_pause_that_is_asked_for_is_kept(server: str) -> None:
    scorer = HttpScorer(f"{server}/closed/rerank")
    with pytest.raises(ScorerError, match=r"returned status 429.*come back later.*tried 1 time\)"):
        scorer.scores("q", PASSAGES)
    with pytest.raises(ScorerError, match=r"asked for a pause; 1\d\d s of it are left"):
        scorer.scores("q", PASSAGES)
    assert len(requests(server, "/closed/rerank")) == 1, "left in peace"


@pytest.mark.parametrize(
    ("manner", "message"),
    [
        ("down", r"returned status 500: .*out of memory.*tried \d+ times"),
        ("refused", "returned status 401"),
        ("slow", r"did not respond within 0\.5 s"),
        ("short", "returned 2 scores for 3 passages"),
        ("doubled", "returned 3 scores for 3 passages"),
        ("words", "did not return scores"),
        ("nameless", "did not return scores"),
        ("page", "did not return JSON: <html>Welcome"),
        ("number", "did not return scores: 7"),
        ("huge", "sent more than 16,000,000 bytes"),
    ],
)
def test_what_goes_wrong_is_said(server: str, manner: str, message: str) -> None:
    spec = f"{server}/{manner}/rerank?timeout={0.5 if manner == 'slow' else 30}"
    with pytest.raises(ScorerError, match=message) as caught:
        HttpScorer(spec).scores("q", PASSAGES)
    assert "check the address, the model and TRIVET_SCORER_API_KEY" in str(caught.value)


def test_a_server_that_is_not_there_is_said_to_be(server: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with pytest.raises(ScorerError, match="could not be reached"):
        HttpScorer(f"http://127.0.0.1:{port}/rerank?timeout=0.5").scores("q", ["a"])


@pytest.mark.parametrize(
    ("path", "variable", "sent"),
    [
        ("/key-a/rerank", "TRIVET_SCORER_API_KEY", True),
        ("/key-b/v2/rerank#m", "COHERE_API_KEY", True),
        ("/key-c/v1/rerank?api=jina#m", "JINA_API_KEY", True),
        ("/key-d/v1/rerank#m", "COHERE_API_KEY", False),
        ("/key-e/rerank", "OPENAI_API_KEY", False),
    ],
)
def test_a_key_comes_from_the_environment_and_goes_where_it_belongs(
    server: str, monkeypatch: pytest.MonkeyPatch, path: str, variable: str, sent: bool
) -> None:
    monkeypatch.setenv(variable, f"{SECRET}\n")
    HttpScorer(f"{server}{path}").scores("q", ["a"])
    plain = path.split("?")[0].split("#")[0]
    assert requests(server, plain)[0]["authorization"] == (f"Bearer {SECRET}" if sent else None)


def test_a_key_is_never_printed(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVET_SCORER_API_KEY", SECRET)
    with pytest.raises(ScorerError) as caught:
        HttpScorer(f"{server}/refused/rerank").scores("q", ["a"])
    assert SECRET not in str(caught.value)
    monkeypatch.setenv("TRIVET_SCORER_API_KEY", "schlüssel")
    with pytest.raises(ScorerError, match="characters that cannot be sent"):
        HttpScorer(f"{server}/plain/rerank").scores("q", ["a"])
