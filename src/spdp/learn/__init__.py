"""scikit-learn classes: private statistics inside pipelines."""

from spdp.learn.mean import PrivateFrechetMean

__all__ = ["PrivateFrechetMean"]
