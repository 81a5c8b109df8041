r"""A ledger's rollback journal: whose it is, and when it may be played back.

While SQLite writes a change it keeps the pages it replaces in a file named after the
database, ``NAME-journal``; deleting that file commits (on Windows, truncating it:
:mod:`spdp.system`). A process killed before leaves it, and the next to open NAME plays
it back. But SQLite knows a journal by its name
alone. Were the ledger paid from under another name meanwhile (moved, and moved back;
linked), or another ledger put in its place, playing it back would undo those payments.

*Enforced.* Every change starts by writing a mark into the database's first page: the
number that SQLite drew at random for that change's own journal. So a journal holds two
marks, its own number and, in its image of the first page, the mark before it. Before
SQLite may see a journal, the mark in the database must be one of the two. And a ledger
that has several names (hard links) takes no changes.

*Therefore* a payment is not undone. Let a change T be killed, its journal left. The
database then has the mark before T, or T's. Whatever is committed afterwards without
that journal writes a mark of its own, and the journal is refused from then on; as
long as nothing is, playing it back undoes T alone, whose payment was never reported.

*Assumed.* Two of the random marks, 24 bits each, do not agree by chance; the ledger
is not renamed and paid from in the instant between this check and SQLite's own.
"""

import glob
import os
import sqlite3
import stat
import struct
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from spdp.errors import LedgerError, reason

MAGIC = bytes.fromhex("d9d505f920a163d7")  # of a journal that SQLite would play back
HEADER = struct.Struct(">8sIIIII")  # magic, records, random number, pages, sector, page
NUMBER = slice(12, 16)  # the random number: there before the magic is
USER_VERSION = slice(60, 64)  # in the first page of a database
FIRST = (1).to_bytes(4, "big")  # number of the first page
VERSIONS = 256  # a byte of the user version; the mark has the others
SIDES = ("-journal", "-wal", "-shm")  # how files that SQLite keeps beside a database end


class _Journal(NamedTuple):
    own: int
    before: int | None  # None: it has no image of the first page


def journal_of(path: Path) -> Path:
    """Where SQLite keeps a database's rollback journal."""
    return Path(f"{path}-journal")


def draft_of(path: Path) -> Path:
    """A name under which a ledger is made before it gets its own."""
    return path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")


def version_of(user_version: int) -> int:
    """The format that a user version states, beside its mark."""
    return user_version % VERSIONS


def mark(db: sqlite3.Connection, path: Path, version: int) -> None:
    """Start a change, in its transaction: what this module's text says of marks."""
    db.execute(f"PRAGMA user_version = {version}")  # now there is a journal
    try:
        number = journal_of(path).read_bytes()[NUMBER]
    except OSError:  # some file systems need none
        number = os.urandom(4)
    db.execute(f"PRAGMA user_version = {_mark_of(number) * VERSIONS + version}")


def check_name(path: Path) -> None:
    """Refuse a name that SQLite would give to another database's side file.

    It would take such a ledger for that database's, and delete it.
    """
    if path.name.endswith(SIDES):
        raise LedgerError(
            f"{path}: a ledger's name must not end in {', '.join(SIDES)}: SQLite would take it for "
            "a side file of another database"
        )


def check_new(path: Path) -> None:
    """Refuse to make a ledger where another left its journal."""
    for side in (journal_of(path), _log_of(path)):
        # in this order: where a ledger was made just now, the file may be its own
        if os.path.lexists(side) and not _is_empty(side) and not os.path.lexists(path):
            raise LedgerError(
                f"{path}: cannot be created beside {side.name}, which a ledger that was here "
                "left; move that file away"
            )


def check_journal(path: Path) -> None:
    """Refuse a journal that is not of this ledger's last change."""
    if _has_content(_log_of(path)):
        raise LedgerError(
            f"{path}: {_log_of(path).name} beside it holds changes that another program made; "
            "close that program, or move the file away to use the ledger as it is"
        )
    while (journal := _read(path)) is not None:
        if _mark_in(path) in journal:
            return
        if journal == _read(path):  # it was there all the time: nobody is at work
            raise LedgerError(
                f"{path}: beside it lies {journal_of(path).name}, left by a process that was "
                "killed, and the ledger was moved, used under another name or replaced since; "
                "to use the ledger as it is, move that file away"
            )


def check_alone(path: Path) -> None:
    """Refuse to change a ledger that has other names, to be paid from under."""
    if os.stat(path).st_nlink > 1:
        _remove_drafts(path)
    if (names := os.stat(path).st_nlink) > 1:
        raise LedgerError(
            f"{path}: this file has {names} names (hard links), and a ledger is paid from under "
            "one only; remove the others"
        )


def _log_of(path: Path) -> Path:
    """Where SQLite keeps a write-ahead log, which a ledger never has."""
    return Path(f"{path}-wal")


def _has_content(file: Path) -> bool:
    try:
        return file.stat().st_size > 0
    except OSError:
        return False


def _is_empty(file: Path) -> bool:
    """Whether this is a file of no bytes, as journals are truncated to on Windows."""
    with suppress(OSError):
        status = file.lstat()
        return stat.S_ISREG(status.st_mode) and status.st_size == 0
    return False


def _remove_drafts(path: Path) -> None:
    """Names of this file that a creator left who was killed, or is about to remove."""
    for draft in path.parent.glob(f".{glob.escape(path.name)}.[0-9]*.????????"):
        with suppress(OSError):
            if draft.samefile(path):
                draft.unlink()


def _mark_of(head: bytes) -> int:
    return int.from_bytes(head[:3], "big", signed=True)


def _mark_in(path: Path) -> int:
    """The mark in the database as it lies there.

    Read by SQLite, which looks for no journal here: closing a file that was opened by
    other means would end all locks that this process has on it.
    """
    address = f"{path.as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(address, uri=True)) as db:
        db.execute("PRAGMA writable_schema = ON")  # reads on where pages are missing still
        return int(db.execute("PRAGMA user_version").fetchone()[0]) // VERSIONS


def _read(path: Path) -> _Journal | None:
    """The journal that SQLite would play back; None where there is none."""
    try:
        data = journal_of(path).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:  # SQLite might read it where this could not
        raise LedgerError(f"{journal_of(path)}: cannot be read ({reason(error)})") from None
    if not data.startswith(MAGIC):
        if data[:1].strip(b"\0"):  # SQLite would delete it
            raise LedgerError(
                f"{path}: {journal_of(path).name} beside it is no SQLite journal; move it away"
            )
        return None
    try:
        _, records, _, _, sector, size = HEADER.unpack_from(data)
    except struct.error:
        return None
    room = (len(data) - sector) // (size + 8)  # a record: page number, page, checksum
    starts = [sector + n * (size + 8) for n in range(min(records, room))]
    firsts = [data[start + 4 :] for start in starts if data[start : start + 4] == FIRST]
    before = _mark_of(firsts[0][USER_VERSION]) if firsts else None
    return _Journal(_mark_of(data[NUMBER]), before)
