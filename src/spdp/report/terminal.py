"""What the command line prints of a release and of a plan."""

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from rich.text import Text

from spdp.release import Release
from spdp.words import facts, heading

__all__ = ["release_table", "terminal_curve"]

Array = NDArray[np.float64]


def release_table(release: Release) -> Table:
    """The certificate's main facts, one per row; its texts are never read as markup."""
    c = release.certificate
    table = Table(show_header=False, title=heading(c), title_justify="left")
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts(c).items():
        alarm = name == "private" and not c["private"]
        table.add_row(name, Text(value, style="bold red" if alarm else ""))
    return table


def terminal_curve(x: Array, y: Array, label: str, width: int = 44) -> list[str]:
    """A positive curve as bars on a logarithmic scale, one line per point."""
    logs = np.log10(y)
    low, high = np.floor(logs.min()), logs.max()
    bars = np.maximum(1, np.rint(width * (logs - low) / max(high - low, 1e-9))).astype(int)
    return [
        f"{label} = {a:>13,.0f}  {'█' * bar:<{width}}  {value:.3g}"
        for a, bar, value in zip(x, bars, y, strict=True)
    ]
