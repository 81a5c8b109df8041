"""What all statistics do alike: what their certificates say, and where they warn."""

import warnings
from linecache import getline

import numpy as np
import pytest
from replay import COMMON, ask, covered, neighbours

import spdp.statistics
from spdp import (
    Ball,
    BudgetExceeded,
    EigenvalueBounds,
    Ledger,
    PrivateFrechetMean,
    PrivateTangentLDA,
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
from spdp.errors import DomainMismatch, ParameterError, UninformativeRelease
from spdp.kernels.base import RECORD_NORM
from spdp.planning import text as plan_words
from spdp.release.report import card_of
from spdp.release.summary import Summary
from spdp.release.verify import checks
from spdp.statistics import find

N = 3000
Y, COVARIATES = np.arange(N) % 2, np.linspace(0.0, 1.0, N)
PUBLIC = {"epsilon": 2.0, "delta": 1e-6, "domain": Ball(1.0)}
STATISTICS = {
    "anova": lambda X, **o: private_anova(X, Y, classes=[0, 1], **o),
    "class-means": lambda X, **o: private_class_means(X, Y, classes=[0, 1], **o),
    "difference": lambda X, **o: private_difference(X, Y, classes=[0, 1], **o),
    "dispersion": lambda X, **o: private_dispersion(X, **o),
    "mean": lambda X, **o: private_mean(X, method="adaptive", **o),
    "median": lambda X, **o: private_median(X, **o),
    "pca": lambda X, **o: private_pca(X, n_components=1, **o),
    "regression": lambda X, **o: private_regression(X, COVARIATES, ranges=(0, 1), **o),
}


def test_no_statistic_is_left_out():
    assert set(STATISTICS) == set(spdp.statistics.STATISTICS)


def release(name, X, high, **options):
    domain = EigenvalueBounds(0.1, high)
    shared = {"epsilon": 2.0, "delta": 1e-6, "domain": domain, "random_state": 0}
    return STATISTICS[name](X, **shared, **options)


@pytest.mark.parametrize("name", sorted(STATISTICS.keys() - {"mean"}))
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_certificates_speak_of_the_last_answer(random_spd, name, adjacency):
    c = release(name, random_spd(N, 3), 10.0, adjacency=adjacency).certificate
    public, last = adjacency == "replace-one", c["steps"][-1]
    assert (c["n"] == N) == public
    assert (c["n_estimate"] is None) == public
    n = N if public else c["n_estimate"]
    assert n == pytest.approx(N, rel=0.1)
    radius = last["size"] if name == "median" else max(last.get("radii") or [last["radius"]])
    assert c["lattice_step"] == radius / RECORD_NORM
    assert c["sensitivity"] == pytest.approx(last["sensitivity"] * c["lattice_step"] / n)
    averaged = find(name).averaged  # of the median, several last answers
    sigma = last["scale"] * c["lattice_step"] / n / np.sqrt(averaged)
    assert c["sigma"] == pytest.approx(sigma)


@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize(
    "unfit",
    [
        {"domain": Ball(1e70)},
        {"domain": Ball(1e-90)},
        {"domain": EigenvalueBounds(1.0, 1e160), "metric": "logchol"},
    ],
)
def test_domains_too_large_or_small_for_numbers_cost_nothing(random_spd, tmp_path, name, unfit):
    ledger = Ledger(tmp_path / "l", epsilon=5.0, delta=1e-5)
    options = {"epsilon": 2.0, "delta": 1e-6, "on_invalid": "center", "ledger": ledger, **unfit}
    with pytest.raises(ParameterError, match="radius"):
        STATISTICS[name](random_spd(N, 2), **options)
    assert ledger.history() == []


@pytest.mark.parametrize("classes", [[np.nan, 1], [np.inf, 0], [-np.inf, 0], [10**5000, 0]])
@pytest.mark.parametrize("statistic", [private_class_means, private_difference])
def test_classes_that_no_certificate_can_name_cost_nothing(
    random_spd, tmp_path, statistic, classes
):
    ledger = Ledger(tmp_path / "l", epsilon=5.0, delta=1e-5)
    options = {"epsilon": 2.0, "delta": 1e-6, "domain": Ball(1.0), "on_invalid": "center"}
    with pytest.raises(ParameterError, match="finite numbers or texts"):
        statistic(random_spd(N, 2), Y, classes=classes, ledger=ledger, **options)
    assert ledger.history() == []


def test_an_empty_text_is_no_class():
    """It means "no label", so that records without one would count in it."""
    with pytest.raises(ParameterError, match="empty text"):
        private_class_means(np.eye(2)[None], [""], classes=["", 0], **PUBLIC)


@pytest.mark.parametrize(
    "options", [{"covariance": None}, {"method": None}, {"method": 3}, {"covariance": "Full"}]
)
def test_a_choice_that_is_none_costs_nothing(random_spd, tmp_path, options):
    ledger = Ledger(tmp_path / "l", epsilon=5.0, delta=1e-5)
    with pytest.raises(ParameterError, match=next(iter(options))):
        private_class_means(random_spd(N, 2), Y, classes=[0, 1], ledger=ledger, **PUBLIC, **options)
    assert ledger.history() == []


def test_options_of_numpy_types_are_plain_in_the_certificate(random_spd, tmp_path):
    X, ids = random_spd(N, 2), np.arange(N) // 2
    made = [
        private_class_means(X, Y, classes=iter([0, 1]), method=np.str_("oneshot"), **PUBLIC),
        private_difference(X, Y, classes=iter([0, 1]), **PUBLIC),
        private_mean(X, groups=ids, max_records=np.int64(3), **PUBLIC),
        private_mean(X, groups=ids, max_records=3.0, **PUBLIC),
    ]
    for i, one in enumerate(made):
        one.save(tmp_path / str(i))
        assert all(check.ok for check in Release.load(tmp_path / str(i)).verify())


@pytest.mark.parametrize("name", STATISTICS)
def test_a_domain_that_does_not_fit_is_told_where_it_was_given(random_spd, name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DomainMismatch)
        c = release(name, 100.0 * random_spd(N, 3), 10.0).certificate
    (warning,) = [w for w in caught if w.category is DomainMismatch]
    assert f"private_{name.split('-')[0]}" in getline(warning.filename, warning.lineno)
    assert c["outside"]["share"] > 0.5


@pytest.mark.parametrize("n", [40, 3000])
def test_an_uninformative_release_warns_where_its_page_says_so(random_spd, n):
    """Under the page's own condition, and only then, at the line of the call."""
    X, y = random_spd(n, 3), np.arange(n) % 2
    options = {"epsilon": 0.5, "delta": 1e-6, "domain": Ball(3.0), "anyway": True}
    made = [
        lambda: private_mean(X, **options),
        lambda: private_dispersion(X, **options),
        lambda: private_class_means(X, y, classes=[0, 1], **options),
        lambda: PrivateTangentLDA(**options, classes=[0, 1]).fit(X, y).release_,
    ]
    for release in made:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UninformativeRelease)
            found = release()
        told = [w for w in caught if w.category is UninformativeRelease]
        summary = Summary(found.certificate)
        said = "worth" in summary.rows(), "UNINFORMATIVE" in card_of(found)
        assert len(told) == (n == 40) == said[0] == said[1]
        assert all(str(w.message) == summary.rows()["worth"] for w in told)
        assert all(w.filename == __file__ for w in told)
        assert all("options" in getline(w.filename, w.lineno) for w in told)


