"""The schema of the SQLite file, as numbered migrations.

Each migration is applied once, all in one write transaction; ``PRAGMA user_version`` counts them. Row numbers come from
``counters`` and are never used twice. So an index can say with one number what it has: passages and vectors are only
appended, and a removed passage is written to ``removed``.
"""

from __future__ import annotations

import sqlite3

M001_CREATE_TABLES = """
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO counters VALUES ('document', 0), ('passage', 0), ('vector', 0), ('removed', 0);

CREATE TABLE collections (
    cid INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used twice: a projection's folder is named by it
    uid TEXT NOT NULL,              -- made at random: tells a projection that it is not of another store's collection
    name TEXT NOT NULL UNIQUE,
    config TEXT NOT NULL,           -- JSON: language, passage_size
    settings TEXT NOT NULL,         -- JSON: the profile in force
    mid INTEGER,                    -- the model that answers, NULL for words alone
    version INTEGER NOT NULL DEFAULT 0,  -- grows with every write: whoever saw this number has nothing to catch up on
    documents INTEGER NOT NULL DEFAULT 0,  -- counts kept by every write, so that a search can tell what is pending
    passages INTEGER NOT NULL DEFAULT 0,
    created REAL NOT NULL
);

CREATE TABLE models (
    mid INTEGER PRIMARY KEY AUTOINCREMENT,
    cid INTEGER NOT NULL,
    id TEXT NOT NULL,
    spec TEXT NOT NULL,             -- what loads it again
    dim INTEGER NOT NULL,
    vectors INTEGER NOT NULL DEFAULT 0,
    UNIQUE (cid, id)
);

CREATE TABLE documents (
    did INTEGER PRIMARY KEY,
    cid INTEGER NOT NULL,
    id TEXT NOT NULL,
    title TEXT NOT NULL,
    text TEXT NOT NULL,
    kind TEXT NOT NULL,
    meta TEXT NOT NULL,
    importance REAL NOT NULL,
    created REAL NOT NULL,
    updated REAL NOT NULL,
    accessed REAL,
    valid_from REAL,
    valid_to REAL,
    hash BLOB NOT NULL,
    UNIQUE (cid, id)
);
CREATE INDEX documents_kind ON documents (cid, kind);
CREATE INDEX documents_created ON documents (cid, created);

CREATE TABLE passages (
    pid INTEGER PRIMARY KEY,
    cid INTEGER NOT NULL,
    did INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    start INTEGER NOT NULL,         -- offsets into documents.text: the text is kept once
    stop INTEGER NOT NULL,
    hash BLOB NOT NULL              -- of what the embedder is given: the same text is never embedded twice
);
CREATE INDEX passages_document ON passages (did);
CREATE INDEX passages_hash ON passages (cid, hash);

CREATE TABLE removed (
    seq INTEGER PRIMARY KEY,
    cid INTEGER NOT NULL,
    pid INTEGER NOT NULL
);

CREATE TABLE vectors (
    vid INTEGER PRIMARY KEY,
    mid INTEGER NOT NULL,
    pid INTEGER NOT NULL,
    data BLOB NOT NULL              -- float16, little-endian, unit length or all zero; float32 from an older trivet
);
CREATE UNIQUE INDEX vectors_passage ON vectors (mid, pid);

CREATE TABLE fields (               -- flattened metadata, one row a value: filters are index look-ups
    cid INTEGER NOT NULL,
    key TEXT NOT NULL,
    value NOT NULL,
    did INTEGER NOT NULL,
    PRIMARY KEY (cid, key, value, did)
) WITHOUT ROWID;

CREATE TABLE links (
    cid INTEGER NOT NULL,
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    type TEXT NOT NULL,
    weight REAL NOT NULL,
    PRIMARY KEY (cid, source, target, type)
) WITHOUT ROWID;
CREATE INDEX links_target ON links (cid, target);
"""

M002_FEEDBACK = """
CREATE TABLE feedback (
    seq INTEGER PRIMARY KEY,        -- tells apart what was said in the same moment; no projection reads it
    cid INTEGER NOT NULL,
    query TEXT NOT NULL,
    id TEXT NOT NULL,               -- no did: what is said of a document outlives it and holds when it comes back
    good INTEGER NOT NULL,          -- 1 a good answer, 0 a bad one
    at REAL NOT NULL,
    UNIQUE (cid, query, id)
);
"""

# No column is added to a table that is there: a process of an older trivet that has it open goes on writing.
M003_MEMORY = """
CREATE TABLE access (               -- how often a document was recalled; none: never
    did INTEGER PRIMARY KEY,
    cid INTEGER NOT NULL,
    count INTEGER NOT NULL
);

CREATE TABLE settings_history (
    cid INTEGER NOT NULL,
    number INTEGER NOT NULL,        -- counts a collection's changes from 1
    at REAL NOT NULL,
    who TEXT NOT NULL,
    settings TEXT NOT NULL,         -- JSON: the profile that came into force
    previous TEXT NOT NULL,         -- and the one before
    PRIMARY KEY (cid, number)
) WITHOUT ROWID;

CREATE INDEX links_type ON links (cid, type);  -- "is there any that changes recall?" is one look-up
CREATE INDEX documents_valid_from ON documents (cid, valid_from) WHERE valid_from IS NOT NULL;
CREATE INDEX documents_valid_to ON documents (cid, valid_to) WHERE valid_to IS NOT NULL;
"""

M004_KEYS = """
CREATE TABLE keys (
    id TEXT PRIMARY KEY,            -- public: it is in the key's text, in lists and in logs
    name TEXT NOT NULL,
    hash BLOB NOT NULL,             -- SHA-256 of the secret, which is kept nowhere
    scope TEXT NOT NULL,            -- read, write or admin
    collections TEXT NOT NULL,      -- JSON: the names it is bound to, [] for all
    created REAL NOT NULL,
    revoked REAL                    -- kept: a store that once asked for a key never opens again by itself
) WITHOUT ROWID;
"""

