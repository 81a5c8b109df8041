"""The error classes of spdp; all are ``ValueError``, so existing handlers keep working.

Where passing an option would help, the error carries the names of such options
(``ask``) apart from its text, so that Python and the command line each use their own
spelling. For the same reason :func:`named` marks the options that a message mentions.
"""

import os
import re
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

PACKAGE = os.path.join(os.path.dirname(__file__), "")
SPELLINGS = {"ledger_key": "Ledger(path, key=...)", "anyway": "anyway=True"}
# Private-use characters: they enclose an option's name and occur in no other text.
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
    """What went wrong with a file, without the error number and the file's name."""
    return (isinstance(error, OSError) and error.strerror) or str(error)


def need(module: str, extra: str, what: str, package: str | None = None) -> Any:
    """Import an optional package, or say what needs it and how to install it."""
    try:
        return import_module(module)
    except ImportError:
        wanted = package or module.partition(".")[0]
        message = f"{what} needs {wanted}; install it with: pip install 'spdp[{extra}]'"
        raise DataError(message) from None


def warn(text: str, kind: type[Warning]) -> None:
    """Warn at the line that called spdp, from any depth inside the package."""
    frame, level = sys._getframe(1), 2  # 1 is the line below that warns
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, kind, stacklevel=level)


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


class BudgetExceeded(ParameterError):
    """A release would exceed the ledger's budget; nothing was spent and nothing drawn.

    Attributes
    ----------
    fits : float
        Largest ε that would be accepted instead, at the δ (0 for a pure release) and
        for the adjacency that were asked for; 0 if none would.
    """

    def __init__(self, message: str, fits: float = 0.0) -> None:
        super().__init__(message)
        self.fits = fits


class Uninformative(ParameterError):
    """Public numbers say that a release would be no better than the domain's centre.

    It was refused before any budget was spent; ``anyway=True`` asks for it all the
    same.

    Attributes
    ----------
    fewest : int
        Number of records, or persons, from which on it is not refused at this budget.
    epsilon : float or None
        ε from which on it is not refused with these records; None if none is.
    """

    def __init__(self, message: str, fewest: int, epsilon: float | None) -> None:
        super().__init__(message, ask="anyway")
        self.fewest, self.epsilon = fewest, epsilon


class DataError(_Error):
    """A data source cannot be used: the message names it and says what was found.

    Messages of this class may describe records. They are for the holder of the data,
    not for publication.
    """


class NotReleased(_Error, AttributeError):
    """A release does not hold what was asked of it; the message says what would."""


class InvalidMatrixError(DataError):
    """A matrix, or what is given beside it (label, covariate, subject ID), is invalid.

    The message names the first such matrix by index, and says what is wrong.

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
    """The ledger file cannot be used; the message names it and says why."""


class DataWarning(UserWarning):
    """Data may have been misread; only public and released numbers are used to tell.

    A warning about a release comes after its budget was spent. Where warnings are made
    errors (``python -W error``), it carries the release, so that what was paid for is
    not lost.

    Attributes
    ----------
    release : Release or None
        What was released, where such a warning was raised as an error. None for
        warnings about files, which come before any budget is spent.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from spdp import Ball, private_mean
    >>> from spdp.errors import UninformativeRelease
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error")
    ...     try:
    ...         options = {"epsilon": 0.1, "delta": 1e-6, "domain": Ball(1.0)}
    ...         private_mean([np.eye(2)], anyway=True, **options)
    ...     except UninformativeRelease as warning:
    ...         print(warning.release.value.shape)
    (2, 2)
    """

    release: Any = None


class DomainMismatch(DataWarning):
    """Many records were clipped at the domain's edge, by released numbers."""


class TooNoisy(DataWarning):
    """Noise is large relative to the result, by public or released numbers."""


class UninformativeRelease(TooNoisy):
    """The 95 % error bound is not below the domain's radius.

    The domain's centre, which needs no data, is then as good an estimate. The bound is
    made of released and public numbers. Where public numbers alone say so, a release is
    refused before (:class:`Uninformative`).
    """


class ReleaseNotStored(DataWarning):
    """A release was paid for, but its ledger could not store it."""


class SlowBuild(UserWarning):
    """The compiled kernels are missing; NumPy's are used, with the same guarantee."""


# Names of version 0.2.
OutsideDomain, Hopeless, NotKept = DomainMismatch, UninformativeRelease, ReleaseNotStored
