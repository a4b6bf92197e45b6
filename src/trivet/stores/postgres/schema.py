"""The tables of a store on a PostgreSQL server.

Numbered migrations, each applied once, in one transaction under an advisory lock. The column ``cid`` is part of every
primary, unique and foreign key and the first column of every index; numbers come from the application; there are no
triggers and no defaults. So a Citus cluster can distribute the same tables by ``cid``, with all rows of one collection
on one worker. Foreign keys and indexes are made after the tables are distributed, as Citus requires.

Migration 7 makes a second set of some tables, for collections that are distributed by document (``tables.py``).
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass

from trivet.stores.bm25 import K1, B
from trivet.stores.postgres.tables import BY_DOCUMENT, MAX_PARTS, SET_PREFIX

#: The advisory lock of migrations; any fixed number would do.
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

CREATE TABLE heads (                    -- one row for each collection, which a writer locks first
    cid bigint PRIMARY KEY,
    settings text NOT NULL,             -- JSON: the profile
    mid bigint,                         -- the model that answers, NULL without one
    bm25 boolean NOT NULL,              -- whether there is a table for pg_textsearch (BM25_TABLE)
    version bigint NOT NULL,
    documents bigint NOT NULL,
    passages bigint NOT NULL,
    terms bigint NOT NULL,              -- of all passages, for the average length in BM25
    last_document bigint NOT NULL,      -- the last numbers used, never used twice
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
    meta text NOT NULL,                 -- JSON as it was given; filters read `fields`
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
    body text NOT NULL,                 -- title and text, for the trigram leg
    words tsvector NOT NULL,            -- terms of our analyser; those of the title have weight A
    PRIMARY KEY (cid, pid)
);

CREATE TABLE removed (                  -- log of deleted passages, for the graph indexes
    cid bigint NOT NULL,
    seq bigint NOT NULL,
    pid bigint NOT NULL,
    PRIMARY KEY (cid, seq)
);

CREATE TABLE lexicon (                  -- how many passages have a term, for the idf in BM25
    cid bigint NOT NULL,
    term text COLLATE "C" NOT NULL,
    passages bigint NOT NULL,
    PRIMARY KEY (cid, term)
) WITH (fillfactor = 70);               -- writes update rows: room for that on the same page

CREATE TABLE vectors (
    cid bigint NOT NULL,
    mid bigint NOT NULL,
    pid bigint NOT NULL,
    did bigint NOT NULL,
    data vector NOT NULL,               -- float32, of unit length or all zero; models differ in length
    PRIMARY KEY (cid, mid, pid)
);

CREATE TABLE fields (                   -- flattened metadata, one row for each value
    cid bigint NOT NULL,
    did bigint NOT NULL,
    place integer NOT NULL,
    key text COLLATE "C" NOT NULL,
    said text COLLATE "C",              -- the value of a text
    number numeric,                     -- the value of a number or a boolean, exact
    PRIMARY KEY (cid, did, place)
);

CREATE TABLE links (
    cid bigint NOT NULL,
    mark bytea NOT NULL,                -- a hash of the next three, which may be too long for an index
    source text COLLATE "C" NOT NULL,
    target text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    weight double precision NOT NULL,
    PRIMARY KEY (cid, mark)
);

CREATE TABLE feedback (
    cid bigint NOT NULL,
    mark bytea NOT NULL,                -- a hash of the query and the id
    seq bigint NOT NULL,                -- orders judgements of the same moment
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

#: Migration 2: postings for BM25 (postings.py).
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
    entries bytea NOT NULL,             -- ten bytes for each passage: number, length, count
    PRIMARY KEY (cid, term, first)
);
ALTER TABLE postings ALTER COLUMN entries SET STORAGE EXTERNAL;
"""

#: Migration 3: a random token for each version; a restored server repeats a version, but never its token.
TIMELINE = """
CREATE TABLE timeline (
    cid bigint NOT NULL,
    version bigint NOT NULL,
    token bytea NOT NULL,
    PRIMARY KEY (cid, version)
);
"""
KEPT_TOKENS = 65_536  # versions of a collection whose token is kept

#: Migration 4: the filter that a key is bound to, and the secret that masks cursors.
KEY_FILTERS = """
CREATE TABLE key_filters (
    id text PRIMARY KEY,
    filter text NOT NULL                -- JSON
);

CREATE TABLE generation (id text PRIMARY KEY);  -- one random row, never shown
"""

#: Migration 5: when documents expire, and up to where ``removed`` was pruned.
EXPIRY = """
ALTER TABLE documents ADD COLUMN expires double precision;
CREATE INDEX documents_expires ON documents (cid, expires) WHERE expires IS NOT NULL;
ALTER TABLE heads ADD COLUMN pruned bigint;  -- NULL: never
"""

