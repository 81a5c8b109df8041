"""The page, the pictures and the tables of a release."""

import html
import re
import shutil
import subprocess
import sys
from collections import Counter
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from spdp import Ball, ExtrinsicGaussian, Ledger, Release, TangentGaussian, private_mean
from spdp.errors import DataError
from spdp.report import (
    html_report,
    ledger_picture,
    plan_picture,
    release_table,
    terminal_curve,
)
from spdp.report.figures import ellipses, heat_map, spent_over_time
from spdp.report.words import coverage, facts, verdict

BUDGET = {"epsilon": 1.0, "delta": 1e-5, "domain": Ball(3.0)}


@pytest.fixture(scope="module", params=[2, 3, 9])
def release(request, random_spd):
    return private_mean(random_spd(2000, request.param), **BUDGET)


@pytest.fixture(scope="module")
def adaptive(random_spd):
    return private_mean(random_spd(2000, 3), method="adaptive", **BUDGET)


@pytest.fixture(scope="module")
def stated():
    return TangentGaussian(0.1, 1.0, 1e-5).release(np.eye(2))


def with_fields(release, **fields):
    return Release(release.value, release.certificate | fields)


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


def test_page_is_complete(release):
    page = html_report(release)
    for word in ("differentially private", "heat map", "error law", "Certificate", "at most"):
        assert word in page
    assert ("ellipses of" in page) == (len(release.value) in (2, 3))


def test_page_loads_nothing_and_runs_nothing(release):
    page = html_report(release)
    for outside in ("http://", "https://", "<script", "<img", "<link", "src=", "@import"):
        assert outside not in page
    targets = re.findall(r'(?:href="|url\()([^")]*)', page)
    assert targets
    assert all(target.startswith(("#", "data:image/png;")) for target in targets)


def test_ids_of_the_pictures_are_unique_and_found(release):
    page = html_report(release)
    ids = Counter(re.findall(r'\bid="([^"]*)"', page))
    assert ids
    assert max(ids.values()) == 1
    assert set(re.findall(r'(?:href="|url\()#([^")]*)', page)) <= set(ids)


def test_pictures_take_their_ink_from_the_page(release):
    page = html_report(release)
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
    words = prose(html_report(stated)) + text_of(release_table(stated))
    assert "estimates the stated summary" in words
    assert "was not checked" in words
    assert "at most 0.1 apart (log-Euclidean distance)" in words
    for guess in (" mean", "clipped", "record had been"):
        assert guess not in words


def test_an_adaptive_page_says_what_its_law_covers(adaptive):
    words = prose(html_report(adaptive)) + text_of(release_table(adaptive))
    assert words.count(adaptive.certificate["error_statement"]) == 3
    for wrong in ("true mean", "distance to the mean"):
        assert wrong not in words
    assert "Where the budget went" in words


def test_words_follow_the_certificate_and_not_the_steps(adaptive):
    odd = with_fields(adaptive, steps=None, estimand="a summary", error_statement="the noise.")
    page = prose(html_report(odd))
    assert "This matrix estimates a summary." in page
    assert "What the statement covers: the noise." in page
    assert "Where the budget went" not in page
    assert coverage(odd.certificate).endswith("the noise.")


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
    rounded = with_fields(release, delta=0.0, epsilon=2.0, float_safe=False)
    assert "up to rounding" in verdict(rounded.certificate).full
    assert "e+304" in verdict(with_fields(release, epsilon=1e4).certificate).full


def test_the_number_of_records_is_shown_as_it_is_known(release):
    known = facts(with_fields(release, n=1797, unit="person").certificate)
    estimated = facts(with_fields(release, n=None, n_estimate=1800.4).certificate)
    assert known["people"] == "1,797"
    assert estimated["records"] == "about 1,800 (itself private)"


def test_every_text_is_escaped(adaptive):
    evil = '"><script>alert(1)</script>$x_'
    texts = {name: evil for name, v in adaptive.certificate.items() if isinstance(v, str)}
    steps = [{"step": evil, "mu": 0.1, evil: evil}]
    domain = {"type": evil, evil: 1.0}
    page = html_report(with_fields(adaptive, steps=steps, domain=domain, **texts))
    assert "<script" not in page
    assert page.count("&lt;script") > len(texts)


def test_the_table_does_not_read_markup(adaptive):
    table = release_table(with_fields(adaptive, estimand="[bold]the[/] mean", method="[/red]"))
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
    history = [{"mu": 0.2, "pure": None}, {"mu": 0.3, "pure": 0.3}]
    ledger = ledger_picture(tmp_path / "ledger.png", history, 2.0, 1e-6)
    empty = ledger_picture(tmp_path / "empty.png", [], 2.0, 0.0)
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
    assert spent_over_time(ledger.history(), 5.0, delta)[-1] == spent


def test_terminal_curve():
    lines = terminal_curve(np.array([10.0, 100.0]), np.array([1.0, 0.1]), "n")
    assert len(lines) == 2
    assert lines[0].count("█") > lines[1].count("█") >= 1


@pytest.fixture
def browser(tmp_path):
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    quiet = ("--disable-gpu", "--disable-background-networking", "--no-first-run")
    flags = ["--headless", "--no-sandbox", "--hide-scrollbars", *quiet]

    def run(page, *options):
        file = tmp_path / "page.html"
        file.write_text(page, encoding="utf-8")
        command = [chromium, *flags, f"--user-data-dir={tmp_path}/profile", *options]
        done = subprocess.run([*command, f"file://{file}"], check=True, capture_output=True)
        return done.stdout.decode()

    return run


@pytest.mark.parametrize(("scheme", "paper"), [(1, "#ffffff"), (0, "#12181f")])
def test_page_renders_in_light_and_dark(release, browser, tmp_path, scheme, paper):
    """Chromium draws the page on its paper, with the map's red and the curve's blue."""
    image = pytest.importorskip("matplotlib.image")
    shot = tmp_path / "shot.png"
    mode = f"--blink-settings=preferredColorScheme={scheme}"
    browser(html_report(release), mode, "--window-size=1000,900", f"--screenshot={shot}")
    pixels = image.imread(shot)[..., :3]
    assert pixels.shape[:2] == (900, 1000)
    ground = np.array([int(paper[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    ink = (np.abs(pixels - ground).max(axis=-1) > 0.1).mean()
    assert 0.02 < ink < 0.9
    red, green, blue = np.moveaxis(pixels, -1, 0)
    assert ((red > 0.35) & (green < 0.2) & (blue < 0.25)).sum() > 50
    assert ((blue > 0.55) & (blue - red > 0.3)).sum() > 50


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_scrolls_sideways(adaptive, browser, width):
    """A frame of that width holds the page, all details open, a long word included."""
    page = html_report(with_fields(adaptive, estimand="x" * 300))
    page = html.escape(page.replace("<details>", "<details open>"))
    probe = "o.textContent = f.contentDocument.documentElement.scrollWidth"
    dom = browser(
        f'<iframe id="f" style="border:0;width:{width}px;height:900px" srcdoc="{page}">'
        f'</iframe><p id="o"></p><script>onload = () => {{ {probe} }}</script>',
        "--window-size=1400,900",
        "--dump-dom",
    )
    assert re.search(r'<p id="o">(\d+)</p>', dom).group(1) == str(width)
