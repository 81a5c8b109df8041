"""Releases that public numbers show to be uninformative are refused before payment."""

import inspect
import warnings

import numpy as np
import pytest

from spdp import (
    Ball,
    Ledger,
    PrivateFrechetMean,
    PrivateMDM,
    Reference,
    Release,
    plan,
    private_anova,
    private_class_means,
    private_difference,
    private_dispersion,
    private_mean,
    private_median,
    private_pca,
    private_regression,
)
from spdp.errors import ParameterError, Uninformative, UninformativeRelease
from spdp.release.report import card_of, html_report
from spdp.release.summary import Summary

BUDGET = {"epsilon": 0.9, "delta": 1e-6, "domain": Ball(3.0)}


def labelled(function):
    return lambda X, **options: function(X, np.arange(len(X)) % 2, classes=[0, 1], **options)


def regression(X, **options):
    return private_regression(X, np.linspace(-1, 1, len(X)), ranges=(-1, 1), **options)


STATISTICS = {
    "mean": private_mean,
    "one shot": lambda X, **options: private_mean(X, method="oneshot", **options),
    "pure": lambda X, **options: private_mean(X, **options | {"delta": 0.0}),
    "dispersion": private_dispersion,
    "median": private_median,
    "pca": lambda X, **options: private_pca(X, n_components=1, **options),
    "class-means": labelled(private_class_means),
    "difference": labelled(private_difference),
    "anova": labelled(private_anova),
    "regression": regression,
    "estimator": lambda X, **options: PrivateFrechetMean(**options).fit(X).release_,
}


@pytest.mark.parametrize("name", STATISTICS)
def test_five_records_are_refused_and_nothing_is_spent(name, random_spd, tmp_path):
    ledger = Ledger(tmp_path / "ledger", epsilon=1.0, delta=0.0 if name == "pure" else 1e-5)
    with pytest.raises(Uninformative, match=r"At least \d+ records, or ε = .*anyway=True"):
        STATISTICS[name](random_spd(5, 3), **BUDGET, ledger=ledger)
    assert ledger.history() == []


def test_the_refusal_says_what_would_not_be_refused(random_spd):
    X = random_spd(200, 3)
    for name in ("mean", "one shot", "pure", "median"):
        release = STATISTICS[name]
        with pytest.raises(Uninformative) as refused:
            release(X[:5], **BUDGET)
        fewest, epsilon = refused.value.fewest, refused.value.epsilon
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UninformativeRelease)
            assert isinstance(release(X[:fewest], **BUDGET), Release)
            assert isinstance(release(X[:5], **BUDGET | {"epsilon": epsilon}), Release)
        with pytest.raises(Uninformative):
            release(X[: fewest - 1], **BUDGET)
        with pytest.raises(Uninformative):
            release(X[:5], **BUDGET | {"epsilon": 0.97 * epsilon})


@pytest.mark.parametrize("method", ["oneshot", "adaptive"])
def test_what_is_merely_poor_is_released(random_spd, method):
    """At the threshold of one shot its bound is just below the radius."""
    with pytest.raises(Uninformative) as refused:
        private_mean(random_spd(2, 3), method=method, **BUDGET)
    n = refused.value.fewest
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UninformativeRelease)
        c = private_mean(random_spd(n, 3), method=method, **BUDGET).certificate
    if method == "oneshot":
        assert 0.9 * 3.0 < c["error_bound"]["95%"] < 3.0
        assert c["error_bound"]["95%"] * n / (n - 1) >= 3.0


def test_a_private_number_of_records_is_never_a_reason(random_spd):
    """Whether a release is refused would tell how many records there are."""
    for release in (private_mean, private_dispersion, private_median):
        for n in (1, 5):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UninformativeRelease)
                made = release(random_spd(n, 3), adjacency="add-remove", **BUDGET)
            assert made.certificate["n"] is None


def test_records_are_not_read_where_their_number_is_known(random_spd):
    X = random_spd(5, 3)
    X[2] = np.nan
    with pytest.raises(Uninformative):
        private_mean(X, **BUDGET)


