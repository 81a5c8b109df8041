import numpy as np
import pytest

from spdp import EigenvalueBounds, TraceBounds, amplitude_bounds, tensor_bounds
from spdp.errors import ParameterError


def test_tensors_in_any_unit_are_the_same_tensors():
    radii = {tensor_bounds(unit).radius_for(3) for unit in ("mm2/s", "um2/ms", "m2/s", "µm²/ms")}
    assert max(radii) - min(radii) < 1e-12
    assert tensor_bounds("mm2/s") == EigenvalueBounds(1e-5, 5e-3)
    assert tensor_bounds("um2/ms", low=0.1) == EigenvalueBounds(0.1, 5.0)
    assert tensor_bounds("mm2/s").radius_for(3) == pytest.approx(5.38, abs=0.005)
    assert tensor_bounds("mm2/s").contains(np.diag([1.7e-3, 3e-4, 3e-4]))
    assert not tensor_bounds("m2/s").contains(np.diag([1.7e-3, 3e-4, 3e-4]))


def signals(channels, rms, n=50, length=30, seed=0):
    S = np.random.default_rng(seed).standard_normal((n, channels, length))
    return S * rms / np.sqrt((S * S).mean(axis=2, keepdims=True))


def test_amplitudes_hold_every_signal_within_them():
    low, high, k = 0.5, 50.0, 40  # more channels than samples: singular without a floor
    S = signals(k, high)
    C = np.stack([np.cov(s, bias=True) for s in S]) + low**2 * np.eye(k)
    domain = amplitude_bounds(k, low, high, unit="uV", data_unit="uV")
    assert domain == TraceBounds(0.25, k * 2500.25)
    w = np.linalg.eigvalsh(C)
    assert (w.min(), w.sum(axis=1).max()) >= (domain.low * (1 - 1e-9), 0)
    assert w.sum(axis=1).max() <= domain.trace
    assert domain.contains(C).all()
    volts = amplitude_bounds(k, low, high, unit="uV", data_unit="V")
    assert volts.contains(1e-12 * C).all()
    assert not volts.contains(C).any()
    assert volts.radius_for(k) == pytest.approx(domain.radius_for(k))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tensor_bounds("mm/s"), "unit must be one of 'mm2/s'"),
        (lambda: tensor_bounds("mm2/s", low=-1.0), "low"),
        (lambda: amplitude_bounds(0, 1, 2, "V", "V"), "channels"),
        (lambda: amplitude_bounds(3, 2, 1, "V", "V"), "low must be smaller"),
        (lambda: amplitude_bounds(3, 1, 2, "V", "T"), "data_unit must be one of 'V'"),
    ],
)
def test_mistakes(call, message):
    with pytest.raises(ParameterError, match=message):
        call()
