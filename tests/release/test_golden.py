"""Releases that earlier versions saved: each still loads, verifies and has a page."""

import runpy
from pathlib import Path

import pytest

from spdp import Release
from spdp.release import verify
from spdp.release.report import html_report
from spdp.statistics import STATISTICS
from spdp.statistics.median import Median

GOLDEN = Path(__file__).with_name("golden")
VERSIONS = sorted(
    (folder.name for folder in GOLDEN.iterdir() if folder.name[0].isdigit()),
    key=lambda name: tuple(map(int, name.split("."))),
)
KEPT = [folder for version in VERSIONS for folder in sorted((GOLDEN / version).iterdir())]


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(GOLDEN / "make.py"))


def statistics(version):
    return {Release.load(f).certificate["statistic"] for f in (GOLDEN / version).iterdir()}


@pytest.mark.parametrize("folder", KEPT, ids=lambda folder: f"{folder.parent.name} {folder.name}")
def test_what_was_saved_loads_and_verifies(folder):
    release = Release.load(folder)
    key = folder / "public.pem"  # where it is signed
    checks = release.verify(public_key=key if key.exists() else None)
    assert [check for check in checks if not check.ok] == []
    assert len(checks) >= 6


PLAIN = [folder for folder in KEPT if "--" not in folder.name]
OTHERS = [pytest.param(f, marks=pytest.mark.audit) for f in KEPT if f not in PLAIN]


@pytest.mark.parametrize("folder", [*PLAIN, *OTHERS], ids=lambda folder: folder.name)
def test_what_was_saved_has_a_page(folder):
    release = Release.load(folder)
    page = html_report(release)
    assert page.count('<svg role="img"') >= 1
    assert release.certificate["statistic"] in page


def test_a_signature_is_among_them():
    (key,) = (GOLDEN / VERSIONS[-1]).glob("*/public.pem")
    release = Release.load(key.parent)
    assert release.verify(public_key=key)[-1].ok
    other = Release.load(key.parent.with_name("mean"))
    assert not other.verify(public_key=key)[-1].ok


def test_every_statistic_and_every_kind_has_one(script):
    """A new statistic needs one: ``make.py`` makes what the version lacks."""
    newest = VERSIONS[-1]
    assert statistics(newest) >= {*STATISTICS, "summary"}
    lacking = [name for name in script["every"]() if not script["folder_of"](newest, name).exists()]
    assert lacking == []


def test_a_statistic_without_one_is_noticed():
    assert not statistics(VERSIONS[-1]) >= {*STATISTICS, "summary", "toy"}


def test_sentences_may_be_reworded_and_mean_the_same(monkeypatch):
    """A later version's words for an estimand: those of this one keep verifying."""
    release = Release.load(GOLDEN / VERSIONS[-1] / "median")
    monkeypatch.setattr(Median, "target", "the median, {distance}, of {units} in the domain")
    assert [check.name for check in release.verify() if not check.ok] == ["estimand"]
    former = "the geometric median, in the {} distance, of the records, each clipped to the domain"
    current = "the median, {}, of the records in the domain"
    words = [text.format("log-Euclidean") for text in (former, current)]
    monkeypatch.setattr(verify, "REWORDED", (tuple(words),))
    assert all(check.ok for check in release.verify())


def test_what_was_saved_is_never_made_again(script, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("saved again")

    monkeypatch.setattr(Release, "save", refuse)
    for version in VERSIONS[-1:]:
        assert script["make"](version) == []
