"""Which process holds an entry of a ledger, and whether that process has ended.

A process number means something only where it was given: on one host, since one boot,
in one pid namespace (a container has its own). Of numbers given elsewhere nothing is
known. Here, a process has ended if its number is free, or belongs to a process that
started at another time.

*Which data a ledger is for*: a keyed fingerprint of the records, in any order. A
fingerprint is the sum of keyed BLAKE2b marks of the single records. Without the key it
reveals nothing of them; with it, a guess of the last record could be tested. So the key
is not kept in the ledger, is not pickled, and is too long to be guessed.
"""

import os
import socket
from pathlib import Path
from typing import Any, NamedTuple

from spdp.data.batching import blocks_of, record_marks, shape_of_block
from spdp.errors import DataError, ParameterError


class Owner(NamedTuple):
    """A process: where its number was given, the number, and when it started."""

    origin: str
    pid: int
    started: int | None  # in clock ticks since the boot; None where it cannot be known

    @classmethod
    def current(cls) -> "Owner":
        """This process."""
        return cls(_origin(), os.getpid(), _started(os.getpid()))

    def is_gone(self) -> bool:
        """Whether the process has certainly ended."""
        if self.origin != _origin():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass
        return self.started is not None and _started(self.pid) not in (self.started, None)


def _origin() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:  # not Linux: no namespaces either
        boot = namespace = "-"
    return f"{socket.gethostname()} {boot} {namespace}"


def _started(pid: int) -> int | None:
    """Start time of a process; -1 for one that has ended and waits for its parent."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    state, *fields = text.rpartition(b")")[2].split()  # the name before may hold anything
    return -1 if state in (b"Z", b"X") else int(fields[18])


# --- which data

SHORTEST_KEY = 16  # bytes


def checked_key(key: bytes | None) -> bytes | None:
    """The key, if one is given, or an error if it could be guessed."""
    if key is not None and not isinstance(key, bytes):
        raise ParameterError(f"a fingerprint's key must be bytes, got {type(key).__name__}")
    if key is not None and len(key) < SHORTEST_KEY:
        raise ParameterError(f"a key must have at least {SHORTEST_KEY} bytes, got {len(key)}")
    return key


def fingerprint(X: Any, key: bytes) -> str:
    """Fingerprint of an array (n, k, k), a list of matrices, or blocks of such."""
    total, n, shape = 0, 0, None
    for block in blocks_of(X):
        shape = shape or shape_of_block(block)
        part, m = record_marks(block, shape, "X", key)
        total, n = total + part, n + m
    if shape is None or n == 0:
        raise DataError("X has no records to bind a ledger to")
    return fingerprint_text(total, shape[-1])


def fingerprint_text(total: int, k: int) -> str:
    """Fingerprint of records of size k, from the sum of their marks.

    Their number is not in it: whoever may read the ledger may not know it.
    """
    return f"{k}:{total % (1 << 256):064x}"


def without_number(mark: str) -> str:
    """A fingerprint of version 0.2, which stated the number of records, without it."""
    k, *_, total = mark.split(":")
    return f"{k}:{total}"
