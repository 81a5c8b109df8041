"""scikit-learn classes: private statistics inside pipelines."""

from spdp.learn.classify import PrivateMDM, PrivateTangentLDA
from spdp.learn.mean import PrivateFrechetMean
from spdp.learn.pca import PrivateTangentPCA

__all__ = ["PrivateFrechetMean", "PrivateMDM", "PrivateTangentLDA", "PrivateTangentPCA"]
