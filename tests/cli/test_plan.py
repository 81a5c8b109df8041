import json

import pytest

from spdp.choices import Adjacency

WORDS = ("plan", "--k", "9", "--n", "5000", "--eigenvalues", "1e-3", "10")


def planned(run, *words):
    code, out, err = run(*words, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_plan_shows_mechanisms_and_a_curve(run, budget):
    code, out, err = run(*WORDS, *budget, "--error", "0.05")
    assert (code, err) == (0, "")
    for word in ("tangent-gaussian", "riemannian-laplace", "adaptive", "█", "rms error 0.05"):
        assert word in out


def test_plan_as_a_picture(run, tmp_path, budget):
    pytest.importorskip("matplotlib")
    assert run(*WORDS, *budget, "--plot", "plan.png")[0] == 0
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_said_to_be_needed_reaches_the_wanted_error(run, budget):
    result = planned(run, *WORDS, *budget, "--error", "0.05")
    assert result["best"] == "gaussian"
    more = planned(run, *WORDS, *budget, "--n", result["n_needed"])
    assert more["mechanisms"]["gaussian"]["rms_error"] == pytest.approx(0.05, rel=1e-3)
    richer = planned(run, *WORDS, "--epsilon", result["epsilon_needed"], "--delta", "1e-6")
    assert richer["mechanisms"]["gaussian"]["rms_error"] == pytest.approx(0.05, rel=0.02)


def test_pure_budgets_have_laplace_noise_only(run):
    words = ("plan", "--k", "2", "--n", "100", "--epsilon", "1", "--delta", "0", "--radius", "1")
    result = planned(run, *words)
    assert (result["best"], list(result["mechanisms"])) == ("laplace", ["laplace"])
    assert "adaptive" not in result


@pytest.mark.parametrize("adjacency", Adjacency)
def test_a_plan_is_what_the_release_then_certifies(run, data, budget, adjacency):
    """Same numbers, same law: the plan is no second opinion."""
    shared = (*budget, "--radius", "2", "--adjacency", adjacency)
    result = planned(run, "plan", "--k", "3", "--n", "3000", *shared)
    words = ("mean", data, *shared, "--method", "oneshot", "--json", "--mechanism")
    for mechanism, row in result["mechanisms"].items():
        certificate = json.loads(run(*words, mechanism)[1])["certificate"]
        assert certificate["mechanism"] == row["mechanism"]
        # under add-remove the number of records is itself noisy
        exact = 1e-9 if adjacency is Adjacency.REPLACE_ONE else 0.05
        square = certificate["squared_error_quantiles"]["95%"]
        assert square**0.5 == pytest.approx(row["error_95"], rel=exact)
        square = certificate["expected_squared_error"]
        assert square**0.5 == pytest.approx(row["rms_error"], rel=exact)


def test_budgets_too_small_or_too_large_are_said_to_be(run, refused):
    words = ("plan", "--k", "2", "--n", "10", "--radius", "1", "--delta", "1e-6", "--epsilon")
    code, out, _ = run(*words, "0.001")
    assert code == 0
    assert "too small" in out
    refused(2, "epsilon", *words, "1e100")
    refused(2, "too small", *words, "1e-300")
    refused(2, "--error must be positive", *words, "1", "--error", "-1")
