"""The steward loses nothing: what is paid for is written, nothing is overwritten."""

import os
import shlex
import shutil

import numpy as np
import pytest

from spdp import Ledger, Release

NAMES = ("mean.npy", "certificate.json", "report.html")


@pytest.fixture
def mean(data, ledger):
    budget = ("--epsilon", "0.3", "--delta", "1e-6")
    return ("mean", data, *budget, "--radius", "2", "--ledger", ledger)


def unwritable(tmp_path):
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere" / "else")
    return ["/proc/x", "file", "file/below", "dangling", "a" * 300, "/dev/null"]


def test_a_directory_is_tried_before_anything_is_paid(refused, mean, ledger, tmp_path):
    for place in unwritable(tmp_path):
        refused(3, "cannot be written to", *mean, "-o", place)
    assert Ledger(ledger).history() == []


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for root")
def test_a_read_only_directory_costs_nothing(refused, mean, ledger, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o555)
    refused(3, "cannot be written to", *mean, "-o", "locked")
    refused(3, "cannot be written to", *mean, "-o", "locked/below")
    assert Ledger(ledger).history() == []


def test_a_failed_command_leaves_no_directory(refused, mean, tmp_path):
    (tmp_path / "kept").mkdir()
    refused(4, "budget exceeded", *mean, "--epsilon", "5", "-o", "new/deep/out")
    refused(4, "budget exceeded", *mean, "--epsilon", "5", "-o", "kept/out")
    assert not (tmp_path / "new").exists()
    assert list((tmp_path / "kept").iterdir()) == []


def test_a_release_is_overwritten_only_by_force(run, refused, mean, ledger, tmp_path):
    assert run(*mean, "-o", "out", "--report")[0] == 0
    first = {name: (tmp_path / "out" / name).read_bytes() for name in NAMES}
    refused(2, "(pass --force)", *mean, "-o", "out")
    assert {name: (tmp_path / "out" / name).read_bytes() for name in NAMES} == first
    assert len(Ledger(ledger).history()) == 1
    assert run(*mean, "-o", "out", "--force")[0] == 0
    assert (tmp_path / "out" / "mean.npy").read_bytes() != first["mean.npy"]
    Release.load(tmp_path / "out")
    assert not (tmp_path / "out" / "report.html").exists()  # it was about the first one


@pytest.mark.parametrize("name", NAMES)
def test_each_file_of_a_release_is_in_the_way(refused, mean, ledger, tmp_path, name):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_text("mine")
    refused(2, f"{name}: exists already", *mean, "-o", "out")
    assert (tmp_path / "out" / name).read_text() == "mine"
    assert Ledger(ledger).history() == []


def test_other_files_may_stand_beside_a_release(run, mean, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    assert run(*mean, "-o", "out")[0] == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {*NAMES[:2], "notes.txt"}


def test_what_was_paid_for_is_not_lost_with_the_disk(run, mean, ledger, tmp_path, monkeypatch):
    """Between payment and writing the directory gives way to a file."""
    store = Ledger.store

    def pull_the_plug(self, *result):
        store(self, *result)
        shutil.rmtree(tmp_path / "out")
        (tmp_path / "out").write_text("")

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "store", pull_the_plug)
        code, out, err = run(*mean, "-o", "out")
    assert (code, out, err.count("\n")) == (3, "", 1)
    command = err.rstrip().split("stored it: ")[1]
    words = shlex.split(command.replace("DIR", "again"))
    assert words[0] == "spdp"
    assert run(*words[1:], "--report")[0] == 0
    entry = Ledger(ledger).history()[0]
    release = Release.load(tmp_path / "again")
    np.testing.assert_array_equal(release.value, entry["value"])
    assert release.certificate == entry["certificate"]
    assert (tmp_path / "again" / "report.html").exists()


def test_without_a_ledger_a_failed_write_says_so(run, data, budget, tmp_path, monkeypatch):
    save = Release.save

    def pull_the_plug(self, path, **options):
        shutil.rmtree(path)
        path.write_text("")
        return save(self, path, **options)

    monkeypatch.setattr(Release, "save", pull_the_plug)
    code, out, err = run("mean", data, *budget, "--radius", "2", "-o", "out")
    assert (code, out) == (3, "")
    assert "second release" in err


@pytest.fixture
def report_words(data, budget):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    return ("mean", data, *budget, "--radius", "2", "-o", "out", "--report")


def test_rows_are_named_on_the_page(run, refused, report_words, ledger, tmp_path):
    """From a list or a file, and checked before anything is paid."""
    paid = (*report_words, "--ledger", ledger)
    refused(2, "--names: 2 names, but matrices have 3 rows", *paid, "--names", "a,b")
    refused(2, "add --report", *report_words[:-1], "--names", "a,b,c")
    assert "0 releases" in run("ledger", "show", ledger)[1]
    (tmp_path / "rows.txt").write_text("caudate\nputamen\n\nnucleus <accumbens>\n")
    assert run(*paid, "--names", "rows.txt")[0] == 0
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "nucleus &lt;accumbens&gt;</text>" in page
    assert f"entry 1 of {ledger.name}" in page


def test_a_page_is_written_later(run, refused, report_words, tmp_path):
    assert run(*report_words)[0] == 0
    refused(2, "report.html: exists already", "report", "out")
    code, out, err = run("report", "out", "--names", "a,b,cc", "--force")
    assert (code, err) == (0, "")
    assert "wrote out/report.html" in out
    assert "cc</text>" in (tmp_path / "out" / "report.html").read_text("utf-8")
    assert run("report", "out", "-o", "page.html")[0] == 0
    refused(3, "absent does not hold a release", "report", "absent")
