CREATE TABLE trust (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    model TEXT NOT NULL CHECK (model IN ('study', 'nobody'))
) STRICT;

CREATE TABLE studies (
    study TEXT PRIMARY KEY CHECK (length(study) = 64),
    created TEXT NOT NULL,
    site TEXT NOT NULL,
    terms TEXT NOT NULL CHECK (length(terms) = 64),
    card TEXT NOT NULL CHECK (length(card) = 64),
    mu REAL NOT NULL CHECK (mu > 0 AND mu < 9e999),
    alone REAL NOT NULL CHECK (alone >= mu AND alone < 9e999),
    unit TEXT NOT NULL CHECK (unit IN ('record', 'voxel', 'person')),
    state TEXT NOT NULL CHECK (state IN ('reserved', 'open', 'closed', 'ended', 'left')),
    sealed TEXT CHECK (length(sealed) = 64),
    entry INTEGER REFERENCES entries (id),
    checksum TEXT NOT NULL CHECK (length(checksum) = 64)
) STRICT, WITHOUT ROWID;

CREATE TABLE answers (
    sealed TEXT NOT NULL CHECK (length(sealed) = 64),
    round INTEGER NOT NULL CHECK (round >= 0 AND round < 256),
    said TEXT NOT NULL CHECK (length(said) = 64),
    mu REAL NOT NULL CHECK (mu > 0 AND mu < 9e999),
    description BLOB NOT NULL,
    answer BLOB NOT NULL,
    checksum TEXT NOT NULL CHECK (length(checksum) = 64),
    PRIMARY KEY (sealed, round)
) STRICT, WITHOUT ROWID;
