"""scikit-learn classes: private statistics inside pipelines."""

from spdp.learn.classify import PrivateMDM, PrivateTangentLDA
from spdp.learn.estimators import PrivateFrechetMean, PrivateGeodesicRegression, PrivateTangentPCA

__all__ = [
    "PrivateFrechetMean",
    "PrivateGeodesicRegression",
    "PrivateMDM",
    "PrivateTangentLDA",
    "PrivateTangentPCA",
]