#: Migration 7: the tables of collections that are distributed by document.
BY_PART = f"""
CREATE TABLE {SET_PREFIX}parts (            -- one row for each part of a collection
    cid bigint NOT NULL,
    part integer NOT NULL,
    PRIMARY KEY (cid, part)
);
CREATE TABLE {SET_PREFIX}documents (
    part integer NOT NULL, LIKE documents, PRIMARY KEY (cid, part, did), UNIQUE (cid, part, id)
);
CREATE TABLE {SET_PREFIX}passages (part integer NOT NULL, LIKE passages, PRIMARY KEY (cid, part, pid));
CREATE TABLE {SET_PREFIX}vectors (part integer NOT NULL, LIKE vectors, PRIMARY KEY (cid, part, mid, pid));
CREATE TABLE {SET_PREFIX}fields (part integer NOT NULL, LIKE fields, PRIMARY KEY (cid, part, did, place));
CREATE TABLE {SET_PREFIX}postings (
    part integer NOT NULL, LIKE postings INCLUDING STORAGE, PRIMARY KEY (cid, term, part, first)
);
"""

BY_NUMBER = f"""
CREATE INDEX {SET_PREFIX}documents_did ON {SET_PREFIX}documents (cid, did);
CREATE INDEX {SET_PREFIX}passages_pid ON {SET_PREFIX}passages (cid, pid);
"""

BY_PART_KEYS = f"""
ALTER TABLE {SET_PREFIX}passages ADD FOREIGN KEY (cid, part, did)
    REFERENCES {SET_PREFIX}documents (cid, part, did) ON DELETE CASCADE;
ALTER TABLE {SET_PREFIX}vectors ADD FOREIGN KEY (cid, part, pid)
    REFERENCES {SET_PREFIX}passages (cid, part, pid) ON DELETE CASCADE;
ALTER TABLE {SET_PREFIX}fields ADD FOREIGN KEY (cid, part, did)
    REFERENCES {SET_PREFIX}documents (cid, part, did) ON DELETE CASCADE;
"""
#: Shards of these tables where neither the address nor the server says how many: every search asks each of them, at
#: about 2 ms of CPU, and ``citus.shard_count`` is 32 unless it was set. A shard is moved to a worker that is added.
SHARDS = f"""
CASE (SELECT source FROM pg_settings WHERE name = 'citus.shard_count') WHEN 'default'
    THEN (SELECT least({MAX_PARTS}, greatest(4, count(*))) FROM pg_dist_node
          WHERE isactive AND shouldhaveshards AND noderole = 'primary')
    ELSE least({MAX_PARTS}, current_setting('citus.shard_count')::integer)
END
"""
LATER_BY_PART = tuple(f"{SET_PREFIX}{table}" for table in ("parts", *BY_DOCUMENT))

#: Migration 8: how often each value of a key occurs. Without it the planner takes every value for a rare one, since it
#: does not use the statistics of an index with a condition, and joins by nested loops what a broad filter allows.
VALUE_STATISTICS = """
CREATE STATISTICS {table}_values (mcv) ON cid, key, ("left"(said, {prefix})) FROM {table};
ANALYZE {table};
"""

#: Tables that every worker of a cluster has, and tables that are distributed by ``cid``.
REFERENCE = ("numbers", "collections", "keys")
LATER_REFERENCE = ("key_filters", "generation")  # of migration 4
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
LATER = ("segments", "postings", "timeline")  # of migrations 2 and 3

KEYS = """
ALTER TABLE passages ADD FOREIGN KEY (cid, did) REFERENCES documents (cid, did) ON DELETE CASCADE;
ALTER TABLE vectors ADD FOREIGN KEY (cid, pid) REFERENCES passages (cid, pid) ON DELETE CASCADE;
ALTER TABLE fields ADD FOREIGN KEY (cid, did) REFERENCES documents (cid, did) ON DELETE CASCADE;
"""

#: Characters of a text that an index has (an entry has room for 2,700 bytes); the whole text is compared after them.
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

#: With btree_gin an index begins with ``cid``; without it, the rows of other collections are read and dropped.
INVERTED = """
CREATE INDEX passages_words ON passages USING gin ({cid}words);
CREATE INDEX passages_trigrams ON passages USING gin ({cid}body gin_trgm_ops);
"""

#: The table of one collection for pg_textsearch (bm25_table.py). An index that exists keeps its parameters.
BM25_TABLE = f"""
CREATE TABLE IF NOT EXISTS {{schema}}.{{name}} (pid bigint PRIMARY KEY, did bigint NOT NULL, words text NOT NULL);
CREATE INDEX IF NOT EXISTS {{name}}_bm25 ON {{schema}}.{{name}} USING bm25 (words)
    WITH (text_config = 'simple', k1 = {K1}, b = {B});
"""


