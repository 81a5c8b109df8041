"""The table of poles is what its script makes, and gives the logarithm."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import spdp

NATIVE = Path(spdp.__file__).parent / "kernels" / "native"


@pytest.fixture(scope="module")
def script():
    if not NATIVE.is_dir():
        pytest.skip("the sources of the native kernels are not installed")
    spec = importlib.util.spec_from_file_location("poles", NATIVE / "poles.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_is_what_its_script_makes(script):
    assert (NATIVE / "poles.hpp").read_text(encoding="utf-8") == script.header()


def test_poles_give_the_logarithm(script):
    for c, count in script.COUNTS.items():
        constant, at, weight = script.poles(c, count)
        x = np.geomspace(1.0, 2.0**c, 1001)
        resolvents = np.array(weight, float) / (x[:, None] + np.array(at, float))
        error = np.abs(float(constant) - resolvents.sum(1) - np.log(x))
        assert error.max() < 2e-14
        short = np.abs(float(constant) - resolvents[:, 2:].sum(1) - np.log(x))
        assert short.max() > 1e-9  # a pole and its mirror image less are seen
