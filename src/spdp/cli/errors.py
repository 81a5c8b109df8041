"""Error messages with the command line's option names, and exit codes.

Unprintable characters in texts from outside (labels, file names, certificates) are
escaped, so that no text can control the terminal.
"""

import typer

from spdp.errors import (
    BudgetExceeded,
    DataError,
    LedgerError,
    ParameterError,
    Uninformative,
    spelt,
)

UNEXPECTED, USAGE, DATA, BUDGET, LEDGER, VERIFICATION_FAILED, REFUSED = range(1, 8)
INTERRUPTED = 130  # as shells say for Ctrl-C

EXIT_CODES = f"""\b
Exit codes:
    0  done
    {USAGE}  usage: an option or a number cannot be used
    {DATA}  data: a file cannot be used, or cannot be written
    {BUDGET}  the ledger's budget would be exceeded
    {LEDGER}  the ledger cannot be used
    {VERIFICATION_FAILED}  verification failed
    {REFUSED}  refused: public numbers say that the release would be uninformative
  {INTERRUPTED}  interrupted by Ctrl-C
    {UNEXPECTED}  anything else"""

# Errors of click, or of the copy of it that later versions of typer carry.
UsageError: type[Exception] = typer.BadParameter.__mro__[2]

# Parameters that are not called --NAME here: how messages name them, how to pass them.
OPTIONS = {
    "low": "LOW",
    "high": "HIGH",
    "shrinkage": "--correlation",
    "n_components": "--components",
    "ledger_key": "SPDP_LEDGER_KEY",
    "y": "--labels",
}
HELP = {"ledger_key": "set SPDP_LEDGER_KEY"}


def printable(text: object) -> str:
    """The text with every unprintable character escaped.

    The escape character becomes ``\\x1b``. Others are line breaks, changes of writing
    direction, and bytes of a file name that are not UTF-8.
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def in_words(error: Exception) -> str:
    """What went wrong and which option would help, as the command line spells it."""
    if isinstance(error, (ParameterError, DataError)):
        names = [HELP.get(name, f"pass {_option(name)}") for name in error.asks]
        message = spelt(error.message, _option)
        return f"{message} ({' or '.join(names)})" if names else message
    if isinstance(error, UsageError):
        return _usage(error)
    if isinstance(error, OSError) and error.strerror:
        name = "" if error.filename is None else f"{error.filename}: "
        return f"{name}{error.strerror}"
    return f"unexpected {type(error).__name__}: {error}; spdp --debug shows where"


def _option(name: str, value: str | None = None) -> str:
    """An option as it is typed here."""
    option = OPTIONS.get(name, f"--{name.replace('_', '-')}")
    return option if value is None else f"{option} {value}"


def _usage(error: Exception) -> str:
    """Click's own words, and where to read more."""
    message = str(getattr(error, "format_message", error.__str__)())
    context = getattr(error, "ctx", None)
    command = "spdp" if context is None else context.command_path
    return f"{message.rstrip('.')} (see {command} --help)"


def exit_code(error: Exception) -> int:
    """See :data:`EXIT_CODES`."""
    if isinstance(error, LedgerError):
        return LEDGER
    if isinstance(error, (DataError, OSError)):
        return DATA
    if isinstance(error, UsageError):
        return USAGE
    if isinstance(error, Uninformative):
        return REFUSED
    if isinstance(error, ParameterError):
        return BUDGET if isinstance(error, BudgetExceeded) else USAGE
    return UNEXPECTED
