"""The page, the pictures and the tables of a release."""

import html
import re
import sys
from collections import Counter
from functools import lru_cache
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from spdp import (
    Ball,
    CorrelationBounds,
    ExtrinsicGaussian,
    Ledger,
    Release,
    TangentGaussian,
    plan,
    private_class_means,
    private_difference,
    private_dispersion,
    private_mean,
    private_median,
    private_pca,
    private_regression,
)
from spdp.cli.output import _table as release_table
from spdp.cli.plan import terminal_curve
from spdp.errors import DataError, ParameterError
from spdp.kernels.base import RECORD_NORM
from spdp.ledger.text import spent_over_time
from spdp.planning.text import page_of as plan_page
from spdp.release.files import seal_of
from spdp.release.report import html_report, says_the_same
from spdp.release.summary import Summary
from spdp.rendering.figures import ellipses, heat_map, ledger_picture, plan_picture

BUDGET = {"epsilon": 1.0, "delta": 1e-5, "domain": Ball(3.0)}
LABELS, AGES = np.arange(3000) % 2, np.linspace(20.0, 80.0, 3000)
STATISTICS = {
    "mean of": lambda X: private_mean(X, **BUDGET),
    "means of records": lambda X: private_mean(np.stack([X, 2 * X], 1), **BUDGET),
    "means of 2 classes": lambda X: private_class_means(X, LABELS, classes=[0, 1], **BUDGET),
    "mean and dispersion": lambda X: private_dispersion(X, **BUDGET),
    "principal components": lambda X: private_pca(X, n_components=2, **BUDGET),
    "geometric median": lambda X: private_median(X, **BUDGET),
    "regression": lambda X: private_regression(X, AGES, ranges=(0, 100), **BUDGET),
    "difference": lambda X: private_difference(X, LABELS, classes=(1, 0), **BUDGET),
}


@pytest.fixture(scope="module", params=[2, 3, 9])
def release(request, random_spd):
    return private_mean(random_spd(2000, request.param), **BUDGET)


@pytest.fixture(scope="module")
def adaptive(random_spd):
    return private_mean(random_spd(2000, 3), method="adaptive", **BUDGET)


@pytest.fixture(scope="module")
def stated():
    return TangentGaussian(0.1, 1.0, 1e-5).release(np.eye(2))


@pytest.fixture(scope="module", params=list(STATISTICS))
def several(request, random_spd):
    """A release of each statistic."""
    return STATISTICS[request.param](random_spd(3000, 3))


@lru_cache(maxsize=64)
def page_of(release):
    """Its page, made once for all tests that read it."""
    return html_report(release)


def with_fields(release, **fields):
    return Release(release.value, release.certificate | fields)


def facts(certificate):
    return Summary(certificate).rows()


def verdict(certificate):
    return Summary(certificate).verdict


def text_of(table):
    screen = StringIO()
    Console(width=200, file=screen).print(table)
    return screen.getvalue()


def prose(page):
    """What the page says besides the certificate that it quotes."""
    return html.unescape(page[: page.index("<summary>Certificate")])


def test_a_complex_matrix_is_drawn_in_two_parts(release):
    page = html_report(Release(release.value + 0j, release.certificate))
    assert "real part." in page
    assert "imaginary part." in page
    assert "ellips" not in prose(page)


@pytest.mark.filterwarnings("ignore::spdp.errors.DomainMismatch")
@pytest.mark.parametrize("method", ["oneshot", "adaptive"])
def test_a_domain_that_does_not_fit_is_told_in_red(random_spd, method):
    """From the certificate and the value, as the warning; no page of others says so."""
    X, options = random_spd(2000, 3), BUDGET | {"method": method}
    misfit, fit = private_mean(1e4 * X, **options), private_mean(X, **options)
    for red, shown in (('class="verdict no"', page_of), ("214,69,65)", Release._repr_html_)):
        assert red in shown(misfit)
        assert red not in shown(fit)
        assert "lie outside the domain" in shown(misfit)
        assert "lie outside the domain" not in shown(fit)
    for one in (misfit, fit):
        assert says_the_same(page_of(one), one)
        assert "mean of the records, each clipped to the domain, is at most" in page_of(one)