@dataclass(frozen=True, slots=True)
class Server:
    """The version and the extensions of a server."""

    version: int
    extensions: frozenset[str]
    search_path: str  # our schema, then those of the extensions
    vector_schema: str = "public"  # where the types of pgvector are
    undistributed: bool = False  # whether the tables were made before the database became a cluster
    shards: int | None = None  # that the address asks for

    @property
    def citus(self) -> bool:
        """Whether the tables are, or will be, distributed."""
        return "citus" in self.extensions and not self.undistributed

    @property
    def bm25(self) -> bool:
        """Whether pg_textsearch can be used; not on a cluster, where its tables would all be on the coordinator."""
        return "pg_textsearch" in self.extensions and not self.citus


def m001_create_tables(server: Server) -> list[str]:
    """Return the statements of migration 1."""
    return [*statements(TABLES), *_distribution(server), *statements(KEYS), *statements(INDEXES + _inverted(server))]


def m002_add_postings(server: Server) -> list[str]:
    """Return the statements of migration 2."""
    return [*statements(POSTINGS), *_distributed(server, ("segments", "postings"))]


def m003_add_timeline(server: Server) -> list[str]:
    """Return the statements of migration 3."""
    return [*statements(TIMELINE), *_distributed(server, ("timeline",))]


def m004_add_key_filters(server: Server) -> list[str]:
    """Return the statements of migration 4."""
    shared = [f"SELECT create_reference_table('{name}')" for name in LATER_REFERENCE] if server.citus else []
    return [*statements(KEY_FILTERS), *shared, f"INSERT INTO generation VALUES ('{secrets.token_hex(16)}')"]


def m005_add_expiry(server: Server) -> list[str]:
    """Return the statements of migration 5."""
    return statements(EXPIRY)


def m006_share_migrations(server: Server) -> list[str]:
    """Return the statements of migration 6: every node of a cluster reads the version of the schema."""
    return ["SELECT create_reference_table('migrations')"] if server.citus else []


def m007_add_tables_by_part(server: Server) -> list[str]:
    """Return the statements of migration 7."""
    made = f"(?:{'|'.join(BY_DOCUMENT)})"
    scripts = f"{INDEXES}{_inverted(server)}{EXPIRY}"
    indexes = [
        re.sub(r"^CREATE INDEX (\w+) ON ", rf"CREATE INDEX {SET_PREFIX}\1 ON {SET_PREFIX}", statement)
        for statement in statements(scripts)
        if re.match(rf"CREATE INDEX \w+ ON {made} ", statement)
    ]
    keys = statements(BY_PART_KEYS + BY_NUMBER)
    return [*statements(BY_PART), *_distribution_by_part(server), *keys, *indexes]


def m008_add_value_statistics(server: Server) -> list[str]:
    """Return the statements of migration 8."""
    tables = ("fields", f"{SET_PREFIX}fields")
    return [line for table in tables for line in statements(VALUE_STATISTICS.format(table=table, prefix=PREFIX))]


MIGRATIONS = (
    m001_create_tables,
    m002_add_postings,
    m003_add_timeline,
    m004_add_key_filters,
    m005_add_expiry,
    m006_share_migrations,
    m007_add_tables_by_part,
    m008_add_value_statistics,
)


SPREAD_UNTIL = 7  # the migration before which a collection could have tables by ``spread``


def _inverted(server: Server) -> str:
    return INVERTED.format(cid="cid, " if "btree_gin" in server.extensions else "")


def _distributed(server: Server, names: tuple[str, ...]) -> list[str]:
    if not server.citus:
        return []
    distributed = [f"SELECT create_distributed_table('{name}', 'cid', colocate_with => 'documents')" for name in names]
    return ["SET LOCAL citus.multi_shard_modify_mode TO 'sequential'", *distributed]


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


def _distribution_by_part(server: Server) -> list[str]:
    """Return what distributes the tables of migration 7, each with as many shards as there may be parts."""
    if not server.citus:
        return []
    leader, *others = LATER_BY_PART
    shards = server.shards or f"({SHARDS})::integer"
    return [
        "SET LOCAL citus.multi_shard_modify_mode TO 'sequential'",
        f"SELECT create_distributed_table('{leader}', 'part', shard_count => {shards}, colocate_with => 'none')",
        *(f"SELECT create_distributed_table('{name}', 'part', colocate_with => '{leader}')" for name in others),
    ]


def statements(script: str) -> list[str]:
    """Split a script into statements without comments."""
    lines = "\n".join(line.partition("--")[0].rstrip() for line in script.splitlines())
    return [statement.strip() for statement in lines.split(";") if statement.strip()]
