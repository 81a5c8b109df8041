"""The cost of a domain too wide, too narrow or in another unit, for docs/domains.md.

SPDP_DATA=FOLDER python benchmarks/domains.py
"""

import os
from pathlib import Path

import numpy as np

from spdp import (
    CorrelationBounds,
    EigenvalueBounds,
    amplitude_bounds,
    private_mean,
    tensor_bounds,
)
from spdp.geometry import distance_logeuclid, mean_logeuclid

DATA = Path(os.environ.get("SPDP_DATA", "../shared/data"))
REPEATS = 8


def abide():
    C = np.load(DATA / "abide/connectomes20.npz")["matrices"].astype(float)
    return 0.8 * C + 0.2 * np.eye(C.shape[1])


def tensors():
    return np.load(DATA / "dti/small_64D_tensors.npz")["D"].astype(float)


def signals(n=2000, k=8, length=250):
    """Covariances in µV² of mixed noise of about 15 µV, with a floor of (0.5 µV)²."""
    rng = np.random.default_rng(0)
    mixing = np.eye(k) + 0.5 * rng.standard_normal((k, k)) / np.sqrt(k)
    S = 15.0 * mixing @ rng.standard_normal((n, k, length))
    S = S * np.exp(0.2 * rng.standard_normal((n, 1, 1)))
    return S @ S.transpose(0, 2, 1) / length + 0.25 * np.eye(k)


def amplitudes(low, high, data_unit="uV"):
    return amplitude_bounds(8, low, high, unit="uV", data_unit=data_unit)


CASES = {
    "ABIDE": (
        abide,
        2.0,
        [
            CorrelationBounds(0.2),
            CorrelationBounds(0.05),
            EigenvalueBounds(0.2, 16.2),
            EigenvalueBounds(1e-4, 1e4),
            EigenvalueBounds(0.5, 2.0),
            EigenvalueBounds(2.0, 20.0),
        ],
    ),
    "DTI": (
        tensors,
        1.0,
        [
            tensor_bounds("mm2/s"),
            EigenvalueBounds(1e-9, 1.0),
            EigenvalueBounds(5e-4, 1e-3),
            tensor_bounds("um2/ms"),
        ],
    ),
    "EEG": (
        signals,
        1.0,
        [
            amplitudes(0.5, 50.0),
            amplitudes(0.5, 500.0),
            amplitudes(0.005, 5000.0),
            amplitudes(0.5, 10.0),
            amplitudes(0.5, 50.0, "V"),
        ],
    ),
}


def error(X, domain, epsilon, method):
    """Root mean square distance of releases to the mean of the records."""
    options = {"delta": 1e-6, "domain": domain, "method": method, "mechanism": "gaussian"}
    options["anyway"] = True  # wide domains, small ε
    values = [private_mean(X, epsilon=epsilon, **options).value for _ in range(REPEATS)]
    return float(np.sqrt(np.mean(distance_logeuclid(np.stack(values), mean_logeuclid(X)) ** 2)))


def main():
    print("| data | domain | radius | outside | one shot | adaptive |\n|---|---|---|---|---|---|")
    for name, (load, epsilon, domains) in CASES.items():
        X = load()
        for domain in domains:
            outside = 1.0 - float(np.mean(domain.contains(X)))
            errors = [error(X, domain, epsilon, method) for method in ("oneshot", "adaptive")]
            print(
                f"| {name} | {domain!r} | {domain.radius_for(X.shape[1]):.2f} | {outside:.0%} "
                f"| {errors[0]:.3g} | {errors[1]:.3g} |"
            )


if __name__ == "__main__":
    main()
