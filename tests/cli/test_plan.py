import json
import re

import pytest

from spdp import Ball
from spdp.options import Adjacency
from spdp.statistics import STATISTICS
from spdp.statistics.method import plan_one_shot

WORDS = ("plan", "--k", "5", "--n", "3000", "--eigenvalues", "1e-2", "10", "--runs", "4")


def planned(run, *words):
    code, out, err = run(*words, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_plan_shows_methods_and_a_curve(run, budget):
    code, out, err = run(*WORDS, *budget, "--spread", "10%", "--error", "0.05")
    assert (code, err) == (0, "")
    for word in ("one shot, gaussian", "one shot, laplace", "(10% of the radius)", "█"):
        assert word in out
    assert "The adaptive method will run" in out
    assert "rms error 0.05 with spread 0.772 needs about " in out
    assert "Returning the domain's centre" in out
    assert "uninformative" not in out.lower()


def test_plan_as_a_picture(run, tmp_path, budget):
    pytest.importorskip("matplotlib")
    words = ("plan", "--k", "2", "--n", "300", "--radius", "2", *budget, "--runs", "2")
    code, out, _ = run(*words, "--plot", "plan.png")
    assert code == 0
    assert "wrote plan.png" in out
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_said_to_be_needed_is_for_the_method_that_will_run(run, budget):
    words = (*WORDS, "--spread", "0.8")
    result = planned(run, *words, *budget, "--error", "0.05")
    assert result["method"] == "adaptive"
    (answer,) = result["needed"]
    assert answer["spread"] == 0.8
    more = planned(run, *words, *budget, "--n", answer["n"], "--runs", "20")
    assert more["predictions"][0]["rms"] == pytest.approx(0.05, rel=0.25)
    assert more["one_shot"]["gaussian"]["rms"] > 0.1
    richer = ("--epsilon", answer["epsilon"], "--delta", "1e-6", "--runs", "20")
    rms = planned(run, *words, *richer)["predictions"][0]["rms"]
    assert rms == pytest.approx(0.05, rel=0.25)


def test_an_unknown_spread_gives_a_range(run, budget):
    result = planned(run, *WORDS, *budget, "--error", "0.05")
    spreads = [row["spread"] / result["radius"] for row in result["adaptive"]]
    assert spreads == pytest.approx([0.05, 0.1, 0.2, 0.5])
    needed = [answer["n"] for answer in result["needed"]]
    assert sorted(needed) == needed


def test_pure_budgets_have_laplace_noise_only(run):
    words = ("plan", "--k", "2", "--n", "100", "--epsilon", "1", "--delta", "0", "--radius", "1")
    assert planned(run, *words, "--runs", "1")["method"] == "adaptive"
    words = (*words, "--method", "oneshot")
    result = planned(run, *words, "--error", "0.01")
    assert (result["noise"], list(result["one_shot"])) == ("laplace", ["laplace"])
    assert (result["adaptive"], result["method"]) == ([], "oneshot")
    (answer,) = result["needed"]
    more = planned(run, *words, "--n", answer["n"])
    assert more["predictions"][0]["rms"] == pytest.approx(0.01, rel=0.01)


@pytest.mark.parametrize("adjacency", Adjacency)
def test_a_plan_is_what_the_release_then_certifies(run, data, budget, adjacency):
    """Same numbers, same law: the plan is no second opinion."""
    shared = (*budget, "--radius", "2", "--adjacency", adjacency)
    words = ("plan", "--k", "3", "--n", "3000", *shared, "--spread", "40%", "--runs", "1")
    result = planned(run, *words)
    words = ("mean", data, *shared, "--method", "oneshot", "--json", "--mechanism")
    for mechanism, row in result["one_shot"].items():
        certificate = json.loads(run(*words, mechanism)[1])["certificate"]
        # under add-remove the number of records is itself noisy
        exact = 1e-9 if adjacency is Adjacency.REPLACE_ONE else 0.05
        assert certificate["error_bound"]["95%"] == pytest.approx(row["bound"], rel=exact)
        square = certificate["expected_squared_error"]
        assert square**0.5 == pytest.approx(row["rms"], rel=exact)


def test_budgets_too_small_or_too_large_are_said_to_be(run, refused):
    words = ("plan", "--k", "2", "--n", "10", "--radius", "1", "--delta", "1e-6", "--epsilon")
    code, out, _ = run(*words, "0.001", "--runs", "4")
    assert code == 0
    assert "Uninformative wherever the data lie" in out
    assert "errs by 0.3" in out
    refused(2, "epsilon", *words, "1e100")
    refused(2, "too small", *words, "1e-300")
    refused(2, "--error must be a positive finite number", *words, "1", "--error", "-1")
    refused(2, "share of the domain's radius", *words, "1", "--spread", "wide")
    refused(3, "missing.npz", *words, "1", "--spread", "missing.npz")


def test_a_plan_speaks_of_persons_where_they_are_meant(run, budget):
    words = (*WORDS, *budget, "--spread", "10%", "--error", "0.05")
    out = run(*words, "--unit", "person")[1]
    for text in ("3,000 persons", "by number of persons", " persons at this ε"):
        assert text in out
    assert "records" not in out
    assert "persons" not in run(*words)[1]


@pytest.mark.parametrize("n", [12, 3000])
def test_the_curve_goes_through_the_number_in_the_table(run, budget, n):
    """The same prediction in both, for few records as for many."""
    words = (*WORDS, "--n", n, *budget, "--spread", "10%", "--method", "adaptive")
    rms = planned(run, *words)["predictions"][0]["rms"]
    out = run(*words)[1]
    assert f"{rms:.4g}" in out
    (line,) = [line for line in out.splitlines() if line.startswith(f"n = {n:>13,}  ")]
    assert line.endswith(f"  {rms:.3g}")


def test_a_wanted_error_is_answered_once_for_the_method_that_will_run(run, budget):
    """One shot: four spreads had four answers, all equal, and called rough."""
    words = ("plan", "--k", "1", "--n", "500", "--radius", "5", *budget, "--error", "0.1")
    code, out, _ = run(*words, "--runs", "2")
    assert code == 0
    assert "One shot will run" in out
    (answer,) = [line for line in out.splitlines() if line.startswith("rms error 0.1")]
    alone = run(*words, "--runs", "2", "--method", "oneshot")[1]
    assert answer in alone  # the exact answer, whatever the spread
    assert "about" not in answer
    found = re.fullmatch(r"rms error 0.1 needs (\d+) records at this ε, or .* at this n", answer)
    law = plan_one_shot(1, epsilon=1.0, delta=1e-6, domain=Ball(5.0))
    n = int(found[1])
    assert law.expected_squared_error(n) <= 0.1**2 < law.expected_squared_error(0.99 * n)
    searched = run(*words, "--runs", "2", "--method", "adaptive")[1]
    assert searched.count("rms error 0.1 with spread") == 4


def test_plan_as_a_page(run, refused, tmp_path, budget):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    words = ("plan", "--k", "2", "--n", "300", "--radius", "2", *budget, "--runs", "2")
    words = (*words, "--method", "oneshot")
    code, out, _ = run(*words, "--html", "plan.html", "--error", "0.1")
    assert code == 0
    assert "wrote plan.html" in out
    page = (tmp_path / "plan.html").read_text("utf-8")
    assert "<h1>Plan of a private mean of 2×2 matrices</h1>" in page
    assert page.count("Rms error 0.1 needs") == 1
    refused(2, "plan.html: exists already", *words, "--html", "plan.html")
    assert run(*words, "--html", "plan.html", "--force")[0] == 0


# --- statistics beyond the mean

PUBLIC = ("--k", "3", "--n", "5000", "--epsilon", "1", "--delta", "1e-6", "--radius", "10")


@pytest.mark.parametrize("words", [("plan",), ("stats", "plan")])
def test_it_tells_what_it_predicts_and_that_it_does(run, words):
    words = (*words, "class-means", *PUBLIC, "--classes", "3", "--runs", "2")
    code, out, err = run(*words)
    assert (code, err) == (0, "")
    assert out.count("class-means, spread") >= 4  # a range of spreads
    assert "The rms error of a class mean was simulated on synthetic records" in out
    assert "Enough records." in out
    least = json.loads(run(*words, "--json")[1])["thresholds"]["to see every class"]
    out = run(*words, "--n", "20")[1]
    assert f"Too few records to see every class: {least} are needed." in out


def test_json_of_a_test(run):
    words = ("plan", "difference", *PUBLIC, "--spread", "10%", "--effect", "0.5")
    (row,) = planned(run, *words)["predictions"]
    assert row["spread"] == 1.0
    assert 0.9 < row["numbers"]["power"] <= 1.0


def test_what_is_wrong_is_refused(refused):
    refused(2, "positive", "plan", "median", *PUBLIC, "--spread", "-1")
    refused(2, "statistic must be one of 'mean', 'class-means'", "plan", "mode", *PUBLIC)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_every_statistic_has_its_name_here(run, statistic):
    made = planned(run, "plan", statistic, *PUBLIC, "--spread", "10%", "--runs", "1")
    assert (made["statistic"], len(made["predictions"])) == (statistic, 1)


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("n", ["40", "4000"])
def test_every_statistic_is_planned_for_few_records_and_for_many(run, budget, statistic, n):
    """Numbers of records that a statistic refuses have no place in its curve."""
    words = ("plan", statistic, "--k", "3", "--n", n, "--radius", "5", "--spread", "10%")
    code, out, err = run(*words, *budget, "--runs", "1")
    assert (code, err) == (0, "")
    assert ("█" in out) != ("Nothing would be released" in out)
