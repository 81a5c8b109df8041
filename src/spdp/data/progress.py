"""Progress bars: on a terminal or in a notebook, and only for work that lasts."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from threading import Thread
from time import monotonic, sleep
from typing import Any, NamedTuple

PATIENCE = 1.0  # seconds of work after which a bar appears
ASKED = "SPDP_PROGRESS"  # set by a program that reads standard error (spdp wizard)
TICK = 1.0  # seconds between two looks at work that has no bar

# nested work shows no bar of its own: two bars would overwrite each other
_shown = False
SILENT = nullcontext(lambda amount: None)


def track(description: str, total: float | None) -> AbstractContextManager[Callable[[float], None]]:
    """Give a function that records how much was done.

    A bar with rate and time left appears after a second: on standard error where that
    is a terminal, or below the running cell of a notebook.
    """
    return _tracked(description, total) if _watched() and not _shown else SILENT


def _watched() -> bool:
    """Whether somebody looks: at a terminal, a notebook, or through another program."""
    return sys.stderr.isatty() or _in_notebook() or ASKED in os.environ


@contextmanager
def _tracked(description: str, total: float | None) -> Iterator[Callable[[float], None]]:
    from tqdm import tqdm

    class Bar(tqdm):  # type: ignore[misc]
        monitor_interval = 0  # no thread of its own

    global _shown
    _shown = True
    look = {"leave": False, "unit": "", "unit_scale": True, "dynamic_ncols": True}
    try:
        with Bar(desc=description, total=total, delay=PATIENCE, file=sys.stderr, **look) as bar:
            yield bar.update
    finally:
        _shown = False


def _in_notebook() -> bool:
    """Whether a Jupyter kernel runs this; IPython is then imported already."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return hasattr(shell, "kernel")


# --- work whose amount is not known


class _Work(NamedTuple):
    doing: Callable[[], str]
    start: float


_works: list[_Work] = []  # the last is the innermost
_ticker: Thread | None = None
_written = False  # whether a line is shown


def working(doing: Callable[[], str]) -> AbstractContextManager[Any]:
    """Say each second what is being done, and for how long, until it is done.

    A line appears after a second, where a bar would, and gives way to bars. It is
    written by one thread, which lives as long as the process.
    """
    return _told(doing) if _watched() else SILENT


@contextmanager
def _told(doing: Callable[[], str]) -> Iterator[None]:
    global _ticker
    if _ticker is None or not _ticker.is_alive():  # a fork has none
        _ticker = Thread(target=_tick, daemon=True)
        _ticker.start()
    work = _Work(doing, monotonic())
    _works.append(work)
    try:
        yield
    finally:
        _works.remove(work)
        if _written:
            _write("")


def _tick() -> None:
    while True:
        sleep(TICK)
        with suppress(Exception):  # work that ended meanwhile, a stream that was closed
            work = _works[-1]
            lasted = monotonic() - work.start
            if lasted >= PATIENCE and not _shown:
                _write(f"{work.doing()} ({lasted:.0f} s)")


def _write(line: str) -> None:
    """Replace the line that is shown."""
    global _written
    _written = bool(line)
    sys.stderr.write(f"\r{line}\x1b[K" if line else "\r\x1b[K")
    sys.stderr.flush()
