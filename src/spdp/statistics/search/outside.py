"""Telling when a domain does not fit: from released numbers only."""

from dataclasses import dataclass
from typing import Any

__all__ = ["Outside"]


@dataclass(frozen=True)
class Outside:
    """Private estimate of the share of records at the domain's edge, and its noise."""

    share: float
    sd: float

    def describe(self) -> dict[str, Any]:
        """For the certificate."""
        return {"share": self.share, "sd": self.sd}
