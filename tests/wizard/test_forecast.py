"""Fast predictions agree with a plan's own simulation."""

import msgspec
import numpy as np
import pytest

from spdp import plan
from spdp.release.board import SUSPICIONS, promise
from spdp.release.certificate import Certificate
from spdp.wizard import forecast
from spdp.wizard.forecast import LEAST, forecast_of, planner_of
from spdp.wizard.guarantee import stated
from spdp.wizard.instruments import Connectomes, Diffusion, Other, Signals
from spdp.wizard.ledger_state import create_ledger, ledger_state
from spdp.wizard.picture import curve
from spdp.wizard.recipe import Recipe, Wanted
from spdp.wizard.rehearsal import rehearse
from spdp.wizard.words import Outlook, domain_in_words, odds, terms_of

EEG = Recipe(files=("x",), k=6, n=800, instrument=Signals(), ledger="l")
SHOT = Recipe(
    files=("x",), instrument=Diffusion(), n=500, options={"method": "oneshot"}, ledger="l"
)
CLASSES = {"statistic": "class-means", "options": {"classes": ["a", "b"]}, "labels": "y"}


def test_one_shot_is_predicted_by_its_exact_law():
    made = forecast_of(SHOT)
    for n, epsilon in ((500, 1.0), (5000, 0.2)):
        found = made.predict(n, epsilon, 1e-6)
        known = plan(
            n=n,
            k=3,
            epsilon=epsilon,
            delta=1e-6,
            domain=Diffusion().domain(3),
            method="oneshot",
            mechanism="gaussian",
        )
        assert (found.method, found.noise) == ("oneshot", "gaussian")
        assert found.error == pytest.approx(known.predictions[0].rms, rel=1e-12)


@pytest.mark.parametrize(
    "recipe",
    [EEG, msgspec.structs.replace(EEG, **CLASSES)],
    ids=["mean", "class-means"],
)
def test_a_search_is_read_off_one_curve_for_every_n_and_epsilon(recipe):
    """n records at ε are answered like n' at ε' with the same n·μ."""
    made, planner = forecast_of(recipe), planner_of(recipe)
    for n, epsilon in ((800, 1.0), (8000, 0.3), (20000, 2.0)):
        simulated = planner.simulate(planner.populations[0], n, epsilon, 12, 4000).rms
        assert made.predict(n, epsilon, 1e-6).error == pytest.approx(simulated, rel=0.35)


def test_more_records_and_a_larger_epsilon_never_err_more():
    made = forecast_of(EEG)
    by_epsilon = [made.predict(800, e, 1e-6).error for e in np.geomspace(0.1, 20, 12)]
    by_n = [made.predict(n, 1.0, 1e-6).error for n in (200, 800, 3000, 9000)]
    assert (np.diff(by_epsilon) <= 1e-12).all()
    assert (np.diff(by_n) <= 1e-12).all()


@pytest.mark.parametrize("recipe", [EEG, SHOT], ids=["search", "one shot"])
def test_epsilon_is_solved_for_a_wanted_error(recipe):
    made = forecast_of(recipe)
    for error in (0.1, 0.4):
        epsilon = made.needed(error, recipe.n, 1e-6)
        assert made.predict(recipe.n, epsilon, 1e-6).error <= error
        assert made.predict(recipe.n, 0.95 * epsilon, 1e-6).error > 0.98 * error


def test_an_epsilon_that_nothing_reaches_is_none():
    assert forecast_of(EEG).needed(1e-6, 800, 1e-6) is None
    assert forecast_of(EEG).needed(1e6, 10**7, 1e-6) == LEAST


def test_what_would_be_refused_is_foreseen():
    few = msgspec.structs.replace(EEG, k=8, n=12)
    assert forecast_of(few).predict(12, 1.0, 1e-6).refused
    assert not forecast_of(few).predict(12000, 1.0, 1e-6).refused


def test_recipes_that_differ_in_n_and_epsilon_alone_share_a_simulation():
    assert forecast_of(EEG) is forecast_of(msgspec.structs.replace(EEG, epsilon=3.0, n=900))
    assert forecast_of(EEG) is not forecast_of(msgspec.structs.replace(EEG, spread="5%"))


def test_a_redraw_simulates_nothing(monkeypatch):
    """What follows a slider: all of it is read off what is known."""
    outlook = Outlook.of(EEG)
    monkeypatch.setattr(forecast.Planner, "simulate", None)
    moved = msgspec.structs.replace(EEG, epsilon=0.77, n=640, wanted=Wanted("power", 12.0))
    assert outlook.solve(moved, "power", 12.0) > 0
    assert len(outlook.pictures(moved, 0.77)) == 2
    assert outlook.verdict(moved, 0.77)


def test_the_verdict_speaks_the_users_terms_and_warns():
    outlook = Outlook.of(EEG)
    text = " ".join(note.text for note in outlook.verdict(EEG, 1.0))
    for part in ("ε = 1", "800 records", "power of a channel within", "all eigenvalues within"):
        assert part in text
    weak = msgspec.structs.replace(EEG, delta=0.01)
    notes = [note.text for note in outlook.verdict(weak, 12.0) if note.kind == "no"]
    assert any("ε" in text and "10" in text for text in notes)
    assert any("δ" in text for text in notes)
    none = outlook.verdict(msgspec.structs.replace(EEG, wanted=Wanted("power", 1e-9)), None)
    assert "No ε up to" in none[0].text


