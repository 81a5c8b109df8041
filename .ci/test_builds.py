"""GCC's build beside Clang's: `make portable`, which makes both."""

import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CODES = """
import hashlib, json, sys
import numpy as np
from spdp.kernels import _native, native
from spdp.kernels.base import Region

sums = {}
for name in _native.instruction_sets():
    _native.set_instruction_set(name)
    for k in (1, 2, 3, 5, 9, 12, 13, 30, 47):
        rng = np.random.default_rng(k)
        Q = np.linalg.qr(rng.standard_normal((400, k, k)))[0]
        X = (Q * np.exp(4 * rng.uniform(-1, 1, (400, 1, k)))) @ Q.transpose(0, 2, 1)
        region = Region(-3.0, 3.0, np.zeros(k * (k + 1) // 2), 9.0)
        codes, status = native.encode((X + X.transpose(0, 2, 1)) / 2, region)
        mark = hashlib.sha256(codes).hexdigest()
        sums[f"{name} {k}"] = [codes.sum(0).tolist(), mark, int(status.max())]
json.dump(sums, sys.stdout)
"""


@pytest.fixture(scope="module")
def sums():
    pythons = (ROOT / ".venv/bin/python", ROOT / ".venv-clang/bin/python")
    return [
        json.loads(subprocess.run([one, "-c", CODES], check=True, capture_output=True).stdout)
        for one in pythons
    ]


def test_codes_of_the_baseline_are_the_same_to_the_bit(sums):
    gcc, clang = sums
    names = [name for name in gcc if name.startswith("baseline")]
    assert len(names) == 9
    assert {name: gcc[name] for name in names} == {name: clang[name] for name in names}


def test_sums_of_all_instruction_sets_agree_but_for_last_digits(sums):
    gcc, clang = sums
    assert gcc.keys() == clang.keys()
    for name in gcc:
        assert gcc[name][2] == clang[name][2] == 0
        difference = [abs(a - b) for a, b in zip(gcc[name][0], clang[name][0], strict=True)]
        assert max(difference) <= 400  # a digit of each record
