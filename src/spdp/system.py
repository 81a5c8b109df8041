"""What operating systems do differently, each thing beside its counterpart.

*Processes.* Linux tells in ``/proc`` when a process started, and under which boot and
pid namespace its number was given. Elsewhere psutil asks the system. (On Windows
``os.kill(pid, 0)`` does not ask whether a process lives: it sends it an interrupt.)

*Names.* A draft gets its name by a hard link, which fails where the name is taken. Some
file systems have no hard links: there Windows renames, which fails as well, and others
claim the name with an empty file first.

*Files.* Windows syncs a file only if it is open for writing, and has no modes: who may
read a file there follows from its folder.

*Journals.* A commit of a ledger deletes SQLite's rollback journal, and that must last:
a journal that a power failure brought back would undo a payment whose noise was drawn.
By ``synchronous = EXTRA`` SQLite syncs the directory. Windows cannot; there the journal
is truncated, and that is synced. macOS keeps what is synced in the drive's cache unless
``fullfsync`` is on.
"""

import errno
import os
import signal
import socket
import sys
import uuid
from pathlib import Path

LINUX, WINDOWS = sys.platform == "linux", sys.platform == "win32"
ENDED = -1  # in place of a start time

# --- processes


def origin() -> str:
    """Where this process got its number."""
    host = socket.gethostname()
    if not LINUX:
        return f"{host} {uuid.getnode():x}"
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{host} {boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return f"{host} - -"


def start_of(pid: int) -> int | None:
    """When a process here started, or ``ENDED``; None where that cannot be known.

    On Linux in clock ticks since the boot, elsewhere in milliseconds since 1970.
    """
    return _start_by_proc(pid) if LINUX else _start_by_psutil(pid)


def _start_by_proc(pid: int) -> int | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None if _is_there(pid) else ENDED
    state, *fields = text.rpartition(b")")[2].split()  # the name before may hold anything
    return ENDED if state in (b"Z", b"X") else int(fields[18])  # waits for its parent


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def _start_by_psutil(pid: int) -> int | None:
    import psutil

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return ENDED
        return int(process.create_time() * 1000)
    except psutil.NoSuchProcess:
        return ENDED
    except (psutil.Error, OSError):
        return None


def _heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


# What a new process does first, so that SIGINT stops it: shells start background jobs
# with SIGINT ignored, and children inherit that. Windows has no such thing.
HEED_INTERRUPTS = None if WINDOWS else _heed_interrupts

# --- names and files

NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL, errno.EMLINK}


def give_name(draft: Path, file: Path) -> None:
    """Give a complete draft its name; a FileExistsError where the name is taken.

    Of several who try, one succeeds, and nobody's file is replaced. The draft may stay
    as a second name of the file.
    """
    try:
        os.link(draft, file)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        (_rename if WINDOWS else _claim)(draft, file)


def _rename(draft: Path, file: Path) -> None:
    os.rename(draft, file)  # fails on Windows, and there alone, where the name is taken


def _claim(draft: Path, file: Path) -> None:
    os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        os.replace(draft, file)
    except OSError:
        os.unlink(file)
        raise


def sync(file: Path) -> None:
    """Return when a file's contents are on disk."""
    with file.open("r+b") as written:
        os.fsync(written.fileno())


def sync_folder(folder: Path) -> None:
    """Make names in a folder durable; Windows has no way to."""
    if WINDOWS:
        return
    where = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(where)
    finally:
        os.close(where)


# Flags of os.open, where a system knows them: follow no link, let no child inherit,
# write what is given; and wait for nobody, should the file be a pipe.
SAFELY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
AT_ONCE: int = getattr(os, "O_NONBLOCK", 0)


def lock_at_once(where: int) -> bool:
    """Lock an open file until it is closed; False where another process has it."""
    try:
        if WINDOWS:
            import msvcrt

            msvcrt.locking(where, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        else:
            import fcntl

            fcntl.flock(where, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def make_private(file: Path) -> None:
    """Make an empty file that only its owner may read; on Windows as its folder."""
    file.touch(0o600)


# --- journals

# A rollback journal, not a write-ahead log: a commit is in the file itself before it
# returns, so a copy of the file alone has every entry, whoever else has it open.
POSIX_JOURNAL = ("journal_mode = DELETE", "synchronous = EXTRA", "fullfsync = ON")
WINDOWS_JOURNAL = ("journal_mode = TRUNCATE", "synchronous = EXTRA")
JOURNAL = WINDOWS_JOURNAL if WINDOWS else POSIX_JOURNAL
