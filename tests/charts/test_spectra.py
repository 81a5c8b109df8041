"""The farthest spectrum of a bounded trace: a formula, put to search."""

import numpy as np
import pytest
from scipy import optimize

from spdp.charts.spectra import extreme_spectra, spread_from, trace_ball
from spdp.errors import ParameterError

CASES = [
    (0.2, 20.0, 20),
    (0.05, 20.0, 20),
    (1e-3 / 22, 1.0, 22),
    (1e-6, 2.9, 9),
    (0.3, 1.0, 3),
    (1e-9, 1.0, 2),
    (0.1, 0.9, 1),
    (1.0, 5.0001, 5),
    (1e-200, 1e200, 4),
]


def spreads(L, t):
    return np.sqrt(((np.log(L) - t) ** 2).sum(axis=-1))


def spectra(rng, low, trace, k, n):
    """Spectra that keep both bounds: few, many or all eigenvalues share the rest."""
    concentration = 10.0 ** rng.uniform(-3, 3, (n, 1))
    shares = rng.gamma(concentration, size=(n, k)) + 1e-300
    some = rng.random((n, k)) < rng.uniform(0, 1, (n, 1))
    some[np.arange(n), rng.integers(k, size=n)] = True
    shares = np.where(some, shares, 0.0)
    shares /= shares.sum(axis=1, keepdims=True)
    return low + shares * (trace - k * low) * rng.choice([1.0, 1.0, 0.5], (n, 1))


def climbed(rng, low, trace, k, t):
    """The spread at a local maximum, from a random start; one share is nobody's."""

    room = trace - k * low

    def shares(u):
        e = np.exp(u - u.max())
        return e / e.sum()

    def spectrum(u):
        return low + shares(u)[:k] * room

    def slope(u):
        L, s = spectrum(u), shares(u)
        along = np.append(2.0 * (np.log(L) - t) / L, 0.0)
        return -room * s * (along - along @ s)

    start = rng.standard_normal(k + 1) * rng.choice([0.1, 1.0, 5.0])
    start[rng.permutation(k + 1) < rng.integers(0, k + 1)] -= 30.0  # these begin at low
    found = optimize.minimize(lambda u: -(spreads(spectrum(u), t) ** 2), start, jac=slope)
    return float(spreads(spectrum(found.x), t))


@pytest.mark.parametrize(("low", "trace", "k"), CASES)
def test_no_spectrum_lies_farther_and_one_lies_so_far(low, trace, k):
    rng = np.random.default_rng(k)
    best, radius = trace_ball(low, trace, k)
    for t in (best, best - 1.0, best + 0.5):
        bound = spread_from(t, low, trace, k)
        assert spreads(spectra(rng, low, trace, k, 20_000), t).max() <= bound
        p, logs = extreme_spectra(low, trace, k)
        few = np.arange(k) < p[:, None]
        reached = np.where(few, np.exp(logs)[:, None], low)
        assert (reached.sum(axis=1) <= trace * (1 + 1e-12)).all()
        assert spreads(reached, t).max() == pytest.approx(bound, rel=1e-6)
    assert radius == spread_from(best, low, trace, k)


@pytest.mark.parametrize(("low", "trace", "k"), CASES[:6])
def test_climbing_never_exceeds_it_and_gets_there(low, trace, k):
    rng = np.random.default_rng(k)
    for shift in (0.0, -0.7, 0.7):
        t = trace_ball(low, trace, k)[0] + shift
        bound = spread_from(t, low, trace, k)
        found = max(climbed(rng, low, trace, k, t) for _ in range(30))
        assert bound * (1 - 1e-6) <= found <= bound


def test_two_free_eigenvalues_are_searched_on_a_fine_grid():
    """k = 3, all pairs of values: the between eigenvalue that the proof rules out."""
    for low, trace in [(1e-6, 1.0), (0.01, 1.0), (0.1, 1.0), (0.3, 1.0)]:
        t, radius = trace_ball(low, trace, 3)
        grid = np.exp(np.linspace(np.log(low), np.log(trace - 2 * low), 1500))
        a, b = np.meshgrid(grid, grid)
        c = np.maximum(trace - a - b, low)
        L = np.stack([a, b, c], axis=-1)[a + b + low <= trace]
        largest = spreads(L, t).max()
        assert largest <= radius
        assert largest == pytest.approx(radius, rel=1e-2)


@pytest.mark.parametrize(("low", "trace", "k"), CASES)
def test_the_centre_is_the_best_one(low, trace, k):
    t, radius = trace_ball(low, trace, k)
    others = t + np.concatenate([-np.logspace(-6, 1, 50), np.logspace(-6, 1, 50)])
    assert min(spread_from(s, low, trace, k) for s in others) >= radius * (1 - 1e-12)
    assert np.log(low) <= t <= np.log(trace - (k - 1) * low)


@pytest.mark.parametrize(
    ("low", "trace", "k", "radius"),
    [
        (0.2, 20, 20, 5.49),
        (0.05, 20, 20, 8.56),
        (0.1, 100, 100, 15.74),
        (1e-3 / 22, 1, 22, 18.00),
        (0.1, 400, 400, 31.47),
    ],
)
def test_radii(low, trace, k, radius):
    assert trace_ball(low, trace, k)[1] == pytest.approx(radius, abs=0.005)


def test_one_eigenvalue_is_an_interval():
    t, radius = trace_ball(0.1, 10.0, 1)
    assert t == pytest.approx(0.0, abs=1e-12)
    assert radius == pytest.approx(np.log(10.0))


@pytest.mark.parametrize("trace", [0.3, 0.29, 1e308 * 10])
def test_no_room(trace):
    from spdp.charts import CHARTS

    with pytest.raises(ParameterError, match="leaves no room for 3 eigenvalues"):
        CHARTS["logeuclid"].traced(0.1, trace, 3)
