"""One reader for each form of source: each returns passages, their groups, and queries with the gold passage."""

from __future__ import annotations

import ast
import csv
import io
import json
import random
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from dialogue import NAMES, Conversations, Turn
from repository import Repository

NO_GOLD = -1
LONGEST = 1800  # characters of a passage: about 450 tokens


@dataclass(slots=True)
class Material:
    """What a source gives. ``queries`` are (text, index of the gold passage or ``NO_GOLD``)."""

    passages: list[str] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)
    queries: list[tuple[str, int]] = field(default_factory=list)
    _places: dict[str, int] = field(default_factory=dict)

    def place(self, passage: str, group: int = -1) -> int:
        """Add a passage once and return its index."""
        passage = passage.strip()[:LONGEST]
        if passage not in self._places:
            self._places[passage] = len(self.passages)
            self.passages.append(passage)
            self.groups.append(group)
        return self._places[passage]

    def pair(self, query: str, passage: str, group: int = -1) -> None:
        """Add a query with its gold passage."""
        if len(query.split()) >= 2 and len(passage) >= 15:
            self.queries.append((query.strip(), self.place(passage, group)))


def after(text: str, mark: str, *ends: str) -> str:
    """Return what stands between ``mark`` and the first of ``ends``."""
    found = text.partition(mark)[2] if mark else text
    for end in ends:
        found = found.partition(end)[0]
    return found.strip()


#: task → (mark before the passage, marks behind it); the query is the expected output
PASSAGE_MARKS: dict[str, tuple[str, ...]] = {
    "023": ("Context:",), "040": ("Fact:",), "235": ("Context:", "Link Information:"), "240": ("Context:", "Answer:"),
    "389": ("Passage:",), "381": ("",), "1660": ("",), "461": ("",), "596": ("",), "769": ("",), "1358": ("",),
    "1540": ("",), "1552": ("",), "060": ("Background Paragraph:",),
}  # fmt: skip
#: task → (mark before the query, marks behind it, mark before the passage, marks behind it)
BOTH_MARKS = {
    "178": ("Question:", "Option1:", "Explanation:", "\0"),
    "846": ("Question:", "Answer:", "Answer:", "\0"),
    "1439": ("FOLLOWUP_Q:", "\0", "CONTEXT:", "<sep>"),
    "1442": ("FOLLOWUP_Q:", "\0", "CONTEXT:", "<sep>"),
}


def instructions(repository: Repository, number: str, rng: random.Random) -> Material:
    """Read a task file of Super-NaturalInstructions."""
    material = Material()
    for _, text in repository.files(lambda path: path.startswith(f"tasks/task{number}_")):
        for instance in json.loads(text)["Instances"]:
            given = instance["input"]
            if number in BOTH_MARKS:
                before, end, mark, stop = BOTH_MARKS[number]
                query = after(given, before, end).removesuffix("\\n").split("\\n")[0]
                material.pair(query, after(given, mark, stop))
            else:
                passage = after(given, *PASSAGE_MARKS[number])
                for query in instance["output"][:4]:
                    material.pair(query, passage)
    return material


_BRACKETS = {"-LRB-": "(", "-RRB-": ")", "``": '"', "''": '"'}


def detokenised(text: str) -> str:
    """Undo the tokenisation of a treebank sentence."""
    for mark, plain in _BRACKETS.items():
        text = text.replace(mark, plain)
    return re.sub(r" ([.,;:?!)'])", r"\1", text).replace("( ", "(")


def qamr(repository: Repository, _: str, rng: random.Random) -> Material:
    """Read QAMR: questions about single sentences of Wikipedia and Wikinews."""
    material = Material()
    files = dict(repository.files(lambda path: path in SENTENCES or path in QUESTIONS))
    sentences = dict(line.split("\t", 1) for path in SENTENCES for line in files[path].splitlines())
    for path in QUESTIONS:
        for line in files[path].splitlines():
            row = line.split("\t")
            if row[0] in sentences:
                material.pair(row[5], detokenised(sentences[row[0]]))
    return material