@pytest.mark.parametrize(
    ("factor", "found"),
    [(1.0, "not significant at the 5 % level"), (2.0, "significant at the 5 % level")],
)
def test_a_difference_is_told_with_its_length_and_its_noise(random_spd, factor, found):
    X = random_spd(3000, 3)
    X[LABELS == 1] *= factor
    options = BUDGET | {"classes": (1, 0), "random_state": 0}
    # where the labels mean nothing, halves of the same records are compared
    release = private_difference(X if factor > 1 else np.repeat(X[::2], 2, 0), LABELS, **options)
    counts, last = release.values["counts"], release.certificate["steps"][-1]
    radii = np.array(last["radii"])
    noise = last["scale"] / RECORD_NORM * np.sqrt(((radii / counts) ** 2).sum())
    told = facts(release.certificate)["difference"]
    assert told.startswith(f"length {np.linalg.norm(release.value):.4g} ")
    assert float(re.search(r"coordinate about (\S+) rms", told)[1]) == pytest.approx(noise, rel=0.1)
    page = html.unescape(page_of(release))
    assert f"The released difference: {told}; {found}" in page
    assert facts(release.certificate)["test"].startswith(found)


def test_a_bound_says_what_it_does_not_count_where_records_lie_at_the_edge(random_spd):
    """Data in the wrong unit: the error of their clipped mean is small, and says so."""
    X = random_spd(3000, 3, condition=4.0)
    options = {**BUDGET, "method": "adaptive", "random_state": 0}
    wrong, right = (private_mean(scale * X, **options) for scale in (1e3, 1.0))
    edge = r"not counting what the domain did: about \d+% of the records lie at its edge"
    for one, told in ((wrong, True), (right, False)):
        words = [page_of(one), one._repr_html_(), str(facts(one.certificate)["error, 95 %"])]
        assert [bool(re.search(edge, html.unescape(text))) for text in words] == [told] * 3
        assert ("lie at its edge" in repr(one)) == told
        assert "What clipping to the domain did to records outside it is not counted" in page_of(
            one
        )


def test_a_domain_of_correlations_says_what_it_claims(random_spd):
    def domain(metric):
        options = BUDGET | {"domain": CorrelationBounds(0.1), "metric": metric}
        return facts(private_mean(random_spd(300, 3), **options).certificate)["domain"]

    assert domain("offlog") == "CorrelationBounds: shrinkage 0.1"
    assert "the diagonal of a mean need not be 1" in domain("logeuclid")


def test_a_regression_is_told_without_a_bound(random_spd):
    regression = private_regression(random_spd(3000, 3), AGES, ranges=(0, 100), **BUDGET)
    page = html.unescape(html_report(regression))
    assert "No bound on the error is stated." in page
    assert "What is known of it: the last noise in a prediction" in page
    assert "What the statement covers" not in page
    assert "known of the error" in facts(regression.certificate)
    at = f"{regression.values['at'][0]:.4g}"
    assert f"Fitted where the covariates are {at}: ellipsoid" in page
    assert f"{at}::" not in page


def test_page_is_complete(release):
    page = page_of(release)
    for word in ("differentially private", "heat map", "error law", "Certificate", "at most"):
        assert word in page
    assert ("ellipses of" in page) == (len(release.value) in (2, 3))


def test_the_heading_says_which_statistic_it_is_of(several):
    page = page_of(several)
    title = re.search("<h1>(.*)</h1>", page).group(1)
    name = next(name for name in reversed(STATISTICS) if name in title)
    assert title.startswith(f"Private {name}")
    assert title.endswith("3×3 matrices")
    assert (several.certificate["statistic"] in ("mean", "median")) == ("This matrix" in page)
    assert page.count("heat map of the 3×3 matrix") >= 1


def ticks(svg):
    """What stands below the scale of colours."""
    scale = svg[svg.index("matplotlib.axis_3") :]
    return re.findall(r">([−.\d]+)</text>", scale)


def test_matrices_that_are_compared_share_their_scale(random_spd):
    """The larger of two matrices ends the scale of both."""
    X = random_spd(3000, 13)
    small, large = private_mean(np.stack([X, 4 * X], 1), **BUDGET).value
    assert ticks(heat_map(small)) != ticks(heat_map(large))
    both = Release(np.stack([small, large]), private_mean(X, **BUDGET).certificate)
    page = html_report(both)
    first, second = re.findall('<svg role="img".*?</svg>', page, re.DOTALL)[:2]
    assert ticks(first) == ticks(second) == ticks(heat_map(large))
    assert "All on one scale of colours." in page


