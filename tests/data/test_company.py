"""What is read of a record, a label or an id is what is read of it alone."""

import warnings
from collections import UserList, deque

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spdp import Ball, private_regression
from spdp.data import as_source, open_records
from spdp.data.columns import beside
from spdp.data.identity import spelt
from spdp.data.labels import entries_of, numbers_of, places_of
from spdp.errors import DataError, InvalidMatrixError
from spdp.stacks import records_of
from spdp.statistics.sums import LatticeSum

HEADER = b"c1,c2,c3,who,note,site"
PLAIN = b"2.0,0.1,2.0,p,fine,north"
ODD = [b"2.0,x,2.0,p,fine,north", b'2.0,0.1,2.0,p,"a"b,north', b"2.0,0.1\r,2.0,p,fine,north"]
CELLS = [
    *(b"1.5", b" 1.5 ", b"+1", b"1_0", b"1e400", b"0x10", b"nan", b"nan(1)", b"inf", b"-Infinity"),
    *(b"", b" ", b"NA", b" NA", b"\xc2\xa0NA", b"null ", b"n/a", b"\xe9", b"Jos\xe9", b"\xe2\x82"),
    *(b"\xff\xfe", b"\x00", b"a\x0bb", b"\xe2\x80\xa8", b'"', b'"a', b'a"b', b'"a"b', b'"a,b"'),
    *(b"\r", b"1\r2", b"u" * 140_000, b"1,2", b"\t", b"\xd9\xa1", b"true"),
]


def read_csv(path, lines, separator=b",", **options):
    path.write_bytes(b"\n".join(line.replace(b",", separator) for line in lines) + b"\n")
    source = open_records(path, entries="upper", **options)
    blocks = list(source.blocks())
    columns = zip(*(b.beside[name] for name in source.columns for b in blocks), strict=True)
    records = np.concatenate([records_of(block) for block in blocks])
    assert len(records) == source.n
    return list(zip(map(repr, records.tolist()), columns, strict=True))


@pytest.mark.parametrize("separator", [b",", b"\t"])
@settings(max_examples=150)
@given(st.lists(st.lists(st.sampled_from(CELLS), min_size=6, max_size=6), min_size=1, max_size=4))
@example([[b""] * 6])
def test_a_line_of_a_csv_in_company_is_that_line_alone(tmp_path_factory, separator, cells):
    """Whatever path a block takes; labels are missing, or texts, by themselves."""
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    lines = [b",".join([*row[:3], b"p", *row[4:]]) for row in cells]
    options = {"separator": separator, "groups_column": "who", "label_column": "site"}
    usual = [PLAIN] * 20  # so that what the columns hold is plain
    expected = []
    for line in lines:
        expected += read_csv(path, [HEADER, *usual, line], **options)[20:]
    assert len(expected) == len(lines)
    for odd in ODD:
        together = read_csv(path, [HEADER, *usual, *lines, odd], **options)
        assert together[20:-1] == expected


def test_an_odd_line_changes_no_other(tmp_path):
    """400 records whose name is no UTF-8, in a column that nobody uses."""
    options = {"groups_column": "who", "label_column": "site"}
    usual = [HEADER, *[b"2.0,0.1,2.0,p,Jos\xe9,north"] * 400, PLAIN]
    before = read_csv(tmp_path / "t.csv", usual, **options)
    after = read_csv(tmp_path / "t.csv", [*usual[:-1], ODD[0]], **options)
    assert before[:400] == after[:400]
    assert "nan" not in before[0][0]


DOMAIN = Ball(1.0)
LARGEST = 2 * 2**30  # that one record's code can move
SINGLE = np.array([[2, 3e-6], [0, 2]], np.float32)  # symmetric to float32's rounding only
DOUBLE = np.eye(2)


def moved(X, Y):
    """By how much the exact sum of neighbours differs."""
    a, b = (LatticeSum.of(data, DOMAIN, "center").total for data in (X, Y))
    return float(np.linalg.norm((a - b).astype(float)))


class Records:
    """A sequence that says so by its methods alone."""

    def __init__(self, items):
        self.items = list(items)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


@pytest.mark.parametrize("kind", [list, tuple, deque, UserList, Records])
def test_records_of_any_sequence_are_read_one_by_one(kind):
    usual, odd = [SINGLE] * 50, [*[SINGLE] * 49, DOUBLE]
    assert LatticeSum.of(kind(usual), DOMAIN).n == 50
    assert moved(kind(usual), kind(odd)) <= LARGEST


@pytest.mark.parametrize("kind", [list, tuple, deque, UserList, Records])
@pytest.mark.parametrize("odd", ["x", None, [3], 2.5, np.ma.masked])
def test_labels_and_numbers_of_any_sequence_are_read_one_by_one(kind, odd):
    labels = entries_of(kind([True, False, 2**53 + 1, odd]))
    assert places_of(labels, [1, 0, 2**53 + 1]).tolist() == [0, 1, 2, -1]
    source = beside(as_source(np.stack([DOUBLE] * 3)), label=kind([True, False, odd]))
    (block,) = list(source.blocks())
    assert block.beside["label"].dtype == object
    assert numbers_of(entries_of(kind([0.1, odd])), 1)[0][0] == 0.1


class Hostile:
    def __float__(self):
        raise RuntimeError

    __str__ = __repr__ = __eq__ = __hash__ = __float__


class Noisy:
    def __float__(self):
        warnings.warn("noise", stacklevel=1)
        return 0.5


ODD_ENTRIES = [Hostile(), Noisy(), np.complex128(1j), np.ma.masked, 1 << 2000]


