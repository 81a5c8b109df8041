"""Telling when a domain does not fit: from released numbers only."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.errors import OutsideDomain
from spdp.kernels import Region

__all__ = ["Outside", "at_far_edge", "warn_outside"]

MANY, CLEAR = 0.1, 3.0  # share from which to warn, by so many sd of its noise
FAR, SHARP = 0.9, 0.3  # over the radius: distance of a mean at the edge, and its error


@dataclass(frozen=True)
class Outside:
    """Private estimate of the share of records at the domain's edge, and its noise."""

    share: float
    sd: float

    @property
    def clearly(self) -> bool:
        """Whether many records are there beyond doubt."""
        return self.share - CLEAR * self.sd > MANY

    def describe(self) -> dict[str, Any]:
        """For the certificate."""
        return {"share": self.share, "sd": self.sd}


def at_far_edge(y: NDArray[np.float64], region: Region, error: float) -> bool:
    """Whether a released mean lies at the ball's surface, its error aside.

    A mean is there only if nearly all records are.
    """
    if error >= SHARP * region.radius:
        return False
    return float(np.linalg.norm(y - region.center)) > FAR * region.radius


def warn_outside(share: float | None, unit: str | None) -> None:
    """Warn that the domain does not fit the records (or persons).

    To be called when the release is kept: a warning may be made an error.
    """
    whose = f"{unit or 'record'}s"
    many = f"about {share:.0%} of the" if share is not None else "nearly all"
    warnings.warn(
        f"{many} {whose} lie outside the domain or at its edge, and were moved to it. Is the "
        "domain in the unit of the data?",
        OutsideDomain,
        stacklevel=4,
    )
