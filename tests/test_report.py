import shutil
import subprocess

import numpy as np
import pytest

from spdp import Ball, TangentGaussian, private_mean
from spdp.report import html_report, terminal_curve


@pytest.fixture(params=[2, 3, 9])
def release(request, random_spd):
    return private_mean(random_spd(2000, request.param), epsilon=1.0, delta=1e-5, domain=Ball(3.0))


def test_page_is_self_contained_and_complete(release):
    page = html_report(release)
    for word in ("differentially private", "heat map", "error law", "Certificate", "at most"):
        assert word in page
    for outside in ("http://", "https://", "<script", "<img", "<link", "src="):
        assert outside not in page
    assert ("ellipses" in page) == (len(release.value) in (2, 3))


def test_a_simulation_is_marked(random_spd):
    page = html_report(private_mean(random_spd(50, 2), epsilon=1.0, delta=1e-5, domain=Ball(3.0), random_state=0))
    assert "Not private" in page
    assert "differentially private.</b>" not in page
    assert "Private mean" in html_report(TangentGaussian(0.1, 1.0, 1e-5).release(np.eye(2)))


def test_page_renders_in_a_browser(release, tmp_path):
    """Debian's chromium draws the page: not blank, with the red and blue of the pictures on it."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    image = pytest.importorskip("matplotlib.image")
    (tmp_path / "report.html").write_text(html_report(release), encoding="utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run", "--hide-scrollbars"]
    shot = tmp_path / "shot.png"
    command = [chromium, *flags, f"--user-data-dir={tmp_path}/profile", "--window-size=1000,900", f"--screenshot={shot}"]
    subprocess.run([*command, f"file://{tmp_path}/report.html"], check=True, capture_output=True, timeout=120)
    pixels = image.imread(shot)[..., :3]
    assert pixels.shape[:2] == (900, 1000)
    ink = (np.abs(pixels - 1.0).max(axis=-1) > 0.2).mean()
    assert 0.02 < ink < 0.9
    red, green, blue = pixels[..., 0], pixels[..., 1], pixels[..., 2]
    assert ((red > 0.55) & (green < 0.3) & (blue < 0.35)).sum() > 50
    assert ((blue > 0.55) & (red < 0.3)).sum() > 50


def test_terminal_curve():
    lines = terminal_curve(np.array([10.0, 100.0]), np.array([1.0, 0.1]), "n")
    assert len(lines) == 2
    assert lines[0].count("█") > lines[1].count("█") >= 1
