"""Without the compiled kernels spdp runs on NumPy, and says so once."""

import subprocess
import sys
from textwrap import dedent

WITHOUT = """
import sys


class Without:
    def __init__(self, finder):
        self.finder = finder

    def __getattr__(self, name):
        return getattr(self.finder, name)

    def find_spec(self, name, *where):
        return None if name == "spdp.kernels._native" else self.finder.find_spec(name, *where)


sys.meta_path[:] = map(Without, sys.meta_path)
"""
MEAN = """
import numpy as np
from spdp import EigenvalueBounds, private_mean
from spdp.kernels import backend

X = np.stack([np.eye(2)] * 50)
domain = EigenvalueBounds(0.5, 2.0)
for _ in range(2):
    private_mean(X, epsilon=1.0, delta=1e-6, domain=domain, method="oneshot")
print(backend())
"""
SAID = "was built without compiled kernels and runs on NumPy: the same guarantee, but"


def run(code, monkeypatch, **environment):
    monkeypatch.delenv("SPDP_KERNELS", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    command = [sys.executable, "-c", dedent(WITHOUT + code)]
    return subprocess.run(command, capture_output=True, text=True, check=True)


def test_it_says_so_once(monkeypatch):
    done = run(MEAN, monkeypatch)
    assert done.stdout.strip() == "numpy"
    assert done.stderr.count(SAID) == 1
    assert "SlowBuild" in done.stderr
    assert "reinstall spdp" in done.stderr


def test_who_chose_numpy_is_not_told(monkeypatch):
    done = run(MEAN, monkeypatch, SPDP_KERNELS="numpy")
    assert done.stdout.strip() == "numpy"
    assert not done.stderr


def test_the_command_line_says_so_in_a_line(monkeypatch):
    code = """
sys.argv = "spdp plan --k 2 --n 99 --epsilon 1 --delta 0.01 --radius 1".split()
from spdp.cli import main

main()
"""
    done = run(code, monkeypatch)
    assert done.stderr.count(SAID) == 1
    assert done.stderr.startswith("spdp: warning: spdp was built")


def test_kernels_that_do_not_load_say_why(monkeypatch):
    code = """
from importlib.machinery import ModuleSpec


class Broken:
    @staticmethod
    def find_spec(name, *where):
        return ModuleSpec(name, Broken) if name == "spdp.kernels._native" else None

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        raise ImportError("undefined symbol: what")


sys.meta_path.insert(0, Broken)
"""
    done = run(code + MEAN, monkeypatch)
    assert done.stdout.strip() == "numpy"
    assert "cannot load its kernels (" in done.stderr
    assert "undefined symbol: what" in done.stderr
