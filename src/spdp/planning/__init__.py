"""Predicted errors of releases, for every statistic, before any data are read."""

from spdp.planning.model import Prediction
from spdp.planning.plan import Plan, plan, plan_statistic

__all__ = ["Plan", "Prediction", "plan", "plan_statistic"]
