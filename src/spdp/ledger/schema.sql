CREATE TABLE budget (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    epsilon REAL NOT NULL CHECK (epsilon > 0 AND epsilon < 9e999),
    delta REAL NOT NULL CHECK (delta >= 0 AND delta < 1),
    created TEXT NOT NULL,
    fingerprint TEXT,
    checksum TEXT NOT NULL CHECK (length(checksum) = 64)
) STRICT;

CREATE TABLE acts (
    id INTEGER PRIMARY KEY CHECK (id > 0),
    created TEXT NOT NULL,
    what TEXT NOT NULL
) STRICT;

CREATE TABLE entries (
    id INTEGER PRIMARY KEY CHECK (id > 0),
    created TEXT NOT NULL,
    label TEXT,
    mechanism TEXT NOT NULL,
    mu REAL NOT NULL CHECK (mu > 0 AND mu < 9e999),
    pure REAL CHECK (pure > 0 AND pure < 9e999),
    unit TEXT CHECK (unit IN ('record', 'voxel', 'person'))
) STRICT;

CREATE TABLE results (
    id INTEGER PRIMARY KEY REFERENCES entries (id),
    state TEXT NOT NULL CHECK (state IN ('pending', 'done', 'lost')),
    origin TEXT NOT NULL,
    pid INTEGER NOT NULL,
    started INTEGER,
    claim TEXT NOT NULL,
    value TEXT CHECK ((value IS NOT NULL) = (state = 'done')),
    certificate TEXT CHECK ((certificate IS NOT NULL) = (state = 'done')),
    checksum TEXT NOT NULL CHECK (length(checksum) = 64)
) STRICT;
