"""What does the truth look like on a PostgreSQL server?

Numbered migrations, applied once each, in one transaction under an advisory lock. The collection's number stands in
every primary, unique and foreign key and is the first column of every index, numbers are made by the application, and
there is no trigger and no default: so the same tables are spread over the workers of a Citus cluster by collection,
with everything of a collection on one of them. Foreign keys and indexes come after the tables were distributed, as
Citus wants it.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

#: Under this number one process at a time migrates (any fixed number of ours will do).
MIGRATION_LOCK = 0x7472_6976_6574

TABLES = """
CREATE TABLE numbers (name text PRIMARY KEY, value bigint NOT NULL);
INSERT INTO numbers VALUES ('collection', 0);

CREATE TABLE collections (
    cid bigint PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    config text NOT NULL,               -- JSON: language, passage_size
    created double precision NOT NULL
);

CREATE TABLE heads (                    -- what changes with every write; a writer locks its collection's row first
    cid bigint PRIMARY KEY,
    settings text NOT NULL,             -- JSON: the profile in force
    mid bigint,                         -- the model that answers, NULL for words alone
    bm25 boolean NOT NULL,              -- is there a table of words for BM25 (schema.WORDS)?
    version bigint NOT NULL,
    documents bigint NOT NULL,
    passages bigint NOT NULL,
    terms bigint NOT NULL,              -- in all passages together: BM25's average length
    last_document bigint NOT NULL,      -- numbers are never used twice
    last_passage bigint NOT NULL,
    last_removed bigint NOT NULL,
    last_model bigint NOT NULL,
    last_feedback bigint NOT NULL
);

CREATE TABLE models (
    cid bigint NOT NULL,
    mid bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    spec text NOT NULL,
    dim integer NOT NULL,
    vectors bigint NOT NULL,
    PRIMARY KEY (cid, mid),
    UNIQUE (cid, id)
);

CREATE TABLE documents (
    cid bigint NOT NULL,
    did bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    title text COLLATE "C" NOT NULL,
    text text NOT NULL,
    kind text COLLATE "C" NOT NULL,
    meta text NOT NULL,                 -- JSON as it was written; `fields` is what filters read
    importance double precision NOT NULL,
    created double precision NOT NULL,
    updated double precision NOT NULL,
    accessed double precision,
    valid_from double precision,
    valid_to double precision,
    hash bytea NOT NULL,
    accesses bigint NOT NULL,
    PRIMARY KEY (cid, did),
    UNIQUE (cid, id)
);

CREATE TABLE passages (
    cid bigint NOT NULL,
    pid bigint NOT NULL,
    did bigint NOT NULL,
    ordinal integer NOT NULL,
    start integer NOT NULL,             -- offsets into documents.text
    stop integer NOT NULL,
    hash bytea NOT NULL,
    length integer NOT NULL,            -- terms
    body text NOT NULL,                 -- title and text as the trigram leg compares them
    words tsvector NOT NULL,            -- terms of our own analyser; those of the title weigh A
    PRIMARY KEY (cid, pid)
);

CREATE TABLE removed (                  -- passages that are gone, for whoever holds what was made of them
    cid bigint NOT NULL,
    seq bigint NOT NULL,
    pid bigint NOT NULL,
    PRIMARY KEY (cid, seq)
);

CREATE TABLE lexicon (                  -- how many passages have a term: BM25's idf
    cid bigint NOT NULL,
    term text COLLATE "C" NOT NULL,
    passages bigint NOT NULL,
    PRIMARY KEY (cid, term)
) WITH (fillfactor = 70);               -- every write counts some terms up: room for that on the same page

CREATE TABLE vectors (
    cid bigint NOT NULL,
    mid bigint NOT NULL,
    pid bigint NOT NULL,
    did bigint NOT NULL,
    data vector NOT NULL,               -- of any length: models differ; float32, unit length or all zero
    PRIMARY KEY (cid, mid, pid)
);

CREATE TABLE fields (                   -- flattened metadata, one row a value
    cid bigint NOT NULL,
    did bigint NOT NULL,
    place integer NOT NULL,
    key text COLLATE "C" NOT NULL,
    said text COLLATE "C",              -- the value, where it is text
    number numeric,                     -- where it is a number or a truth value: exact for both kinds of numbers
    PRIMARY KEY (cid, did, place)
);