# A bit that turns over on the disk is found by a second copy of what it was. Texts have their hash, metadata its
# ``fields``; a vector gets a checksum here, and a column that stood nowhere else an index, which every trivet that has
# the file open keeps up and SQLite's own check compares. What changes with every write (counts, versions) is left out.
M005_SEALS = """
CREATE TABLE seals (                -- CRC-32 of a vector; one that an older trivet wrote has none
    vid INTEGER PRIMARY KEY,
    sum INTEGER NOT NULL
);
CREATE TRIGGER vectors_unsealed AFTER DELETE ON vectors BEGIN
    DELETE FROM seals WHERE vid = OLD.vid;
END;
CREATE INDEX documents_sealed ON documents (cid, updated, importance, accessed);
CREATE INDEX collections_sealed ON collections (uid, config, settings, mid, created);
CREATE INDEX models_sealed ON models (spec, dim);
CREATE INDEX removed_sealed ON removed (pid, cid);
CREATE INDEX links_sealed ON links (weight);
CREATE INDEX feedback_sealed ON feedback (good, at);
CREATE INDEX access_sealed ON access (count, cid);
CREATE INDEX settings_history_sealed ON settings_history (at, who, settings, previous);
CREATE INDEX keys_sealed ON keys (name, hash, scope, collections, created, revoked);
"""

KEPT_TOKENS = (
    65_536  # versions of a collection whose token is kept, a megabyte: how far behind one may be and still tell
)

# A restored backup issues the same row numbers and versions again for other content. So every version also gets a
# random token, written by a trigger so that a process of an older trivet writes it too, and an index on disk is only
# used when the records know its checkpoint. ``generation`` names the file itself: it is new after a restore.
M006_TIMELINE = f"""
CREATE TABLE generation (
    number INTEGER PRIMARY KEY CHECK (number = 1),  -- there is one row
    id TEXT NOT NULL
);
INSERT INTO generation VALUES (1, lower(hex(randomblob(16))));

CREATE TABLE timeline (
    cid INTEGER NOT NULL,
    version INTEGER NOT NULL,
    token BLOB NOT NULL,
    PRIMARY KEY (cid, version)
) WITHOUT ROWID;
INSERT INTO timeline SELECT cid, version, randomblob(8) FROM collections;

CREATE TABLE checkpoints (          -- made by an index just before it is written to disk
    token TEXT PRIMARY KEY,
    cid INTEGER NOT NULL,
    name TEXT NOT NULL,             -- of the index
    number INTEGER NOT NULL         -- counts the checkpoints of that index: the oldest are deleted
) WITHOUT ROWID;
CREATE INDEX checkpoints_name ON checkpoints (cid, name, number);

CREATE TRIGGER collections_begun AFTER INSERT ON collections BEGIN
    INSERT INTO timeline VALUES (NEW.cid, NEW.version, randomblob(8));
END;
CREATE TRIGGER collections_changed AFTER UPDATE OF version ON collections BEGIN
    INSERT OR REPLACE INTO timeline VALUES (NEW.cid, NEW.version, randomblob(8));
    DELETE FROM timeline WHERE cid = NEW.cid AND version <= NEW.version - {KEPT_TOKENS};
END;
CREATE TRIGGER collections_ended AFTER DELETE ON collections BEGIN
    DELETE FROM timeline WHERE cid = OLD.cid;
    DELETE FROM checkpoints WHERE cid = OLD.cid;
END;
"""

# A table of its own, not a column of `keys`: an older trivet would not read the column and honour the key without its
# filter. What it reads of a bound key is a scope it does not know and a hash that no text has for it
# (`trivet.engine.keys`).
M007_KEY_FILTERS = """
CREATE TABLE key_filters (
    id TEXT PRIMARY KEY,            -- of the key
    filter TEXT NOT NULL            -- JSON: the documents that the key is bound to
) WITHOUT ROWID;
CREATE INDEX key_filters_sealed ON key_filters (filter);
"""

# ``removed`` is pruned: an index that has not applied the rows up to ``pruned.seq`` can no longer be brought up to date
# and is made anew. Expiries have a table of their own: older processes insert into ``documents`` by position.
M008_FORGETTING = """
CREATE TABLE pruned (
    cid INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL            -- ``removed`` holds nothing of the collection up to this number
);
CREATE INDEX pruned_sealed ON pruned (seq);

CREATE TABLE expiries (
    did INTEGER PRIMARY KEY,
    cid INTEGER NOT NULL,
    at REAL NOT NULL                -- epoch seconds; from then on nobody sees the document
);
CREATE INDEX expiries_at ON expiries (cid, at);
"""

# Changes no table: from this schema on a vector has 16 bits a number, which an older trivet cannot read. Those that are
# there keep their 32 until ``trivet compact``; both are read, and the length tells which (``half_precision.py``).
M009_HALF_PRECISION = ""

MIGRATIONS: tuple[str, ...] = (
    M001_CREATE_TABLES,
    M002_FEEDBACK,
    M003_MEMORY,
    M004_KEYS,
    M005_SEALS,
    M006_TIMELINE,
    M007_KEY_FILTERS,
    M008_FORGETTING,
    M009_HALF_PRECISION,
)


def statements(script: str) -> list[str]:
    """Split a script into statements: ``executescript`` would commit in the middle."""
    found, current = [], ""
    for line in script.splitlines(keepends=True):
        current += line
        if sqlite3.complete_statement(current):
            found.append(current.strip())
            current = ""
    return found
