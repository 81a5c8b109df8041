"""``spdp stats plan``."""

import json

from spdp.cli.stats.plan import Statistic
from spdp.statistics.foreseen import STATISTICS

PUBLIC = ("--k", "3", "--n", "5000", "--epsilon", "1", "--delta", "1e-6", "--radius", "10")


def test_it_tells_what_it_predicts_and_that_it_does(run):
    code, out, err = run("stats", "plan", "class-means", *PUBLIC, "--classes", "3")
    assert (code, err) == (0, "")
    assert out.count("rms noise of a class mean") == 4  # a range of spreads
    assert "To see every class" in out
    assert "A prediction" in out


def test_json(run):
    words = ("stats", "plan", "difference", *PUBLIC, "--spread", "10%", "--effect", "0.5")
    code, out, _ = run(*words, "--json")
    assert code == 0
    (row,) = json.loads(out)["predictions"]
    assert row["spread"] == 1.0
    assert 0.9 < row["power"] <= 1.0


def test_what_is_wrong_is_refused(refused):
    refused(2, "positive", "stats", "plan", "median", *PUBLIC, "--spread", "-1")


def test_every_statistic_has_its_name_here():
    assert {str(name) for name in Statistic} == set(STATISTICS)
