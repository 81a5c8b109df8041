import os
import subprocess
import sys

import numpy as np
import pytest

from spdp import cli

BUDGET = ("--epsilon", "1", "--delta", "1e-6")


@pytest.fixture
def budget():
    return BUDGET


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run the command line in this process, in an empty directory.

    Gives the exit code, standard output and standard error.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("SPDP_LEDGER_KEY", raising=False)

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["spdp", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        out, err = capsys.readouterr()
        return stop.value.code, out, err

    return call


@pytest.fixture
def refused(run, tmp_path):
    """Run words that must fail: one line of error, no output, no new or lost file."""

    def call(code, message, *words):
        before = _listing(tmp_path)
        got, out, err = run(*words)
        assert (got, out) == (code, ""), err
        assert message in err
        assert err.count("\n") == 1
        assert "Traceback" not in err
        assert _listing(tmp_path) == before
        return err

    return call


def _listing(folder):
    return {(root, *sorted(names)) for root, _, names in os.walk(folder)}


@pytest.fixture
def shell(tmp_path):
    """Run the command line in a process of its own."""

    def call(*words, env=None):
        return subprocess.run(
            [sys.executable, "-m", "spdp", *map(os.fspath, words)],
            cwd=tmp_path,
            capture_output=True,
            env={**os.environ, **(env or {})},
            timeout=180,
        )

    return call


@pytest.fixture
def data(tmp_path, random_spd):
    np.save(tmp_path / "data.npy", random_spd(3000, 3, condition=4.0))
    return tmp_path / "data.npy"


@pytest.fixture
def ledger(run, tmp_path):
    """A ledger with ε = 1 in all."""
    assert run("ledger", "create", "a.ledger", *BUDGET)[0] == 0
    return tmp_path / "a.ledger"
