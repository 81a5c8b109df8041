r"""A private analysis of variance: whether the means of several classes differ.

The contrasts are the effects of the classes, z_c − z̄ with z̄ = Σ n̂_c·z_c / Σ n̂_c for the
released counts n̂_c; the test statistic is the sum of squares between classes,
T = Σ n̂_c·‖z_c − z̄‖². :mod:`spdp.statistics.significance` says how they are asked,
bounded and tested. For two classes, T is n_a·n_b/(n_a + n_b) times ‖z_a − z_b‖².
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np

from spdp.kernels.arrays import Array
from spdp.options import positive_int
from spdp.release import Release
from spdp.release.certificate import Facts
from spdp.release.declaration import MATRICES, Check, Values
from spdp.release.verify import at_edge
from spdp.rendering.panels import Panel, matrix_panels
from spdp.statistics.options import Options, public
from spdp.statistics.significance import NULL, Contrast

STATEMENT = (
    "the whole error of all effects together, the root of the sum of their squared distances "
    "(noise, clipping to the balls, noisy counts), with at least the stated probability over the "
    "noise, whatever the records are. "
) + NULL
CLIPPED = "the effects of the classes' records clipped to the released balls"


@dataclass(frozen=True, eq=False)
class Anova(Contrast):
    """Effects of several classes, and a test of whether there are any."""

    name: ClassVar = "anova"
    title: ClassVar = "analysis of variance"
    plain: ClassVar = "Analysis of variance: a test whether the means of several classes differ."
    target: ClassVar = (
        "the effects, in the {distance} chart, of the classes of {units}, each clipped to the "
        "domain: the mean of each class less the mean of all, weighted by the released counts"
    )
    releases: ClassVar = {
        "effects": ("classes", "d"),
        "means": MATRICES,
        "counts": ("classes",),
        "p_value": (),
    }
    contrasts: ClassVar = "effects"
    measure: ClassVar = "sum of squares between classes"
    power: ClassVar = "squared "
    command: ClassVar = "Test whether the means of several classes differ."

    def contrast(self, counts: Array) -> Array:
        return np.asarray(np.eye(len(counts)) - counts / counts.sum())

    def weights(self, counts: Array) -> Array:
        return counts

    def measured(self, statistic: float) -> float:
        return statistic

    @classmethod
    def planned(cls, asked: Any) -> "Anova":
        return cls(range(positive_int("classes", asked.classes)))

    def statement(self, facts: Facts) -> str:
        return STATEMENT.format(unit=facts.unit)

    def within_target(self, facts: Facts) -> tuple[str, float | None]:
        return CLIPPED, None

    def check_contrasts(self, f: Facts, values: Values, Y: Array, limit: float) -> Iterator[Check]:
        E, counts = values["effects"], values["counts"]
        size = limit + 1e-9 * float(np.abs(E).max())
        balance = float(np.abs(counts @ E).max() / counts.sum())
        yield Check("effects", balance <= size, f"add up to zero: off by {balance:.3g}")
        kept = [c for c, y in enumerate(Y) if not at_edge(f, y)]  # others may have been moved
        if kept:
            off = np.abs((E[kept] - E[kept[0]]) - (Y[kept] - Y[kept[0]])).max()
            yield Check("effects", bool(off <= limit), f"of the means: off by {off:.3g}")

    def meaning(self, facts: Facts) -> str | None:
        return f"The released effects: {self.length(facts)}; {self.verdict(facts)}."

    def panels(self, facts: Facts, values: Values) -> list[Panel]:
        means, names, chart = values["means"], facts.last.classes, facts.chart
        overall = chart.matrices(np.average(chart.vector(means), axis=0, weights=values["counts"]))
        less = [f"Mean of class {name} less that of all, entry by entry" for name in names]
        changed = matrix_panels(means - overall, less, "change")
        own = matrix_panels(means, [f"Mean of class {name}" for name in names])
        return own + [panel for panel in changed if panel.kind == "matrix"]


STATISTIC = Anova()


@public
def private_anova(
    X: Any, y: Any = None, *, classes: Sequence[Any], **options: Unpack[Options]
) -> Release:
    """Test whether the means of several classes differ, with differential privacy.

    Parameters
    ----------
    X : array (n, k, k), or anything :func:`spdp.data.source.as_source` takes
    y : array (n,)
        The class of each record; private, like the records.
    classes : sequence
        Public: two labels or more. A record of another label is invalid (see
        ``on_invalid``); with "center" it adds nothing.
    {options}

    Returns
    -------
    Release
        ``effects`` (C, d), in the chart's coordinates: each class's mean less the mean
        of all; ``means`` (C, k, k) and ``counts`` (C,) of the classes; ``p_value``, of
        the sum of squares between classes, NaN where it is withheld (the certificate's
        last step says why). ``error_bound(0.95)`` bounds the root of the
        sum of the effects' squared errors; the certificate's ``error_bound_within`` is
        sharper, for means clipped to the balls found.

    Examples
    --------
    >>> import numpy as np
    >>> from spdp import EigenvalueBounds, private_anova
    >>> y = np.arange(6000) % 3
    >>> X = np.exp(0.5 * y)[:, None, None] * np.eye(2)
    >>> domain = EigenvalueBounds(0.1, 10.0)
    >>> release = private_anova(
    ...     X, y, classes=(0, 1, 2), epsilon=2.0, delta=1e-6, domain=domain
    ... )
    >>> bool(release.values["p_value"] < 0.01)
    True
    """
    return Anova(classes).release(X, labels=y, **options)
