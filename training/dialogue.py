"""Makes queries about the turns of a conversation with plain rules; the teacher decides later which turns answer."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

from turns import named, shown_turn

NAMES = re.findall(
    r"\w+",
    """
    Ada Alice Amir Ana Andre Anita Ben Bianca Carla Carlos Chen Clara Colin Dana Daniel David Dora Elena Eli Emma
    Erik Farah Felix Fiona Frank Grace Greta Hana Hannah Henry Ines Irene Ivan Jack James Jana Jo Jonas Julia Karl
    Kate Keiko Lara Leo Liam Lina Lucas Maria Marco Maya Mei Mia Mila Milo Nadia Nate Nina Noah Nora Olga Omar
    Oscar Paula Pedro Petra Priya Rachel Raj Rita Rosa Ruth Sam Sara Simon Sofia Tara Theo Tom Uma Vera Victor
    Wanda Will Yara Yusuf Zoe
    """,
)
PAST = {
    "went": "go", "saw": "see", "bought": "buy", "got": "get", "took": "take", "had": "have", "made": "make",
    "found": "find", "met": "meet", "began": "begin", "gave": "give", "did": "do", "ate": "eat", "read": "read",
    "wrote": "write", "left": "leave", "lost": "lose", "won": "win", "grew": "grow", "came": "come", "told": "tell",
    "heard": "hear", "felt": "feel", "taught": "teach", "built": "build", "sold": "sell", "spent": "spend",
    "drove": "drive", "flew": "fly", "ran": "run", "swam": "swim", "sang": "sing", "broke": "break", "chose": "choose",
    "kept": "keep", "paid": "pay", "put": "put", "sent": "send", "thought": "think", "knew": "know", "became": "become",
}  # fmt: skip
#: Verbs that carry no content of their own: no query is made of them.
EMPTY = frozenset(
    re.findall(
        r"[\w']+",
        """
        am are be can could did do does don don't didn't guess had have hope know may mean might must see should
        think thought was were will would wonder agree understand want
        """,
    )
)
_STATEMENT = re.compile(r"\b(?:I|We|we) (?:just |also |recently |really |finally |once )?([a-z]+) ([^.!?,;\n]{6,70})")
_STATE = re.compile(r"\b(?:I'm|I am) (?:a|an|the|in|on|from|going|planning|working|studying|learning) [^.!?,;\n]{4,60}")
_QUESTION = re.compile(r"([A-Z][^.!?\n]{10,110}\?)")


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn: who speaks, what is said, and queries that are known to be answered by it."""

    speaker: str
    text: str
    queries: tuple[str, ...] = ()


def third_person(text: str, speaker: str) -> str:
    """Rewrite a first-person phrase as one about ``speaker``."""
    for pattern, replacement in (
        (r"\b(I'm|I am)\b", f"{speaker} is"),
        (r"\b(I've|I have)\b", f"{speaker} has"),
        (r"\bI'd\b", f"{speaker} would"),
        (r"\bI'll\b", f"{speaker} will"),
        (r"\b(I|me)\b", speaker),
        (r"\b[Mm]y\b", f"{speaker}'s"),
        (r"\bour\b", "their"),
    ):
        text = re.sub(pattern, lambda _, new=replacement: new, text)
    return text


def asked_about(question: str, person: str) -> str:
    """Rewrite a question put to ``person`` as one about them; an empty string where it is about nobody."""
    changed = question
    for pattern, replacement in (
        (r"\b[Dd]o you\b", f"does {person}"),
        (r"\b[Aa]re you\b", f"is {person}"),
        (r"\b[Hh]ave you\b", f"has {person}"),
        (r"\b[Ww]ere you\b", f"was {person}"),
        (r"\byours?\b", f"{person}'s"),
        (r"\byou\b", person),
    ):
        changed = re.sub(pattern, lambda _, new=replacement: new, changed)
    return "" if changed == question else changed[0].upper() + changed[1:]


def base_form(verb: str) -> str:
    """Return the infinitive of a past form; an empty string where it is no past form."""
    if verb in PAST:
        return PAST[verb]
    if not verb.endswith("ed") or len(verb) < 5:
        return ""
    if verb.endswith("ied"):
        return f"{verb[:-3]}y"
    stem = verb[:-2]
    if len(stem) > 3 and stem[-1] == stem[-2] and stem[-1] not in "lsfz":
        return stem[:-1]
    return verb[:-1] if stem[-1] in "vcuz" or stem.endswith(("at", "is", "us", "ar", "id", "ik", "av", "iv")) else stem


def queries_about(turn: Turn, rng: random.Random) -> Iterator[str]:
    """Yield queries that the turn may answer."""
    yield from turn.queries
    for verb, rest in _STATEMENT.findall(turn.text)[:3]:
        if verb in EMPTY:
            continue
        base, rest = base_form(verb), third_person(rest.strip(), turn.speaker)
        if base:
            words = rest.split()
            shapes = (
                f"When did {turn.speaker} {base} {rest}?",
                f"Did {turn.speaker} {base} {rest}?",
                f"What did {turn.speaker} {base}?",
                f"Why did {turn.speaker} {base} {rest}?",
                f"Where did {turn.speaker} {base} {' '.join(words[:3])}?",
                f"{turn.speaker} {' '.join(words[-4:])}",
            )
        else:
            shapes = (
                f"What does {turn.speaker} {verb}?",
                f"Who {verb}s {rest}?",
                f"What do we know about {turn.speaker} and {' '.join(rest.split()[-3:])}?",
            )
        yield from rng.sample(shapes, 2 if base else 1)
    for state in _STATE.findall(turn.text)[:1]:
        yield rng.choice((third_person(state, turn.speaker), f"Who is {state.split(' ', 1)[1].removeprefix('am ')}?"))


@dataclass(slots=True)
class Conversations:
    """Passages and queries collected from conversations; ``groups`` are the conversations that share their speakers."""

    rng: random.Random
    passages: list[str]
    groups: list[int]
    queries: list[tuple[str, int]]

    def add(self, turns: list[Turn], group: int) -> None:
        """Add a conversation: each turn in one of the forms that the reader meets, and queries about it."""
        when = f"{self.rng.randint(2016, 2026)}-{self.rng.randint(1, 12):02d}-{self.rng.randint(1, 28):02d}"
        before = None
        for turn in turns:
            here = len(self.passages)
            spoken = named(turn.speaker, turn.text)
            form = self.rng.random()
            if form < 0.6:
                shown = shown_turn(spoken, named(before.speaker, before.text) if before else "", when)
            else:
                shown = shown_turn(spoken, "", when) if form < 0.75 else spoken
            self.passages.append(shown)
            self.groups.append(group)
            self.queries += [(query, here) for query in queries_about(turn, self.rng)]
            if before is not None:
                for question in _QUESTION.findall(before.text)[-1:]:
                    if about := asked_about(question, turn.speaker):
                        self.queries.append((about, here))
            before = turn
