"""Objects of other libraries, stood for by small classes with the same attributes.

The libraries themselves are in `labs/`.
"""

from types import SimpleNamespace

import numpy as np
import pytest

from spdp import Ball, CorrelationBounds, Ledger, private_mean
from spdp.data import as_source, open_records
from spdp.datasets import synthetic_spd
from spdp.errors import DataError, InvalidMatrixError, ParameterError
from spdp.options import Unit
from spdp.release.report import html_report

BUDGET = {"epsilon": 2.0, "delta": 1e-6, "domain": Ball(5.0)}
NAMES = ("lPut", "mPut", "rPut")
GRID = (5, 4, 3)
SIX = (..., [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2])  # as FSL orders them


@pytest.fixture(scope="module")
def X():
    return synthetic_spd(60, 3, random_state=0)


@pytest.fixture
def grid(X):
    return X.reshape(*GRID, 3, 3)


@pytest.fixture
def mask():
    inside = np.zeros(GRID, bool)
    inside[1:4] = True
    return inside


def matrices_of(source):
    blocks = [getattr(block, "records", block) for block in source.blocks()]
    return np.concatenate([np.stack(list(block)) for block in blocks])


class Image:
    """As nibabel has them."""

    affine = np.eye(4)

    def __init__(self, data, intent=0):
        self.dataobj, self.shape, self.header = data, data.shape, {"intent_code": intent}

    def get_data_dtype(self):
        return self.dataobj.dtype


class Fit:
    """As dipy has them."""

    def __init__(self, tensors):
        self.tensors, self.evals = tensors, np.linalg.eigvalsh(tensors)

    @property
    def quadratic_form(self):
        return self.tensors


class Covariance(dict):
    """As MNE has them: a dictionary."""

    def __init__(self, data, names=NAMES):
        self.data, self.ch_names, self.nfree = data, list(names), 100


class Measure:
    """As nilearn has them."""

    def __init__(self, kind="correlation", vectorize=True, discard_diagonal=False):
        self.kind, self.vectorize, self.discard_diagonal = kind, vectorize, discard_diagonal


class Coordinate:
    def __init__(self, dim, values):
        self.dims, self.values = (dim,), np.asarray(values)

    def __array__(self, dtype=None, copy=None):
        return self.values


class Labelled:
    """As xarray has them."""

    def __init__(self, data, dims, **coords):
        self.data, self.dims = data, dims
        self.coords = {name: Coordinate(*given) for name, given in coords.items()}


class Connectivity:
    """As MNE-Connectivity has them."""

    def __init__(self, dense, method="envelope correlation", is_epoched=True):
        self.dense, self.method, self.is_epoched = dense, method, is_epoched
        self.names, self.n_nodes = list(NAMES), len(NAMES)

    def get_data(self, output):
        assert output == "dense"
        return self.dense


# --- paths


def test_a_path_is_opened_where_it_leaves_no_doubt(X, tmp_path):
    np.save(tmp_path / "x.npy", X)
    for path in (tmp_path / "x.npy", str(tmp_path / "x.npy"), [tmp_path / "x.npy"]):
        assert private_mean(path, **BUDGET).certificate["n"] == 60


def test_files_of_many_records_ask_whose_they_are(X, tmp_path):
    files = [tmp_path / "a.npy", tmp_path / "b.npy"]
    for file in files:
        np.save(file, X)
    for paths in (files, tmp_path):
        with pytest.raises(ParameterError, match=r"2 files of many records: pass open_records"):
            private_mean(paths, **BUDGET)
    for file in files:
        np.save(file, X[:1])
    assert as_source(files).n == 2


# --- grids of voxels


def test_a_grid_names_the_line_that_reads_it(grid):
    with pytest.raises(InvalidMatrixError, match=r"grid of voxels\? Pass open_records\(X, mask="):
        private_mean(grid, **BUDGET)
    with pytest.raises(InvalidMatrixError, match=r"open_records\(X, order='fsl', mask="):
        private_mean(grid[SIX], **BUDGET)


