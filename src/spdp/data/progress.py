"""Progress bars: on a terminal or in a notebook, and only for work that lasts."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

PATIENCE = 1.0  # seconds of work after which a bar appears

# nested work shows no bar of its own: two bars would overwrite each other
_shown = False
SILENT = nullcontext(lambda amount: None)


def track(description: str, total: float | None) -> AbstractContextManager[Callable[[float], None]]:
    """Give a function that records how much was done.

    A bar with rate and time left appears after a second: on standard error where that
    is a terminal, or below the running cell of a notebook.
    """
    watched = sys.stderr.isatty() or _in_notebook()
    return _tracked(description, total) if watched and not _shown else SILENT


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
