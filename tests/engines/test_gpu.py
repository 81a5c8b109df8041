"""Asking for a GPU where there is none: one error, and nothing is paid.

What needs a device is in tests/kernels/test_cuda.py.
"""

import importlib.util

import numpy as np
import pytest

from spdp import EigenvalueBounds, Ledger, private_mean
from spdp.data.source import as_source
from spdp.engines import LocalEngine, engine_for
from spdp.errors import ParameterError

DOMAIN = EigenvalueBounds(0.1, 10.0)
X = np.stack([np.eye(2)] * 100)


@pytest.mark.skipif(importlib.util.find_spec("cupy") is not None, reason="CuPy is installed")
def test_without_cupy_nothing_is_paid(tmp_path):
    ledger = Ledger(tmp_path / "ledger", epsilon=2.0, delta=1e-5)
    options = {"epsilon": 1.0, "delta": 1e-6, "domain": DOMAIN, "ledger": ledger}
    with pytest.raises(ParameterError, match=r"engine='gpu'.*spdp\[gpu\]"):
        private_mean(X, engine="gpu", **options)
    assert ledger.spent()["entries"] == 0


def test_the_engine_is_named_or_given():
    source = as_source(X)
    assert isinstance(engine_for(source, "local"), LocalEngine)
    engine = LocalEngine("numpy")
    assert engine_for(source, engine) is engine
    with pytest.raises(ParameterError, match="engine .*'tpu'"):
        engine_for(source, "tpu")
