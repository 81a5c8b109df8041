"""Private mean estimators of the literature on vectors, written from their papers.

Seeded simulations in floating point: for comparison, never for release.
"""

import numpy as np

QUANTILES = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99, 0.995, 0.998, 1.0)


def clip(Y, center, radius):
    Z = Y - center
    norm = np.linalg.norm(Z, axis=1, keepdims=True)
    return center + Z * np.minimum(1.0, radius / np.maximum(norm, 1e-300))


def gaussian_mean(Y, center, radius, mu, rng):
    """Mean of records clipped to a ball, with μ-GDP noise for replacing one of them."""
    n, d = Y.shape
    return clip(Y, center, radius).mean(axis=0) + 2 * radius / (n * mu) * rng.standard_normal(d)


def gaussian_norm_bound(d, beta):
    """Bound on the norm of N(0, I_d) that fails with probability β at most."""
    return np.sqrt(d + 2 * np.sqrt(d * np.log(1 / beta)) + 2 * np.log(1 / beta))


def coinpress(Y, radius, mu, rng, sigma, rounds=4):
    """CoinPress (Biswas, Dong, Kamath, Ullman 2020): iterated confidence balls.

    For the multivariate mean under N(m, Σ ≤ σ²I). Needs a bound σ on the standard
    deviation in every direction: given here, from the data, which is generous (it is
    not private). Budgets as in its authors' experiments: a quarter of ρ spread over the
    first rounds, three quarters for the last.
    """
    n, d = Y.shape
    shares = np.append(np.full(rounds - 1, 0.25 / (rounds - 1)), 0.75)
    center, r, beta = np.zeros(d), radius, 0.01
    for share in shares:
        reach = r + sigma * gaussian_norm_bound(d, beta / n)
        step_mu = mu * np.sqrt(share)
        center = gaussian_mean(Y, center, reach, step_mu, rng)
        noise = 2 * reach / (n * step_mu)
        r = np.sqrt(sigma**2 / n + noise**2) * gaussian_norm_bound(d, beta)
    return center


def huang_liang_yi(Y, radius, mu, rng, steps=10):
    """Instance-optimal mean (Huang, Liang, Yi 2021): a clipped mean around a median.

    Centre: coordinate-wise medians by noisy binary search in a random rotation of the
    space. Radius: the quantile that leaves √d/μ records outside, by noisy binary search
    on a grid. A quarter of μ² for the centre, a quarter for the radius, half for the
    mean.
    """
    n, d = Y.shape
    rotation, _ = np.linalg.qr(rng.standard_normal((d, d)))
    Z = Y @ rotation
    noise = 1.0 / (mu * np.sqrt(0.25 / (steps * d)))
    low, high = np.full(d, -radius), np.full(d, radius)
    for _ in range(steps):
        middle = 0.5 * (low + high)
        above = (middle < Z).sum(axis=0) + noise * rng.standard_normal(d) > n / 2
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    center = rotation @ (0.5 * (low + high))
    distance = np.linalg.norm(Y - center, axis=1)
    outside = np.sqrt(d) / (mu * np.sqrt(0.5))
    noise = 1.0 / (mu * np.sqrt(0.25 / steps))
    low, high = 1e-3 * radius, 2 * radius
    for _ in range(steps):
        middle = np.sqrt(low * high)
        enough = (distance > middle).sum() + noise * rng.standard_normal() <= outside
        low, high = (low, middle) if enough else (middle, high)
    return gaussian_mean(Y, center, high, mu * np.sqrt(0.5), rng)


def oracle(Y, mu, width=None):
    """Expected squared error with the true mean and the best radius known.

    Among radii that keep at least half of the records inside.
    """
    n, d = Y.shape
    centred = Y - Y.mean(axis=0)
    w = np.ones(d) if width is None else width
    norm = np.linalg.norm(centred / w, axis=1)
    best = np.inf
    for r in np.quantile(norm, QUANTILES):
        bias = (centred * np.minimum(1.0, r / np.maximum(norm, 1e-300))[:, None]).mean(axis=0)
        best = min(best, (w @ w) * (2 * r / (n * mu)) ** 2 + bias @ bias)
    return best


def oracles(Y, mu):
    """The same for three shapes of noise: round, along axes, along directions."""
    centred = Y - Y.mean(axis=0)
    _, s, V = np.linalg.svd(centred, full_matrices=False)
    along_axes = np.sqrt(centred.std(axis=0) + 1e-9)
    along_directions = np.sqrt(s / np.sqrt(len(Y)) + 1e-6)
    return {
        "iso": oracle(centred, mu),
        "diag": oracle(centred, mu, along_axes),
        "full": oracle(centred @ V.T, mu, along_directions),
    }
