"""The errors spdp raises on purpose; all are ``ValueError``, so handlers keep working.

Where passing an option would help, the error carries the option's name (``ask``), or
the names of several, apart from its text, so that Python and the command line each
spell it in their own words. So it is with an option that a message speaks of:
:func:`named` marks it there.
"""

import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = [
    "DataError",
    "DataWarning",
    "Hopeless",
    "InvalidMatrixError",
    "LedgerError",
    "NotKept",
    "OutsideDomain",
    "ParameterError",
    "SlowBuild",
    "TooNoisy",
    "carrying",
    "named",
    "reason",
    "spelt",
    "warn",
]

PACKAGE = os.path.join(os.path.dirname(__file__), "")
SPELLINGS = {"ledger_key": "Ledger(path, key=...)"}
# Characters for private use: they stand around an option's name, and in no text.
OPEN, CLOSE = "\ue000", "\ue001"
MARKED = re.compile(f"{OPEN}([^{OPEN}{CLOSE}=]*)(?:=([^{OPEN}{CLOSE}]*))?{CLOSE}")
Spell = Callable[[str, str | None], str]


def named(name: str, value: str | None = None) -> str:
    """An option, or an option with its value, as a message of an error mentions it."""
    return f"{OPEN}{name}{'' if value is None else f'={value}'}{CLOSE}"


def spelt(message: str, spell: Spell) -> str:
    """A message whose options are spelt by ``spell(name, value)``."""
    return MARKED.sub(lambda found: spell(found[1], found[2]), message)


def reason(error: Exception) -> str:
    """What went wrong with a file, without the system's number and the file's name."""
    return (isinstance(error, OSError) and error.strerror) or str(error)


def warn(text: str, kind: type[Warning]) -> None:
    """Warn at the line that called spdp, however deep in it this is said."""
    frame, level = sys._getframe(1), 2  # 1 is the line below that warns
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, kind, stacklevel=level)


@contextmanager
def carrying(release: Any) -> Iterator[None]:
    """Let a warning that is raised as an error carry the release that it speaks of."""
    try:
        yield
    except DataWarning as warning:
        warning.release = release
        raise


def _in_python(name: str, value: str | None) -> str:
    return name if value is None else f"{name}={value!r}"


class _Error(ValueError):
    def __init__(self, message: str, *, ask: str | tuple[str, ...] | None = None) -> None:
        super().__init__(spelt(message, _in_python))
        self.message = message  # its options are still marked
        self.ask = ask

    @property
    def asks(self) -> tuple[str, ...]:
        """Names of the options that would help."""
        return (self.ask,) if isinstance(self.ask, str) else self.ask or ()

    def __str__(self) -> str:
        names = [SPELLINGS.get(name, f"{name}=...") for name in self.asks]
        text = super().__str__()
        return f"{text} (pass {' or '.join(names)})" if names else text


class ParameterError(_Error):
    """A number or option is outside the range in which its guarantee holds."""


class DataError(_Error):
    """A data source is unusable: the message names it and says what was found.

    Messages of this class may describe records. They are for the holder of the data,
    not for publication.
    """


class InvalidMatrixError(DataError):
    """A matrix is not symmetric positive definite.

    The message names the first by index.

    Attributes
    ----------
    index : tuple of int
        Position of the first offending matrix in the batch.
    """

    def __init__(
        self, message: str, index: tuple[int, ...] = (), *, ask: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message, ask=ask or None)
        self.index = index


class LedgerError(DataError):
    """The ledger file is unusable; the message names it and says what became of it."""


class DataWarning(UserWarning):
    """Data may not mean what they are read as; said from public numbers only.

    One that speaks of a release comes after its budget was spent. Where warnings are
    made errors (``python -W error``) it carries the release: what was paid for is not
    lost.

    Attributes
    ----------
    release : Release or None
        What was released, where such a warning was raised as an error. None for
        warnings about files, which come before anything is paid.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from spdp import Ball, private_mean
    >>> from spdp.errors import Hopeless
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error")
    ...     try:
    ...         private_mean([np.eye(2)], epsilon=0.1, delta=1e-6, domain=Ball(1.0))
    ...     except Hopeless as warning:
    ...         print(warning.release.value.shape)
    (2, 2)
    """

    release: Any = None


class OutsideDomain(DataWarning):
    """Many records lie outside their domain; said from released numbers only."""


class TooNoisy(DataWarning):
    """Noise is large beside what is released; said from public or released numbers."""


class Hopeless(TooNoisy):
    """Nothing says that a release is nearer than the domain's centre, which is free.

    Its bound on the error is no smaller than the domain's radius; said from released
    and public numbers only.
    """


class NotKept(DataWarning):
    """A release was paid for, but its ledger could not keep it."""


class SlowBuild(UserWarning):
    """The compiled kernels are missing; NumPy's are used, with the same guarantee."""
