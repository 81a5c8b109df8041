"""Whose records are in a file, and how many, by names and numbers alone."""

import numpy as np
import pytest

from spdp.options import Unit
from spdp.wizard.headers import look
from spdp.wizard.persons import likely, may_be_table, number_problem, rows_problem, warning
from spdp.wizard.recipe import Recipe, Whose
from spdp.wizard.words import facts

pytestmark = pytest.mark.filterwarnings("ignore:.* not used. If one of them holds subject ids")


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "eeg.csv"
    file.write_text("subject,site,c11,c12,c22\n" + "s1,a,1,0,1\n" * 40)
    return str(file)


def test_columns_that_are_not_used_are_named_where_each_record_is_a_person(table):
    recipe = Recipe(files=(table,), entries="upper")
    seen = look(recipe)
    assert seen.unused == ("subject", "site")
    text = warning(recipe, seen)
    assert "columns subject, site are not used" in text
    assert "otherwise every record counts as a person of its own" in text


def test_nothing_is_warned_of_where_persons_are_known(table):
    given = {"whose": Whose.COLUMN, "groups_column": "subject"}
    recipe = Recipe(files=(table,), entries="upper", **given)
    seen = look(recipe)
    assert seen.unused == ("site",)
    assert warning(recipe, seen) is None


def test_arrays_beside_the_matrices_are_named_too(tmp_path):
    file = str(tmp_path / "x.npz")
    np.savez(file, X=np.tile(np.eye(2), (9, 1, 1)), subject=np.arange(9), other=np.eye(2))
    recipe = Recipe(files=(file,), key="X")
    assert "array subject is not used" in warning(recipe, look(recipe))


def test_a_column_of_classes_is_used(table):
    recipe = Recipe(files=(table,), entries="upper", label_column="site")
    assert look(recipe).unused == ("subject",)


def test_a_parquet_table_says_the_same(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    ids = {"participant_id": ["s"] * 5}
    numbers = {name: [1.0] * 5 for name in ("c11", "c12", "c22")}
    parquet.write_table(arrow.table(ids | numbers), tmp_path / "t.parquet")
    assert look(Recipe(files=(str(tmp_path / "t.parquet"),))).unused == ("participant_id",)


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        (("Subject", "c11"), "Subject"),
        (("participant_id", "c11"), "participant_id"),
        (("ID", "c11"), "ID"),
        (("id", "patient"), None),
        (("site", "width"), None),
        ((), None),
    ],
)
def test_one_column_whose_name_says_persons_is_proposed(columns, found):
    assert likely(columns) == found


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (None, "is empty"),
        (0, "at least 1, not 0"),
        (-3, "at least 1, not -3"),
        (2.5, "at least 1, not 2.5"),
        (1201, "has 1,200 matrices"),
    ],
)
@pytest.mark.parametrize("unit", [Unit.RECORD, Unit.PERSON])
def test_a_number_of_persons_that_cannot_be_is_refused_by_its_field(value, why, unit):
    text = number_problem(value, unit, 1200)
    assert text.startswith("“How many persons")
    assert why in text


def test_a_number_of_persons_that_can_be_is_taken():
    assert number_problem(600, Unit.PERSON, 1200) is None
    assert number_problem(10**6, Unit.PERSON, None) is None
    assert number_problem(1200.0, Unit.RECORD, 1200) is None


@pytest.mark.parametrize("value", [None, 0, -1, 2.5])
def test_a_number_of_rows_is_a_whole_number(value):
    assert rows_problem(value).startswith("“Rows of a matrix”")
    assert rows_problem(4) is None


def test_a_guarantee_begins_with_what_it_is_for(table):
    assert facts(Recipe(files=(table,)))["guarantee"].startswith("per record: ε")


def test_the_page_begins_with_no_number_of_persons_unless_a_plan_says_one():
    pytest.importorskip("shiny", reason="the extra wizard is not installed")
    from spdp.wizard.page import page

    assert 'value="1000"' not in str(page(Recipe(), []))
    assert 'value="1000"' in str(page(Recipe(files=("x.npy",)), []))


def test_what_was_said_of_a_table_is_not_said_of_an_array():
    """Else a field that is hidden would stand in the way."""
    assert may_be_table(("eeg.csv",))
    assert may_be_table(("a/*.PARQUET", "folder"))
    assert not may_be_table(("tensors.npy",))
    assert not may_be_table(("x.nii.gz",))