@pytest.mark.parametrize("order", ["fsl", "dipy", "nifti", "mrtrix"])
def test_components_are_read_in_the_order_that_is_stated(grid, mask, order):
    places = {"fsl": [0, 1, 2, 3, 4, 5], "mrtrix": [0, 3, 5, 1, 2, 4]}
    six = grid[SIX][..., places.get(order, [0, 1, 3, 2, 4, 5])]
    source = open_records(six, order=order, mask=mask)
    np.testing.assert_array_equal(matrices_of(source), grid[mask])
    with pytest.raises(DataError, match="how it orders the tensor's components"):
        open_records(six, mask=mask)


def test_images_fits_and_arrays_are_the_same_records(grid, mask):
    for held in (grid, Image(grid), Fit(grid), Image(grid[..., None, :, :].reshape(*GRID, 3, 3))):
        for inside in (mask, mask.astype("u1"), Image(mask.astype("i2"))):
            source = open_records(held, mask=inside)
            assert (source.unit, source.n) == (Unit.VOXEL, mask.sum())
            np.testing.assert_array_equal(matrices_of(source), grid[mask])
    said = Image(grid[SIX][..., [0, 1, 3, 2, 4, 5]][..., None, :], intent=1005)
    np.testing.assert_array_equal(matrices_of(open_records(said)), grid.reshape(-1, 3, 3))


def test_voxels_are_no_persons_unless_somebody_says_so(grid, mask):
    for held in (Image(grid), Fit(grid), [Image(grid), Image(grid)]):
        with pytest.raises(ParameterError, match="voxels, which are one person's data"):
            private_mean(held, **BUDGET)
    people = open_records([Fit(grid * (1 + i / 40)) for i in range(40)], per_file=True, mask=mask)
    release = private_mean(people, anyway=True, **BUDGET)
    assert (release.certificate["unit"], release.certificate["n"]) == ("person", 40)


def test_a_dictionary_names_persons_and_their_sessions(grid, mask):
    source = open_records({"a": [Fit(grid), Fit(2 * grid)], "b": Fit(grid)}, mask=mask)
    persons = np.concatenate([block.columns["person"] for block in source.blocks()])
    assert [*map(str, persons)] == ["a"] * 2 * mask.sum() + ["b"] * mask.sum()


def test_an_object_that_is_listed_twice_is_refused(grid):
    fit = Fit(grid)
    with pytest.raises(ParameterError, match=r"X\[2\] is X\[0\]; its records would count twice"):
        open_records([fit, Fit(grid), fit], per_file=True)


def test_a_mask_of_another_shape_or_of_nothing_is_refused(grid, mask):
    with pytest.raises(DataError, match=r"mask has shape \(2, 4, 3\), but X has \(5, 4, 3\)"):
        open_records(grid, mask=mask[:2])
    with pytest.raises(DataError, match="mask selects no voxel"):
        open_records(grid, mask=mask & False)
    assert open_records([grid, grid.copy()], mask=mask & False, per_file=True).n == 2


def test_zero_background_suggests_a_mask_and_not_to_centre_it(grid, mask):
    held = np.where(mask[..., None, None], grid, 0.0)
    for records, line in ((open_records(held), r"\(pass mask=...\)"), (held.reshape(-1, 3, 3), "")):
        with pytest.raises(InvalidMatrixError, match=f"24 of 60 are all zero: .*{line}") as error:
            private_mean(records, **BUDGET)
        assert "on_invalid" not in str(error.value)
    one = grid.copy()
    one[0, 0, 0] = 0.0  # one bad voxel is no background
    with pytest.raises(InvalidMatrixError, match="on_invalid='center'"):
        private_mean(one.reshape(-1, 3, 3), **BUDGET)


def test_nothing_a_voxel_holds_changes_how_others_are_read(grid, mask):
    held = grid.copy()
    held[1, 0, 0], held[2, 1, 1] = np.nan, -1.0
    source = open_records(held, mask=mask)
    assert source.n == mask.sum()
    np.testing.assert_array_equal(matrices_of(source), held[mask])
    assert private_mean(source, on_invalid="center", **BUDGET).certificate["n"] == mask.sum()


