"""Arithmetic in many digits, at a precision that nobody else can change.

``mpmath.mp`` and its precision belong to the whole program: a caller may set it, and a
thread that leaves ``mpmath.workdps`` sets it under another thread's hands. What must be
rounded to the safe side therefore works in a context of its own, one thread at a time.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mpmath

__all__ = ["Number", "precise"]

Number = Any  # mpmath's real numbers carry no type information

_OWN = mpmath.MPContext()
_TURN = threading.RLock()
_SHARED_DIGITS = 1000  # more than any calculation here asks for

if hasattr(os, "register_at_fork"):  # a child must not wait for a thread it does not have
    os.register_at_fork(
        before=_TURN.acquire, after_in_parent=_TURN.release, after_in_child=_TURN.release
    )


@contextmanager
def precise(digits: int) -> Iterator[Any]:
    """Functions of mpmath at ``digits`` decimal digits, until the block ends.

    Numbers made in such a block may leave it, but whatever is done with them, even
    ``mpf(x) < y``, rounds to the precision of its place: do it in a block again.
    """
    with _TURN, _OWN.workdps(digits):
        yield _OWN


def _know_constants() -> None:
    """π and ln 2 to more digits than will be asked for.

    mpmath keeps them for all contexts, and replaces them, number and length one after
    the other, when somebody wants more: after this, no thread does on our account, nor
    on its own below these digits.
    """
    with precise(_SHARED_DIGITS) as mp:
        +mp.pi, +mp.ln2  # noqa: B018


_know_constants()
