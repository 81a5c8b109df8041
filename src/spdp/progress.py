"""Progress bars, in one place: on standard error, on a terminal only, and only for work that lasts."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["track"]

PATIENCE = 1.0  # seconds after which work is long enough to deserve a bar


@contextmanager
def track(description: str, total: float | None) -> Iterator[Callable[[float], None]]:
    """Give a function that records how much was done; a bar with rate and time left appears after a second."""
    if not sys.stderr.isatty():
        yield lambda amount: None
        return
    started = time.monotonic()
    done = 0.0
    bar: Any = None
    task: Any = None

    def advance(amount: float) -> None:
        nonlocal bar, task, done
        done += amount
        if bar is None and time.monotonic() - started > PATIENCE:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            bar = Progress(*columns, console=Console(stderr=True), transient=True)
            task = bar.add_task(description, total=total)
            bar.start()
        if bar is not None:
            bar.update(task, completed=done)

    try:
        yield advance
    finally:
        if bar is not None:
            bar.stop()
