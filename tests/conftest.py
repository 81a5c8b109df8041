import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("spdp", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("spdp")


@pytest.fixture
def rng():
    return np.random.default_rng(20230214)


@pytest.fixture(scope="session")
def data_dir():
    """Real data for development: SPDP_DATA, or ../shared/data beside the project."""
    path = Path(os.environ.get("SPDP_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not path.is_dir():
        pytest.skip(f"no data directory {path.name}: set SPDP_DATA")
    return path


@pytest.fixture(scope="session")
def random_spd():
    """Random SPD matrices of a wanted condition number."""

    def make(n, k, seed=0, condition=100.0):
        rng = np.random.default_rng(seed)
        Q, _ = np.linalg.qr(rng.standard_normal((n, k, k)))
        w = np.exp(rng.uniform(-0.5, 0.5, (n, k)) * np.log(condition))
        X = (Q * w[:, None, :]) @ Q.transpose(0, 2, 1)
        return 0.5 * (X + X.transpose(0, 2, 1))

    return make


@pytest.fixture
def random_records(random_spd, chart):
    """The same for a chart: with complex eigenvectors, where it takes complex ones."""

    def make(n, k, seed=0, condition=100.0):
        X = random_spd(n, k, seed, condition)
        if "c" not in chart.kinds:
            return X
        rng = np.random.default_rng(seed)
        U, _ = np.linalg.qr(rng.standard_normal((n, k, k)) + 1j * rng.standard_normal((n, k, k)))
        X = U @ X @ U.conj().transpose(0, 2, 1)
        return 0.5 * (X + X.conj().transpose(0, 2, 1))

    return make
