"""What the report tells: figures of groups of cells, and Markdown tables."""

import numpy as np
from scipy import stats

__all__ = ["BANDS", "Cells", "geometric", "in_band", "table"]

BANDS = ((0, 4), (4, 8), (8, 20), (20, 60), (60, 200), (200, np.inf))
SIGNIFICANT = 0.01
SAME = 1e-4  # relative difference of bounds that are the same but for rounding


def geometric(values):
    """Geometric mean of the finite ones."""
    v = np.asarray(list(values), dtype=float)
    return float(np.exp(np.log(v[np.isfinite(v)]).mean())) if np.isfinite(v).any() else np.nan


def in_band(rows, band):
    return Cells(r for r in rows if band[0] <= r["resolution"] < band[1])


def table(head, lines):
    """A Markdown table."""
    rows = [head, ["---"] * len(head), *lines]
    return ["| " + " | ".join(map(str, row)) + " |" for row in rows] + [""]


class Cells(list):
    """Cells of the comparison, and what is said of several of them."""

    def only(self, **facts):
        return Cells(r for r in self if all(r[name] == value for name, value in facts.items()))

    def ratios(self, method, other):
        return [r[method] / r[other] for r in self]

    def mean_ratio(self, method, other):
        return geometric(self.ratios(method, other))

    def worst(self, method, other):
        return max(self.ratios(method, other), default=np.nan)

    def rms(self, method):
        """Geometric mean of the root mean squared errors."""
        return geometric(np.sqrt(r[method]) for r in self)

    @property
    def runs(self):
        return int(sum(r["runs"] for r in self))

    def coverage(self, level):
        return sum(r[f"covered {level}"] for r in self) / max(self.runs, 1)

    def lowest(self, level):
        """Lowest coverage of a cell."""
        return min((r[f"covered {level}"] / r["runs"] for r in self), default=np.nan)

    def below(self, level):
        """Cells whose coverage is significantly below its level."""
        return Cells(
            r
            for r in self
            if stats.binom.cdf(r[f"covered {level}"], r["runs"], level / 100) < SIGNIFICANT
        )

    def coverage_within(self):
        clipped = Cells(r for r in self if r["clipped"] > 0)
        return sum(r["covered within"] for r in clipped) / max(
            sum(r["clipped"] for r in clipped), 1
        )

    def below_within(self):
        return Cells(
            r
            for r in self
            if stats.binom.cdf(r["covered within"], r["clipped"], 0.95) < SIGNIFICANT
        )

    def tightness(self):
        """Median over cells of the mean 95 % bound over the rms error."""
        return float(np.median([r["bound 95"] / np.sqrt(r["adaptive"]) for r in self]))

    def tightness_within(self):
        some = [r["bound within"] / np.sqrt(r["within"]) for r in self if r["clipped"] > 0]
        return float(np.median(some)) if some else np.nan

    def narrower(self):
        """Share of cells where the 95 % bound is on average below one shot's."""
        below = [r["bound 95"] < r["one shot bound 95"] for r in self]
        return float(np.mean(below)) if below else np.nan

    def as_wide(self):
        """Number of cells where the 95 % bound is one shot's."""
        return sum(
            r["bound 95"] >= r["one shot bound 95"] > (1.0 - SAME) * r["bound 95"] for r in self
        )
