"""A student of diffusion MRI: from signals through dipy's fit to a verified mean."""

import numpy as np
import pytest

nibabel = pytest.importorskip("nibabel")
dti = pytest.importorskip("dipy.reconst.dti")

from dipy.core.gradients import gradient_table  # noqa: E402
from dipy.core.sphere import fibonacci_sphere  # noqa: E402
from dipy.io.image import load_nifti  # noqa: E402
from dipy.sims.voxel import single_tensor  # noqa: E402

from spdp import private_mean, tensor_bounds  # noqa: E402
from spdp.cli import main  # noqa: E402
from spdp.data import open_records  # noqa: E402
from spdp.errors import InvalidMatrixError, ParameterError  # noqa: E402

PERSONS, SHAPE = 60, (4, 4, 3)
BUDGET = {"epsilon": 2.0, "delta": 1e-6, "domain": tensor_bounds("mm2/s")}


@pytest.fixture(scope="module")
def gradients():
    directions = np.array(fibonacci_sphere(n_points=30, hemisphere=True))
    return gradient_table(
        np.r_[0.0, np.full(len(directions), 1000.0)], bvecs=np.vstack([np.zeros(3), directions])
    )


@pytest.fixture(scope="module")
def mask():
    inside = np.zeros(SHAPE, bool)
    inside[1:3, 1:3] = True
    return inside


@pytest.fixture(scope="module")
def fits(gradients, mask):
    """A fit for each person; outside the mask it is zero."""
    rng = np.random.default_rng(0)
    model = dti.TensorModel(gradients)
    made = []
    for _ in range(PERSONS):
        evals = np.array([1.6e-3, 4e-4, 3e-4]) * rng.uniform(0.9, 1.1, 3)
        signal = single_tensor(gradients, 100.0, evals=evals, snr=None)
        data = signal * (1 + 0.01 * rng.standard_normal((*SHAPE, len(signal))))
        made.append(model.fit(data, mask=mask))
    return made


def test_a_fit_alone_asks_what_is_protected(fits):
    with pytest.raises(ParameterError, match=r"open_records\(\[...\], per_file=True, mask="):
        private_mean(fits[0], **BUDGET)


def test_fits_of_persons_are_released_with_a_mask(fits, mask, published):
    people = open_records(fits, per_file=True, mask=mask)
    release = published(private_mean(people, **BUDGET), "person", PERSONS)
    assert np.trace(release.value) == pytest.approx(2.3e-3, rel=0.5)


def test_background_suggests_a_mask(fits):
    with pytest.raises(InvalidMatrixError, match=r"background, which a mask would leave out"):
        private_mean(open_records(fits[0]), **BUDGET)


def test_a_fit_its_array_and_its_image_are_the_same_records(fits, mask, tmp_path):
    fit = fits[0]
    six = fit.lower_triangular()
    image = nibabel.Nifti1Image(six, np.eye(4))
    nibabel.save(image, tmp_path / "tensor.nii.gz")
    nibabel.save(nibabel.Nifti1Image(mask.astype("u1"), np.eye(4)), tmp_path / "mask.nii.gz")
    loaded, _ = load_nifti(str(tmp_path / "tensor.nii.gz"))
    for records in (
        open_records(fit, mask=mask),
        open_records(fit.quadratic_form, mask=nibabel.load(tmp_path / "mask.nii.gz")),
        open_records(six, order="dipy", mask=mask),
        open_records(loaded, order="dipy", mask=tmp_path / "mask.nii.gz"),
        open_records(image, order="dipy", mask=mask),
        open_records(nibabel.load(tmp_path / "tensor.nii.gz"), order="dipy", mask=mask),
    ):
        assert (records.n, records.k) == (mask.sum(), 3)
        (block,) = records.blocks()
        np.testing.assert_allclose(block, fit.quadratic_form[mask], rtol=0, atol=1e-15)


def test_files_on_the_command_line(fits, mask, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "subjects").mkdir()
    for i, fit in enumerate(fits):
        image = nibabel.Nifti1Image(fit.lower_triangular().astype("f4"), np.eye(4))
        nibabel.save(image, f"subjects/sub-{i:02}.nii.gz")
    nibabel.save(nibabel.Nifti1Image(mask.astype("u1"), np.eye(4)), "mask.nii.gz")
    where = "--per-file --order dipy --mask mask.nii.gz --eigenvalues 1e-5 5e-3"
    for line in (f"mean subjects {where} --epsilon 2 --delta 1e-6 -o out --report", "verify out"):
        monkeypatch.setattr("sys.argv", ["spdp", *line.split()])
        with pytest.raises(SystemExit) as end:
            main()
        assert not end.value.code
