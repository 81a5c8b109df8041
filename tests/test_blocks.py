"""What blocks are read as: no record decides how others are read."""

import warnings

import numpy as np
import pytest

from spdp import EigenvalueBounds, private_mean
from spdp.blocks import in_dtype, record_marks
from spdp.errors import DataError, InvalidMatrixError

DOMAIN = EigenvalueBounds(0.05, 20.0)


def test_masked_arrays_are_refused(random_spd):
    """A masked record would be read as if it were not."""
    X = np.ma.MaskedArray(random_spd(10, 2), mask=False)
    X[3] = np.ma.masked
    budget = {"epsilon": 1.0, "delta": 1e-6, "domain": DOMAIN}
    for data in (X, iter([X]), X[3]):
        with pytest.raises(DataError, match="masked array"):
            private_mean(data, on_invalid="center", **budget)
    # in a list it is one record's affair
    some = [*random_spd(9, 2), X[3]]
    with pytest.raises(InvalidMatrixError, match="matrix 9 is a masked array"):
        private_mean(some, **budget)
    assert private_mean(some, on_invalid="center", **budget).certificate["n"] == 10


def test_arrays_of_other_dtypes_as_a_whole_are_refused(random_spd):
    for A in (random_spd(4, 2) * 1j, random_spd(4, 2).astype(object)):
        with pytest.raises(InvalidMatrixError, match="expected real"):
            private_mean(A, epsilon=1.0, delta=1e-6, domain=DOMAIN, on_invalid="center")


def test_fingerprints_see_imaginary_parts(random_spd):
    X, key = random_spd(3, 2), b"0123456789abcdef"
    marks = [record_marks(A, (2, 2), "X", key) for A in (X, X + 1j, X + 2j, (X + 2j)[::-1])]
    assert len(set(marks)) == 3
    assert marks[2] == marks[3]


def test_fingerprints_do_not_depend_on_blocks_order_or_dtype(random_spd):
    X, key = random_spd(50, 3).astype(np.float32), b"0123456789abcdef"
    mark = record_marks(X, (3, 3), "X", key)
    parts = [record_marks(part, (3, 3), "X", key) for part in (X[20:], list(X[:20].astype(float)))]
    assert (sum(p[0] for p in parts) % (1 << 256), 50) == mark
    X[7, 0, 0] = np.nextafter(X[7, 0, 0], np.float32(9))
    assert record_marks(X, (3, 3), "X", key) != mark
    assert record_marks(X, (3, 3), "X", b"another key here") != record_marks(X, (3, 3), "X", key)


def test_masked_pieces_of_a_dask_array_are_refused(random_spd):
    da = pytest.importorskip("dask.array")
    X = np.ma.MaskedArray(random_spd(10, 2), mask=False)
    X[3] = np.ma.masked
    with pytest.raises(DataError, match="masked array"):
        private_mean(da.from_array(X, chunks=(4, 2, 2)), epsilon=1.0, delta=1e-6, domain=DOMAIN)


def test_a_record_is_read_in_a_dtype_whatever_others_make_of_warnings():
    before, seen = list(warnings.filters), []

    class Watching:
        def __float__(self):
            seen.append(list(warnings.filters))
            return 2.0

    rows = np.empty((1, 2, 2), object)
    rows[0] = [[Watching(), 0.0], [0.0, 1e300]]
    with np.errstate(all="raise"):
        (read,) = in_dtype(rows, (2, 2), np.dtype(np.float32))
    assert read.tolist() == [[2.0, 0.0], [0.0, np.inf]]
    assert seen == [before]
