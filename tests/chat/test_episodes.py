"""Conversations are stored unchanged, and recalled only from their own scope. The rules are those of seed 000."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trivet.chat import Chat, Episode, Session
from trivet.engine import Engine
from trivet.errors import InputError, NotFoundError
from trivet.types import Document

START = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


@pytest.fixture
def chat(words: Engine) -> Chat:
    return Chat(words)


def fill(chat: Chat, session: Session, count: int, about: str = "ferret") -> list[Episode]:
    return [
        chat.add(session, f"{about} question {number}", f"{about} answer {number}", START + timedelta(minutes=number))
        for number in range(count)
    ]


class TestKeeping:
    def test_a_project_is_made_once(self, chat: Chat) -> None:
        first = chat.project("heron")
        assert chat.project(" heron ") == first
        assert [project.name for project in chat.projects()] == ["heron"]
        assert chat.project("egret").id != first.id

    def test_sessions_of_a_project_and_alone(self, chat: Chat) -> None:
        heron = chat.project("heron")
        one, two, alone = chat.session(heron, "pumps"), chat.session("heron"), chat.session(title="alone")
        assert chat.session(heron.id, id=one.id) == one
        assert chat.sessions("heron") == [one, two]
        assert chat.sessions() == [one, two, alone]
        assert (one.title, one.project, two.title, alone.project) == ("pumps", heron.id, "", None)

    def test_a_session_may_have_an_id_of_the_callers(self, chat: Chat) -> None:
        one = chat.session(id="17", title="first")
        assert chat.session(id="17") == one
        heron = chat.project("heron")
        with pytest.raises(InputError, match="is of project None"):
            chat.session(heron, id="17")
        chat.engine.add("a note", id="note")
        with pytest.raises(InputError, match="'note' is taken"):
            chat.session(id="note")

    def test_an_episode_is_a_document(self, chat: Chat) -> None:
        session = chat.session(chat.project("heron"))
        kept = chat.add(session, "Why does the door stick?", "It swells in the rain.", at=START)
        assert (kept.user, kept.answer, kept.at) == ("Why does the door stick?", "It swells in the rain.", START)
        document = chat.engine.get(kept.id)
        assert document is not None
        assert (document.kind, document.text) == ("episode", "Why does the door stick?\n\nIt swells in the rain.")
        assert document.meta["session"] == session.id
        assert document.meta["project"] == session.project
        assert chat.episode(kept.id) == kept

    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(user=st.text(min_size=1).filter(str.strip), answer=st.text())
    def test_message_and_answer_come_back_whatever_they_hold(self, chat: Chat, user: str, answer: str) -> None:
        kept = chat.add(chat.session(id="any"), user, answer)
        assert (kept.user, kept.answer) == (user, answer)
        assert chat.episode(kept.id) == kept

    def test_lone_surrogates_become_what_a_file_can_hold(self, chat: Chat) -> None:
        kept = chat.add(chat.session(), "a\ud800\ud83d\ude00", "b\udc00")
        assert (kept.user, kept.answer) == ("a\ufffd\U0001f600", "b\ufffd")

    def test_the_same_words_twice_are_two_episodes(self, chat: Chat) -> None:
        one, two = chat.session(), chat.session()
        for session in (one, one, two):
            chat.add(session, "thanks", "you are welcome")
        assert [len(chat.episodes(session)) for session in (one, two)] == [2, 1]

    def test_an_edited_episode_is_all_message(self, chat: Chat) -> None:
        kept = chat.add(chat.session(), "a long message", "answer")
        document = chat.engine.get(kept.id)
        assert document is not None
        chat.engine.add(Document(kept.id, "short", kind="episode", meta=document.meta))
        assert (chat.episode(kept.id).user, chat.episode(kept.id).answer) == ("short", "")

    def test_what_cannot_be_kept_is_refused(self, chat: Chat) -> None:
        session = chat.session()
        other = chat.add(chat.session(), "of another session")
        for wrong in (" ", ""):
            with pytest.raises(InputError, match="user: it is empty"):
                chat.add(session, wrong, "answer")
        with pytest.raises(InputError, match="answer: int is not text"):
            chat.add(session, "question", 3)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="state: 'done' is none of"):
            chat.add(session, "question", state="done")
        with pytest.raises(InputError, match="is not an episode of session"):
            chat.add(session, "question", id=other.id)
        with pytest.raises(NotFoundError, match="session: 'nowhere' not found"):
            chat.add("nowhere", "question")
        with pytest.raises(NotFoundError, match="project: 'nowhere' not found"):
            chat.session("nowhere")
        with pytest.raises(NotFoundError, match="is of kind 'episode', not a session"):
            chat.find_session(other.id)
        with pytest.raises(NotFoundError, match=r"episode: .* not found"):
            chat.episode(session.id)
        with pytest.raises(InputError, match="project: name: it is empty"):
            chat.project(" ")

    def test_forgetting_a_session_forgets_its_episodes_only(self, chat: Chat) -> None:
        one, two = chat.session(chat.project("heron")), chat.session("heron")
        fill(chat, one, 3)
        fill(chat, two, 2)
        assert chat.forget(one) == 3
        assert chat.sessions() == [two]
        assert len(chat.episodes(two)) == 2
        with pytest.raises(NotFoundError):
            chat.episodes(one)


class TestListing:
    def test_a_session_without_episodes_has_none(self, chat: Chat) -> None:
        chat.engine.add("a note that has no session")
        assert chat.episodes(chat.session()) == []

    def test_in_order_of_time_not_of_coming_in(self, chat: Chat) -> None:
        session = chat.session()
        for minutes in (5, 1, 3):
            chat.add(session, f"at {minutes}", at=START + timedelta(minutes=minutes))
        assert [episode.user for episode in chat.episodes(session)] == ["at 1", "at 3", "at 5"]

    def test_pages_lead_back_without_repeating_or_skipping(self, chat: Chat) -> None:
        session = chat.session()
        for number in range(11):  # three at each moment: a time alone does not tell them apart
            chat.add(session, str(number), at=START + timedelta(days=40 * (number // 3)))
        seen: list[str] = []
        page = chat.episodes(session, 4)
        while page:
            seen = [episode.user for episode in page] + seen
            page = chat.episodes(session, 4, before=page[0])
        assert seen == [str(number) for number in range(11)]

    def test_before_a_moment(self, chat: Chat) -> None:
        session = chat.session()
        fill(chat, session, 5)
        earlier = chat.episodes(session, 2, before=START + timedelta(minutes=3))
        assert [episode.user for episode in earlier] == ["ferret question 1", "ferret question 2"]
        assert chat.episodes(session, 2, before=datetime(2026, 3, 1, 9, 31)) == chat.episodes(session)[:1]
        assert chat.episodes(session, 2, before=datetime.min) == []

    def test_limits(self, chat: Chat) -> None:
        session = chat.session()
        episodes = fill(chat, session, 3)
        assert chat.episodes(session, 0) == []
        assert chat.episodes(session, 2) == episodes[1:]
        assert chat.episodes(session, 100) == chat.episodes(session) == episodes
        with pytest.raises(InputError, match="limit: -1"):
            chat.episodes(session, -1)
        with pytest.raises(NotFoundError, match="before: 'x' is not an episode"):
            chat.episodes(session, 1, before="x")
        other = chat.add(chat.session(), "elsewhere")
        with pytest.raises(NotFoundError, match="is not an episode of session"):
            chat.episodes(session, 1, before=other)


class TestRecall:
    """Seed 000: the scope and ``recentIds`` hold on both sides; weight 0 means the leg is not called."""

    @pytest.fixture
    def both(self, open_store: Callable[..., Engine]) -> Chat:
        return Chat(open_store(embedder="hashing:64"))

    def found(self, results: Any) -> set[str]:
        return {hit.document.meta["session"] for hit in results}

    @pytest.mark.parametrize("leg", ["lexical", "trigram", "dense"])
    def test_the_scope_holds_on_every_leg(self, both: Chat, leg: str) -> None:
        heron = both.project("heron")
        one, two, stranger, alone = both.session(heron), both.session(heron), both.session(), both.session()
        for number, session in enumerate((one, two, stranger, alone)):  # the same words once only: recall has dedup
            fill(both, session, 3, f"ferret {number}")
        both.engine.add("ferret question in a note", meta={"session": one.id, "project": heron.id})
        weights = {name: float(name == leg) for name in ("lexical", "trigram", "dense")}
        how: dict[str, Any] = {"k": 50, "recent": 0, "weights": weights}
        assert self.found(both.recall(one, "ferret question", scope="project", **how)) == {one.id, two.id}
        assert self.found(both.recall(one, "ferret question", scope="session", **how)) == {one.id}
        assert self.found(both.recall(alone, "ferret question", scope="project", **how)) == {alone.id}
        hits = both.recall(one, "ferret question", scope="project", **how).hits
        assert len(hits) == 6
        assert {hit.document.kind for hit in hits} == {"episode"}

    def test_the_project_is_the_scope_unless_told_otherwise(self, chat: Chat) -> None:
        one = chat.session(chat.project("heron"))
        two = chat.session("heron")
        fill(chat, two, 1)
        assert self.found(chat.recall(one, "ferret")) == {two.id}

    @pytest.mark.parametrize("leg", ["lexical", "trigram", "dense"])
    def test_recent_ids_are_left_out_inside_every_leg_so_the_limit_is_filled(self, both: Chat, leg: str) -> None:
        session = both.session()
        episodes = fill(both, session, 20)
        weights = {name: float(name == leg) for name in ("lexical", "trigram", "dense")}
        depths = dict.fromkeys(weights, 5)  # a leg that dropped them after its cut would come back short
        hits = both.recall(session, "ferret question", 5, recent=12, weights=weights, depths=depths).hits
        assert len(hits) == 5
        assert {hit.id for hit in hits} <= {episode.id for episode in episodes[:8]}

    def test_more_can_be_left_out(self, chat: Chat) -> None:
        session = chat.session()
        episodes = fill(chat, session, 10)
        found = chat.recall(session, "ferret", 50, recent=2, exclude=[episodes[0].id, episodes[9].id])
        # the latest two are counted without those left out anyway
        assert {hit.id for hit in found} == {episode.id for episode in episodes[1:7]}
        assert len(chat.recall(session, "ferret", 50, recent=0, exclude=episodes[0].id)) == 9

    def test_weight_zero_means_the_leg_is_not_called(
        self, open_store: Callable[..., Engine], taught: Callable[..., Any]
    ) -> None:
        model = taught("ferret", "pump")
        chat = Chat(open_store(embedder=model))
        session = chat.session()
        fill(chat, session, 3)
        chat.engine.update_settings("episodes")
        results = chat.recall(session, "ferret", recent=0)
        assert [stage.name for stage in results.trace if stage.name in ("lexical", "dense", "trigram")] == ["dense"]
        assert model.queries == ["ferret"]
        chat.engine.update_settings(weights={"dense": 0.0, "lexical": 1.0})  # live: the next request has it
        results = chat.recall(session, "ferret", recent=0)
        assert [stage.name for stage in results.trace if stage.name in ("lexical", "dense", "trigram")] == ["lexical"]
        assert model.queries == ["ferret"]
        assert {part.leg for hit in results for part in hit.contributions} == {"lexical"}

    def test_both_legs_are_fused_by_rank(self, both: Chat) -> None:
        session = both.session()
        fill(both, session, 4)
        (first, *_) = both.recall(session, "ferret question 2", recent=0, profile="episodes", lexical_weight=1).hits
        expected = sum(1.0 / (60 + part.rank) for part in first.contributions)
        assert first.score == pytest.approx(expected)

    def test_what_is_asked_is_checked(self, chat: Chat) -> None:
        session = chat.session()
        with pytest.raises(InputError, match="scope: 'everything' is none of project, session"):
            chat.recall(session, "ferret", scope="everything")
        with pytest.raises(NotFoundError, match=r"session: .* not found"):
            chat.recall("nowhere", "ferret")
        with pytest.raises(InputError, match="limit: -3"):
            chat.recall(session, "ferret", recent=-3)
        assert chat.recall(session, "ferret").hits == ()


def test_two_processes_see_one_conversation(open_store: Callable[..., Engine]) -> None:
    here, there = Chat(open_store()), Chat(open_store())
    assert here.project("heron") == there.project("heron")
    session = here.session("heron")
    kept = there.add(session, "ferret?", "yes")
    assert here.episodes(session) == [kept]
    assert [hit.id for hit in here.recall(session, "ferret", recent=0)] == [kept.id]


class TestMeanwhile:
    """What is looked at first and written then holds for what is there when it is written."""

    @pytest.fixture
    def blind(self, chat: Chat, monkeypatch: pytest.MonkeyPatch) -> Iterator[Chat]:
        """The first look at an id finds nothing: the document came a moment later."""
        chat.engine.add("somebody's note", id="taken")
        real, looked = chat.engine.get, []

        def get(id: str, where: Any = None) -> Any:
            if id == "taken" and not looked:
                looked.append(id)
                return None
            return real(id, where)

        monkeypatch.setattr(chat.engine, "get", get)
        yield chat
        document = real("taken")
        assert looked and document is not None and document.text == "somebody's note"

    def test_a_session_replaces_nothing_else(self, blind: Chat) -> None:
        with pytest.raises(InputError, match="'taken' cannot be used here"):
            blind.session(id="taken")

    def test_an_episode_replaces_nothing_else(self, blind: Chat) -> None:
        home = blind.session()
        with pytest.raises(InputError, match="'taken' cannot be used here"):
            blind.add(home, "hello", id="taken")

    def test_a_session_goes_with_every_episode_in_one_transaction(self, chat: Chat) -> None:
        home, other = chat.session(), chat.session()
        for number in range(3):
            chat.add(home, f"hello {number}")
        chat.add(other, "stays")
        assert chat.forget(home) == 3
        assert [item.user for item in chat.episodes(other)] == ["stays"]
        assert chat.engine.stats().documents == 2
