"""A ledger's file: a cost is in it before any noise is drawn, and stays there.

*Enforced.* A change is one IMMEDIATE transaction on an SQLite database, on disk when it
returns. Whoever opens the file first checks it (:mod:`spdp.ledger.schema`); what
fails is a :class:`LedgerError`. What a killed process left is undone where nothing was
paid since, and refused elsewhere (:mod:`spdp.ledger.sqlite_journal`).
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from spdp import system
from spdp.errors import LedgerError, reason
from spdp.ledger import sqlite_journal as journal
from spdp.ledger.schema import SCHEMA, STUDY, Book, Terms, checksum, now

APPLICATION = 0x53504450  # "SPDP"
PLAIN, WITH_STUDIES = 3, 4  # formats: a ledger gets the tables of studies with its first
VERSION = WITH_STUDIES
OLDEST_SQLITE = (3, 37, 0)  # of STRICT tables
PATIENCE = 120.0  # seconds to wait for other processes' transactions

SETTINGS = tuple(f"PRAGMA {setting}" for setting in system.JOURNAL)
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

    def create(self, epsilon: float, delta: float, trust: str = STUDY) -> None:
        """Make the file, whole or not at all; of several creators one wins.

        It is made under another name and then given its own. One that trusts nobody has
        the tables of studies from the beginning.
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
                journal.mark(db, draft, PLAIN)
                row = (1, *terms, checksum(terms).hexdigest())
                db.execute("INSERT INTO budget VALUES (?, ?, ?, ?, ?, ?)", row)
                if trust != STUDY:
                    Book(db, draft, False, "").add_study_tables(trust)
                    journal.mark(db, draft, WITH_STUDIES)
                db.execute("COMMIT")
            with suppress(FileExistsError):  # the caller compares its budget next
                system.give_name(draft, self.path)
        except (sqlite3.Error, OSError) as error:
            raise LedgerError(f"{self.path}: cannot be created ({reason(error)})") from None
        finally:
            for leftover in (draft, journal.journal_of(draft)):
                with suppress(OSError):
                    leftover.unlink()

    @contextmanager
    def open(
        self,
        write: bool = False,
        thorough: bool = False,
        failed: str = "nothing was released",
        studies: bool = False,
    ) -> Iterator[Book]:
        """The file's contents, checked; with ``write``, in a transaction of its own.

        An exception inside undoes it. ``thorough`` checks SQLite's own structures, too.
        ``failed`` is what errors say of the consequence. ``studies`` makes the tables
        of studies where there are none.
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
                version = self._recognise(db)  # which another process may just have changed
                if write:
                    journal.check_alone(self.path)
                    journal.mark(db, self.path, version)
                book = Book(db, self.path, thorough, failed)
                if book.has_studies != (version == WITH_STUDIES):
                    raise book.damaged("its tables are not those of its format")
                if write and studies and not book.has_studies:
                    book.add_study_tables()
                    journal.mark(db, self.path, WITH_STUDIES)
                yield book
                db.execute("COMMIT" if db.total_changes else "ROLLBACK")
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter from its messages
            raise LedgerError(f"{self.path}: {error}; {failed}") from None

    def _recognise(self, db: sqlite3.Connection) -> int:
        """The file's format; one that is not a ledger's is refused."""
        if db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
            raise LedgerError(f"{self.path}: not a ledger")
        version = journal.version_of(db.execute("PRAGMA user_version").fetchone()[0])
        if version > VERSION:
            raise LedgerError(
                f"{self.path}: written by a newer version of spdp (format {version}, "
                f"this one reads {VERSION})"
            )
        if version < PLAIN:
            raise LedgerError(
                f"{self.path}: written by an unpublished version of spdp (format {version}, "
                f"this one reads {PLAIN}); create a new ledger with what is left of its budget"
            )
        return version
