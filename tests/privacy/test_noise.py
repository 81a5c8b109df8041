"""The Gaussian sampler: whoever draws, and however vectors are handed over."""

import numpy as np
import pytest

from spdp.privacy import noise

SCALE = 1e4


@pytest.fixture(params=["by address", "by OpenDP's own call"])
def handed(request, monkeypatch):
    """Both ways of handing a vector to OpenDP."""
    noise._opendp_gaussian.cache_clear()
    if request.param != "by address":
        monkeypatch.setattr(noise, "_library", lambda: None)
    elif noise._library() is None:
        pytest.skip("this OpenDP has another inside")
    yield
    noise._opendp_gaussian.cache_clear()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_law_is_the_same_for_any_threads(handed, monkeypatch, threads):
    """Mean and variance of 6,000 draws, within five standard errors.

    Three limits in six cases, without a seed: right code fails in 0.001 % of all runs.
    """
    monkeypatch.setattr(noise, "threads", lambda: threads)
    total = np.arange(6000, dtype=np.int64) * 10**12
    drawn = noise.gaussian(total, SCALE, None) - total
    assert drawn.dtype == np.int64
    assert abs(drawn.mean()) < 5 * SCALE / np.sqrt(6000)
    assert abs(drawn.var() / SCALE**2 - 1) < 5 * np.sqrt(2 / 6000)
    assert abs(np.corrcoef(drawn[:3000], drawn[3000:])[0, 1]) < 5 / np.sqrt(3000)


def test_it_saturates_at_the_ends_of_the_integers(handed):
    ends = np.array([noise.LIMIT, -noise.LIMIT] * 40)
    drawn = noise.gaussian(ends, SCALE, None)
    assert (np.sign(drawn) == np.sign(ends)).all()
    assert (np.abs(drawn.astype(float)) > noise.LIMIT - 20 * SCALE).all()


def test_an_empty_total_has_no_noise(handed):
    assert noise.gaussian(np.zeros(0, np.int64), SCALE, None).size == 0
