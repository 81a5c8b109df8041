"""The paper's experiments: figures with one face, laws that hold, runs that resume."""

import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from spdp.distributions import LogLaplace
from spdp.errors import ParameterError
from spdp.kernels import kernels_for
from spdp.paper import ALL, FIGURES, figure, figures
from spdp.paper.common import STATEMENTS, Settings, agreement, run, write_page
from spdp.statistics.mechanisms import RiemannianLaplace, TangentGaussian

pytest.importorskip("matplotlib")

FACE = ("NAME", "TITLE", "CLAIM", "cells", "measure", "draw", "verdict")


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_has_the_same_face(name):
    module = figure(name)
    assert all(hasattr(module, attribute) for attribute in FACE)
    assert FIGURES[name] == module.NAME


def test_figures_are_named_as_in_the_paper_or_by_what_they_show():
    assert [module.NAME for module in figures("figure-1")] == list(FIGURES.values())[:3]
    assert figures("figure-4b") == figures("burn_in") == [figure("burn_in")]
    assert len(figures(ALL)) == len(FIGURES)
    with pytest.raises(ParameterError, match="figure-5.* figure-1"):
        figures("figure-5")


@pytest.mark.parametrize("name", ["burn_in", "runtime"])
def test_a_quick_run_does_not_claim_the_papers_steps(name, tmp_path):
    module = figure(name)
    rows = run(module, Settings(quick=True), tmp_path)
    assert max(row.get("burn_in") or 0 for row in rows) < 50_000
    said = module.verdict(rows)
    assert "not timed" in said or said.startswith("Not checked")


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """The figure of images where no data are at hand, and where it lies."""
    folder = tmp_path_factory.mktemp("digits")
    return run(figure("images"), Settings(quick=True, data=str(folder)), folder), folder


def test_sets_that_were_not_run_are_named(digits):
    said = figure("images").verdict(digits[0])
    assert "sets run, digits (not run, not at hand: mnist, kmnist, fashionmnist, cifar10)" in said


def test_the_tangent_law_is_not_drawn_on_a_euclidean_axis():
    """At ε = 0.1, k = 30 it would be off by a factor of two."""
    module = figure("extrinsic")
    for cell in module.cells(Settings(quick=True))[:3]:
        (row,) = module.measure(cell, Settings(quick=True))
        assert (row["law"] is None) == (cell["mechanism"] == module.TANGENT)


@pytest.mark.parametrize("name", ["utility_epsilon", "utility_delta", "images"])
def test_measured_errors_agree_with_the_exact_laws(name, tmp_path, digits):
    """Of the images, on those that come with scikit-learn."""
    if name == "images":
        check_laws(name, *digits)
    else:
        check_laws(name, run(figure(name), Settings(quick=True), tmp_path), tmp_path)


@pytest.mark.audit
@pytest.mark.parametrize("name", ["medical", "images"])
def test_measured_errors_of_all_images_agree_with_the_exact_laws(name, tmp_path, data_dir):
    settings = Settings(quick=True, data=str(data_dir))
    check_laws(name, run(figure(name), settings, tmp_path), tmp_path)


def test_measured_errors_of_medical_images_agree_with_the_exact_laws(
    tmp_path, data_dir, monkeypatch
):
    """Of one of the two sets."""
    monkeypatch.setattr(figure("medical"), "DATASETS", ("octmnist",))
    settings = Settings(quick=True, data=str(data_dir))
    check_laws("medical", run(figure("medical"), settings, tmp_path), tmp_path)


def check_laws(name, rows, folder):
    """At a level of 99.9 % about one cell in a thousand may lie outside.

    Far more do under a law that is 1.3 times too wide. Cells have fixed seeds.
    """
    exact = [r for r in rows if r["mechanism"] != "laplace-mcmc"]
    outside = sum(not r["inside"] for r in exact)
    assert outside <= stats.binom(len(exact), 1e-3).ppf(0.9999)
    wrong = sum(not r["low"] * 1.69 <= r["mean"] <= r["high"] * 1.69 for r in exact)
    assert wrong > 5 * max(1, outside)
    for suffix in ("csv", "png", "svg"):
        assert (folder / f"{name}.{suffix}").stat().st_size > 1000


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
    """Only end points become matrices: why 50,000 steps at k = 30 take a second."""
    law, kernels, calls = LogLaplace(np.eye(3), 0.1), kernels_for(), []

    def recorded(name):
        function = getattr(kernels, name)
        return lambda X: (calls.append((name, len(X))), function(X))[1]

    for name in ("eigh", "logm", "expm"):
        monkeypatch.setattr(kernels, name, recorded(name))
    assert law.rvs(size=4, method="mcmc", burn_in=200, random_state=0).shape == (4, 3, 3)
    assert calls == [("expm", 4)]


def test_interrupted_runs_resume(tmp_path, monkeypatch):
    module, settings = figure("burn_in"), Settings(quick=True)
    first = run(module, settings, tmp_path)
    kept = tmp_path / "burn_in.jsonl"
    lines = [line for line in kept.read_text().splitlines() if line]
    kept.write_text("\n".join([*lines[:3], lines[3][:40]]))  # killed in the fourth cell
    measure, measured = module.measure, []

    def recorded(cell, settings):
        measured.append(cell)
        return measure(cell, settings)

    monkeypatch.setattr(module, "measure", recorded)
    again = run(module, settings, tmp_path)
    assert len(measured) == len(lines) - 3
    assert [r["mean"] for r in again] == [r["mean"] for r in first]


def test_the_page_shows_what_was_run_and_says_what_was_not(tmp_path):
    module, absent = figure("burn_in"), figure("images")
    rows = run(module, Settings(quick=True), tmp_path / "results")
    page = tmp_path / "paper.md"
    write_page([(module, rows), (absent, [])], tmp_path / "results", page)
    text = page.read_text()
    for part in (module.CLAIM, module.verdict(rows), "(results/burn_in.png)", absent.CLAIM):
        assert part in text
    assert text.count("*Not run:*") == 1
    assert "images.png" not in text


def test_every_statement_and_misprint_has_its_test():
    root = Path(__file__).parents[2]
    tests = re.findall(r"`(tests/\S+)::(\w+)` \|$", STATEMENTS, re.MULTILINE)
    rows = [line for line in STATEMENTS.splitlines() if line.startswith("| ")]
    assert len(tests) == len(rows) - 2  # two tables, each with a heading
    for file, name in tests:
        assert f"def {name}" in (root / file).read_text()


@pytest.mark.parametrize("place", re.findall(r"`(spdp\.[\w.]+)`", STATEMENTS))
def test_every_statement_is_where_the_page_says(place):
    assert pkgutil.resolve_name(place) is not None


def test_unknown_method_of_the_law():
    with pytest.raises(ParameterError, match="method"):
        LogLaplace(np.eye(2), 1.0).offsets(1, 0, "gibbs")