@pytest.mark.parametrize("odd", ODD_ENTRIES, ids=lambda odd: type(odd).__name__)
def test_nothing_that_an_entry_can_be_raises_or_warns(odd):
    """Warnings are errors here."""
    _, unread = numbers_of(entries_of([0.5, odd, [odd]]), 1)
    assert unread.tolist() == [False, True, True]
    assert places_of(entries_of([1, odd]), [1, 2]).tolist() == [0, -1]
    X, x = np.tile(DOUBLE, (40, 1, 1)), [0.5] * 39
    options = {"epsilon": 5.0, "delta": 1e-6, "domain": DOMAIN, "on_invalid": "center"}
    private_regression(X, [*x, odd], ranges=(0, 1), **options)


def test_what_is_masked_is_missing():
    labels = np.ma.array([0, 1, 1], mask=[False, False, True])
    assert places_of(entries_of(labels), [0, 1]).tolist() == [0, 1, -1]
    pairs = np.ma.array([[0.1, 0.2], [0.3, 0.4]], mask=[[False, False], [False, True]])
    assert numbers_of(entries_of(pairs), 2)[1].tolist() == [False, True]
    for ids in (labels, list(labels)):
        with pytest.raises(DataError, match="record 2 has no person"):
            spelt(ids)


def stacks(odd, dtype, place=2):
    """Blocks as a loader stacks them: one record may change the dtype of its block."""
    for i in range(4):
        rows = np.stack([SINGLE] * 20).astype(dtype)
        if i == place and odd is not None:
            rows = np.array([*rows.tolist()[:-1], odd])
        yield rows


GONE = [[2.0, None], [None, 2.0]]


@pytest.mark.parametrize("odd", [GONE, [[2.0, "x"], [0.0, 2.0]], [[2.0, [1]], [0.0, 2.0]]])
@pytest.mark.parametrize("place", [0, 2])
def test_a_block_of_objects_is_read_record_by_record(odd, place):
    """In the dtype of the others: with another, the rest would not be symmetric."""
    if odd[0][1] == [1]:
        rows = np.empty((20, 2, 2), object)
        rows[:-1], rows[-1, 0, 1] = SINGLE.tolist(), [1]
        blocks = [rows if i == place else np.stack([SINGLE] * 20) for i in range(4)]
    else:
        blocks = list(stacks(odd, np.float32, place))
    assert blocks[place].dtype.kind in "OU"
    usual = list(stacks(None, np.float32))
    assert moved(lambda: iter(usual), lambda: iter(blocks)) <= LARGEST
    assert moved(iter(usual), iter(blocks)) <= LARGEST


def test_blocks_of_different_dtypes_are_refused():
    blocks = [np.stack([SINGLE] * 5), np.stack([SINGLE] * 5).astype(float)]
    for data in (lambda: iter(blocks), iter(blocks)):
        with pytest.raises(DataError, match="blocks of different dtypes, float32 and float64"):
            LatticeSum.of(data, DOMAIN, "center")
    assert LatticeSum.of(lambda: iter([list(b) for b in blocks]), DOMAIN, "center").n == 10
    ints = [np.stack([np.eye(2, dtype=np.int32)] * 5), np.stack([DOUBLE] * 5)]
    assert LatticeSum.of(lambda: iter(ints), DOMAIN).n == 10  # both are float64 at work


@pytest.mark.parametrize("place", [0, 3])
def test_a_single_matrix_may_be_unusable_wherever_it_stands(place):
    matrices = [DOUBLE] * 9
    matrices[place] = np.array(GONE)
    assert LatticeSum.of(lambda: iter(matrices), DOMAIN, "center").n == 9
    assert LatticeSum.of(iter(matrices), DOMAIN, "center").n == 9
    with pytest.raises(InvalidMatrixError, match="no block of real or complex numbers"):
        as_source(iter([np.array(GONE)]))


@pytest.mark.parametrize("odd", [GONE, [[2.0, "x"], [0.0, 2.0]], [[2.0, 1j], [0.0, 2.0]], DOUBLE])
def test_a_chunk_of_dask_is_read_in_the_dtype_that_is_stated(odd):
    dask, da = pytest.importorskip("dask"), pytest.importorskip("dask.array")

    def array(odd):
        pieces = [dask.delayed(piece) for piece in stacks(odd, np.float32)]
        shape = {"shape": (20, 2, 2), "dtype": np.float32}
        return da.concatenate([da.from_delayed(piece, **shape) for piece in pieces])

    assert moved(array(None), array(odd)) <= LARGEST


def test_pieces_of_labels_are_of_the_kind_that_is_stated():
    dask, da = pytest.importorskip("dask"), pytest.importorskip("dask.array")
    X = da.from_array(np.tile(DOUBLE, (6, 1, 1)), chunks=(3, 2, 2))

    def places(*pieces, dtype):
        made = [da.from_delayed(dask.delayed(lambda p=p: p)(), (3,), dtype=dtype) for p in pieces]
        source = beside(as_source(X), label=da.concatenate(made))
        whole = np.concatenate([places_of(b.beside["label"], [1, 0]) for b in source.blocks()])
        cut = [places_of(chunk().beside["label"], [1, 0]) for chunk in source.chunks]
        np.testing.assert_array_equal(whole, np.concatenate(cut))
        return whole.tolist()

    flags, one = np.array([True, False, True]), [True, False, "x"]
    assert places(flags, flags, dtype=bool) == [0, 1, 0, 0, 1, 0]
    assert places(flags, one, dtype=bool) == [0, 1, 0, 0, 1, -1]
    assert places(one, one, dtype=object) == [0, 1, -1, 0, 1, -1]
    with pytest.raises(DataError, match=r"labels have a piece of dtype <U5"):
        places(flags, np.array(one), dtype=bool)
