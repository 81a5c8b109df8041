"""BIDS datasets: which files are records, whose they are, and what is not guessed."""

import json

import numpy as np
import pytest

from spdp.data.bids import Reading, Selection, find, open_bids
from spdp.errors import DataError, ParameterError
from spdp.options import BidsData, Unit

NAMES = ["V1", "M1", "PFC"]


def relmat(C, names=NAMES, first="Node"):
    """A table as XCP-D writes it, or without names."""
    rows = [[*map(repr, row)] for row in np.asarray(C).tolist()]
    if names is not None:
        rows = [[first, *names], *([name, *row] for name, row in zip(names, rows, strict=True))]
    return "\n".join("\t".join(row) for row in rows) + "\n"


@pytest.fixture
def dataset(tmp_path):
    """Three participants; the second has two sessions."""
    root = tmp_path / "ds"
    root.mkdir()
    (root / "dataset_description.json").write_text(json.dumps({"Name": "x"}))
    (root / "participants.tsv").write_text(
        "participant_id\tage\tgroup\nsub-01\t31\ta\nsub-02\tn/a\tb\n"
    )
    for sub, ses in (("01", "x"), ("02", "x"), ("02", "y"), ("03", "x")):
        write(root, f"sub-{sub}/ses-{ses}/func/sub-{sub}_ses-{ses}", relmat(np.eye(3)))
    return root


def write(root, stem, text, rest="_seg-a_stat-pearsoncorrelation_relmat.tsv", pipeline="xcp_d"):
    file = root / "derivatives" / pipeline / f"{stem}{rest}"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def blocks(source):
    return list(source.blocks())


def test_a_participant_is_a_person_and_sessions_are_records(dataset):
    source, found = open_bids(dataset, Selection())
    assert (found.data, source.unit, source.n) == (BidsData.CONNECTIVITY, Unit.PERSON, 4)
    persons = [block.columns["person"][0] for block in blocks(source)]
    assert persons == ["sub-01", "sub-02", "sub-02", "sub-03"]
    assert (source.rows, source.kind) == (tuple(NAMES), "correlation")


def test_participants_tsv_has_labels_and_covariates(dataset):
    source, _ = open_bids(dataset, Selection(), Reading(label="group", covariates=("age",)))
    read = [(b.columns["label"][0], b.columns["x"][0]) for b in blocks(source)]
    assert read[0] == ("a", (31.0,))
    assert (read[1][0], read[3][0]) == ("b", "")  # no line: its class is missing
    assert np.isnan(read[1][1]).all()
    assert np.isnan(read[3][1]).all()
    with pytest.raises(DataError, match="no column 'sex'; its columns are participant_id, age"):
        open_bids(dataset, Selection(), Reading(label="sex"))


def test_some_participants_can_be_named(dataset):
    for labels in (("01", "sub-03"), ("sub-01", "03")):
        source, _ = open_bids(dataset, Selection(participants=labels))
        assert source.n == 2
    with pytest.raises(DataError, match="no such files of sub-09"):
        open_bids(dataset, Selection(participants=("01", "09")))


def test_files_that_differ_in_an_entity_are_not_mixed(dataset):
    write(dataset, "sub-01/ses-x/func/sub-01_ses-x", relmat(np.eye(3)), "_seg-b_relmat.tsv")
    with pytest.raises(ParameterError, match=r"differ in their entity seg \(a, b\)") as error:
        find(dataset, Selection())
    assert "entity='seg=a'" in str(error.value)
    assert len(find(dataset, Selection(entities=("seg=a",))).files) == 4
    with pytest.raises(ParameterError, match="entity is NAME=LABEL"):
        find(dataset, Selection(entities=("seg",)))


def test_pipelines_are_not_mixed(dataset):
    write(dataset, "sub-01/func/sub-01", relmat(np.eye(3)), pipeline="other")
    with pytest.raises(
        ParameterError, match="found files in derivatives/other and derivatives/xcp"
    ):
        find(dataset, Selection())
    assert len(find(dataset, Selection(derivatives="xcp_d")).files) == 4
    with pytest.raises(DataError, match="nothing: no such folder"):
        find(dataset, Selection(derivatives="nothing"))


def test_what_holds_nothing_says_what_was_looked_for(tmp_path, dataset):
    with pytest.raises(DataError, match="no BIDS dataset, it has no dataset_description"):
        find(tmp_path, Selection())
    with pytest.raises(DataError, match=r"diffusion tensors \(model-tensor, suffix dwimap\)"):
        find(dataset, Selection(data=BidsData.TENSOR))
    with pytest.raises(DataError, match="that fit what was asked for"):
        find(dataset, Selection(entities=("space=MNI",)))


@pytest.mark.parametrize("names", [NAMES, None])
def test_a_cell_that_is_no_number_makes_one_invalid_record(dataset, names):
    text = relmat(np.eye(3), names).replace("1.0", "private", 1)
    for file in dataset.rglob("*_relmat.tsv"):
        file.write_text(text if "sub-01" in file.name else relmat(np.eye(3), names))
    source, _ = open_bids(dataset, Selection())
    first, *others = [block.records for block in blocks(source)]
    assert np.isnan(first).sum() == 1
    assert all(np.array_equal(other[0], np.eye(3)) for other in others)


