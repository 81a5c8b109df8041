"""Calibration and composition, and the account, which alone adds noise."""

from spdp.privacy.calibration import (
    analytic_sigma,
    classical_sigma,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    laplace_scale,
)

__all__ = [
    "analytic_sigma",
    "classical_sigma",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "laplace_scale",
]
