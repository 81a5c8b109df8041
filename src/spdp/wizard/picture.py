"""The predicted error as curves, drawn within milliseconds: a slider waits for them.

SVG in the page's own colours; matplotlib takes longer than a slider may.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from typing import Any

WIDTH, HEIGHT = 420, 300
LEFT, RIGHT, TOP, BOTTOM = 68, 14, 14, 52
TICKS = (1, 2, 5)
MOST_TICKS = 5


@dataclass(frozen=True)
class Axis:
    """A logarithmic axis from the least to the greatest value."""

    low: float
    high: float
    start: float  # in pixels
    stop: float

    @classmethod
    def over(cls, values: Sequence[float], start: float, stop: float) -> "Axis":
        low, high = min(values), max(values)
        room = 1.15 if high / low < 1.3 else 1.05
        return cls(low / room, high * room, start, stop)

    def at(self, value: float) -> float:
        """The pixel of a value, at most at the edge."""
        share = (log10(value) - log10(self.low)) / (log10(self.high) - log10(self.low))
        return self.start + min(max(share, 0.0), 1.0) * (self.stop - self.start)

    def ticks(self) -> list[float]:
        """A few round values."""
        decades = range(floor(log10(self.low)), ceil(log10(self.high)) + 1)
        for kept in (TICKS, (1, 3), (1,)):
            found = [m * 10.0**e for e in decades for m in kept]
            found = [value for value in found if self.low <= value <= self.high]
            if len(found) <= MOST_TICKS:
                break
        step = -(-len(found) // MOST_TICKS) or 1
        return found[::step] or [self.low * 1.05, self.high / 1.05]


def curve(
    points: Sequence[tuple[float, float | None]],
    *,
    x_name: str,
    y_name: str,
    at: tuple[float, float | None],
    wanted: float | None = None,
) -> str:
    """Errors over ε or n, the chosen point, and the wanted error as a line."""
    drawn = [(x, y) for x, y in points if y is not None and y > 0]
    if len(drawn) < 2:
        return '<p class="soft">Nothing can be predicted here: there are too few records.</p>'
    x = Axis.over([p[0] for p in points], LEFT, WIDTH - RIGHT)
    shown = [y for _, y in drawn] + ([wanted] if wanted else [])
    y = Axis.over(shown, HEIGHT - BOTTOM, TOP)
    path = " ".join(f"{x.at(a):.1f},{y.at(b):.1f}" for a, b in drawn)
    parts = [*_grid(x, y), f'<polyline class="line" points="{path}"/>']
    if wanted:
        where = y.at(wanted)
        parts.append(
            f'<line class="wanted" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{where:.1f}" '
            f'y2="{where:.1f}"/><text class="wanted-text" x="{WIDTH - RIGHT}" '
            f'y="{where - 5:.1f}" text-anchor="end">wanted: {wanted:.3g}</text>'
        )
    if at[1] is not None:
        parts.append(
            f'<circle class="chosen" cx="{x.at(at[0]):.1f}" cy="{y.at(at[1]):.1f}" r="6"/>'
        )
    label = f"{y_name} by {x_name}: {number(drawn[0][1])} at {number(drawn[0][0])}, "
    label += f"{number(drawn[-1][1])} at {number(drawn[-1][0])}"
    return _svg(parts, x_name, y_name, label)


def _grid(x: Axis, y: Axis) -> list[str]:
    below = [
        f'<line class="grid" x1="{x.at(value):.1f}" x2="{x.at(value):.1f}" y1="{TOP}" '
        f'y2="{HEIGHT - BOTTOM}"/><text x="{x.at(value):.1f}" y="{HEIGHT - BOTTOM + 17}" '
        f'text-anchor="middle">{number(value)}</text>'
        for value in x.ticks()
    ]
    left = [
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y.at(value):.1f}" '
        f'y2="{y.at(value):.1f}"/><text x="{LEFT - 7}" y="{y.at(value) + 4:.1f}" '
        f'text-anchor="end">{number(value)}</text>'
        for value in y.ticks()
    ]
    return below + left


def _svg(parts: list[str], x_name: str, y_name: str, label: str) -> str:
    middle = (LEFT + WIDTH - RIGHT) / 2
    names = (
        f'<text x="{middle}" y="{HEIGHT - 10}" text-anchor="middle">{escape(x_name)}</text>'
        f'<text transform="translate(14,{(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" '
        f'text-anchor="middle">{escape(y_name)}</text>'
    )
    return (
        f'<svg class="curve" role="img" aria-label="{escape(label)}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}">{"".join(parts)}{names}</svg>'
    )


def number(value: Any) -> str:
    """A number as an axis shows it."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