@pytest.mark.parametrize("ledger", [None, "l"], ids=["pure noise", "Gaussian noise"])
@pytest.mark.parametrize("whose", ["record", "file"])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_the_odds_are_those_of_the_page_that_would_be_published(ledger, whose, adjacency):
    """The wizard's own sentence and the page's table cannot differ."""
    changed = {"ledger": ledger, "whose": whose, "adjacency": adjacency, "epsilon": 1.0}
    recipe = msgspec.structs.replace(SHOT, **changed, options={})
    text = odds(recipe, forecast_of(recipe).predict(recipe.n, 1.0, 1e-6).budget)
    c = rehearse(recipe).certificate
    published = promise(Certificate.read({**c, "private": True}))
    before, least, largest = published.rows[-1]
    for part in (before, least, largest, SUSPICIONS[adjacency, recipe.unit]):
        assert part in text
    assert SUSPICIONS[adjacency, recipe.unit] in published.before
    assert ("δ" in text) == (c["delta"] > 0)


def test_the_odds_are_not_those_of_pure_noise_where_noise_is_gaussian():
    assert "at most 76.9 % sure of it after" in odds(
        EEG, forecast_of(EEG).predict(800, 1.0, 1e-6).budget
    )


def test_terms_are_those_of_the_instrument_where_matrices_are_released():
    assert next(iter(terms_of(Diffusion(), "mean"))) == "diffusivity"
    assert list(terms_of(Connectomes(), "class-means")) == ["correlations", "distance"]
    assert list(terms_of(Other(radius=1.0), "difference")) == ["distance"]


def test_a_domain_is_said_with_its_unit():
    assert "from 0.01 to 5 µm²/ms" in domain_in_words(Recipe(instrument=Diffusion("um2/ms")))
    assert "at least 0.25 µV², trace of at most 15001.5 µV²" in domain_in_words(EEG)
    assert "shrunk by 0.2" in domain_in_words(Recipe(k=5, instrument=Connectomes()))


def test_a_curve_says_in_words_what_it_shows():
    svg = curve(
        [(1.0, 2.0), (10.0, 0.5), (100.0, 0.1)],
        x_name="n <&>",
        y_name="error",
        at=(10.0, 0.5),
        wanted=0.3,
    )
    assert 'aria-label="error by n &lt;&amp;&gt;: 2 at 1, 0.1 at 100"' in svg
    assert "wanted: 0.3" in svg
    assert "Nothing can be predicted" in curve([(1.0, None)], x_name="n", y_name="e", at=(1, None))


def test_a_ledger_says_what_is_left_or_why_it_cannot_pay(tmp_path):
    file = tmp_path / "a.ledger"
    recipe = msgspec.structs.replace(EEG, ledger=str(file))
    assert "does not exist yet" in ledger_state(recipe)
    own = {}
    assert create_ledger(file, 2.0, 1e-5, recipe, own).startswith("Created a.ledger: ε = 2")
    assert create_ledger(file, 2.0, 1e-5, recipe, own).startswith("Created")  # a second click
    assert "exists already" in create_ledger(file, 3.0, 1e-5, recipe, own)
    assert "exists already" in create_ledger(file, 2.0, 1e-5, recipe, {})
    state = ledger_state(recipe)
    assert state.share == 0.0
    assert "0 of ε = 2 is spent" in state.text
    assert "one more release at δ = 1e-06" in state.text
    assert "depends on the δ" in state.text
    larger = msgspec.structs.replace(recipe, epsilon=5.0)
    assert "has not enough left" in ledger_state(larger)
    assert "This release is paid" in ledger_state(larger, paid=True).text
    file.write_bytes(b"no ledger")
    assert isinstance(ledger_state(recipe), str)


def test_a_ledger_that_cannot_pay_for_the_plan_is_not_created(tmp_path):
    file = tmp_path / "small.ledger"
    for totals in ((0.5, 1e-5), (0.9, 1e-9)):
        text = create_ledger(file, *totals, EEG, {})
        assert text.startswith("Not created")
        assert "cannot pay" in text
        assert not file.exists()


@pytest.mark.parametrize("recipe", [EEG, SHOT], ids=["search", "one shot"])
def test_the_bound_that_will_be_guaranteed_stands_beside_the_wish(recipe):
    found = forecast_of(recipe).predict(recipe.n, 1.0, 1e-6)
    assert found.bound > found.error
    text = " ".join(note.text for note in Outlook.of(recipe).verdict(recipe, 1.0))
    for part in (
        "The prediction is what the error typically is",
        "whatever the records are",
        "larger",
    ):
        assert part in text
    assert f"{found.bound / found.error:.2g} times" in text
    assert "each eigenvalue within a factor" in text


def test_the_bound_of_one_shot_is_that_of_its_certificate(tmp_path):
    found = forecast_of(SHOT).predict(SHOT.n, 1.0, 1e-6)
    release = rehearse(SHOT)
    assert found.bound == pytest.approx(release.certificate["error_bound"]["95%"], rel=0.02)
    release.save(tmp_path / "out")
    wished = msgspec.structs.replace(SHOT, wanted=Wanted("diffusivity", 5.0))
    text = stated(wished, tmp_path / "out")
    assert "Wished for: mean diffusivity within 5 %" in text
    assert "Guaranteed is at most" in text
    assert "mean eigenvalue" in text
    assert stated(SHOT, tmp_path / "absent") == ""
