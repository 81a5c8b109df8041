"""What a page tells a board: promise, units of the field, a record's way, a ledger."""

import html
import re

import numpy as np
import pytest

from spdp import (
    Ball,
    CorrelationBounds,
    EigenvalueBounds,
    Ledger,
    TangentGaussian,
    private_class_means,
    private_mean,
    private_median,
)
from spdp.cli.output import entry_of
from spdp.datasets import synthetic_spd
from spdp.geometry import distance_logeuclid
from spdp.privacy.odds import table
from spdp.release.board import About, down, in_field_units, promise, stages, up
from spdp.release.report import html_report, says_the_same
from spdp.release.summary import Summary

X = synthetic_spd(2000, 3, random_state=0)
BUDGET = {"epsilon": 2.0, "delta": 1e-5, "domain": EigenvalueBounds(0.1, 10.0)}
ABOUT = About.of(title="<Pilot>", study='"Cohort"', contact="a@b.org", date="2026-03-31")
PERSONS = np.arange(2000) // 4


def mean(records=X, **options):
    return private_mean(records, **BUDGET | options)


def told(release):
    return Summary(release.certificate)


def units(release):
    return in_field_units(told(release), release.values)


def text(page):
    return html.unescape(re.sub(r"<[^>]+>", " ", page[: page.index("<summary>")]))


@pytest.mark.parametrize(
    ("release", "what", "sure"),
    [
        (lambda: mean(mechanism="gaussian"), "of what one record is", "at most δ = 1e-05"),
        (lambda: mean(delta=0.0), "of what one record is", "without exception"),
        (lambda: mean(adjacency="add-remove"), "that one record is in the data", "Each limit"),
        (lambda: mean(groups=PERSONS), "of what one person's records are", "Each limit"),
        (
            lambda: mean(groups=PERSONS, adjacency="add-remove"),
            "that one person's records are in the data",
            "Each limit",
        ),
        (lambda: TangentGaussian(0.1, 1.0, 1e-6).release(np.eye(2)), "it was the first", "δ = 1e"),
    ],
)
def test_the_promise_is_that_of_the_certificate(release, what, sure):
    release = release()
    c = told(release).c
    found = promise(c)
    assert what in found.before
    assert sure in found.after
    assert found.rows == table(c.epsilon, c.delta, c.mu)
    page = text(html_report(release))
    for row in found.rows:
        assert re.search(r"\s+".join(map(re.escape, row)), page)


def test_a_simulation_promises_nothing():
    release = mean(random_state=1)
    assert promise(told(release).c) is None
    assert "afterwards at most" not in html_report(release)


def test_the_error_in_the_fields_units_is_that_of_the_bound():
    """A matrix as far off as the bound says lies within what the page states."""
    release = mean(1e-3 * X, domain=EigenvalueBounds(1e-4, 1e-2))
    rows, u = units(release), release.error_bound(0.95)
    factor = float(re.search(r"factor of (\S+)", rows["each eigenvalue"])[1])
    assert np.exp(u) <= factor <= 1.001 * np.exp(u)
    low, high = map(float, re.search(r"exact (\S+) to (\S+)", rows["mean eigenvalue"]).groups())
    assert "mean diffusivity" in rows["mean eigenvalue"]
    w, V = np.linalg.eigh(release.value)
    for x in (np.full(3, u / np.sqrt(3)), np.array([u, 0, 0]), np.array([0, 0, -u])):
        other = (V * w * np.exp(x)) @ V.T
        assert float(distance_logeuclid(other, release.value)) == pytest.approx(u)
        assert low <= np.trace(other) / 3 <= high
    assert re.fullmatch(r"released \d\.\d+, exact \S+ to \S+", rows["fractional anisotropy"])
    page = text(html_report(release))
    assert all(row in page for row in rows.values())