@pytest.mark.parametrize("method", ["oneshot", "adaptive"])
def test_a_number_that_reading_tells_is_checked_before_payment(random_spd, tmp_path, method):
    ledger = Ledger(tmp_path / "ledger", epsilon=1.0, delta=1e-5)
    blocks = (block for block in (random_spd(3, 3), random_spd(2, 3)))
    with pytest.raises(Uninformative, match="from 5 records"):
        private_mean(blocks, method=method, ledger=ledger, **BUDGET)
    assert ledger.history() == []


def test_persons_count_not_their_records(random_spd, tmp_path):
    ledger = Ledger(tmp_path / "ledger", epsilon=1.0, delta=1e-5)
    with pytest.raises(Uninformative, match=r"from 5 persons .* At least \d+ persons"):
        private_mean(random_spd(500, 3), groups=np.arange(500) % 5, ledger=ledger, **BUDGET)
    assert ledger.history() == []


def test_sums_are_refused_too(random_spd):
    model = PrivateFrechetMean(**BUDGET).partial_fit(random_spd(5, 3))
    with pytest.raises(Uninformative):
        model.release()
    assert model.sum_.n == 5  # still there, and can be added to
    with pytest.warns(UninformativeRelease):
        model.set_params(anyway=True).release()


def test_a_reference_is_no_domain_centre(random_spd):
    reference = Reference.from_public(random_spd(400, 3, seed=1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UninformativeRelease)
        made = private_mean(random_spd(5, 3), method="adaptive", reference=reference, **BUDGET)
    assert made.certificate["reference"] == reference.digest


def test_seeded_simulations_are_asked_for_in_the_same_way(random_spd):
    with pytest.raises(Uninformative):
        private_mean(random_spd(5, 3), random_state=1, **BUDGET)


@pytest.mark.parametrize("odd", [None, 1, "yes", np.zeros(2)])
def test_anyway_is_true_or_false(random_spd, odd):
    with pytest.raises(ParameterError, match="anyway must be True or False"):
        private_mean(random_spd(50, 3), anyway=odd, **BUDGET)


ANYWAY = [name for name in STATISTICS if name not in ("pca", "regression")]  # refused always


@pytest.mark.parametrize("name", ANYWAY)
@pytest.mark.parametrize("n", [4, pytest.param(10, marks=pytest.mark.audit)])
def test_anyway_page_and_card_begin_in_red(name, n, random_spd):
    with pytest.warns(UninformativeRelease):
        release = STATISTICS[name](random_spd(n, 3), **BUDGET, anyway=True)
    told = Summary(release.certificate)
    assert told.uninformative is not None
    page = html_report(release)
    main = page[page.index("<main>") :]
    assert main.index('<p class="verdict no"><b>UNINFORMATIVE') < main.index('<p class="verdict">')
    assert main.strip().startswith('<main>\n<p class="verdict no"><b>UNINFORMATIVE')
    card = card_of(release)
    assert card.index("rgb(214,69,65)") < card.index("UNINFORMATIVE") < card.index("<table")
    assert all(check.ok for check in release.verify())


def test_an_informative_release_begins_in_green(random_spd):
    release = private_mean(random_spd(2000, 3), **BUDGET)
    assert 'class="verdict no"' not in html_report(release)
    assert "rgb(214,69,65)" not in card_of(release)


def test_plans_tell_what_will_be_refused(random_spd):
    for method in ("oneshot", "adaptive"):
        with pytest.raises(Uninformative) as refused:
            private_mean(random_spd(2, 3), method=method, **BUDGET)
        fewest = refused.value.fewest
        for n in (fewest - 1, fewest):
            made = plan(n=n, k=3, method=method, runs=1, spread="10%", **BUDGET)
            assert made.refused == (n < fewest)
            assert ("unless it is asked for anyway" in repr(made)) == made.refused
    assert not plan(n=2, k=3, adjacency="add-remove", runs=1, **BUDGET).refused


def test_classifiers_take_it(random_spd):
    X, y = random_spd(6, 2), np.arange(6) % 2
    model = PrivateMDM([0, 1], **BUDGET)
    with pytest.raises(Uninformative):
        model.fit(X, y)
    with pytest.warns(UninformativeRelease):
        model.set_params(anyway=True).fit(X, y)


def test_it_is_an_option_of_every_statistic():
    every = (private_mean, private_median, private_difference, private_regression)
    for function in every:
        assert inspect.signature(function).parameters["anyway"].default is False