CREATE TABLE links (
    cid bigint NOT NULL,
    mark bytea NOT NULL,                -- a hash of the next three: two long ids do not fit into an index
    source text COLLATE "C" NOT NULL,
    target text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    weight double precision NOT NULL,
    PRIMARY KEY (cid, mark)
);

CREATE TABLE feedback (
    cid bigint NOT NULL,
    mark bytea NOT NULL,                -- a hash of the question and the id
    seq bigint NOT NULL,                -- tells apart what was said in the same moment
    query text NOT NULL,
    id text COLLATE "C" NOT NULL,
    good boolean NOT NULL,
    at double precision NOT NULL,
    PRIMARY KEY (cid, mark)
);

CREATE TABLE settings_history (
    cid bigint NOT NULL,
    number bigint NOT NULL,
    at double precision NOT NULL,
    who text NOT NULL,
    settings text NOT NULL,
    previous text NOT NULL,
    PRIMARY KEY (cid, number)
);

CREATE TABLE keys (
    id text PRIMARY KEY,
    name text NOT NULL,
    hash bytea NOT NULL,
    scope text NOT NULL,
    collections text NOT NULL,
    created double precision NOT NULL,
    revoked double precision
);
"""

#: Of migration 2: what BM25 is summed up from (postings.py).
POSTINGS = """
CREATE TABLE segments (                 -- runs of passages that are in the postings
    cid bigint NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    PRIMARY KEY (cid, first)
);

CREATE TABLE postings (
    cid bigint NOT NULL,
    term text COLLATE "C" NOT NULL,
    first bigint NOT NULL,              -- of the segment
    entries bytea NOT NULL,             -- ten bytes a passage that has the term: number, length, count
    PRIMARY KEY (cid, term, first)
);
ALTER TABLE postings ALTER COLUMN entries SET STORAGE EXTERNAL;
"""

#: Of migration 3: a restored server gives a version again to other content, but never its token.
TIMELINE = """
CREATE TABLE timeline (
    cid bigint NOT NULL,
    version bigint NOT NULL,
    token bytea NOT NULL,
    PRIMARY KEY (cid, version)
);
"""
KEPT_TOKENS = 65_536  # versions of a collection whose token is kept: how far behind a process may be and still tell

#: Of migration 4: the documents that a key is bound to; a table of its own, as in the embedded store.
KEY_FILTERS = """
CREATE TABLE key_filters (
    id text PRIMARY KEY,
    filter text NOT NULL                -- JSON
);

