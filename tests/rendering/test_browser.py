"""Pages in headless Chromium: wide and narrow, light and dark, on paper."""

import html
import re
import shutil
import subprocess

import numpy as np
import pytest

from spdp import Ball, Release, plan, private_class_means, private_mean
from spdp.planning.text import page_of as plan_page
from spdp.release.report import html_report

BUDGET = {"epsilon": 2.0, "delta": 1e-5, "domain": Ball(4.0)}
WIDTHS = (360, pytest.param(768, marks=pytest.mark.audit), 1280)
LIGHT, DARK = 1, 0  # as Chromium numbers them
PAPER = {LIGHT: (255, 255, 255), DARK: (18, 24, 31)}
QUIET = (
    *("--headless", "--no-sandbox", "--hide-scrollbars", "--disable-gpu", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


@pytest.fixture(scope="module")
def pages(random_spd):
    """A mean of many steps, of large matrices with names; classes; and a plan."""
    X = random_spd(3000, 3)
    wide = private_mean(random_spd(3000, 20), method="adaptive", **BUDGET)
    classes = private_class_means(X, np.arange(3000) % 3, classes=[0, 1, 2], **BUDGET)
    made = plan(n=300, k=3, spread="10%", runs=2, **BUDGET)
    grid = np.geomspace(10.0, 9000.0, 7)
    curves = {f"adaptive, spread {i}": (i + 1) / grid for i in range(6)}
    long = Release(wide.value, wide.certificate | {"estimand": "x" * 300})
    return {
        "large": html_report(long, names=[f"region {i} left" for i in range(20)]),
        "classes": html_report(classes),
        "plan": plan_page(made, grid, curves),
    }


@pytest.fixture
def browser(tmp_path):
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")

    def run(page, *options):
        file = tmp_path / "page.html"
        file.write_text(page, encoding="utf-8")
        command = [chromium, *QUIET, f"--user-data-dir={tmp_path}/profile", *options]
        done = subprocess.run([*command, f"file://{file}"], check=True, capture_output=True)
        return done.stdout.decode()

    return run


def framed(page, width, script=""):
    """A page in a frame of that width: Chromium's own window cannot be as narrow."""
    frame = f'<iframe id="f" style="border:0;width:{width}px;height:5000px" srcdoc="{{}}">'
    inside = html.escape(page.replace("<details>", "<details open>"))
    return f'<body style="margin:0">{frame.format(inside)}</iframe><p id="o"></p>{script}'


@pytest.fixture
def shot(browser, tmp_path):
    """The pixels of a page, 8 bits each."""
    image = pytest.importorskip("matplotlib.image")

    def take(page, width, scheme):
        file = tmp_path / "shot.png"
        mode = f"--blink-settings=preferredColorScheme={scheme}"
        browser(framed(page, width), mode, "--window-size=1300,2600", f"--screenshot={file}")
        return np.rint(255 * image.imread(file)[:2600, :width, :3]).astype(int)

    return take


@pytest.mark.parametrize("name", ["large", "classes", "plan"])
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_scrolls_sideways(pages, browser, width, name):
    """All details open, a long word included."""
    probe = "o.textContent = f.contentDocument.documentElement.scrollWidth"
    script = f"<script>onload = () => {{ {probe} }}</script>"
    dom = browser(framed(pages[name], width, script), "--window-size=1400,900", "--dump-dom")
    assert re.search(r'<p id="o">(\d+)</p>', dom).group(1) == str(width)


@pytest.mark.parametrize("name", ["large", "classes", "plan"])
@pytest.mark.parametrize("width", WIDTHS)
def test_dark_is_dark_and_light_is_light(pages, shot, width, name):
    """No white square in the dark, maps and scales included; ink on both."""
    for scheme in (LIGHT, DARK):
        pixels = shot(pages[name], width, scheme)
        ground = np.abs(pixels - PAPER[scheme]).max(axis=-1)
        assert (ground < 3).mean() > 0.2
        assert (ground > 100).mean() > 0.01
        light = pixels.mean(axis=-1)
        if scheme == DARK:
            assert (light > 200).mean() < 0.08  # letters, and the largest entries
            assert light.mean() < 70
        else:
            assert light.mean() > 180


@pytest.mark.parametrize("name", ["large", "classes", "plan"])
def test_it_prints_on_few_pages(pages, browser, tmp_path, name):
    file = tmp_path / "page.pdf"
    browser(pages[name], "--no-pdf-header-footer", f"--print-to-pdf={file}")
    counts = re.findall(rb"/Type\s*/Pages\b[^>]*/Count (\d+)|/Count (\d+)", file.read_bytes())
    assert 1 <= max(int(first or second) for first, second in counts) <= 2


def test_on_paper_it_is_light_and_the_steps_are_a_line(pages):
    """The structure, for where there is no browser: folded on screen, told on paper."""
    page = pages["large"]
    assert "details{display:none}" in page
    assert "@media screen and (prefers-color-scheme:dark)" in page
    told = re.search(r'<div class="printed">(.*?)</div>', page, re.DOTALL).group(1)
    assert "Where the budget went" in told
    assert re.search(r"center \d+\.\d%; ", told)
