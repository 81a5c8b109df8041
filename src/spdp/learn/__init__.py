"""scikit-learn classes: private statistics inside pipelines."""

from spdp.learn.classify import PrivateMDM, PrivateTangentLDA
from spdp.learn.mean import PrivateFrechetMean
from spdp.learn.pca import PrivateTangentPCA
from spdp.learn.regression import PrivateGeodesicRegression

__all__ = [
    "PrivateFrechetMean",
    "PrivateGeodesicRegression",
    "PrivateMDM",
    "PrivateTangentLDA",
    "PrivateTangentPCA",
]