SENTENCES = ("data/wiki-sentences.tsv",)
QUESTIONS = ("data/filtered/dev.tsv", "data/filtered/test.tsv")


def policyqa(repository: Repository, _: str, rng: random.Random) -> Material:
    """Read PolicyQA: questions about paragraphs of privacy policies."""
    material = Material()
    for _path, text in repository.files(lambda path: path in ("data/dev.json", "data/test.json")):
        for site in json.loads(text)["data"]:
            for paragraph in site["paragraphs"]:
                for item in paragraph["qas"]:
                    material.pair(item["question"], paragraph["context"])
    return material


def covidqa(repository: Repository, _: str, rng: random.Random) -> Material:
    """Read COVID-QA: questions about articles, cut into paragraphs; and each title with its abstract."""
    material = Material()
    for _path, text in repository.files(lambda path: path.endswith("200423_covidQA.json")):
        for article in json.loads(text)["data"]:
            for paragraph in article["paragraphs"]:
                context = paragraph["context"]
                spans = _chunks(context)
                title = context.split("\n", 1)[0]
                abstract = after(context, "Abstract:", "\n\nText:")
                material.pair(title, abstract[:LONGEST])
                places = [(start, material.place(chunk)) for start, chunk in spans]
                for item in paragraph["qas"]:
                    at = item["answers"][0]["answer_start"]
                    inside = [place for start, place in places if start <= at]
                    if inside:
                        material.queries.append((item["question"], inside[-1]))
    return material


def _chunks(text: str, size: int = 1000) -> list[tuple[int, str]]:
    """Cut a text at paragraph ends into chunks of about ``size`` characters, with their starts."""
    found, start = [], 0
    while start < len(text):
        end = text.find("\n", start + size)
        end = len(text) if end < 0 else end
        found += [(at, text[at : at + LONGEST]) for at in range(start, end, LONGEST) if text[at : at + LONGEST].strip()]
        start = end + 1
    return found


def conversations(rng: random.Random) -> Conversations:
    """Return an empty collection of conversations."""
    return Conversations(rng, [], [], [])


def material_of(found: Conversations) -> Material:
    """Return collected conversations as material."""
    return Material(found.passages, found.groups, found.queries)


