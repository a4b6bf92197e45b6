from __future__ import annotations

from trivet.text import conversation


def test_the_keys_of_the_reranking_features_are_those_that_weights_were_fitted_with() -> None:
    """A learned reranker is stored with a collection: another key would change the scores of every one of them."""
    keys = ("session", "session_id", "thread", "thread_id", "conversation", "conversation_id")
    assert keys == conversation.SESSION_KEYS
    assert conversation.SESSION_SCOPE_KEYS == ("scope", "project", "project_id", "user", "user_id")
    assert conversation.SPEAKER_KEYS == ("role", "speaker")
    assert {"assistant", "ai", "bot", "model"} == conversation.ASSISTANTS


def test_the_graph_knows_every_session_and_speaker_that_the_features_know() -> None:
    assert conversation.GRAPH_SESSION_KEYS[:6] == conversation.SESSION_KEYS, "the first key that a document has decides"
    assert set(conversation.SPEAKER_KEYS) < set(conversation.GRAPH_SPEAKER_KEYS)
    assert conversation.ASSISTANTS < conversation.GRAPH_SKIPPED_SPEAKERS


def test_what_chat_writes_is_a_session_key_and_an_owner_key() -> None:
    assert conversation.SESSION in conversation.SESSION_KEYS
    assert conversation.PROJECT in conversation.OWNER_KEYS


def test_a_speaker_or_a_role_says_that_an_assistant_wrote_a_turn() -> None:
    assert conversation.by_assistant({"speaker": "Assistant"}) and conversation.by_assistant({"role": "model"})
    assert not conversation.by_assistant({"speaker": "Ann", "author": "assistant"}) and not conversation.by_assistant(
        {}
    )


def test_a_session_of_a_turn_includes_its_owner() -> None:
    meta = {"thread": 3, "user": "ann", "topic": "ladders", "project": ["a", "list"]}
    assert conversation.session_of_turn(meta) == {"thread": 3, "user": "ann"}
    assert conversation.session_of_turn({"user": "ann"}) == {} == conversation.session_of_turn({"session": None})