def test_persons_are_called_persons_in_plans_and_releases(random_spd):
    with pytest.warns(UninformativeRelease, match="More persons or a larger ε"):
        c = private_mean(
            random_spd(40, 3), epsilon=0.5, delta=1e-6, domain=Ball(3.0), groups=np.arange(40) // 2
        ).certificate
    made = plan(n=20, k=3, epsilon=0.5, delta=1e-6, domain=Ball(3.0), unit="person")
    assert Summary(c).rows()["persons"] == plan_words.facts(made)["persons"] == "20"


@pytest.mark.parametrize("kind", [UninformativeRelease, DomainMismatch])
def test_a_warning_that_is_made_an_error_carries_the_release(random_spd, kind):
    """What was paid for is not lost, whatever the caller does with warnings."""
    n, size, epsilon = (40, 1.0, 0.5) if kind is UninformativeRelease else (3000, 1e3, 4.0)
    options = {"epsilon": epsilon, "delta": 1e-6, "domain": Ball(3.0), "anyway": True}
    X = size * random_spd(n, 3)
    made = [
        lambda: private_mean(X, **options),
        lambda: private_dispersion(X, **options),
        lambda: PrivateFrechetMean(**options).fit(X),
    ]
    for release in made:
        with warnings.catch_warnings():
            warnings.simplefilter("error", kind)
            with pytest.raises(kind) as caught:
                release()
        assert all(check.ok for check in caught.value.release.verify())


ODD = [None, "x", b"x", {}, object(), np.array([1, 2, 3]), (1,), 1j]
FUNCTIONS = {"pca": private_pca, "mean": private_mean, "dispersion": private_dispersion}
FUNCTIONS |= {"regression": private_regression}
WRONG = [("mean", "delta"), ("dispersion", "delta"), ("mean", "mechanism"), ("mean", "metric")]
WRONG += [("pca", "n_components"), ("regression", "ranges"), ("mean", "reference")]


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
@pytest.mark.parametrize(("name", "option"), WRONG)
def test_what_an_option_cannot_be_is_one_error_that_names_it(name, option, odd):
    if option == "reference" and odd is None:
        return  # none is meant
    X, domain = np.tile(np.eye(2), (60, 1, 1)), EigenvalueBounds(0.1, 10.0)
    options = {"epsilon": 1.0, "delta": 1e-6, "domain": domain, option: odd}
    options |= {"covariates": np.arange(60)} if option == "ranges" else {}
    with pytest.raises(ParameterError, match=option):
        FUNCTIONS[name](X, **options)


