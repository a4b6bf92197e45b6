"""Hostile HTTP requests as bytes, made from a seeded random generator.

Every kind of attack is a function of ``KINDS``. An attack says what must not come of it: ``allowed`` whether any of its
requests may be answered with success, ``hidden`` which texts no answer to it may hold.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

PUBLIC, PRIVATE = "public", "private"  # collections of the keyed store; the reader's key is bound to the first
SHOWN, SECRET = b"MARKERseen3141", b"MARKERhidden2718"  # words of the documents of each
MARKERS = (SHOWN, SECRET)
PIECE = b"x" * 250_000
ENDLESS = 1_000  # pieces: 250 MB, which a server with a limit of 1 MB does not take
OPEN_PATHS = ("/healthz", "/readyz", "/", "/openapi.json")  # these say nothing of the store; a key is not asked for
Headers = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Attack:
    """One connection, or several at once, and what must not come of it."""

    kind: str
    server: str  # "open" or "keyed"
    pieces: tuple[bytes, ...]  # sent one after the other
    allowed: bool = False  # may a request of it succeed?
    fault: str = "leaked"  # what a success would be
    hidden: tuple[bytes, ...] = ()
    ending: str = "read"  # or: half (no more is sent, then read), reset (closed at once), leave (nothing is to come)
    pause: float = 0.0  # seconds before every piece but the first
    connections: int = 1


@dataclass(frozen=True, slots=True)
class Targets:
    """What the generator knows of the two servers."""

    ports: dict[str, int]
    reader: str  # a key for reading PUBLIC
    admin: str
    dead: tuple[str, ...]  # revoked, and one with a wrong secret
    routes: tuple[tuple[str, str], ...]  # (method, path) of the service's own description


@dataclass(frozen=True, slots=True)
class Wish:
    """A request that would do harm if it were answered."""

    method: str
    path: str
    body: bytes = b""
    media: str = "application/json"

    @property
    def fault(self) -> str:
        return {"GET": "leaked", "HEAD": "leaked", "DELETE": "lost"}.get(self.method, "strange")


def wish(rng: random.Random) -> Wish:
    """Return a request that is right in itself: to read, to plant, to change or to delete."""
    home = f"/v1/collections/{rng.choice(('default', PUBLIC, PRIVATE))}"
    planted = {"id": f"planted-{rng.randrange(1000)}", "text": "planted by a page"}
    line = json.dumps(planted).encode() + b"\n"
    reads = [
        "documents",
        "documents/d1",
        "export",
        "search?q=harbour",
        "facets",
        "stats",
        "settings",
        "recent",
        "links",
    ]
    writes: list[Wish] = [
        Wish("POST", f"{home}/documents", _json(planted)),
        Wish("POST", f"{home}/documents", _json({"documents": [planted]}), "text/plain"),
        Wish("PUT", f"{home}/documents/{planted['id']}", _json({"text": "planted"})),
        Wish("PUT", f"{home}/documents/planted/import", _json({"text": "planted"})),
        Wish("PATCH", f"{home}/documents/d1", _json({"text": "changed"})),
        Wish("POST", f"{home}/remember", _json({"text": "planted memory"})),
        Wish("POST", f"{home}/import", line, rng.choice(("text/plain", "application/x-ndjson", "text/markdown"))),
        Wish("PUT", f"/v1/collections/planted{rng.randrange(9)}", b"{}"),
        Wish("PATCH", f"{home}/settings", _json({"k": 77})),
        Wish("PATCH", "/settings", _json({"keywordWeight": 1.0})),
        Wish("POST", f"{home}/feedback", _json({"query": "harbour", "id": "d1", "good": False})),
        Wish("POST", f"{home}/links", _json({"source": "d1", "target": "d2"})),
        Wish("POST", f"{home}/settings/revert", _json({"to": 1})),
        Wish("POST", "/projects", _json({"name": "planted"})),
        Wish("POST", "/sessions", _json({"title": "planted"})),
    ]
    deletes = ["documents/d1", "documents?id=d1&id=d2", "documents?where=floor>=0", "links?source=d1&target=d2", ""]
    what = rng.choice(("read", "write", "delete", "ask"))
    if what == "write":
        return rng.choice(writes)
    if what == "delete":
        return Wish("DELETE", f"{home}/{rng.choice(deletes)}".rstrip("/"))
    if what == "ask":
        return Wish("POST", f"{home}/search", _json({"query": "harbour lantern", "k": 50}))
    other = (
        "/v1/collections",
        "/metrics",
        "/search?q=harbour",
        "/episodes/search?q=harbour",
        "/v1/caller",
        "/settings",
    )
    return Wish("GET", rng.choice(other) if rng.random() < 0.3 else f"{home}/{rng.choice(reads)}")


# --- parts of a request -----------------------------------------------------------------------------------------------


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def message(method: str, path: str, headers: Headers, body: bytes = b"", version: str = "HTTP/1.1") -> bytes:
    head = f"{method} {path} {version}\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers)
    return head.encode("utf-8", "surrogateescape") + b"\r\n" + body


def sent(asked: Wish, headers: Headers, close: bool = True) -> bytes:
    """Return the request for ``asked``, with its own length and the headers that are given."""
    framing: Headers = [("Content-Type", asked.media), ("Content-Length", str(len(asked.body)))] if asked.body else []
    ending: Headers = [("Connection", "close")] if close else []
    return message(asked.method, asked.path, [*headers, *framing, *ending], asked.body)


def foreign_host(rng: random.Random, port: int) -> str:
    named = (
        "attacker.example", "localhost.attacker.example", "127.0.0.1.attacker.example", "127.1", "0x7f000001",
        "0.0.0.0",
        "2130706433", "[::1]attacker.example", "127.0.0.1@attacker.example", "[::ffff:127.0.0.1]", "10.0.0.1",
        "localhost/",
        "127.0.0.1, attacker.example", "attacker.example#127.0.0.1", "xn--lcalhost-54a", "127.0.0.1\tattacker.example",
    )  # fmt: skip
    name = rng.choice(named)
    return rng.choice((name, f"{name}:{port}", f"{name}:80", "127.0.0.1:99999", "localhost:0", ""))


def foreign_origin(rng: random.Random, port: int) -> str:
    named = (
        "http://attacker.example", "https://attacker.example", "null", "file://", "", "https://127.0.0.1",
        f"http://127.0.0.1:{port % 65_535 + 1}", f"http://127.0.0.1.attacker.example:{port}", "http://127.0.0.1",
        f"http://127.0.0.1:{port}@attacker.example", "chrome-extension://abc", f"http://127.0.0.1:{port}/",
    )  # fmt: skip
    return rng.choice(named)


def junk(rng: random.Random, targets: Targets) -> Headers:
    """Return headers that open nothing: credentials that are none, and names of others that proxies would send."""
    dead = rng.choice(targets.dead)
    pool: Headers = [
        ("Authorization", "Basic Zm9vOmJhcg=="), ("Authorization", ""), ("Authorization", "x"), ("Authorization",
        "Bearer"),
        ("Authorization", "Bearer "), ("Authorization", "bearer tvt_000000000000_x"), ("Authorization",
        f"Bearer {dead}"),
        ("Authorization", "Negotiate abc"), ("X-API-Key", ""), ("X-API-Key", "junk"), ("X-API-Key", dead),
        ("Cookie", f"session=1; token={dead}"), ("Forwarded", "for=127.0.0.1;host=127.0.0.1;proto=http"),
        ("X-Forwarded-Host", "127.0.0.1"), ("X-Forwarded-For", "127.0.0.1"), ("X-Forwarded-Proto", "https"),
        ("X-Real-IP", "127.0.0.1"), ("X-HTTP-Method-Override", "GET"), ("X-Original-URL", "/healthz"),
        ("X-Rewrite-URL", "/healthz"), ("Referer", "http://127.0.0.1/"), ("Sec-Fetch-Site", "same-origin"),
        ("Upgrade", "h2c"), ("Expect", "100-continue"), ("TE", "trailers"), ("Range", "bytes=0-"),
        ("X-Request-ID", "a" * 65), ("Accept", "*/*;q=x"), ("Access-Control-Request-Method", "DELETE"),
    ]  # fmt: skip
    return rng.sample(pool, rng.randrange(5))


def local(targets: Targets, server: str) -> tuple[str, str]:
    return "Host", f"127.0.0.1:{targets.ports[server]}"


def bearer(token: str) -> tuple[str, str]:
    return "Authorization", f"Bearer {token}"


# --- the kinds --------------------------------------------------------------------------------------------------------


def foreign_hosts(rng: random.Random, targets: Targets) -> Attack:
    """A name of another, whatever else is sent: a key that may everything, too."""
    server, asked = rng.choice(("open", "keyed")), wish(rng)
    headers = [("Host", foreign_host(rng, targets.ports[server])), *junk(rng, targets)]
    if server == "keyed" and rng.random() < 0.5:
        headers.append(bearer(targets.admin))
    if rng.random() < 0.3:
        headers.append(("Origin", f"http://{headers[0][1]}"))
    if rng.random() < 0.1:
        asked = Wish("GET", rng.choice(("/", "/openapi.json", "/assets/index.js", "/v1/choices")))
    rng.shuffle(headers)
    return Attack("foreign hosts", server, (sent(asked, headers),), fault=asked.fault, hidden=MARKERS)


def foreign_origins(rng: random.Random, targets: Targets) -> Attack:
    server, asked = rng.choice(("open", "keyed")), wish(rng)
    while asked.method == "GET":  # what a page may read of an answer is the browser's matter
        asked = wish(rng)
    headers = [local(targets, server), ("Origin", foreign_origin(rng, targets.ports[server])), *junk(rng, targets)]
    if rng.random() < 0.2:
        headers.append(("Origin", f"http://127.0.0.1:{targets.ports[server]}"))
    if server == "keyed" and rng.random() < 0.5:
        headers.append(bearer(targets.admin))
    rng.shuffle(headers)
    return Attack("foreign origins", server, (sent(asked, headers),), fault=asked.fault, hidden=MARKERS)


def odd_headers(rng: random.Random, targets: Targets) -> Attack:
    """Two names, names in pieces, lines that are no headers, very many and very long ones."""
    asked, host = wish(rng), local(targets, "open")
    foreign = ("Host", "attacker.example")
    lines: list[Headers] = [
        [host, foreign], [foreign, host], [host, host, foreign], [("Host ", host[1]), foreign], [("host", host[1]),
        foreign],
        [], [("Host", "\x00127.0.0.1")], [("Host", "127.0.0.1\r\n attacker.example")], [("Host", "127.0.0.1;")],
        [("X-Host", host[1])], [foreign, ("X", "a" * rng.choice((1_000, 60_000, 200_000)))],
        [foreign, *((f"X-{number}", "a") for number in range(rng.choice((100, 3_000))))], [foreign, ("", "a")],
        [foreign, ("X\x00Y", "a")], [foreign, ("X", "\x7f\x01\udcff")], [("Host\t", "127.0.0.1")], [(" Host",
        "127.0.0.1")],
    ]  # fmt: skip
    head = sent(asked, [*rng.choice(lines), *junk(rng, targets)])
    if rng.random() < 0.1:
        head = head.replace(b"\r\n", b"\n")
    return Attack("odd headers", "open", (head,), fault=asked.fault, hidden=MARKERS, ending="half")


def request_lines(rng: random.Random, targets: Targets) -> Attack:
    """Targets in absolute form, methods that are none, versions that are none."""
    asked, host = wish(rng), foreign_host(rng, targets.ports["open"])
    address = rng.choice(("http://attacker.example", "http://127.0.0.1", f"http://{host}", "https://127.0.0.1:1", "//"))
    headers: Headers = [("Host", host), ("Connection", "close"), *junk(rng, targets)]
    lines = (
        ("GET", f"{address}{asked.path}", "HTTP/1.1"), (asked.method, f"{address}{asked.path}", "HTTP/1.1"),
        ("TRACE", asked.path, "HTTP/1.1"), ("CONNECT", "127.0.0.1:80", "HTTP/1.1"), ("get", asked.path, "HTTP/1.1"),
        ("BREW", asked.path, "HTTP/1.1"), ("G" * 70_000, asked.path, "HTTP/1.1"), ("GET", asked.path, "HTTP/1.0"),
        ("GET", asked.path, "HTTP/0.9"), ("GET", asked.path, "HTTP/9.9"), ("GET", asked.path, ""), ("PRI", "*",
        "HTTP/2.0"),
        ("OPTIONS", "*", "HTTP/1.1"), ("OPTIONS", asked.path, "HTTP/1.1"), ("HEAD", asked.path, "HTTP/1.1"),
        ("PROPFIND", asked.path, "HTTP/1.1"), ("GET", f"{asked.path}\t{asked.path}", "HTTP/1.1"), ("GET", "",
        "HTTP/1.1"),
        ("GET", f"/{'a' * 70_000}", "HTTP/1.1"), ("GET ", asked.path, "HTTP/1.1"), ("\x16\x03\x01", "\x02\x00", "\x01"),
    )  # fmt: skip
    method, target, version = rng.choice(lines)
    if version == "HTTP/1.0" and rng.random() < 0.5:
        headers = headers[1:]
    data = message(method, target, headers, version=version)
    return Attack("request lines", "open", (data,), fault=asked.fault, hidden=MARKERS, ending="half")


def path_tricks(rng: random.Random, targets: Targets) -> Attack:
    """Other spellings of a path, without a key or with one for another collection."""
    inside = rng.choice(
        ("documents", "documents/d1", "export", "search?q=harbour", "stats", "documents/d1/import", "recent")
    )
    forms = (
        f"/v1/collections/{PUBLIC}/../{PRIVATE}/{inside}", f"/v1/collections/{PUBLIC}%2f..%2f{PRIVATE}/{inside}",
        f"/v1/collections/{PUBLIC}/%2e%2e/{PRIVATE}/{inside}", f"/healthz/../v1/collections/{PRIVATE}/{inside}",
        f"/healthz%2f..%2fv1/collections/{PRIVATE}/{inside}", f"//v1/collections/{PRIVATE}/{inside}",
        f"/v1//collections/{PRIVATE}/{inside}", f"/V1/collections/{PRIVATE}/{inside}",
        f"/%76%31/collections/{PRIVATE}/{inside}",
        f"/v1/collections/{PUBLIC}%00{PRIVATE}/{inside}", f"/v1/collections/{PUBLIC};{PRIVATE}/{inside}",
        f"/v1/collections/{PRIVATE}/{inside}/", f"/readyz;/v1/collections/{PRIVATE}/{inside}",
        "/assets/%2e%2e/%2e%2e/etc/passwd",
        "/assets/../../../../../etc/passwd", "/v1/evaluations/..%2f..%2fetc%2fpasswd/report",
        f"/v1/collections/{PUBLIC}%ff/stats",
        f"/v1/collections/{PUBLIC}/documents/..%2f..%2f{PRIVATE}%2fdocuments%2fd1",
        f"/search?q=harbour&collection={PRIVATE}",
        f"/search?q=harbour&collection={PUBLIC}&collection={PRIVATE}", f"/settings?collection={PRIVATE}",
        "/healthz?/v1/collections",
        f"/episodes/search?q=harbour&collection={PRIVATE}", f"/v1/collections/{PRIVATE}%20/{inside}",
        "/v1/collections/%ed%a0%80",
        f"/v1/collections/{PUBLIC}/export?collection={PRIVATE}", f"/v1/collections/{PUBLIC}/search?q=harbour&where=%7B",
        f"/v1/collections/{PUBLIC}/search?q=harbour&k=9999999999999999999",
        f"/v1/collections/{PUBLIC}/documents/{'a' * 9000}",
    )  # fmt: skip
    method = rng.choice(("GET", "GET", "HEAD", "OPTIONS", "DELETE", "PUT", "PATCH", "POST"))
    asked = Wish(method, rng.choice(forms), _json({"text": "planted"}) if method in ("PUT", "PATCH", "POST") else b"")
    headers = [local(targets, "keyed"), *junk(rng, targets)]
    hidden: tuple[bytes, ...] = MARKERS
    safe = method in ("GET", "HEAD", "OPTIONS")
    reads = False
    if rng.random() < 0.6:
        headers, hidden, reads = [local(targets, "keyed"), bearer(targets.reader)], (SECRET,), safe
    allowed = reads or (safe and asked.path.partition("?")[0] in OPEN_PATHS)
    return Attack("path tricks", "keyed", (sent(asked, headers),), allowed, asked.fault, hidden)


def without_key(rng: random.Random, targets: Targets) -> Attack:
    """A body to any route of the description."""
    method, path = rng.choice(targets.routes)
    for name, values in (("collection", ("default", PUBLIC, "import")), ("id", ("d1", "a/import", "import"))):
        path = path.replace(f"{{{name}}}", rng.choice(values))
    size = rng.choice((2, 2, 500, 70_000, 1_500_000))
    body = _json({"text": "x" * size, "id": "planted"})
    headers = [local(targets, "keyed"), *junk(rng, targets)]
    allowed = method in ("GET", "HEAD") and path in OPEN_PATHS
    fault = Wish(method, path).fault
    if rng.random() < 0.4:
        head = message(method, path, [*headers, ("Transfer-Encoding", "chunked"), ("Connection", "close")])
        return Attack("without key", "keyed", (head, *chunks(body)), allowed, fault, MARKERS)
    return Attack("without key", "keyed", (sent(Wish(method, path, body), headers),), allowed, fault, MARKERS)


def bound_key(rng: random.Random, targets: Targets) -> Attack:
    """The key that may read one collection asks for others, and to write."""
    asked = wish(rng)
    headers = [local(targets, "keyed"), *junk(rng, targets), bearer(targets.reader)]  # of two, the last one counts
    reads = asked.method == "GET" or asked.path.endswith("/search")
    return Attack("bound key", "keyed", (sent(asked, headers),), reads, asked.fault, (SECRET,))


BAD_BODIES: tuple[Callable[[random.Random], bytes], ...] = (
    lambda rng: b"[" * rng.choice((50, 5_000, 900_000)),
    lambda rng: b'{"text": "a", "meta": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}",
    lambda rng: b'{"text": "a", "importance": ' + b"9" * rng.choice((400, 100_000)) + b"}",
    lambda rng: b'{"text": "\xff\xfe\xed\xa0\x80"}',
    lambda rng: b'{"id": "\\ud800", "text": "a"}',
    lambda rng: b'{"text": 7}',
    lambda rng: b'{"text": "a", "importance": NaN}',
    lambda rng: b'{"text": "a", "importance": 1e999}',
    lambda rng: b"[" + b"[]," * rng.choice((10, 200_000)) + b"1]",
    lambda rng: b'{"documents": [' + b'{"text": "a"},' * 5_000 + b'{"text": "a"}]}',
    lambda rng: rng.randbytes(rng.randrange(1, 300)),
    lambda rng: b'{"text": "a", "text": 1, "id": ["a"]}',
    lambda rng: b"\x00" * 1000,
    lambda rng: b"\xef\xbb\xbf{",
    lambda rng: b'"' + b"\\u0000" * 10_000,
    lambda rng: b'{"text": "a", "id": "' + b"i" * 100_000 + b'"}',
)


def bad_bodies(rng: random.Random, targets: Targets) -> Attack:
    """Bodies that no route can take, from a caller who may everything."""
    home = "/v1/collections/default"
    paths = ("documents", "documents", "remember", "search", "explain", "feedback", "links", "settings/revert")
    method, path = rng.choice((("POST", rng.choice(paths)), ("PUT", "documents/d1"), ("PATCH", "documents/d1")))
    media = rng.choice(
        ("application/json", "application/json", "application/json; charset=utf-16", "text/plain", "a/b")
    )
    asked = Wish(method, f"{home}/{path}", rng.choice(BAD_BODIES)(rng), media)
    headers = [local(targets, "open")]
    if rng.random() < 0.1:
        headers.append(("Content-Encoding", rng.choice(("gzip", "br", "gzip, gzip", "x"))))
    return Attack("bad bodies", "open", (sent(asked, headers),), fault="strange")


def chunks(body: bytes) -> Iterator[bytes]:
    for at in range(0, len(body), len(PIECE)):
        part = body[at : at + len(PIECE)]
        yield b"%x\r\n%s\r\n" % (len(part), part)
    yield b"0\r\n\r\n"


def long_bodies(rng: random.Random, targets: Targets) -> Attack:
    """More than the limit: announced, in chunks, and without an end; to routes with and without a body."""
    server = rng.choice(("open", "keyed"))
    home = "/v1/collections/default"
    paths = ["/documents", "/search", "/documents/a/import", "/nothing/import", "/remember"]
    paths += ["/import"] if server == "keyed" else []  # an import has no limit on the whole
    path = rng.choice([home + one for one in paths] + ["/v1/collections/import", "/import", "/nothing", "/healthz"])
    if rng.random() < 0.3:  # an id may hold slashes: this is a document, and no import
        path = f"{home}/documents/a/import"
    method = rng.choice(("POST", "PUT"))
    host = local(targets, server)
    way = rng.choice(("announced", "chunked", "endless", "endless", "extension", "trailers", "headers"))
    common: Headers = [host, ("Content-Type", "application/json")]
    if way == "announced":
        length = rng.choice((1_000_001, 10**9, 10**18, 10**30))
        return Attack("long bodies", server, (message(method, path, [*common, ("Content-Length", str(length))]),))
    head = message(method, path, [*common, ("Transfer-Encoding", "chunked"), ("Connection", "close")])
    piece = b"%x\r\n%s\r\n" % (len(PIECE), PIECE)
    pieces: dict[str, tuple[bytes, ...]] = {
        "chunked": (head, *(piece,) * 12, b"0\r\n\r\n"),
        "endless": (head, *(piece,) * ENDLESS),
        "extension": (head + b"1;", *(PIECE,) * 12),
        "trailers": (head + b"1\r\n{\r\n0\r\n", *(b"X: aaaaaaaaaaaa\r\n" * 6_000,) * 12),
        "headers": (head[:-2] + b"X: ", *(PIECE,) * 12),
    }
    return Attack("long bodies", server, pieces[way], fault="strange")


def wrong_lengths(rng: random.Random, targets: Targets) -> Attack:
    """A length that is not that of the body, and bodies that come byte by byte."""
    server = rng.choice(("open", "keyed"))
    body = _json({"text": "planted", "id": "planted-length"})
    path = f"/v1/collections/default/{rng.choice(('documents', 'search', 'remember', 'import'))}"
    if path.endswith("import"):
        server = "keyed"  # an open store takes every whole line
    common = [local(targets, server), ("Content-Type", "application/json")]
    if rng.random() < 0.3:
        length = rng.choice((1, len(body) // 2, len(body) - 1))
        return Attack(
            "wrong lengths", server, (message("POST", path, [*common, ("Content-Length", str(length))], body),)
        )
    longer = str(len(body) + rng.choice((1, 100, 90_000)))
    head = message("POST", path, [*common, ("Content-Length", longer)])
    if rng.random() < 0.5:
        return Attack("wrong lengths", server, (head, body), ending=rng.choice(("read", "half", "reset")))
    return Attack("wrong lengths", server, (head, *(body[at : at + 1] for at in range(8))), pause=0.2)


def pipelined(rng: random.Random, targets: Targets) -> Attack:
    """Many requests that wait for no answer; among them, and behind a right one, those of others."""
    host = rng.choice(("attacker.example", "127.0.0.1.attacker.example"))
    number = rng.choice((2, 10, 31, 33, 100))
    asked = [wish(rng) for _ in range(number)]
    parts = [sent(one, [("Host", host), *junk(rng, targets)], close=one is asked[-1]) for one in asked]
    if rng.random() < 0.5:
        parts.insert(0, message("GET", "/nothing", [local(targets, "open")]))
    return Attack("pipelined", "open", (b"".join(parts),), hidden=MARKERS, ending=rng.choice(("read", "half")))


def abandoned(rng: random.Random, targets: Targets) -> Attack:
    """A caller who goes away in the middle: of a head, a body, an answer."""
    host = local(targets, "open")
    export = message("GET", "/v1/collections/default/export", [host])
    body = b'{"text": "pla'
    head = message("POST", "/v1/collections/default/documents", [host, ("Content-Length", "500")], body)
    cut = export[: rng.randrange(1, len(export))]
    lines = message("POST", "/v1/collections/default/import", [host, ("Content-Length", "500")], body)
    data = rng.choice((export, export * 5, head, cut, lines, b"\r\n\r\n", b"\x00"))
    ending = rng.choice(("half", "reset", "reset"))
    return Attack(
        "abandoned", "open", (data,), data in (export, export * 5) or ending == "reset", "strange", (), ending
    )


def smuggled(rng: random.Random, targets: Targets) -> Attack:
    """Requests whose end is read in two ways, with another one behind it, of somebody who may not."""
    server = rng.choice(("open", "keyed"))
    asked = wish(rng)
    inner_host = ("Host", "attacker.example") if server == "open" else local(targets, "keyed")
    inner = sent(asked, [inner_host, *junk(rng, targets)])
    length, size = str(len(inner) + 5), b"%x" % len(inner)
    framings: list[tuple[Headers, bytes]] = [
        ([("Content-Length", length), ("Transfer-Encoding", "chunked")], b"0\r\n\r\n" + inner),
        ([("Transfer-Encoding", "chunked"), ("Content-Length", "4")], size + b"\r\n" + inner + b"\r\n0\r\n\r\n"),
        ([("Transfer-Encoding", "xchunked")], b"0\r\n\r\n" + inner),
        ([("Transfer-Encoding", "chunked"), ("Transfer-Encoding", "identity")], b"0\r\n\r\n" + inner),
        ([("Transfer-Encoding", "chunked, identity")], b"0\r\n\r\n" + inner),
        ([("Transfer-Encoding", "identity, chunked")], b"0\r\n\r\n" + inner),
        ([("Transfer-Encoding ", "chunked")], b"0\r\n\r\n" + inner),
        ([("Transfer_Encoding", "chunked")], b"0\r\n\r\n" + inner),
        ([("Transfer-Encoding", "\x0bchunked")], b"0\r\n\r\n" + inner),
        ([("X", "a\nTransfer-Encoding: chunked")], b"0\r\n\r\n" + inner),
        ([("Content-Length", "0"), ("Content-Length", length)], inner),
        ([("Content-Length", "+5")], b"aaaaa" + inner),
        ([("Content-Length", "5, 5")], b"aaaaa" + inner),
        ([("Content-Length", "0x5")], b"aaaaa" + inner),
        ([("Content-Length", "-1")], inner),
        ([("Content-Length", "")], inner),
        ([("Transfer-Encoding", "chunked")], b"0x5\r\naaaaa\r\n0\r\n\r\n" + inner),
        ([("Transfer-Encoding", "chunked")], b"-1\r\n" + inner),
        ([("Transfer-Encoding", "chunked")], b"ffffffffffffffffff\r\n" + inner),
        ([("Transfer-Encoding", "chunked")], b"5\r\naaaaaX0\r\n\r\n" + inner),
        ([("Transfer-Encoding", "chunked")], b"5\naaaaa\n0\n\n" + inner),
        ([("Upgrade", "websocket"), ("Connection", "upgrade"), ("Sec-WebSocket-Version", "13")], inner),
        ([("Expect", "100-continue"), ("Content-Length", "0")], inner),
    ]
    headers, body = rng.choice(framings)
    method, path = rng.choice((("POST", "/nothing"), ("POST", "/v1/collections/default/remember"), ("GET", "/nothing")))
    data = message(method, path, [local(targets, server), *headers], body)
    return Attack("smuggled", server, (data,), fault=asked.fault, hidden=MARKERS, ending="half")


def slow_requests(rng: random.Random, targets: Targets) -> Attack:
    """Work that takes longer than a request may, on more connections than there are threads."""
    # few different words: those that analysers remember are no growth that matters here (``leaks`` measures them)
    words = " ".join(
        f"{rng.choice(('harbour', 'lantern'))}{number % 500}" for number in range(rng.choice((2_000, 60_000)))
    )
    many = [f"v{number}" for number in range(9_999)]
    bodies = (
        {"query": words, "k": 1000},
        {"query": "harbour", "k": 1000, "where": {"$or": [{"kind": {"in": many}} for _ in range(3)]}},
        {"query": words[:20_000], "k": 1000, "overrides": {"neighbours": 50, "expansion": 50}},
    )
    asked = Wish("POST", "/v1/collections/default/search", _json(rng.choice(bodies)))
    return Attack("slow requests", "open", (sent(asked, [local(targets, "open")]),), allowed=True, connections=10)


def idle_connections(rng: random.Random, targets: Targets) -> Attack:
    """Many connections that send a part of a head, now and then a byte more."""
    server = rng.choice(("open", "keyed"))
    head = message("GET", "/v1/collections", [local(targets, server), ("X", "a" * 100)])
    cut = rng.randrange(len(head) - 10)
    pieces = (head[:cut], head[cut : cut + 1], head[cut + 1 : cut + 2])
    return Attack("idle connections", server, pieces, ending="leave", pause=0.1, connections=40, hidden=MARKERS)


Maker = Callable[[random.Random, Targets], Attack]
#: Kind → how often. The last ones take seconds each.
KINDS: dict[Maker, float] = {
    foreign_hosts: 20, foreign_origins: 12, odd_headers: 12, request_lines: 8, path_tricks: 10, without_key: 12,
    bound_key: 8,
    bad_bodies: 8, smuggled: 10, pipelined: 4, abandoned: 4, wrong_lengths: 2, long_bodies: 4, idle_connections: 0.5,
    slow_requests: 0.5,
}  # fmt: skip


def attacks(rng: random.Random, targets: Targets, number: int) -> Iterator[Attack]:
    """Yield ``number`` attacks, the first ones of every kind."""
    makers, weights = list(KINDS), list(KINDS.values())
    for at in range(number):
        make = makers[at] if at < len(makers) else rng.choices(makers, weights)[0]
        own = random.Random(rng.randrange(1 << 62))  # ports and keys differ from run to run; what is chosen does not
        yield make(own, targets)


def tagged(attack: Attack, number: int) -> Attack:
    """Give the first request an id by which the log names it."""
    first, *rest = attack.pieces
    line, end, head = first.partition(b"\r\n")
    if not end or attack.kind in ("odd headers", "request lines") or b"X-Request-ID" in head:
        return attack
    return replace(attack, pieces=(line + end + b"X-Request-ID: attack-%d\r\n" % number + head, *rest))
