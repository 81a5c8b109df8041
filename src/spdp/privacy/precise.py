"""Arithmetic in many digits, at a precision that nobody else can change.

``mpmath.mp`` and its precision belong to the whole program: a caller may set it, and a
thread that leaves ``mpmath.workdps`` sets it under another thread's hands. What must be
rounded to the safe side therefore works in contexts of its own, one for each thread,
and sets its digits whenever it begins: no lock can be left held, and no precision left
behind by an interrupt matters.
"""

import threading
from types import TracebackType
from typing import Any

import mpmath

__all__ = ["Number", "precise"]

Number = Any  # mpmath's real numbers carry no type information

_HERE = threading.local()
_SHARED_DIGITS = 1000  # more than any calculation here asks for


class precise:
    """Functions of mpmath at ``digits`` decimal digits, until the block ends.

    Numbers made in such a block may leave it, but whatever is computed with them
    rounds to the precision of the thread that made them: compute in a block again, with
    ``mp.mpf(x)`` of what was kept, which another thread may have made.
    """

    def __init__(self, digits: int) -> None:
        self._digits = digits
        self._mp = _own()
        self._before = self._mp.prec

    def __enter__(self) -> Any:
        self._mp.dps = self._digits
        return self._mp

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._mp.prec = self._before  # of the block around this one


def _own() -> Any:
    """This thread's context."""
    mp = getattr(_HERE, "mp", None)
    if mp is None:
        mp = _HERE.mp = mpmath.MPContext()
    return mp


def _know_constants() -> None:
    """π, e and ln 2 to more digits than will be asked for.

    mpmath keeps them for all contexts, and replaces them, number and length one after
    the other, when somebody wants more: after this, no thread does on our account, nor
    on its own below these digits.
    """
    with precise(_SHARED_DIGITS) as mp:
        +mp.pi, +mp.e, +mp.ln2  # noqa: B018


_know_constants()