@pytest.mark.parametrize("classes", [None, 5, 2.5, object()])
@pytest.mark.parametrize("function", [private_class_means, private_difference])
def test_classes_must_be_listed(function, classes):
    X, domain = np.tile(np.eye(2), (60, 1, 1)), EigenvalueBounds(0.1, 10.0)
    with pytest.raises(ParameterError, match=r"classes must be .*public list"):
        function(X, [0, 1] * 30, classes=classes, epsilon=1.0, delta=1e-6, domain=domain)


def test_components_are_whole():
    X, domain = np.tile(np.eye(2), (60, 1, 1)), EigenvalueBounds(0.1, 10.0)
    with pytest.raises(ParameterError, match=r"n_components .*whole number"):
        private_pca(X, n_components=1.5, epsilon=1.0, delta=1e-6, domain=domain)


def one_shot(X, **options):
    return private_mean(X, method="oneshot", **options)


@pytest.mark.filterwarnings("error::spdp.errors.DomainMismatch")
@pytest.mark.parametrize("name", [*STATISTICS, "one shot"])
def test_what_was_paid_for_is_kept_before_anything_is_warned_of(random_spd, tmp_path, name):
    """Python may be told to make errors of warnings."""
    ledger = Ledger(tmp_path / "l", epsilon=5.0, delta=1e-5)
    options = {"epsilon": 2.0, "delta": 1e-6, "domain": EigenvalueBounds(0.1, 10.0)}
    statistic = (STATISTICS | {"one shot": one_shot})[name]
    with pytest.raises(DomainMismatch):
        statistic(1e4 * random_spd(N, 3), ledger=ledger, **options)
    (entry,) = ledger.history()
    assert entry["state"] == "done"
    assert entry["certificate"]["statistic"] == name.replace("one shot", "mean")


@pytest.mark.parametrize("name", [*STATISTICS, "one shot"])
def test_a_ledger_gives_every_release_back(random_spd, tmp_path, name):
    ledger = Ledger(tmp_path / "l", epsilon=5.0, delta=1e-5)
    options = {"epsilon": 2.0, "delta": 1e-6, "domain": EigenvalueBounds(0.1, 10.0)}
    statistic = (STATISTICS | {"one shot": one_shot})[name]
    made = statistic(random_spd(N, 3), ledger=ledger, **options)
    again = Release(*ledger.recover(1))
    assert again.certificate == made.certificate
    assert list(again.values) == list(made.values)
    for array, value in made.values.items():
        np.testing.assert_array_equal(again.values[array], value, strict=True)
    found = Release.load(again.save(tmp_path / "again"))
    assert all(check.ok for check in found.verify())


# --- records with labels, covariates and persons

WITH_COLUMNS = covered()


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("grouped", [False, True], ids=["record", "person"])
@pytest.mark.parametrize("name", WITH_COLUMNS)
def test_certificates_verify_and_survive_a_folder(name, grouped, adjacency, tmp_path):
    data, _ = neighbours(np.random.default_rng(1), grouped, smallest=2)
    release = ask(WITH_COLUMNS[name], 60.0, grouped, adjacency, data)
    assert [check for check in release.verify() if not check.ok] == []
    c = release.certificate
    assert c["statistic"] == name
    assert c["unit"] == ("person" if grouped else "record")
    assert (c["n"] is None) == (adjacency == "add-remove")
    again = Release.load(release.save(tmp_path / "out"))
    assert again.certificate == c
    for array, value in release.values.items():
        np.testing.assert_array_equal(again.values[array], value)


@pytest.mark.parametrize("name", WITH_COLUMNS)
def test_a_forged_certificate_is_found_out(name):
    data, _ = neighbours(np.random.default_rng(1), False, smallest=2)
    c = ask(WITH_COLUMNS[name], 60.0, False, "replace-one", data).certificate
    for field, value in (("sigma", 2 * c["sigma"]), ("estimand", "the truth"), ("n", c["n"] + 1)):
        assert not all(check.ok for check in checks({**c, field: value})), field
    c["steps"][-1]["sensitivity"] //= 2
    assert not all(check.ok for check in checks(c))


@pytest.mark.parametrize("name", WITH_COLUMNS)
def test_a_ledger_is_charged_and_keeps_the_release(name, tmp_path):
    ledger = Ledger(tmp_path / "a.ledger", epsilon=60.0, delta=1e-6)
    data, _ = neighbours(np.random.default_rng(1), False, smallest=2)
    options = {**COMMON, "epsilon": 50.0, "ledger": ledger, "label": name}
    WITH_COLUMNS[name](*data, **options)
    (entry,) = ledger.history()
    assert entry["label"] == name
    with pytest.raises(BudgetExceeded):
        WITH_COLUMNS[name](*data, **options)
