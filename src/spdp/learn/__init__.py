"""scikit-learn classes: private statistics inside pipelines."""

from importlib.util import find_spec

if find_spec("sklearn") is None:
    raise ImportError("estimators need scikit-learn; install it with: pip install 'spdp[learn]'")

from spdp.learn.classify import PrivateMDM, PrivateTangentLDA
from spdp.learn.estimators import PrivateFrechetMean, PrivateGeodesicRegression, PrivateTangentPCA

__all__ = [
    "PrivateFrechetMean",
    "PrivateGeodesicRegression",
    "PrivateMDM",
    "PrivateTangentLDA",
    "PrivateTangentPCA",
]