def friendsqa(repository: Repository, _: str, rng: random.Random) -> Material:
    """Read FriendsQA: questions about scenes of a series, answered by an utterance."""
    found = conversations(rng)
    number = 0
    for _path, text in repository.files(lambda path: path.startswith("dat/friendsqa_")):
        for scene in json.loads(text)["data"]:
            for paragraph in scene["paragraphs"]:
                answered: dict[int, list[str]] = {}
                for item in paragraph["qas"]:
                    for answer in item["answers"][:1]:
                        answered.setdefault(int(answer["utterance_id"]), []).append(item["question"])
                turns = [
                    Turn(
                        " & ".join(turn["speakers"]) or "Narrator",
                        detokenised(turn["utterance"]),
                        tuple(answered.get(turn["uid"], ())),
                    )
                    for turn in paragraph["utterances:"]
                ]
                found.add(turns, number // 5)
                number += 1
    return material_of(found)


def qmsum(repository: Repository, _: str, rng: random.Random) -> Material:
    """Read QMSum: queries about meetings; the turns of the span it names are tried by the teacher."""
    found = conversations(rng)
    for number, (_path, text) in enumerate(repository.files(lambda path: path.startswith("data/ALL/train/"))):
        meeting = json.loads(text)
        turns = [Turn(row["speaker"], row["content"][:900]) for row in meeting["meeting_transcripts"]]
        first = len(found.passages)
        found.add(turns, number)
        for item in meeting["specific_query_list"]:
            for start, end in item["relevant_text_span"]:
                inside = range(int(start), min(int(end) + 1, len(turns)))
                longest = sorted(inside, key=lambda at: -len(turns[at].text))[:4]
                found.queries += [(item["query"], first + at) for at in longest]
    return material_of(found)


def schema_dialogues(repository: Repository, _: str, rng: random.Random) -> Material:
    """Read the schema-guided dialogues; a query about each slot that a turn fills."""
    found = conversations(rng)
    number, people = 0, ["", ""]
    for _path, text in repository.files(lambda path: re.match(r"train/dialogues_\d*[05]\.json", path) is not None):
        for dialogue in json.loads(text):
            if number % 10 == 0:
                people = rng.sample(NAMES, 2)
            speakers = {"USER": people[0], "SYSTEM": rng.choice((people[1], "Assistant"))}
            turns = []
            for turn in dialogue["turns"]:
                queries = []
                for frame in turn["frames"]:
                    topic = frame["service"].partition("_")[0].lower().rstrip("s")
                    for action in frame["actions"]:
                        if action["act"] in ("INFORM", "CONFIRM", "OFFER") and action["values"] and rng.random() < 0.5:
                            slot = action["slot"].replace("_", " ")
                            queries.append(
                                rng.choice(
                                    (
                                        f"Which {slot} did {people[0]} choose for the {topic}?",
                                        f"What {slot} was mentioned to {people[0]}?",
                                        f"What is the {slot} of the {topic}?",
                                        f"{people[0]} {topic} {slot} {action['values'][0]}",
                                    )
                                )
                            )
                turns.append(Turn(speakers[turn["speaker"]], turn["utterance"], tuple(queries)))
            found.add(turns, number // 10)
            number += 1
    return material_of(found)


def taskmaster(repository: Repository, _: str, rng: random.Random) -> Material:
    """Read Taskmaster-4, 1,200 dialogues of it: they are much alike."""
    found = conversations(rng)
    number, people = 0, ["", ""]
    for _path, text in repository.files(lambda path: path.startswith("TM-4-2024/data/")):
        for dialogue in rng.sample(json.loads(text), 150):
            if number % 10 == 0:
                people = rng.sample(NAMES, 2)
            speakers = {"user": people[0], "assistant": people[1]}
            turns = [Turn(speakers.get(row["speaker"], people[1]), row["text"]) for row in dialogue["utterances"]]
            found.add([turn for turn in turns if turn.text], number // 10)
            number += 1
    return material_of(found)


def persona_chat(repository: Repository, _: str, rng: random.Random) -> Material:
    """Read Synthetic-Persona-Chat; ten conversations between the same two names make one group."""
    found = conversations(rng)
    number, people = 0, ["", ""]
    for _path, text in repository.files(lambda path: path.endswith(("_valid.csv", "_test.csv"))):
        for row in csv.DictReader(io.StringIO(text)):
            if number % 10 == 0:
                people = rng.sample(NAMES, 2)
            speakers = {"User 1": people[0], "User 2": people[1]}
            turns = []
            for line in row["Best Generated Conversation"].splitlines():
                speaker, _mark, said = line.partition(": ")
                if speaker in speakers and said:
                    turns.append(Turn(speakers[speaker], said))
            first = len(found.passages)
            found.add(turns, number // 10)
            if turns:
                for person, column in zip(people, ("user 1 personas", "user 2 personas"), strict=True):
                    for fact in (row[column] or "").splitlines():
                        found.queries += [(query, NO_GOLD) for query in _persona_queries(fact, person, rng)]
            assert first <= len(found.passages)
            number += 1
    return material_of(found)


def _persona_queries(fact: str, person: str, rng: random.Random) -> Iterator[str]:
    """Yield queries about a fact of a persona such as ``I love to bake cookies.``"""
    words = fact.rstrip(". ").split()
    if len(words) < 3:
        return
    tail = " ".join(words[2:])
    if words[0] == "I" and words[1] in ("have", "like", "love", "work", "live", "play", "enjoy", "want", "hate", "own"):
        yield rng.choice((f"What does {person} {words[1]}?", f"Does {person} {words[1]} {tail}?"))
    if words[0] == "My":
        yield f"What is {person}'s {words[1]}?"
    if words[0] == "I" and words[1] in ("am", "was"):
        yield rng.choice((f"Is {person} {tail}?", f"Who is {tail}?"))
    yield f"{person} {' '.join(words[-3:])}"


def irc(repository: Repository, _: str, rng: random.Random) -> Material:
    """Read the annotated IRC logs; a message is the query for the message that replies to it."""
    found = conversations(rng)
    files = dict(repository.files(lambda path: path.startswith("data/train/") and "train-c" in path))
    names = sorted(path.removesuffix(".annotation.txt") for path in files if path.endswith(".annotation.txt"))
    for number, name in enumerate(names):
        lines = files.get(f"{name}.ascii.txt", "").splitlines()
        parsed = [re.match(r"\[\d\d:\d\d\] <([^>]+)> (.*)", line) for line in lines]
        places, turns = {}, []
        for at, line in enumerate(parsed):
            if line:
                places[at] = len(turns)
                turns.append(Turn(line[1], line[2]))
        first = len(found.passages)
        found.add(turns, number)
        for line in files[f"{name}.annotation.txt"].splitlines():
            before, reply = (int(part) for part in line.split()[:2])
            if before != reply and before in places and reply in places:
                query = re.sub(r"^\S+[:,] ", "", turns[places[before]].text)
                if "?" in query and len(query.split()) >= 4:
                    found.queries.append((query, first + places[reply]))
    return material_of(found)


def functions(repository: Repository, cap: str, rng: random.Random) -> Material:
    """Read Python functions; the first sentence of the docstring, in several wordings, is the query."""
    material = Material()
    for path, text in repository.files(_is_library_code, rng):
        if len(material.passages) >= int(cap):
            break
        for query, passage in _functions(text, rng):
            material.pair(query, passage, group=abs(hash_of(path)))
    return material


def _is_library_code(path: str) -> bool:
    return path.endswith(".py") and not re.search(r"(^|/)(tests?|testing|migrations)(/|_)|_test\.py", path)


def hash_of(text: str) -> int:
    """Return a small number for a text that is the same in every process."""
    return sum((at + 1) * ord(letter) for at, letter in enumerate(text)) % 1_000_000


def _functions(text: str, rng: random.Random) -> Iterator[tuple[str, str]]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    lines = text.splitlines()
    for node in ast.walk(tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or node.end_lineno is None:
            continue
        docstring = ast.get_docstring(node)
        if not docstring or len(docstring.split()) < 4 or len(node.body) < 2:
            continue
        first = re.split(r"\.\s|\.$|\n\n|\n\s*[:\-=]", docstring.strip())[0].replace("\n", " ").strip()
        if not 3 <= len(first.split()) <= 30:
            continue
        head = lines[node.lineno - 1 : node.body[0].lineno - 1]
        kept = lines[node.body[0].lineno - 1 : node.body[0].end_lineno]
        body = lines[node.body[1].lineno - 1 : node.end_lineno]
        shown = rng.random() < 0.5
        passage = textwrap.dedent("\n".join([*head, *(kept if shown else []), *body]))
        if 60 <= len(passage) <= LONGEST:
            for query in wordings(first, node.name, rng, exact=not shown):
                yield query, passage


_COMMON = frozenset(
    re.findall(r"\w+", "a an the of to for in on with and or is are be that this it its if from by as given")
)


def wordings(sentence: str, name: str, rng: random.Random, exact: bool) -> list[str]:
    """Return one or two queries as people type them for a function with this docstring."""
    plain = re.sub(r"[`'\"*:]", "", sentence).lower()
    words = [word for word in re.findall(r"\w+", plain) if word not in _COMMON]
    first = plain.split()[0]
    verb = first[:-1] if first.endswith("s") and not first.endswith("ss") else first
    rest = " ".join(plain.split()[1:])
    some = [word for word in words if rng.random() < 0.75] or words
    called = " ".join(re.findall(r"[A-Za-z][a-z]*|[0-9]+", name)).lower()
    shapes = [
        f"how to {verb} {rest}",
        f"python {verb} {rest}",
        f"{verb} {rest} in python",
        f"python {' '.join(some)}",
        " ".join(rng.sample(some, len(some))),
        f"python {called} {' '.join(rng.sample(words, min(2, len(words))))}",
    ]
    return ([sentence] if exact and rng.random() < 0.6 else []) + [rng.choice(shapes)]


def sections(repository: Repository, cap: str, rng: random.Random) -> Material:
    """Read sections of documentation; the heading, with those above it, is the query."""
    material = Material()
    for path, text in repository.files(_is_documentation, rng):
        if len(material.passages) >= int(cap):
            break
        for headings, body in _sections(text):
            place, here = " ".join(headings), headings[-1]
            shown = rng.choice((body, f"{headings[0]}\n{body}", f"{' > '.join(headings)}\n{body}"))
            query = rng.choice((here, place, f"how to {here.lower()}", f"{headings[0]} {here}".lower()))
            material.pair(query, shown, group=hash_of(path))
            sentence = re.split(r"(?<=[.?!])\s", body)[0]
            if 5 <= len(sentence.split()) <= 25 and rng.random() < 0.3:
                rest = body[len(sentence) :].strip()
                if len(rest) > 200:
                    material.pair(sentence, rest, group=hash_of(path))
    return material


def _is_documentation(path: str) -> bool:
    if "/locale/" in path or "releases/" in path or "changelog" in path.lower() or "whatsnew" in path:
        return False
    if path.startswith("content/"):  # Kubernetes' site in many languages
        return path.startswith("content/en/docs/") and path.endswith(".md")
    return path.endswith((".rst", ".md")) or (path.startswith("docs/") and path.endswith(".txt"))


_UNDERLINE = re.compile(r"^([=\-~^\"'#*+`])\1{3,}\s*$")


def _sections(text: str) -> Iterator[tuple[list[str], str]]:
    """Yield the headings above each section, outermost first, with its text."""
    lines = text.splitlines()
    order: list[str] = []
    above: list[tuple[int, str]] = []
    body: list[str] = []

    def finished() -> Iterator[tuple[list[str], str]]:
        found = re.sub(r"\n{3,}", "\n\n", "\n".join(body)).strip()
        if above and len(found) >= 120:
            yield [heading for _, heading in above], found[:LONGEST]

    for at, line in enumerate(lines):
        follows = lines[at + 1] if at + 1 < len(lines) else ""
        level = -1
        if line.startswith("#") and (mark := re.match(r"(#{1,5}) (.+)", line)):
            level, heading = len(mark[1]), re.sub(r"\{.*\}", "", mark[2])
        elif line.strip() and (under := _UNDERLINE.match(follows)) and len(follows.strip()) >= len(line.strip()) - 1:
            if under[1] not in order:
                order.append(under[1])
            level, heading = order.index(under[1]), line.strip()
        if level >= 0:
            yield from finished()
            above = [item for item in above if item[0] < level] + [(level, heading.strip())]
            body = []
        elif not _UNDERLINE.match(line):
            body.append(line)
    yield from finished()


def questions(repository: Repository, _: str, rng: random.Random) -> Material:
    """Read well-formed questions that have no passage: they are asked of every other source of prose."""
    material = Material()
    for _path, text in repository.files(lambda path: path.endswith(".tsv")):
        for line in text.splitlines():
            score, query = [*line.split("\t"), ""][:2][::-1]
            if float(score or 0) >= 0.4:
                material.queries.append((query, NO_GOLD))
    return material


READERS: dict[str, Any] = {
    reader.__name__: reader
    for reader in (
        instructions, qamr, policyqa, covidqa, friendsqa, qmsum, schema_dialogues, taskmaster, persona_chat, irc,
        functions, sections, questions,
    )
}  # fmt: skip
