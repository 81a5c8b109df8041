"""Progress bars: on a terminal or in a notebook, and only for work that lasts."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from html import escape
from typing import Protocol

PATIENCE = 1.0  # seconds of work after which a bar appears
PAUSE = 0.2  # seconds between two updates of a notebook's bar

# nested work shows no bar of its own: two bars would overwrite each other
_shown = False
SILENT = nullcontext(lambda amount: None)


def track(description: str, total: float | None) -> AbstractContextManager[Callable[[float], None]]:
    """Give a function that records how much was done.

    A bar with rate and time left appears after a second: on standard error where that
    is a terminal, or below the running cell of a notebook.
    """
    make = None if _shown else _maker()
    return SILENT if make is None else _tracked(make, description, total)


@contextmanager
def _tracked(
    make: "Callable[[str, float | None], Bar]", description: str, total: float | None
) -> Iterator[Callable[[float], None]]:
    global _shown
    _shown = True
    started = time.monotonic()
    done = 0.0
    bar: Bar | None = None

    def advance(amount: float) -> None:
        nonlocal bar, done
        done += amount
        elapsed = time.monotonic() - started
        if bar is None and elapsed > PATIENCE:
            bar = make(description, total)
        if bar is not None:
            bar.show(done, elapsed)

    try:
        yield advance
    finally:
        _shown = False
        if bar is not None:
            bar.stop()


def _maker() -> "Callable[[str, float | None], Bar] | None":
    """The kind of bar for this terminal or notebook; None elsewhere."""
    if sys.stderr.isatty():
        return TerminalBar
    return NotebookBar if _in_notebook() else None


def _in_notebook() -> bool:
    """Whether a Jupyter kernel runs this; IPython is then imported already."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return hasattr(shell, "kernel")


class Bar(Protocol):
    """A progress bar."""

    def show(self, done: float, elapsed: float) -> None:
        """Show how much was done in so many seconds."""

    def stop(self) -> None:
        """Remove the bar."""


class TerminalBar:
    """A bar on standard error, removed when the work is done."""

    def __init__(self, description: str, total: float | None) -> None:
        from rich import progress
        from rich.console import Console

        columns = (
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TextColumn("{task.fields[rate]}"),
            progress.TimeRemainingColumn(),
        )
        self._bar = progress.Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task(description, total=total, rate="")
        self._bar.start()

    def show(self, done: float, elapsed: float) -> None:
        self._bar.update(self._task, completed=done, rate=f"{done / elapsed:,.3g}/s")

    def stop(self) -> None:
        self._bar.stop()


class NotebookBar:
    """A bar below a notebook's cell: plain HTML, without widgets."""

    def __init__(self, description: str, total: float | None) -> None:
        from IPython.display import HTML, display

        self._html, self._text, self._total = HTML, escape(description), total
        self._handle = display(HTML(""), display_id=True)
        self._next = 0.0

    def show(self, done: float, elapsed: float) -> None:
        if elapsed < self._next:  # every message goes to a browser
            return
        self._next = elapsed + PAUSE
        rate = done / elapsed
        known = "" if self._total is None else f' value="{done:g}" max="{self._total:g}"'
        parts = [f"{done:,.0f}" if self._total is None else f"{done:,.0f} of {self._total:,.0f}"]
        parts.append(f"{rate:,.3g}/s")
        if self._total is not None and rate > 0:
            parts.append(f"{max(0.0, self._total - done) / rate:,.0f} s left")
        bar = f"<progress{known}></progress>"
        self._handle.update(self._html(f"{self._text} {bar} {', '.join(parts)}"))

    def stop(self) -> None:
        self._handle.update(self._html(""))
