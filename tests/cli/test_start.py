"""``spdp start``: answers end in a command that works; ``spdp help``; the steps."""

import io
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest

from spdp import Release
from spdp.charts import chart_of
from spdp.cli import start
from spdp.domain.sets import DIFFUSIVITY, VOLTAGE
from spdp.wizard.instruments import DIFFUSIVITIES, KINDS, VOLTAGES


@pytest.fixture
def asked(run, monkeypatch):
    """Answer the questions, a line each; gives what was printed, and the commands."""

    def call(*answers):
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{a}\n" for a in answers)))
        code, out, err = run("start")
        assert (code, err) == (0, ""), out + err
        return out, re.findall(r"^  (spdp .*)$", out, re.M)

    return call


OTHER = ("1", "5", "0.1", "10", "3")  # one record per person; bounds; k


def test_questions_end_in_a_command_that_works(asked, run, data):
    out, (create, mean) = asked(
        *OTHER, "1", "3000", "1", "2.0", "y", "data.npy", "1", "b.ledger", "", "published", "n"
    )
    assert create == "spdp ledger create b.ledger --epsilon 4 --delta 2e-06"
    assert "--epsilon 2.0 --delta 1e-06 --eigenvalues 0.1 10.0" in mean
    assert "compares eigenvalues by their ratios" in out
    for command in (create, mean):
        assert run(*shlex.split(command)[1:])[0] == 0
    assert run("verify", "published")[0] == 0


def test_it_runs_the_command_itself_if_that_is_wanted(asked, data, tmp_path):
    asked(*OTHER, "1", "3000", "1", "2", "y", "data.npy", "3", "published", "y")
    release = Release.load(tmp_path / "published")
    assert (release.certificate["epsilon"], release.certificate["n"]) == (2.0, 3000)
    assert (tmp_path / "published" / "report.html").exists()


def test_epsilon_is_solved_for_the_wanted_error(asked, monkeypatch):
    monkeypatch.setattr(start, "RUNS", 1)
    wanted = (*OTHER, "1", "300", "2", "1.02", "y", "data.npy", "3", "published", "n")
    _, (mean,) = asked(*wanted)
    strict = float(re.search(r"--epsilon (\S+)", mean)[1])
    _, (mean,) = asked(*("1.2" if answer == "1.02" else answer for answer in wanted))
    assert 0 < float(re.search(r"--epsilon (\S+)", mean)[1]) < strict


def test_persons_files_and_instruments_become_options(asked, tmp_path):
    (tmp_path / "images").mkdir()
    _, (mean,) = asked(
        *("4", "1", "um2/ms", "1", "500", "1", "2", "y", "images", "fsl", "3", "out", "n")
    )
    assert mean.startswith("spdp mean images --order fsl --per-file --epsilon 2.0")
    assert "--eigenvalues 0.01 5.0" in mean
    _, (mean,) = asked(
        *("2", "subject", "2", "0.5", "50", "", "uV", "4", "1", "900", "1", "2", "y"),
        *("w.parquet", "2", "old.ledger", "out", "n"),
    )
    assert mean.startswith("spdp mean w.parquet --groups-column subject --epsilon 2.0")
    assert "--trace 0.25 10001.0" in mean
    assert "--ledger old.ledger" in mean
    _, (mean,) = asked(*("1", "3", "0.1", "4", "1", "900", "1", "2", "y", "c.npy", "3", "o", "n"))
    assert "--correlation 0.1 --metric offlog" in mean
    _, (mean,) = asked(
        *("3", "ids.npy", "4", "colour", "", "1", "900", "1", "2", "y", "d.npy", "3", "o", "n")
    )
    assert mean.startswith("spdp mean d.npy --groups ids.npy --epsilon 2.0")
    assert "--trace 1e-06 " in mean


def test_a_statistic_with_classes_asks_for_them(asked, data, run, tmp_path):
    (tmp_path / "y.txt").write_text("a\nb\n" * 1500)
    _, (line,) = asked(
        *(*OTHER, "7", "y.txt", "a,b", "3000", "1", "8", "y", "data.npy", "3", "out", "n")
    )
    assert line.startswith("spdp stats difference data.npy --labels y.txt")
    assert "--classes a,b" in line
    assert run(*shlex.split(line)[1:])[0] == 0


def test_a_wrong_answer_is_asked_again(asked, data):
    out, (mean,) = asked(
        *("9", "1", "5", "-1", "0.1", "10", "3", "1", "3000", "1", "2", "n"),
        *("1", "3", "y", "data.npy", "3", "published", "n"),
    )
    assert "A number from 1 to 6" in out
    assert "A number above zero" in out
    assert "--epsilon 3.0 " in mean


def test_no_records_are_read(asked):
    """A file that is not there is named, and never opened."""
    asked(*OTHER, "1", "3000", "1", "2", "y", "nowhere.npy", "3", "published", "n")


def test_a_ledger_that_cannot_pay_is_refused(run, monkeypatch):
    answers = (*OTHER, "1", "3000", "1", "2", "y", "data.npy", "1", "b.ledger", "1")
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(answers) + "\n"))
    code, _, err = run("start")
    assert code == 2
    assert "total ε = 1 is below this release's" in err


def test_help_is_that_of_the_command(run):
    assert run("help") == run("--help")
    for words in (("mean",), ("ledger", "create"), ("stats", "pca")):
        assert run("help", *words) == run(*words, "--help")
    code, _, err = run("help", "maen")
    assert code == 2
    assert "Did you mean 'mean'?" in err


def test_help_begins_with_the_four_steps(run):
    out = run("--help")[1]
    places = [out.index(f"{i}. spdp {name}") for i, name in enumerate(STEPS, 1)]
    assert places == sorted(places)
    assert places[-1] < out.index("Documentation:") < out.index("Options:")


STEPS = ("plan", "ledger create", "mean", "verify")


@pytest.mark.parametrize("name", KINDS)
def test_each_instrument_has_a_domain_and_says_why(name):
    kind = KINDS[name]
    blank = kind()
    for question in kind.questions:
        if question.choices:
            assert question.word(getattr(blank, question.name)) in question.choices
    answers = {q.name: getattr(blank, q.name, i + 0.1) for i, q in enumerate(kind.questions)}
    made = kind.answered(answers)
    k = made.size or 4
    assert np.isfinite(made.domain(k).radius_for(k, chart_of(made.metric)))
    assert made.title
    assert len(made.reason) > 60
    assert made.reason.endswith(".")


def test_units_are_those_of_the_domains():
    assert (set(DIFFUSIVITIES), set(VOLTAGES)) == (set(DIFFUSIVITY), set(VOLTAGE))


def test_questions_need_neither_shiny_nor_yaml():
    code = "import sys; sys.modules |= dict(shiny=None, yaml=None); import spdp.cli.start"
    subprocess.run([sys.executable, "-c", code], check=True)