def test_rows_have_the_names_that_are_given(release):
    k = len(release.value)
    names = [f"<region {i}>" for i in range(k)]
    page = html_report(release, names=names)
    assert page.count("&lt;region 0&gt;</text>") == 2  # a row, and a column
    assert "<region" not in page
    with pytest.raises(ParameterError, match=f"names: 1 names, .* have {k} rows"):
        html_report(release, names=["one"])


def test_the_page_says_what_the_bound_means_and_how_to_verify(release):
    page = page_of(release)
    assert "the domain's centre is known to be within 3 of any mean;" in html.unescape(page)
    assert "<code>spdp verify DIR</code>" in page
    assert seal_of(release.values, release.certificate) in page
    assert "Not proven:" in page


def test_the_page_names_the_entry_that_paid(random_spd, tmp_path):
    ledger = Ledger(tmp_path / "budget.db", epsilon=5.0, delta=1e-4)
    release = private_mean(random_spd(100, 2), ledger=ledger, label="<pilot>", **BUDGET)
    (entry,) = ledger.history()
    page = html_report(release, entry={**entry, "ledger": "budget.db"})
    assert "entry 1 of budget.db, “&lt;pilot&gt;”" in page
    assert "per record" in page
    assert "Paid for" not in page_of(release)


def test_long_lists_are_folded(adaptive, random_spd):
    """Of a certificate, the page tells long lists by their length."""
    steps = adaptive.certificate["steps"]
    center = next(step for step in steps if step["step"] == "center")
    many = [center | {"center": [0.5] * 500}, *steps]
    page = html.unescape(html_report(with_fields(adaptive, steps=many)))
    assert '"center": "… 500 numbers"' in page
    assert "certificate.json has them in full" in page
    seen = private_mean(random_spd(50, 9), reference_point=2.0 * np.eye(9), **BUDGET)
    assert '"reference_point": "… 81 numbers"' in html.unescape(html_report(seen))


def test_a_plan_has_a_page_in_the_same_style(random_spd):
    made = plan(n=200, k=3, spread="10%", error=0.5, runs=2, unit="person", **BUDGET)
    grid = np.array([20.0, 200.0, 2000.0])
    page = plan_page(made, grid, {"one shot, gaussian": 1 / grid})
    for word in ("<h1>Plan of a private mean of 3×3 matrices", "200 persons", "per person"):
        assert word in page
    assert "Rms error 0.5 with spread" in page
    assert "number of persons" in page
    style = re.compile("<style>.*</style>", re.DOTALL)
    release = private_mean(random_spd(50, 2), **BUDGET)
    assert style.search(page).group() == style.search(page_of(release)).group()
    for outside in ("http", "<script", "<link", "mathdefault"):
        assert outside not in page.replace("http-equiv", "")


def test_page_loads_nothing_and_runs_nothing(release):
    page = page_of(release)
    for outside in ("http://", "https://", "<script", "<img", "<link", "src=", "@import"):
        assert outside not in page
    targets = re.findall(r'(?:href="|url\()([^")]*)', page)
    assert targets
    assert all(target.startswith(("#", "data:image/png;")) for target in targets)


def test_ids_of_the_pictures_are_unique_and_found(several):
    page = page_of(several)
    ids = Counter(re.findall(r'\bid="([^"]*)"', page))
    assert ids
    assert max(ids.values()) == 1
    assert set(re.findall(r'(?:href="|url\()#([^")]*)', page)) <= set(ids)


def test_pictures_take_their_ink_from_the_page(release):
    page = page_of(release)
    assert "currentColor" in page
    assert "#0102" not in page  # stand-in colours
    assert "<metadata" not in page


def test_a_simulation_is_marked(random_spd):
    simulated = private_mean(random_spd(50, 2), random_state=0, **BUDGET)
    page = html_report(simulated)
    assert "Not private." in page
    assert "differentially private." not in page
    assert "NO: seeded simulation" in text_of(release_table(simulated))


def test_a_stated_summary_is_not_called_a_mean(stated):
    words = prose(page_of(stated)) + text_of(release_table(stated))
    assert "estimates the stated summary" in words
    assert "was not checked" in words
    assert "at most 0.1 apart (log-Euclidean distance)" in words
    for guess in (" mean", "clipped", "record had been"):
        assert guess not in words


def test_an_adaptive_page_says_what_its_law_covers(adaptive):
    words = prose(page_of(adaptive)) + text_of(release_table(adaptive))
    whole, not_counted = adaptive.certificate["error_statement"].split(". ")
    assert words.count(whole) == 3  # in the page, its table and the terminal's
    assert words.count(not_counted) >= 2
    for wrong in ("true mean", "distance to the mean"):
        assert wrong not in words
    assert "Where the budget went" in words


