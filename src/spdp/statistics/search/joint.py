r"""A bound on the error of all class means together, for records that were pulled.

Given all that was released before, the last answer of a search for classes has for each
class c the noisy sum S_c + N_c of its records' z, pulled to the released ellipsoid
about the released centre of the class; n̂_c = n_c + η_c are its noisy counts, of all
answers together. With v_c = (S_c + N_c)/n̂_c and |η_c| ≤ E for all classes, but for a
probability of 2·10⁻⁵, as in :mod:`spdp.privacy.bounds`,

    ‖v_c − S_c/n_c‖ ≤ (‖N_c‖ + E·‖v_c‖)/(n̂_c − E).

What is released is v_c moved by a known amount (shrinkage, and into the domain), which
is added. By Minkowski's inequality the root of the sum of squares over the classes is
at most that of the noise, of known law, and that of the rest. Nothing is assumed of the
records, but the bound is about the means of the *pulled* records: how much pulling took
off each class is not measured, so no bound is known for the records themselves.
"""

from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.certificate import stated_bounds
from spdp.frame import Frame
from spdp.privacy.bounds import SURE_PART, Bound
from spdp.privacy.joint import count_reach
from spdp.privacy.laws import weighted_chi2_law
from spdp.queries import RECORD_NORM, Moments
from spdp.statements import PULLED_MEANS

__all__ = ["pulled_bound", "within"]

Array = NDArray[np.float64]


def pulled_bound(
    frame: Frame, radius: float, found: Moments, counts: Array, sd: float, moved: Array, n: int
) -> Bound | None:
    """The bound of this module's text, or None where a class is too small for one.

    ``counts`` have noise of standard deviation ``sd``; ``moved`` (C, d) is what is
    released, in units of the frame, less v_c; n is the number of records in all.
    """
    reach = count_reach(len(counts), sd)
    least = counts - reach
    if least.min() < 1.0:
        return None
    lengths, shifts = (
        np.linalg.norm(part * frame.width, axis=1) for part in (found.sums / counts[:, None], moved)
    )
    shift = float(np.linalg.norm(reach * lengths / least + shifts))
    variances = np.outer(least**-2.0, (frame.width * found.sum_sd) ** 2).ravel()
    C, d = moved.shape
    # a row that counts in part loses a step, too
    step = radius * float(frame.width.max()) / RECORD_NORM * n / float(least.min())
    slack = 2.0 * sqrt(C * d) * step
    law = weighted_chi2_law(variances)
    return replace(Bound.shifted(law, shift), slack=slack, part=SURE_PART)


def within(bound: Bound | None, shift: float, unit: str) -> dict[str, Any] | None:
    """What a certificate says of it, after the means were moved once more."""
    if bound is None:
        return None
    last = bound.moved(shift)
    return {
        **stated_bounds(last),
        "parts": last.describe(),
        "estimand": PULLED_MEANS.format(unit=unit),
    }
