import shutil
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from spdp.datasets import load_images
from spdp.distributions import LogLaplace
from spdp.errors import ParameterError
from spdp.mechanisms import RiemannianLaplace, TangentGaussian
from spdp.paper import FIGURES, figure
from spdp.paper.common import Settings, agreement, run

pytest.importorskip("matplotlib")
FACE = ("NAME", "TITLE", "CLAIM", "cells", "measure", "draw", "verdict")


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_has_the_same_face(name):
    module = figure(name)
    assert all(hasattr(module, attribute) for attribute in FACE)
    assert name == module.NAME


@pytest.mark.parametrize("name", ["utility_epsilon", "utility_delta", "medical", "images"])
def test_measured_errors_agree_with_the_exact_laws(name, tmp_path, data_dir):
    """At a level of 99.9 % about one cell in a thousand may lie outside; far more do under a law that is 1.3 times too wide."""
    rows = [r for r in run(figure(name), Settings(quick=True, data=str(data_dir)), tmp_path) if r["mechanism"] != "laplace-mcmc"]
    outside = sum(not r["inside"] for r in rows)
    assert outside <= stats.binom(len(rows), 1e-3).ppf(0.9999)
    wrong = sum(not r["low"] * 1.69 <= r["mean"] <= r["high"] * 1.69 for r in rows)
    assert wrong > 5 * max(1, outside)
    for suffix in ("csv", "png", "svg"):
        assert (tmp_path / f"{name}.{suffix}").stat().st_size > 1000


def test_agreement_is_exact_for_the_gaussian():
    law = TangentGaussian(0.1, 0.5, 1e-6).squared_error(4)
    draws = law.rvs(size=(2000, 10), random_state=0)
    inside = np.mean([agreement(d, law)["inside"] for d in draws])
    assert inside == pytest.approx(0.999, abs=3e-3)
    assert np.mean([agreement(1.7 * d, law)["inside"] for d in draws[:200]]) < 0.6


def test_simulated_noise_is_the_mechanisms():
    for mechanism in (TangentGaussian(0.1, 0.5, 1e-6), RiemannianLaplace(0.1, 0.5)):
        rng = np.random.default_rng(0)
        squares = [float((mechanism.simulate_noise(3, rng) ** 2).sum()) for _ in range(500)]
        assert stats.kstest(squares, mechanism.squared_error(3).cdf).pvalue > 1e-4


def test_the_chain_computes_no_matrix_functions(monkeypatch):
    """What makes 50,000 steps at k = 30 take about a second: only the end points become matrices."""
    calls = []
    from spdp import kernels

    expm = kernels.expm
    monkeypatch.setattr(kernels, "expm", lambda S: (calls.append(len(S)), expm(S))[1])
    monkeypatch.setattr(kernels, "logm", lambda X: calls.append("logm"))
    law = LogLaplace.__new__(LogLaplace)
    law.location, law.mean, law.dimension, law.scale = np.zeros(6), np.eye(3), 6, 0.1
    assert law.rvs(size=4, method="mcmc", burn_in=200, random_state=0).shape == (4, 3, 3)
    assert calls == [4]


def test_interrupted_runs_resume(tmp_path, monkeypatch):
    module = figure("burn_in")
    settings = Settings(quick=True)
    first = run(module, settings, tmp_path)
    kept = (tmp_path / "burn_in.jsonl").read_text().splitlines()
    lines = [line for line in kept if line]
    (tmp_path / "burn_in.jsonl").write_text("\n".join(lines[:3]) + "\n" + lines[3][:40])  # killed while writing the fourth cell
    measured = []
    measure = module.measure
    monkeypatch.setattr(module, "measure", lambda cell, s: (measured.append(cell), measure(cell, s))[1])
    again = run(module, settings, tmp_path)
    assert len(measured) == len(lines) - 3
    assert [r["mean"] for r in again] == [r["mean"] for r in first]


def test_command_line(tmp_path, data_dir):
    spdp = shutil.which("spdp", path=f"{sys.prefix}/bin")

    def call(*words):
        return subprocess.run([spdp, *map(str, words)], cwd=tmp_path, capture_output=True, text=True, timeout=200)

    done = call("reproduce", "tightness", "--quick", "-o", "out", "--data", data_dir)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "out" / "paper.md").read_text()
    assert "theorem 5" in page
    assert "Misprints" in page
    assert call("reproduce", "figure9").returncode == 2
    digits = load_images("digits")
    np.savez(tmp_path / "d.npz", images=digits.images[:50], labels=digits.labels[:50])
    done = call("describe", "d.npz", "-o", "x.npy")
    assert done.returncode == 0, done.stderr
    assert "--eigenvalues 1e-06 2.86685" in done.stdout
    assert np.load(tmp_path / "x.npy").shape == (50, 9, 9)
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "pictures").mkdir()
    for i in range(3):
        image.fromarray(np.stack([digits.images[i]] * 3, axis=-1)).save(tmp_path / "pictures" / f"{i}.png")
    assert call("describe", "pictures", "-o", "y.npy").returncode == 0
    assert np.load(tmp_path / "y.npy").shape == (3, 11, 11)
    (tmp_path / "pictures" / "bad.png").write_bytes(b"no picture")
    for words, message in {
        ("pictures", "z.npy"): "bad.png: cannot be read as a picture",
        ("absent.npz", "z.npy"): "absent.npz: no such file",
        ("d.npz", "z.txt"): "written as .npy",
    }.items():
        failed = call("describe", words[0], "-o", words[1])
        assert failed.returncode == 2
        assert message in failed.stderr
    assert not list(tmp_path.glob("z.*"))
    assert not list(tmp_path.glob(".partial*"))


def test_unknown_method_of_the_law():
    with pytest.raises(ParameterError, match="method"):
        LogLaplace(np.eye(2), 1.0).offsets(1, 0, "gibbs")
