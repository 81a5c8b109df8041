"""Which data a ledger is for: a keyed fingerprint of the records, in any order.

A fingerprint is the sum of keyed BLAKE2b marks of the single records. Without the key
it says nothing of them; with it, a guess of the last record could be tested. So the key
is not kept in the ledger, is not pickled, and is too long to be guessed.
"""

from typing import Any

from spdp.blocks import blocks_of, record_marks, shape_of_block
from spdp.errors import DataError, ParameterError

__all__ = ["checked_key", "fingerprint", "fingerprint_text"]

SHORTEST_KEY = 16  # bytes


def checked_key(key: bytes | None) -> bytes | None:
    """The key, if one is given, or an error if it could be guessed."""
    if key is not None and not isinstance(key, bytes):
        raise ParameterError(f"a fingerprint's key must be bytes, got {type(key).__name__}")
    if key is not None and len(key) < SHORTEST_KEY:
        raise ParameterError(
            f"a fingerprint's key must have at least {SHORTEST_KEY} bytes, got {len(key)}"
        )
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
    return fingerprint_text(total, n, shape[-1])


def fingerprint_text(total: int, n: int, k: int) -> str:
    """Fingerprint of n records of size k, from the sum of their marks."""
    return f"{k}:{n}:{total % (1 << 256):064x}"
