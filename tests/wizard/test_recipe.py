"""A recipe is saved, loaded and checked; nothing is opened for it."""

import msgspec
import pytest

from spdp import CorrelationBounds, EigenvalueBounds, TraceBounds
from spdp.errors import DataError, ParameterError
from spdp.wizard.instruments import Connectomes, Diffusion, Images, Other, Signals
from spdp.wizard.recipe import Recipe, Step, Wanted, Whose

EEG = Recipe(
    files=("eeg.csv",),
    whose=Whose.COLUMN,
    groups_column="subject",
    k=4,
    n=600,
    instrument=Signals(),
    epsilon=0.5,
    wanted=Wanted("eigenvalues", 1.2),
    ledger="study.ledger",
)


@pytest.mark.parametrize(
    "recipe",
    [
        EEG,
        Recipe(files=("x.npy",)),
        Recipe(files=("a", "b"), k=20, instrument=Connectomes(0.3), delta=0.0),
        Recipe(
            files=("x",), k=9, instrument=Images(), statistic="pca", options={"n_components": 2}
        ),
        Recipe(
            files=("x",), instrument=Other(eigenvalues=(0.1, 2.0)), options={"method": "oneshot"}
        ),
        Recipe(files=("x",), statistic="class-means", options={"classes": ["a", "b"]}, labels="y"),
    ],
)
def test_what_is_saved_is_loaded(recipe, tmp_path):
    (tmp_path / "plan.yaml").write_text(recipe.yaml(), "utf-8")
    assert Recipe.load(tmp_path / "plan.yaml") == recipe


def test_a_saved_recipe_is_short_and_says_what_matters():
    text = EEG.yaml()
    for line in ("whose: column", "kind: signals", "epsilon: 0.5", "term: eigenvalues"):
        assert line in text
    assert "covariates" not in text
    assert "null" not in text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("epsilon: much", "Expected `float`"),
        ("epsilonn: 1", "unknown field `epsilonn`"),
        ("instrument: {kind: telescope}", "telescope"),
        ("whose: nobody", "nobody"),
        ("[1, 2]", "Expected `object`"),
        ("{", "is no recipe"),
        ("spdp: 2", "recipe of format 2, this version reads 1"),
        ("files: !!python/object/apply:os.system [ls]", "is no recipe"),
        ("files: " + "[" * 100_000, "too nested"),
        ("files:\n" + "- " * 100_000, "too nested"),
        ("# " + "x" * (1 << 20), "too long"),
    ],
)
def test_a_file_that_is_no_recipe_is_refused(text, why):
    with pytest.raises(DataError, match=why) as error:
        Recipe.read(text, "plan.yaml")
    assert str(error.value).startswith("plan.yaml: ")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"absent.yaml: cannot be read \(No such file"):
        Recipe.load(tmp_path / "absent.yaml")


@pytest.mark.parametrize(
    ("changed", "step", "why"),
    [
        ({"files": ()}, Step.RECORDS, "name the file"),
        ({"groups_column": None}, Step.RECORDS, "name the column"),
        ({"whose": Whose.IDS, "groups_column": None}, Step.RECORDS, "name the file that says"),
        ({"whose": Whose.FILE}, Step.RECORDS, "the column of the persons has no meaning"),
        ({"n": 0}, Step.RECORDS, "n must be from 1"),
        ({"instrument": Diffusion()}, Step.INSTRUMENT, "diffusion tensors are 3×3"),
        ({"instrument": Images()}, Step.INSTRUMENT, "gray images are 9×9"),
        ({"instrument": Other()}, Step.INSTRUMENT, "state one public bound"),
        ({"instrument": Signals(low=60.0)}, Step.INSTRUMENT, "low must be smaller than high"),
        ({"instrument": Connectomes(1.5)}, Step.INSTRUMENT, "must be smaller than 1"),
        ({"statistic": "mode"}, Step.STATISTIC, "statistic must be one of mean"),
        ({"statistic": "class-means"}, Step.STATISTIC, "needs classes"),
        ({"options": {"method": "magic"}}, Step.STATISTIC, "method must be"),
        ({"options": {"cleverness": 1}}, Step.STATISTIC, "not an option of mean"),
        ({"epsilon": -1.0}, Step.PRIVACY, "ε must be"),
        ({"delta": 1.5}, Step.PRIVACY, "δ must"),
        ({"output": ""}, Step.LEDGER, "name the folder"),
        ({"ledger": ""}, Step.LEDGER, "name the ledger"),
        ({"names": "a,b,c"}, Step.LEDGER, "names of the rows: 3 names, but matrices have 4 rows"),
    ],
)
def test_a_problem_names_its_step_and_speaks_the_words_of_the_page(changed, step, why):
    recipe = msgspec.structs.replace(EEG, **changed)
    assert why in recipe.problems()[step]
    with pytest.raises(ParameterError, match=f"^{step}: "):
        recipe.check()


def test_a_complete_recipe_has_no_problems():
    assert EEG.problems() == {}
    for names in ("a,b,c,d", "rows.txt"):  # a file is not opened
        assert msgspec.structs.replace(EEG, names=names).problems() == {}
    assert EEG.check() is EEG


def test_an_instrument_gives_domain_and_metric_with_a_reason():
    assert Diffusion("um2/ms").domain(3) == EigenvalueBounds(0.01, 5.0)
    assert Signals().domain(22) == TraceBounds(0.25, 55005.5)
    assert Connectomes(0.2).domain(20) == CorrelationBounds(0.2)
    assert Connectomes().metric == "offlog"
    assert Images(3).domain(11).radius_for(11) == pytest.approx(22.16, abs=0.01)


@pytest.mark.parametrize(
    ("whose", "unit"),
    [(Whose.RECORD, "record"), (Whose.VOXEL, "voxel"), (Whose.FILE, "person")],
)
def test_whose_the_records_are_says_what_is_protected(whose, unit):
    assert Recipe(whose=whose).unit == unit
