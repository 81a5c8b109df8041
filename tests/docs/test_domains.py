"""The page on domains: its radii are right."""

from pathlib import Path

import pytest

from spdp import CorrelationBounds, EigenvalueBounds, TraceBounds, amplitude_bounds, tensor_bounds

PAGE = Path(__file__).parents[2] / "docs" / "domains.md"


@pytest.mark.parametrize(
    ("domain", "k"),
    [
        (CorrelationBounds(0.2), 20),
        (CorrelationBounds(0.05), 20),
        (CorrelationBounds(0.1), 100),
        (EigenvalueBounds(0.2, 16.2), 20),
        (EigenvalueBounds(1e-3 / 22, 1.0), 22),
        (TraceBounds(1e-3 / 22, 1.0), 22),
        (tensor_bounds("mm2/s"), 3),
        (amplitude_bounds(8, 0.5, 50.0, unit="uV", data_unit="uV"), 8),
        (amplitude_bounds(8, 0.5, 500.0, unit="uV", data_unit="V"), 8),
    ],
)
def test_radii(domain, k):
    assert f"{domain.radius_for(k):.2f}" in PAGE.read_text("utf-8")