def test_words_follow_the_certificate_and_not_the_steps(adaptive):
    last = adaptive.certificate["steps"][-1:]
    odd = with_fields(adaptive, steps=last, estimand="a summary", error_statement="the noise.")
    page = prose(html_report(odd))
    assert "This matrix estimates a summary." in page
    assert "What the statement covers: the noise." in page
    assert "Where the budget went: 1 noisy answer" in page
    assert Summary(odd.certificate).coverage.endswith("the noise.")
    with pytest.raises(DataError, match="must have steps"):
        html_report(with_fields(adaptive, steps=[]))


@pytest.mark.parametrize(
    ("adjacency", "unit", "secret"),
    [
        ("replace-one", "record", "any one record had been another one"),
        ("add-remove", "record", "any one record was in the data"),
        ("replace-one", "person", "any one person's records had been other ones"),
        ("add-remove", "person", "any one person's records were in the data"),
    ],
)
def test_the_guarantee_names_who_is_protected(release, adjacency, unit, secret):
    c = with_fields(release, adjacency=adjacency, unit=unit).certificate
    assert secret in verdict(c).full
    assert f"{adjacency}, per {unit}" in facts(c)["guarantee"]


def test_the_guarantee_states_its_odds(release):
    base = {"epsilon": 2.0, "float_safe": True}
    pure = verdict(with_fields(release, delta=0.0, **base).certificate)
    slack = verdict(with_fields(release, delta=1e-3, **base).certificate)
    assert "factor of e^ε = 7.39." in pure.full
    assert "factor of e^ε = 7.39, plus δ = 0.001." in slack.full
    assert "rounding" not in pure.full
    assert "e+304" in verdict(with_fields(release, epsilon=1e4).certificate).full


def test_the_number_of_records_is_shown_as_it_is_known(release):
    known = facts(with_fields(release, n=1797, unit="person").certificate)
    estimated = facts(with_fields(release, n=None, n_estimate=1800.4).certificate)
    assert known["persons"] == "1,797"
    assert estimated["records"] == "about 1,800 (itself private)"


EVIL = '"><script>alert(1)</script>$x_'


def test_every_text_is_escaped_or_refused(adaptive, random_spd):
    """What has a form of its own is refused where it does not have it."""
    texts = [name for name, value in adaptive.certificate.items() if isinstance(value, str)]
    shown = []
    for name in texts:
        try:
            page = html_report(with_fields(adaptive, **{name: EVIL}))
        except (DataError, ParameterError):
            continue
        assert "<script" not in page
        assert page.count("&lt;script") >= 1
        shown.append(name)
    free = ["adjacency", "created", "distance", "error_statement", "estimand", "mechanism"]
    assert sorted(shown) == free
    page = html_report(with_fields(adaptive, **dict.fromkeys(free, EVIL)))
    assert "<script" not in page
    assert page.count("&lt;script") > len(texts)
    labels = np.array([EVIL, "b"])[LABELS]
    classes = private_class_means(random_spd(3000, 3), labels, classes=[EVIL, "b"], **BUDGET)
    page = html_report(classes)
    assert "<script" not in page
    assert "&lt;script" in page


@pytest.mark.parametrize(
    "fields",
    [
        {"steps": [{"step": EVIL, "mu": 0.1, "sensitivity": 1, "scale": 1.0}]},
        {"domain": {"type": EVIL, EVIL: 1.0}},
    ],
)
def test_a_page_of_unknown_steps_or_domains_is_refused(adaptive, fields):
    odd = with_fields(adaptive, **fields)
    with pytest.raises((DataError, ParameterError)):
        html_report(odd)


def test_the_table_does_not_read_markup(adaptive):
    table = release_table(with_fields(adaptive, estimand="[bold]the[/] mean", mechanism="[/red]"))
    text = text_of(table)
    assert "[bold]the[/] mean" in text
    assert "[/red]" in text


def test_an_indefinite_release_has_no_ellipses():
    page = html_report(ExtrinsicGaussian(50.0, 0.1, 1e-5).release(np.eye(2), random_state=2))
    assert "ellipses of" not in page
    assert "heat map" in page


