r"""The private difference of two class means: how large it is, and whether it is there.

The contrast z_a − z_b of :mod:`spdp.statistics.significance`, which says how it is
asked, bounded and tested. There V = Σ_a/n_a + Σ_b/n_b + noise, E‖z_a − z_b‖² = tr V
where both classes have one distribution, and its variance is near 2·tr V².
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np

from spdp.kernels.arrays import Array
from spdp.release import Release
from spdp.release.certificate import Facts
from spdp.release.declaration import MATRICES, Check, Values
from spdp.release.verify import at_edge
from spdp.rendering.panels import Panel, matrix_panels
from spdp.statistics.options import Options, public
from spdp.statistics.significance import NULL, Contrast

STATEMENT = (
    "the whole error of the difference (noise, clipping to the balls, noisy counts), with at "
    "least the stated probability over the noise, whatever the records are. "
) + NULL
CLIPPED = "the difference of the means of the classes' records clipped to the released balls"


@dataclass(frozen=True, eq=False)
class Difference(Contrast):
    """The difference of two class means, and a test of it."""

    name: ClassVar = "difference"
    title: ClassVar = "difference of two class means"
    plain: ClassVar = "Difference: the means of two classes, and a test whether they differ."
    target: ClassVar = (
        "the difference, in the {distance} chart, of the means of two classes of {units}, each "
        "clipped to the domain"
    )
    releases: ClassVar = {
        "difference": ("d",),
        "means": MATRICES,
        "counts": ("classes",),
        "p_value": (),
    }
    contrasts: ClassVar = "difference"
    max_classes: ClassVar = 2
    command: ClassVar = "Release and test the difference of two class means."
    aliases: ClassVar = ("compare",)

    def contrast(self, counts: Array) -> Array:
        return np.array([[1.0, -1.0]])

    @classmethod
    def planned(cls, asked: Any) -> "Difference":
        return cls(range(asked.classes))

    def statement(self, facts: Facts) -> str:
        return STATEMENT.format(unit=facts.unit)

    def within_target(self, facts: Facts) -> tuple[str, float | None]:
        return CLIPPED, None

    def check_contrasts(self, f: Facts, values: Values, Y: Array, limit: float) -> Iterator[Check]:
        D, region = values["difference"], f.space.region
        for u, w, sign in zip(Y, Y[::-1], (1.0, -1.0), strict=True):
            if not at_edge(f, u):  # it was not moved, so that the other follows from it
                off = float(np.abs(f.chart.project(u - sign * D, region) - w).max())
                yield Check("difference", off <= limit, f"of the means: off by {off:.3g}")

    def meaning(self, facts: Facts) -> str | None:
        return f"The released difference: {self.length(facts)}; {self.verdict(facts)}."

    def panels(self, facts: Facts, values: Values) -> list[Panel]:
        first, second = values["means"]
        one, two = facts.last.classes
        titles = [f"Mean of class {name}" for name in (one, two)]
        title = f"Mean of class {one} less that of class {two}, entry by entry"
        change = matrix_panels((first - second)[None], [title], "change")
        return matrix_panels(values["means"], titles) + change[:1]


STATISTIC = Difference()


@public
def private_difference(
    X: Any, y: Any = None, *, classes: Sequence[Any], **options: Unpack[Options]
) -> Release:
    """Release the difference of two classes' means, and a test of whether they differ.

    Parameters
    ----------
    X : array (n, k, k), or anything :func:`spdp.data.source.as_source` takes
    y : array (n,)
        The class of each record; private, like the records.
    classes : pair
        Public: the two labels, a and b, of the difference a − b. A record of another
        label is invalid (see ``on_invalid``); with "center" it adds nothing.
    {options}

    Returns
    -------
    Release
        ``difference`` (d,), in the chart's coordinates; ``means`` (2, k, k) and
        ``counts`` (2,) of the classes; ``p_value``, NaN where it is withheld (the
        certificate's last step says why). ``error_bound(0.95)`` is the radius
        of a ball about ``difference`` that holds the true one; the certificate's
        ``error_bound_within`` is sharper, for means clipped to the balls found.

    Examples
    --------
    >>> import numpy as np
    >>> from spdp import EigenvalueBounds, private_difference
    >>> y = np.arange(4000) % 2
    >>> X = np.exp(0.5 * y)[:, None, None] * np.eye(2)
    >>> domain = EigenvalueBounds(0.1, 10.0)
    >>> release = private_difference(
    ...     X, y, classes=(1, 0), epsilon=2.0, delta=1e-6, domain=domain
    ... )
    >>> bool(release.values["p_value"] < 0.01)
    True
    """
    return Difference(classes).release(X, labels=y, **options)
