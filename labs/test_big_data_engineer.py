"""An engineer of large data: xarray, Dask, pandas, Parquet, many files."""

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
xr = pytest.importorskip("xarray")

from spdp import EigenvalueBounds, private_mean  # noqa: E402
from spdp.data import open_records  # noqa: E402
from spdp.datasets import synthetic_spd  # noqa: E402
from spdp.errors import DataError, ParameterError  # noqa: E402

N, K, NAMES = 1200, 3, ["thalamus", "putamen", "caudate"]
BUDGET = {"epsilon": 1.0, "delta": 1e-6, "domain": EigenvalueBounds(0.1, 10.0)}


@pytest.fixture(scope="module")
def X():
    return synthetic_spd(N, K, random_state=0)


@pytest.fixture(scope="module")
def subjects():
    return [f"sub-{i // 2:04}" for i in range(N)]


@pytest.fixture
def array(X, subjects):
    coords = {"visit": np.arange(N), "subject": ("visit", subjects), "region": NAMES}
    coords["other"] = NAMES
    return xr.DataArray(X, dims=("visit", "region", "other"), coords=coords)


@pytest.fixture
def frame(X, subjects):
    i, j = np.triu_indices(K)
    columns = {f"c{a}{b}": X[:, a, b] for a, b in zip(i, j, strict=True)}
    return pd.DataFrame({"subject": subjects, **columns})


def test_a_labelled_array_keeps_its_persons_and_names(array, published):
    release = private_mean(array, **BUDGET)
    assert release.row_names == tuple(NAMES)
    published(release, "person", N // 2)
    swapped = array.assign_coords(other=NAMES[::-1])
    with pytest.raises(DataError, match="different names, or another order"):
        private_mean(swapped, **BUDGET)


def test_a_labelled_array_in_chunks(array, X, published):
    pytest.importorskip("dask.array")
    source = open_records(array.drop_vars("subject").chunk({"visit": 300}))
    assert (source.of_dask, source.rows, source.n) == (True, tuple(NAMES), N)
    release = private_mean(source, **BUDGET)
    published(release, "record", N)


def test_a_frame_with_a_column_of_subjects(frame, X, published):
    source = open_records(frame, groups_column="subject")
    np.testing.assert_array_equal(np.concatenate([b.records for b in source.blocks()]), X)
    published(private_mean(source, **BUDGET), "person", N // 2)


def test_a_frame_with_a_column_of_matrices(X, subjects, published):
    frame = pd.DataFrame({"subject": subjects, "cov": list(X)})
    source = open_records(frame, key="cov", groups_column="subject")
    published(private_mean(source, **BUDGET), "person", N // 2)


def test_frames_that_are_matrices_keep_their_names(X, published):
    frames = [pd.DataFrame(matrix, index=NAMES, columns=NAMES) for matrix in X]
    release = private_mean(frames, **BUDGET)
    assert release.row_names == tuple(NAMES)
    published(release, "record", N)
    frames[7] = frames[7].loc[NAMES[::-1], NAMES[::-1]]
    with pytest.raises(DataError, match=r"X\[7\] has other names of rows"):
        private_mean(frames, **BUDGET)


def test_a_parquet_file_by_its_path(frame, tmp_path, published):
    pytest.importorskip("pyarrow")
    file = tmp_path / "windows.parquet"
    frame.to_parquet(file)
    source = open_records(file, groups_column="subject")
    published(private_mean(source, **BUDGET), "person", N // 2)


def test_a_list_of_paths_says_whose_the_files_are(X, tmp_path, published):
    files = []
    for i, part in enumerate(np.split(X, 300)):
        files.append(tmp_path / f"person-{i:03}.npy")
        np.save(files[-1], part)
    with pytest.raises(ParameterError, match=r"open_records\(..., per_file=True\)"):
        private_mean(files, **BUDGET)
    published(private_mean(open_records(files, per_file=True), **BUDGET), "person", 300)
    published(private_mean(open_records(list(map(str, files))), **BUDGET), "record", N)
