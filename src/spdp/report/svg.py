"""Matplotlib's figures as SVG that is set into a page.

Pictures have no background and take their ink from the page that holds them, so that
they can be read in light and in dark: they are drawn in stand-in colours, which are
then replaced by the page's CSS variables. What is marked as a map is turned from light
to dark by the page as a whole.
"""

import re
from collections.abc import Callable
from html import escape
from io import StringIO
from typing import Any

from spdp.errors import DataError

__all__ = ["FAINT", "FILL", "LINE", "MAP", "MAP_INK", "MARK", "figure_of", "svg_of"]

INK, FAINT, LINE, FILL, MARK = "#010203", "#010204", "#010205", "#010206", "#010207"
PALETTE = {
    INK: "currentColor",
    FAINT: "var(--faint)",
    LINE: "var(--line)",
    FILL: "var(--fill)",
    MARK: "var(--mark)",
}
STYLE = {
    "svg.fonttype": "none",
    "font.size": 10.0,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "axes.facecolor": "none",
    "legend.facecolor": "none",
    "legend.edgecolor": FAINT,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.parse_math": False,
    "text.usetex": False,
}
NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))
MAP, MAP_INK = "map", "map-ink"  # what has colours of its own, light where it is zero, and its ink
WIDTH = 4.0  # inches


def figure_of(width: float, height: float) -> Any:
    """An empty figure; its sides are in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise DataError(
            "a picture needs matplotlib; install it with: pip install 'spdp[plots]'"
        ) from None
    return Figure(figsize=(width, height), layout="constrained")


def svg_of(name: str, label: str, height: float, paint: Callable[[Any], None]) -> str:
    """An ``<svg>`` element for a page; ``name`` keeps its ids apart."""
    figure, buffer = figure_of(WIDTH, height), StringIO()
    from matplotlib import rc_context

    style: Any = STYLE | {"svg.hashsalt": name}
    with rc_context(style):
        paint(figure)
        figure.savefig(buffer, format="svg", transparent=True, metadata=NO_METADATA)
    found = re.search(r'<svg\b[^>]*(viewBox="[^"]*")[^>]*>(.*)', buffer.getvalue(), re.DOTALL)
    assert found is not None  # matplotlib writes it
    box, body = found.groups()
    body = re.sub(r"<(metadata|style)\b.*?</\1>", "", body, flags=re.DOTALL)
    for kind in (MAP, MAP_INK):
        body = body.replace(f' id="{kind}"', f' class="{kind}"')
    body = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", body)
    for stand_in, colour in PALETTE.items():
        body = body.replace(stand_in, colour)
    return f'<svg role="img" aria-label="{escape(label)}" {box}>{body}'
