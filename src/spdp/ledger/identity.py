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
from typing import Any, NamedTuple

from spdp.data.batching import blocks_of, record_marks, shape_of_block
from spdp.errors import DataError, ParameterError
from spdp.system import ENDED, origin, start_of


class Owner(NamedTuple):
    """A process: where its number was given, the number, and when it started."""

    origin: str
    pid: int
    started: int | None  # as `start_of` has it

    @classmethod
    def current(cls) -> "Owner":
        """This process."""
        return cls(origin(), os.getpid(), start_of(os.getpid()))

    def is_gone(self) -> bool:
        """Whether the process has certainly ended."""
        if self.origin != origin():
            return False
        started = start_of(self.pid)
        return started == ENDED or (None not in (started, self.started) and started != self.started)


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