# --- connectivity


def vectors(X, discard_diagonal=False):
    """nilearn's: the lower triangle, row by row, its diagonal divided by √2."""
    i, j = np.tril_indices(X.shape[1], -1 if discard_diagonal else 0)
    return X[:, i, j] / np.where(i == j, np.sqrt(2.0), 1.0)


def correlations(X):
    d = np.sqrt(np.diagonal(X, axis1=1, axis2=2))
    return X / d[:, :, None] / d[:, None, :]


@pytest.mark.parametrize("discard_diagonal", [False, True])
def test_vectors_become_the_matrices_they_were_made_of(X, discard_diagonal):
    C = correlations(X)
    measure = Measure(discard_diagonal=discard_diagonal)
    source = open_records(vectors(C, discard_diagonal), kind=measure)
    np.testing.assert_allclose(matrices_of(source), C, rtol=0, atol=1e-15)
    assert source.kind == "correlation"


def test_vectors_without_their_estimator_name_the_line(X):
    with pytest.raises(InvalidMatrixError, match=r"open_records\(X, kind=measure\)"):
        private_mean(vectors(X), **BUDGET)
    i, j = np.triu_indices(3)
    for rows, entries in ((X[:, i, j], "upper"), (X.reshape(-1, 9), "full")):
        np.testing.assert_array_equal(matrices_of(open_records(rows, entries=entries)), X)


def test_a_covariance_without_its_diagonal_is_no_guess(X):
    with pytest.raises(ParameterError, match="discard_diagonal=False"):
        open_records(vectors(X, True), kind=Measure("covariance", discard_diagonal=True))


@pytest.mark.parametrize("kind", ["precision", "partial correlation"])
def test_offlog_refuses_what_is_no_correlation_before_payment(X, kind, tmp_path):
    ledger = Ledger(tmp_path / "x.ledger", epsilon=2.0, delta=1e-5)
    options = {"epsilon": 1.0, "delta": 1e-6, "domain": CorrelationBounds(0.1), "metric": "offlog"}
    for stated in (kind, Measure(kind, vectorize=False)):
        with pytest.raises(ParameterError, match=f"holds {kind} matrices: metric='offlog' is"):
            private_mean(open_records(X, kind=stated), ledger=ledger, **options)
    assert not ledger.history()
    private_mean(open_records(X, kind="covariance"), ledger=ledger, anyway=True, **options)
    private_mean(open_records(X, kind=kind), **BUDGET)


def test_tangent_vectors_are_refused(X):
    with pytest.raises(ParameterError, match="each of them depends on all records"):
        open_records(vectors(X), kind=Measure("tangent"))
    with pytest.raises(ParameterError, match="kind must be 'covariance', 'correlation'"):
        open_records(X, kind="coherence")


def test_envelope_correlations_have_names_and_other_measures_are_refused(X):
    C = correlations(X)
    source = as_source(Connectivity(C[..., None]))
    assert (source.rows, source.kind, source.parts) == (NAMES, "correlation", None)
    np.testing.assert_array_equal(matrices_of(source), C)
    assert as_source(Connectivity(np.stack([C, C], axis=-1))).parts == 2
    listed = as_source([Connectivity(one[..., None], is_epoched=False) for one in C])
    np.testing.assert_array_equal(matrices_of(listed), C)
    with pytest.raises(DataError, match="'coh' has no positive definite matrices"):
        as_source([Connectivity(C[0], "coh", is_epoched=False)])


# --- names of rows


def test_covariances_are_records_whose_rows_have_names(X):
    release = private_mean([Covariance(one) for one in X], **BUDGET)
    assert release.row_names == NAMES
    page = html_report(release)
    assert all(name in page for name in NAMES)
    np.testing.assert_array_equal(matrices_of(as_source([Covariance(np.ones(3))])), np.eye(3)[None])