def test_tables_of_other_rows_or_no_matrix_are_refused(dataset):
    stem = "sub-01/ses-x/func/sub-01_ses-x"
    write(dataset, stem, relmat(np.eye(3), NAMES[::-1]))
    with pytest.raises(DataError, match="its rows have other names than in"):
        open_bids(dataset, Selection())
    file = write(dataset, stem, "V1\tM1\tPFC\n1\t0\t0\n")
    with pytest.raises(DataError, match=rf"{file.name}: 1 rows and 3 columns; expected k rows"):
        open_bids(dataset, Selection())
    write(dataset, stem, "")
    with pytest.raises(DataError, match="is empty"):
        open_bids(dataset, Selection())


def test_names_and_sidecars_say_what_matrices_are(dataset):
    for file in dataset.rglob("*_relmat.tsv"):
        file.rename(file.with_name(file.name.replace("_stat-pearsoncorrelation", "")))
    assert open_bids(dataset, Selection())[0].kind is None
    for file in dataset.rglob("*_relmat.tsv"):
        file.with_suffix(".json").write_text('{"RelationshipMeasure": "Partial correlation"}')
    assert open_bids(dataset, Selection())[0].kind == "partial correlation"
    file.with_suffix(".json").write_text('{"RelationshipMeasure": "Fisher z"}')
    with pytest.raises(DataError, match="Fisher z makes no positive definite matrices"):
        open_bids(dataset, Selection())


def test_correlations_are_shrunk_one_by_one_with_a_public_share(dataset):
    C = np.full((3, 3), 0.5) + 0.5 * np.eye(3)
    for file in dataset.rglob("*_relmat.tsv"):
        file.write_text(relmat(C))
    source, _ = open_bids(dataset, Selection(), Reading(shrinkage=0.2))
    np.testing.assert_allclose(blocks(source)[0].records[0], 0.8 * C + 0.2 * np.eye(3))
    with pytest.raises(ParameterError, match="shrink must lie between 0 and 1"):
        open_bids(dataset, Selection(), Reading(shrinkage=1.5))
    for file in dataset.rglob("*_relmat.tsv"):
        file.rename(file.with_name(file.name.replace("pearsoncorrelation", "covariance")))
    with pytest.raises(ParameterError, match="shrink is for correlations, not covariance"):
        open_bids(dataset, Selection(), Reading(shrinkage=0.2))


# --- diffusion tensors


@pytest.fixture
def tensors(dataset):
    nibabel = pytest.importorskip("nibabel")

    def save(stem, data, rest):
        file = write(dataset, stem, "", rest, "qsirecon")
        nibabel.save(nibabel.Nifti1Image(data, np.eye(4)), file)
        return file

    six = np.zeros((2, 2, 2, 6), "f4")
    six[..., [0, 3, 5]] = 1e-3
    for sub in ("01", "02"):
        stem = f"sub-{sub}/dwi/sub-{sub}_space-ACPC"
        save(stem, six, "_model-tensor_param-tensor_dwimap.nii.gz")
        save(stem, six[..., 0], "_model-tensor_param-fa_dwimap.nii.gz")
        save(stem, np.pad(np.ones((1, 2, 2), "u1"), [(0, 1), (0, 0), (0, 0)]), MASK)
    return dataset


MASK = "_desc-brain_mask.nii.gz"
TENSORS = Selection(data=BidsData.TENSOR)


def test_both_kinds_in_one_dataset_is_a_question(tensors):
    with pytest.raises(ParameterError, match="holds tensors and connectivity; say which") as error:
        find(tensors, Selection())
    assert error.value.asks == ("data",)


def test_whole_tensors_are_read_in_the_brain_mask_beside_them(tensors):
    source, found = open_bids(tensors, TENSORS, Reading(order="fsl"))
    assert (len(found.files), source.n, source.unit) == (2, 8, Unit.PERSON)
    np.testing.assert_allclose(blocks(source)[0].records[0], 1e-3 * np.eye(3), rtol=1e-6)
    assert source.rows == ("x", "y", "z")
    with pytest.raises(DataError, match="say which of nifti"):
        open_bids(tensors, TENSORS)


def test_a_brain_mask_that_some_lack_is_an_error(tensors):
    next(tensors.rglob(f"sub-02*{MASK}")).unlink()
    with pytest.raises(DataError, match="sub-02_space-ACPC.* has no desc-brain mask beside it"):
        open_bids(tensors, TENSORS, Reading(order="fsl"))
    mask = next(tensors.rglob(f"sub-01*{MASK}"))
    assert open_bids(tensors, TENSORS, Reading(order="fsl", mask=mask))[0].n == 8
    mask.unlink()
    assert open_bids(tensors, TENSORS, Reading(order="fsl"))[0].n == 16


def test_options_of_images_have_no_meaning_for_connectivity(dataset):
    with pytest.raises(ParameterError, match="order is for diffusion tensors"):
        open_bids(dataset, Selection(), Reading(order="fsl"))