CREATE TABLE generation (id text PRIMARY KEY);  -- one row, made at random: no caller is told it
"""

#: Of migration 5: when documents expire, and up to where ``removed`` was pruned.
FORGETTING = """
ALTER TABLE documents ADD COLUMN expires double precision;
CREATE INDEX documents_expires ON documents (cid, expires) WHERE expires IS NOT NULL;
ALTER TABLE heads ADD COLUMN pruned bigint;  -- NULL: nothing was
"""

#: Everything of one collection, or of one part of a spread one, lies on one worker; what is asked for without one is on
#: all of them.
REFERENCE = ("numbers", "collections", "keys")
LATER_REFERENCE = ("key_filters", "generation")  # by migration 4
DISTRIBUTED = (
    "documents",
    "heads",
    "models",
    "passages",
    "removed",
    "lexicon",
    "vectors",
    "fields",
    "links",
    "feedback",
    "settings_history",
)
LATER = ("segments", "postings", "timeline")  # by migrations 2 and 3

KEYS = """
ALTER TABLE passages ADD FOREIGN KEY (cid, did) REFERENCES documents (cid, did) ON DELETE CASCADE;
ALTER TABLE vectors ADD FOREIGN KEY (cid, pid) REFERENCES passages (cid, pid) ON DELETE CASCADE;
ALTER TABLE fields ADD FOREIGN KEY (cid, did) REFERENCES documents (cid, did) ON DELETE CASCADE;
"""

#: Of a long text the index holds the beginning, which is compared first: an entry has room for 2,700 bytes.
PREFIX = 200

INDEXES = f"""
CREATE INDEX documents_kind ON documents (cid, kind);
CREATE INDEX documents_created ON documents (cid, created);
CREATE INDEX documents_valid_from ON documents (cid, valid_from) WHERE valid_from IS NOT NULL;
CREATE INDEX documents_valid_to ON documents (cid, valid_to) WHERE valid_to IS NOT NULL;
CREATE INDEX passages_document ON passages (cid, did);
CREATE INDEX passages_hash ON passages (cid, hash);
CREATE INDEX vectors_passage ON vectors (cid, pid);
CREATE INDEX vectors_document ON vectors (cid, mid, did);
CREATE INDEX fields_said ON fields (cid, key, "left"(said, {PREFIX}), did) WHERE said IS NOT NULL;
CREATE INDEX fields_number ON fields (cid, key, number, did) WHERE number IS NOT NULL;
CREATE INDEX links_source ON links (cid, source);
CREATE INDEX links_target ON links (cid, target);
CREATE INDEX links_type ON links (cid, type);
"""

#: With btree_gin an index begins with the collection; without it, it is read for all of them and sifted.
INVERTED = """
CREATE INDEX passages_words ON passages USING gin ({cid}words);
CREATE INDEX passages_trigrams ON passages USING gin ({cid}body gin_trgm_ops);
"""

#: One collection's words for an index of pg_textsearch: its statistics are a table's, so each collection has a table.
WORDS = """
CREATE TABLE IF NOT EXISTS {table} (pid bigint PRIMARY KEY, did bigint NOT NULL, words text NOT NULL);
CREATE INDEX IF NOT EXISTS {table}_bm25 ON {table} USING bm25 (words) WITH (text_config = 'simple', k1 = 1.2, b = 0.75);
"""


@dataclass(frozen=True, slots=True)
class Server:
    """What the server has to offer."""

    version: int
    extensions: frozenset[str]
    search_path: str  # our schema, then where the extensions live

    @property
    def citus(self) -> bool:
        return "citus" in self.extensions

    @property
    def bm25(self) -> bool:
        """Not on a cluster: its tables of words would all lie on the coordinator."""
        return "pg_textsearch" in self.extensions and not self.citus


def first(server: Server) -> list[str]:
    """The statements of migration 1."""
    inverted = INVERTED.format(cid="cid, " if "btree_gin" in server.extensions else "")
    return [*statements(TABLES), *_distribution(server), *statements(KEYS), *statements(INDEXES + inverted)]


def second(server: Server) -> list[str]:
    """The statements of migration 2."""
    return [*statements(POSTINGS), *_distributed(server, ("segments", "postings"))]


def third(server: Server) -> list[str]:
    """The statements of migration 3."""
    return [*statements(TIMELINE), *_distributed(server, ("timeline",))]


def fourth(server: Server) -> list[str]:
    """The statements of migration 4."""
    spread = [f"SELECT create_reference_table('{name}')" for name in LATER_REFERENCE] if server.citus else []
    return [*statements(KEY_FILTERS), *spread, f"INSERT INTO generation VALUES ('{secrets.token_hex(16)}')"]


def fifth(server: Server) -> list[str]:
    """The statements of migration 5."""
    return statements(FORGETTING)


MIGRATIONS = (first, second, third, fourth, fifth)


def _distributed(server: Server, names: tuple[str, ...]) -> list[str]:
    if not server.citus:
        return []
    spread = [f"SELECT create_distributed_table('{name}', 'cid', colocate_with => 'documents')" for name in names]
    return ["SET LOCAL citus.multi_shard_modify_mode TO 'sequential'", *spread]


def _distribution(server: Server) -> list[str]:
    if not server.citus:
        return []
    leader, *others = DISTRIBUTED
    return [
        "SET LOCAL citus.multi_shard_modify_mode TO 'sequential'",
        *(f"SELECT create_reference_table('{name}')" for name in REFERENCE),
        f"SELECT create_distributed_table('{leader}', 'cid')",
        *(f"SELECT create_distributed_table('{name}', 'cid', colocate_with => '{leader}')" for name in others),
    ]


def statements(script: str) -> list[str]:
    lines = "\n".join(line.partition("--")[0].rstrip() for line in script.splitlines())
    return [statement.strip() for statement in lines.split(";") if statement.strip()]
