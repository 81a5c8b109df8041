"""What stores answer: floating point tells nothing of the records.

Errors of floating point would: none shows, whatever callers make of them.
"""

import numpy as np
import pytest

from spdp import (
    Ball,
    private_class_means,
    private_dispersion,
    private_mean,
    private_median,
    private_pca,
    private_regression,
)
from spdp.engines import LocalEngine
from spdp.kernels import MODULES

TINY = np.array([[1e-300, 5e-324], [5e-324, 1e300]])
HUGE = np.full((2, 2), 1.7e308)
LABELS, TIMES = [0, 1] * 50, [0.5, 1e308] * 50

STATISTICS = {
    "oneshot": lambda X, **o: private_mean(X, method="oneshot", **o),
    "adaptive": lambda X, **o: private_mean(X, method="adaptive", **o),
    "persons": lambda X, **o: private_mean(X, groups=list(range(50)) * 2, **o),
    "dispersion": private_dispersion,
    "median": private_median,
    "pca": lambda X, **o: private_pca(X, n_components=1, **o),
    "classes": lambda X, **o: private_class_means(X, LABELS, classes=[0, 1], **o),
    "regression": lambda X, **o: private_regression(X, TIMES, ranges=(0, 1), **o),
}


@pytest.mark.parametrize("kernels", MODULES)
@pytest.mark.parametrize("metric", ["logeuclid", "logchol", "offlog"])
@pytest.mark.parametrize("name", STATISTICS)
def test_no_record_raises_what_the_caller_makes_of_floating_point(name, metric, kernels):
    X = np.stack([np.eye(2)] * 98 + [TINY, HUGE])
    options = {"epsilon": 5.0, "delta": 1e-6, "domain": Ball(1.0), "metric": metric}
    options |= {"on_invalid": "center", "engine": LocalEngine(kernels), "random_state": 0}
    expected = STATISTICS[name](X, **options).value
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(STATISTICS[name](X, **options).value, expected)
