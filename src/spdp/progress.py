"""Progress bars: on standard error, on a terminal only, only for work that lasts."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

__all__ = ["track"]

PATIENCE = 1.0  # seconds after which work is long enough to deserve a bar

# work inside tracked work reports to no one: two bars would overwrite each other
_shown = False


SILENT = nullcontext(lambda amount: None)


def track(description: str, total: float | None) -> AbstractContextManager[Callable[[float], None]]:
    """Give a function that records how much was done.

    A bar with rate and time left appears after a second.
    """
    return SILENT if _shown or not sys.stderr.isatty() else _tracked(description, total)


@contextmanager
def _tracked(description: str, total: float | None) -> Iterator[Callable[[float], None]]:
    global _shown
    _shown = True
    started = time.monotonic()
    done = 0.0
    bar: Any = None
    task: Any = None

    def advance(amount: float) -> None:
        nonlocal bar, task, done
        done += amount
        elapsed = time.monotonic() - started
        if bar is None and elapsed > PATIENCE:
            bar = _bar()
            task = bar.add_task(description, total=total, rate="")
            bar.start()
        if bar is not None:
            bar.update(task, completed=done, rate=f"{done / elapsed:,.3g}/s")

    try:
        yield advance
    finally:
        _shown = False
        if bar is not None:
            bar.stop()


def _bar() -> Any:
    from rich import progress
    from rich.console import Console

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn("{task.fields[rate]}"),
        progress.TimeRemainingColumn(),
    )
    return progress.Progress(*columns, console=Console(stderr=True), transient=True)
