"""What is weak about a guarantee is said in the release, on its page and in plans."""

import numpy as np
import pytest

from spdp import Ball, Release, plan, private_mean
from spdp.planning.text import notes, page_of
from spdp.release.report import card_of, html_report
from spdp.release.summary import Summary, cautions

X = np.stack([np.diag([1.0, 2.0])] * 200)
OPTIONS = {"domain": Ball(2.0), "method": "oneshot"}
WEAK = {
    "epsilon": ({"epsilon": 10.5, "delta": 1e-6}, "ε = 10.5 is above 10", 1),
    "delta": ({"epsilon": 1.0, "delta": 0.006}, "δ = 0.006 is above 1/n = 0.005", 1),
    "both": ({"epsilon": 20.0, "delta": 0.1}, "δ = 0.1 is above 1/n", 2),
}


@pytest.mark.parametrize("name", WEAK)
def test_a_weak_guarantee_is_told_everywhere(name):
    given, text, count = WEAK[name]
    release = private_mean(X, mechanism="gaussian", **given, **OPTIONS)
    assert len(release.cautions) == count
    assert any(text in caution for caution in release.cautions)
    table = Summary(release.certificate).rows()["caution"]
    for shown in (repr(release), table, card_of(release), html_report(release)):
        assert text in shown
    assert html_report(release).count('<p class="verdict no"><b>Caution:</b>') == count
    assert all(check.ok for check in release.verify())
    made = plan(n=200, k=2, mechanism="gaussian", runs=1, **given, **OPTIONS)
    assert made.cautions == release.cautions
    assert made.describe()["cautions"] == release.cautions
    for shown in (repr(made), " ".join(notes(made)), made._repr_html_()):
        assert text in shown
    grid = np.array([100.0, 200.0])
    assert text in page_of(made, grid, {"one shot, gaussian": np.ones(2)})


@pytest.mark.parametrize(("epsilon", "delta"), [(10.0, 1e-6), (1.0, 0.005), (1.0, 0.0)])
def test_a_common_guarantee_is_not(epsilon, delta):
    release = private_mean(X, epsilon=epsilon, delta=delta, **OPTIONS)
    assert release.cautions == []
    assert "aution" not in repr(release) + card_of(release) + html_report(release)
    made = plan(n=200, k=2, epsilon=epsilon, delta=delta, runs=1, **OPTIONS)
    assert made.cautions == []


def test_a_private_number_of_records_is_not_compared_with_delta():
    options = {"epsilon": 1.0, "delta": 0.1, "adjacency": "add-remove", "mechanism": "gaussian"}
    release = private_mean(X, **options, **OPTIONS)
    assert release.cautions == plan(n=200, k=2, runs=1, **options, **OPTIONS).cautions == []


def test_persons_are_counted_not_their_records():
    whose = {"groups": np.arange(200) % 100, "mechanism": "gaussian"}
    release = private_mean(X, epsilon=1.0, delta=0.006, **whose, **OPTIONS)
    assert release.cautions == []  # of 100 persons
    weak = private_mean(X, epsilon=1.0, delta=0.02, **whose, **OPTIONS)
    assert "publishing the data of one person, chosen at random" in weak.cautions[0]


def test_a_saved_release_says_it_again(tmp_path):
    release = private_mean(X, epsilon=11.0, delta=1e-6, **OPTIONS)
    assert Release.load(release.save(tmp_path / "r")).cautions == release.cautions
    assert cautions(11.0, 1e-6, None, None)[0].startswith("ε = 11 is above 10")