def test_units_are_those_that_are_proven():
    C = 0.9 * X / np.sqrt(np.einsum("nii,njj->nij", X, X)) + 0.1 * np.eye(3)
    connectome = mean(C, domain=CorrelationBounds(0.1), metric="offlog")
    assert set(units(connectome)) == {"each correlation"}
    curved = mean(metric="riemann")
    assert {"each eigenvalue", "each correlation"} < set(units(curved))
    assert units(mean(metric="logchol", domain=Ball(3.0))) == {}
    assert units(mean(reference_point=np.diag([1.0, 2.0, 3.0]), domain=Ball(3.0))) == {}
    assert units(private_median(X, **BUDGET)) == {}
    pairs = units(mean(np.stack([X, X], axis=1)))
    assert "released" not in pairs["mean eigenvalue"]
    classes = private_class_means(X, PERSONS % 2, classes=[0, 1], method="oneshot", **BUDGET)
    assert "within a factor" in units(classes)["each eigenvalue"]


def test_numbers_are_rounded_outward():
    assert (up(1.00001), down(0.99999)) == ("1.001", "0.9999")
    assert (up(0.12341, 3), down(1234.9, 3)) == ("0.124", "1.23e+03")
    assert (up(0.0), up(2.0), up(float("inf"))) == ("0", "2", "inf")


@pytest.mark.parametrize(
    ("release", "titles", "words"),
    [
        (lambda: mean(), ["One record", "Public domain", "Sum and noise", "Release"], "3×3"),
        (
            lambda: mean(groups=PERSONS),
            ["One person", "Public domain", "Sum and noise", "Release"],
            "their mean",
        ),
        (
            lambda: mean(groups=PERSONS, weights="records", max_records=2),
            ["One person", "Public domain", "Sum and noise", "Release"],
            "At most 2 records of a person count",
        ),
        (
            lambda: TangentGaussian(0.1, 1.0, 1e-6).release(np.eye(2)),
            ["Summary", "Noise", "Release"],
            "computed elsewhere",
        ),
    ],
)
def test_a_records_way_is_drawn(release, titles, words):
    release = release()
    way = stages(told(release))
    assert [stage.title for stage in way] == titles
    assert any(words in stage.text for stage in way)
    page = html_report(release)
    assert page.count("<li><svg") == len(titles)
    asked = len(release.certificate["steps"])
    assert asked == 1 or any(f"each of the {asked} sums" in stage.text for stage in way)


def test_a_page_says_whose_it_is_and_is_still_compared():
    release = mean()
    page = html_report(release, about=ABOUT)
    assert "<h1>&lt;Pilot&gt;</h1>" in page
    assert "<b>Private mean of 3×3 matrices</b>" in page
    assert "Study: &#34;Cohort&#34;. Contact: a@b.org. Date: 2026-03-31." in page
    assert "as whoever wrote this page states them" in page
    assert "as whoever wrote" not in html_report(release)
    assert says_the_same(page, release)
    for before, after in (
        ("a@b.org. Date", "c@d.org. Date"),
        ("within a factor of 1.", "within a factor of 0."),
        ("&#34;2026-03-31&#34;", "&#34;soon&#34;"),
    ):
        assert before in page
        assert not says_the_same(page.replace(before, after), release), before


def test_the_ledger_is_a_bar(tmp_path):
    ledger = Ledger(tmp_path / "study.ledger", epsilon=4.0, delta=1e-4)
    release = mean(ledger=ledger, label="pilot")
    spent = ledger.spent()["epsilon"]
    page = html_report(release, entry=entry_of(release, ledger))
    share = f"{100 * float(f'{spent:.4g}') / 4:.1f}"
    assert f'<i style="width:{share}%">' in page
    assert f"ε = 4 at δ = 0.0001, ε = {spent:.4g} was spent" in page
    assert says_the_same(page, release)
    assert not says_the_same(page.replace(f"width:{share}%", "width:1.0%"), release)
    assert not says_the_same(page.replace("this release included", "<b>all</b>"), release)
    assert 'class="bar"' not in html_report(release)


def test_a_page_with_everything_on_it_is_compared(tmp_path):
    ledger = Ledger(tmp_path / "study.ledger", epsilon=4.0, delta=1e-4)
    release = mean(ledger=ledger)
    entry, names = entry_of(release, ledger), ["x", "y", "z"]
    page = html_report(release, names=names, entry=entry, about=ABOUT)
    assert says_the_same(page, release)
    assert not says_the_same(page, mean())