def test_a_map_has_values_while_they_fit():
    def values(matrix):
        return set(re.findall(r">([-.e+\d]+)</text>", heat_map(matrix)))

    assert "7.25" in values(7.25 * np.eye(11))
    assert "7.25" not in values(7.25 * np.eye(12))
    assert {"7.25e-09", "0"} <= values(7.25e-9 * np.eye(2))
    small = heat_map(7.25e-9 * np.eye(8) - 1e-15)
    assert "units of 1e-09" in small
    assert ">7.25</text>" in small
    assert "-0.00" not in small
    assert "0" in values(np.zeros((2, 2)))


@pytest.mark.parametrize("scale", [1e-304, 1e304])
@pytest.mark.parametrize("k", [3, 8, 15])
def test_matrices_at_the_ends_of_float64_can_be_drawn(k, scale):
    assert "heat map" in heat_map(scale * np.eye(k))
    assert k > 3 or "ellipses" in ellipses(scale * np.eye(k))


def test_an_ellipse_is_the_level_set_of_its_matrix():
    """The outline reaches √M_ii along axis i, whatever the correlation."""
    svg = ellipses(np.array([[4.0, 1.0], [1.0, 1.0]]))
    path = re.search(r'<path d="(M[^"]*)"[^>]*var\(--fill\)', svg)
    points = np.array(re.findall(r"[ML] ([-.\d]+) ([-.\d]+)", path.group(1)), dtype=float)
    width, height = np.ptp(points, axis=0)
    assert width / height == pytest.approx(2.0, rel=1e-3)


@pytest.mark.parametrize(
    ("module", "extra"), [("jinja2", "spdp[report]"), ("matplotlib.figure", "spdp[plots]")]
)
def test_a_missing_package_is_named(release, monkeypatch, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(DataError, match=re.escape(f"pip install '{extra}'")):
        html_report(release)


def test_pictures_of_plans_and_ledgers_are_written(tmp_path):
    n = np.geomspace(10.0, 1e4, 5)
    plan = plan_picture(
        tmp_path / "plan.png", n, {"gaussian": 1 / n, "laplace": 2 / n}, 100, "log-Euclidean"
    )
    ledger = ledger_picture(tmp_path / "ledger.png", [0.0, 0.4, 0.9], 2.0, 1e-6)
    empty = ledger_picture(tmp_path / "empty.png", [0.0], 2.0, 0.0)
    for picture in (plan, ledger, empty):
        assert picture.read_bytes().startswith(b"\x89PNG")
    assert plan_picture(tmp_path / "plain", n, {"gaussian": 1 / n}, 100, "log-Euclidean").exists()
    with pytest.raises(DataError, match=r"plan\.xyz"):
        plan_picture(tmp_path / "plan.xyz", n, {"gaussian": 1 / n}, 100, "log-Euclidean")
    with pytest.raises(DataError, match="nowhere"):
        plan_picture(
            tmp_path / "nowhere" / "plan.png", n, {"gaussian": 1 / n}, 100, "log-Euclidean"
        )


@pytest.mark.parametrize(("mechanism", "delta"), [("gaussian", 1e-5), ("laplace", 0.0)])
def test_a_ledgers_picture_ends_at_what_was_spent(random_spd, tmp_path, mechanism, delta):
    ledger = Ledger(tmp_path / "budget.db", epsilon=5.0, delta=delta)
    for epsilon in (0.5, 1.0):
        cost = {"epsilon": epsilon, "delta": delta / 10, "domain": Ball(3.0)}
        private_mean(random_spd(100, 2), mechanism=mechanism, ledger=ledger, **cost)
    spent = ledger.spent()["epsilon"]
    assert spent_over_time(ledger)[-1] == spent


def test_terminal_curve():
    lines = terminal_curve(np.array([10.0, 100.0]), np.array([1.0, 0.1]), "n")
    assert len(lines) == 2
    assert lines[0].count("█") > lines[1].count("█") >= 1


def luminance(colour):
    """Relative luminance as WCAG defines it."""
    digits = colour if len(colour) == 6 else "".join(2 * digit for digit in colour)
    channels = np.array([int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_texts_stand_out_from_their_ground_in_light_and_dark(release):
    light, dark = re.findall(r":root\{(.*?)\}", page_of(release), re.DOTALL)
    for scheme in (light, dark):
        colours = dict(re.findall(r"--([\w-]+):#(\w+)", scheme))
        for ink in ("ink", "soft"):
            for ground in ("paper", "card", "good", "bad"):
                low, high = sorted(luminance(colours[name]) for name in (ink, ground))
                assert (high + 0.05) / (low + 0.05) >= 4.5, (ink, ground)
