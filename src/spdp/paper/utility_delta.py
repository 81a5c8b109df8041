"""Utility against the size of the matrices, for smaller δ."""

from spdp.paper import utility_epsilon
from spdp.paper.common import Row, Settings

NAME = "utility_delta"
TITLE = "Utility against k for smaller δ (n = 500, r = 1/4)"
CLAIM = (
    "The advantage of the tangent Gaussian mechanism persists for δ = 1e-7, 1e-8 and 1e-9: "
    "its error grows only with ln(1/δ)."
)
measure, draw, verdict = utility_epsilon.measure, utility_epsilon.draw, utility_epsilon.verdict


def cells(settings: Settings) -> list[Row]:
    epsilons = (0.2,) if settings.quick else utility_epsilon.EPSILONS
    return utility_epsilon.grid(settings, epsilons, (1e-7, 1e-8, 1e-9))
