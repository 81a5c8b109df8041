"""Files are opened for their public shape: no record, no id and no label is read."""

import numpy as np
import pytest

from spdp.data.formats import SUFFIXES
from spdp.wizard import folder
from spdp.wizard.headers import look
from spdp.wizard.recipe import Recipe, Whose


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_array_says_its_shape(here):
    np.save("x.npy", np.full((70, 4, 4), np.nan))  # records that nobody could use
    seen = look(Recipe(files=("x.npy",)))
    assert (seen.n, seen.k, seen.problem) == (70, 4, None)


def test_the_cells_of_a_table_change_nothing_that_is_seen(here):
    """Two tables with the same header and number of lines are the same to the page."""
    first = "subject,c11,c12,c22\n" + "s1,1,0,1\n" * 40
    other = "subject,c11,c12,c22\n" + ",,x,\n" * 40
    seen = []
    for text in (first, other):
        (here / "t.csv").write_text(text)
        recipe = Recipe(files=("t.csv",), whose=Whose.COLUMN, groups_column="subject")
        seen.append(look(recipe))
    assert seen[0] == seen[1]
    assert (seen[0].n, seen[0].k, seen[0].columns) == (40, 2, ("subject", "c11", "c12", "c22"))
    assert seen[0].persons is None


def test_ids_beside_the_data_are_not_opened(here):
    np.save("x.npy", np.tile(np.eye(3), (9, 1, 1)))
    recipe = Recipe(files=("x.npy",), whose=Whose.IDS, groups="ids.txt")
    missing = look(recipe)
    (here / "ids.txt").write_text("nobody\n")
    assert look(recipe) == missing
    assert missing.problem is None


def test_a_column_that_is_missing_is_named_in_the_words_of_the_page(here):
    (here / "t.csv").write_text("subject,c11,c12,c22\ns,1,0,1\n")
    seen = look(Recipe(files=("t.csv",)))
    assert "the column of the persons" in seen.problem
    assert "groups_column" not in seen.problem
    assert seen.columns[0] == "subject"


def test_files_of_persons_are_counted(here):
    for i in range(5):
        np.save(f"p{i}.npy", np.tile(np.eye(2), (3, 1, 1)))
    seen = look(Recipe(files=("p*.npy",), whose=Whose.FILE))
    assert (seen.files, seen.persons, seen.n, seen.k) == (5, 5, 15, 2)


def test_a_list_of_files_and_their_persons(here):
    np.save("a.npy", np.tile(np.eye(2), (3, 1, 1)))
    np.save("b.npy", np.tile(np.eye(2), (2, 1, 1)))
    (here / "study.csv").write_text("path,person\na.npy,Ann\nb.npy,Ann\n")
    seen = look(Recipe(files=("study.csv",), whose=Whose.MANIFEST))
    assert (seen.persons, seen.n, seen.problem) == (1, 5, None)
    assert "is a list of files" in look(Recipe(files=("study.csv",))).problem


def test_voxels_must_be_asked_for(here):
    nibabel = pytest.importorskip("nibabel")
    image = nibabel.Nifti1Image(np.ones((4, 4, 4, 6), np.float32), np.eye(4))
    nibabel.save(image, "x.nii.gz")
    given = {"files": ("x.nii.gz",), "order": "fsl"}
    assert "one person's data" in look(Recipe(**given)).problem
    seen = look(Recipe(**given, whose=Whose.VOXEL))
    assert (seen.n, seen.k, seen.image) == (64, 3, True)
    assert (
        "the order of the components"
        in look(Recipe(files=("x.nii.gz",), whose=Whose.VOXEL)).problem
    )


@pytest.mark.parametrize("name", ["absent.npy", "", "x.docx"])
def test_what_cannot_be_opened_is_a_problem_and_no_error(here, name):
    (here / "x.docx").write_text("no matrices")
    assert look(Recipe(files=(name,) if name else ())).problem


def test_a_folder_offers_files_of_known_formats(here):
    assert folder.SUFFIXES == SUFFIXES
    for name in ("b.npy", "a.csv", "note.txt", ".hidden.npy"):
        (here / name).write_text("")
    (here / "scans").mkdir()
    assert folder.offered(here) == ["a.csv", "b.npy", "scans"]
    assert folder.offered(here / "absent") == []
