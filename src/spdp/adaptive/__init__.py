"""Adaptive clipping: a private search for the data, and the clipped mean."""

from spdp.adaptive.affine_invariant import MovingSearch, TwoMeans
from spdp.adaptive.mean import FoundMean, MeanSearch
from spdp.adaptive.pure import PureMeanSearch
from spdp.adaptive.search import Search, counted
from spdp.adaptive.tuning import TUNING, Tuning

__all__ = [
    "TUNING",
    "FoundMean",
    "MeanSearch",
    "MovingSearch",
    "PureMeanSearch",
    "Search",
    "Tuning",
    "TwoMeans",
    "counted",
]