def test_rows_in_another_order_are_an_error(X):
    with pytest.raises(DataError, match=r"X\[1\] has other names of rows, or another order"):
        as_source([Covariance(X[0]), Covariance(X[1], NAMES[::-1])])
    with pytest.raises(DataError, match=r"X\[1\] is ndarray, and X\[0\] Covariance"):
        as_source([Covariance(X[0]), X[1]])
    with pytest.raises(DataError, match="one covariance, which is one record"):
        as_source(Covariance(X[0]))


def test_a_labelled_array_keeps_names_and_persons(X):
    coords = {"region": ("region", NAMES), "subject": ("visit", np.arange(60) // 2)}
    array = Labelled(X, ("visit", "region", "region2"), **coords)
    source = as_source(array)
    assert (source.rows, source.unit) == (NAMES, Unit.PERSON)
    given = open_records(array, groups=np.arange(60))  # persons are said elsewhere
    assert given.unit is Unit.PERSON
    other = Labelled(X, ("visit", "a", "b"), a=("a", NAMES), b=("b", NAMES[::-1]))
    with pytest.raises(DataError, match="different names, or another order"):
        as_source(other)
    with pytest.raises(DataError, match="no coordinate 'who' along 'visit'; there are subject"):
        open_records(array, groups_column="who")


# --- frames


class Column:
    def __init__(self, values):
        self.values = values

    def tolist(self):
        return list(self.values)

    def to_numpy(self, dtype, na_value):
        return np.array([na_value if v is None else v for v in self.values], dtype)


class Frame:
    """As pandas has them."""

    def __init__(self, **columns):
        self.held, self.columns = columns, list(columns)
        self.index = range(len(self))
        self.dtypes = [np.asarray(values).dtype for values in columns.values()]
        self.iloc = self

    def __len__(self):
        return len(next(iter(self.held.values())))

    def __array__(self, dtype=None, copy=None):
        return np.array(list(self.held.values()), object).T

    def __getitem__(self, place):
        rows, column = place
        return Column(self.held[self.columns[column]][rows])


def test_frames_are_tables(X):
    i, j = np.triu_indices(3)
    entries = {f"c{a}{b}": X[:, a, b] for a, b in zip(i, j, strict=True)}
    entries["c00"] = np.array([None, *X[1:, 0, 0]])
    frame = Frame(subject=np.arange(60) // 2, **entries)
    frame.dtypes[1] = np.dtype(float)  # as pandas states a column with a missing entry
    source = open_records(frame, groups_column="subject")
    assert source.unit is Unit.PERSON
    np.testing.assert_array_equal(matrices_of(source)[1:], X[1:])
    assert np.isnan(matrices_of(source)[0, 0, 0])
    held = Frame(subject=np.arange(60) // 2, cov=[*X])
    source = open_records(held, key="cov", groups_column="subject")
    np.testing.assert_array_equal(matrices_of(source), X)
    with pytest.raises(DataError, match="no one column 'who'"):
        open_records(held, key="cov", groups_column="who")


# --- what is no collection of matrices


def test_signals_name_the_line_that_makes_covariances():
    epochs = SimpleNamespace(ch_names=[], info={}, get_data=lambda: np.zeros((3, 2, 10)))
    with pytest.raises(DataError, match=r"pyriemann\.estimation\.Covariances\('lwf'\)"):
        private_mean(epochs, **BUDGET)
    with pytest.raises(InvalidMatrixError, match="Are they signals"):
        private_mean(np.zeros((3, 2, 10)), **BUDGET)


def test_options_without_a_meaning_are_refused(X, grid, mask):
    for held, options in (
        (X, {"groups_column": "subject"}),
        (Fit(grid), {"order": "fsl"}),
        ([Covariance(X[0])], {"mask": mask}),
        (grid, {"order": "fsl"}),
    ):
        (name,) = options
        with pytest.raises(ParameterError, match=f"{name} has no meaning"):
            open_records(held, **options)


class Hostile:
    """An object of which every attribute is an error."""

    def __getattr__(self, name):
        raise RuntimeError(name)


def test_an_object_whose_attributes_are_errors_is_one_invalid_record(X):
    source = as_source([*X[:3], Hostile()])
    release = private_mean(source, on_invalid="center", anyway=True, **BUDGET)
    assert release.certificate["n"] == 4
