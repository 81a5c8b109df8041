"""A ledger's file: a cost is in it before any noise is drawn, and stays there.

*Enforced.* A change is one IMMEDIATE transaction on an SQLite database, on disk when it
returns. Whoever opens the file first checks it (:mod:`spdp.ledger.schema`); what
fails is a :class:`LedgerError`. What a killed process left is undone where nothing was
paid since, and refused elsewhere (:mod:`spdp.ledger.sqlite_journal`).
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from spdp.errors import LedgerError, reason
from spdp.ledger import sqlite_journal as journal
from spdp.ledger.schema import SCHEMA, Book, Terms, checksum, now

APPLICATION = 0x53504450  # "SPDP"
VERSION = 3
OLDEST_SQLITE = (3, 37, 0)  # of STRICT tables
PATIENCE = 120.0  # seconds to wait for other processes' transactions

# A rollback journal, not a write-ahead log: a commit is in the file itself before it
# returns, so a copy of the file alone has every entry, whoever else has it open. EXTRA
# also syncs the directory: a journal that a power failure brought back would undo a
# payment whose noise was drawn already.
SETTINGS = ("PRAGMA journal_mode = DELETE", "PRAGMA synchronous = EXTRA")
UNTRUSTED = "PRAGMA trusted_schema = OFF"  # nothing in the file calls a function


class LedgerFile:
    """The file of a ledger; every use opens it anew, so it may cross a fork."""

    def __init__(self, path: Path) -> None:
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            raise LedgerError(f"{path}: needs SQLite 3.37, not {sqlite3.sqlite_version}")
        self.path = path

    def exists(self) -> bool:
        """Whether there is a file; an error where this cannot be told."""
        try:
            self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise LedgerError(f"{self.path}: cannot be opened ({reason(error)})") from None
        return True

    def create(self, epsilon: float, delta: float) -> None:
        """Make the file, whole or not at all; of several creators one wins.

        It is made under another name and linked into place.
        """
        journal.check_name(self.path)
        journal.check_new(self.path)
        draft = journal.draft_of(self.path)
        terms = Terms(epsilon, delta, now(), None)
        try:
            with suppress(FileNotFoundError):  # says why, where SQLite does not
                journal.journal_of(draft).stat()
            with closing(sqlite3.connect(draft, isolation_level=None)) as db:
                for statement in (*SETTINGS, "BEGIN", *SCHEMA):
                    db.execute(statement)
                db.execute(f"PRAGMA application_id = {APPLICATION}")
                journal.mark(db, draft, VERSION)
                row = (1, *terms, checksum(terms).hexdigest())
                db.execute("INSERT INTO budget VALUES (?, ?, ?, ?, ?, ?)", row)
                db.execute("COMMIT")
            with suppress(FileExistsError):  # the caller compares its budget next
                os.link(draft, self.path)
        except (sqlite3.Error, OSError) as error:
            raise LedgerError(f"{self.path}: cannot be created ({reason(error)})") from None
        finally:
            for leftover in (draft, journal.journal_of(draft)):
                with suppress(OSError):
                    leftover.unlink()

    @contextmanager
    def open(
        self, write: bool = False, thorough: bool = False, failed: str = "nothing was released"
    ) -> Iterator[Book]:
        """The file's contents, checked; with ``write``, in a transaction of its own.

        An exception inside undoes it. ``thorough`` checks SQLite's own structures, too.
        ``failed`` is what errors say of the consequence.
        """
        if not self.exists():
            raise LedgerError(f"{self.path}: no such ledger; give epsilon and delta to create it")
        journal.check_name(self.path)
        address = f"{self.path.as_uri()}?mode=rw"  # and do not let SQLite create it
        try:
            journal.check_journal(self.path)
            with closing(
                sqlite3.connect(address, uri=True, timeout=PATIENCE, isolation_level=None)
            ) as db:
                db.execute(UNTRUSTED)
                self._recognise(db)
                for setting in SETTINGS:
                    db.execute(setting)
                db.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                if write:
                    journal.check_alone(self.path)
                    journal.mark(db, self.path, VERSION)
                yield Book(db, self.path, thorough, failed)
                db.execute("COMMIT" if db.total_changes else "ROLLBACK")
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter from its messages
            raise LedgerError(f"{self.path}: {error}; {failed}") from None

    def _recognise(self, db: sqlite3.Connection) -> None:
        """Refuse a file that is not a ledger of this format."""
        if db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
            raise LedgerError(f"{self.path}: not a ledger")
        version = journal.version_of(db.execute("PRAGMA user_version").fetchone()[0])
        if version > VERSION:
            raise LedgerError(
                f"{self.path}: written by a newer version of spdp (format {version}, "
                f"this one reads {VERSION})"
            )
        if version < VERSION:
            raise LedgerError(
                f"{self.path}: written by an unpublished version of spdp (format {version}, "
                f"this one reads {VERSION}); create a new ledger with what is left of its budget"
            )
