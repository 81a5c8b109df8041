"""Ids, labels and covariates: an entry says what it says, whatever the others are."""

import warnings
from collections import UserList, deque

import numpy as np
import pytest

from spdp import Ball, private_regression
from spdp.data import as_source
from spdp.data.columns import (
    canonical_ids,
    entries_of,
    id_of,
    label_of,
    lines_of,
    numbers_of,
    places_of,
    with_columns,
)
from spdp.errors import DataError

ODD = ["?", b"x", b"\xff", None, [1, 2], (1,), {"a": 1}, np.array([1]), 1e308, 10**400]
ODD += [float("nan"), float("inf"), 1j, 0.5, "q" * 10**5, object(), np.datetime64("NaT")]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (7, 7),
        (7.0, 7),
        ("7", 7),
        (" 7.0 ", 7),
        (b"7", 7),
        (np.uint8(7), 7),
        (True, 1),
        ("07", "07"),
        ("-0", 0),
        ("7.5", "7.5"),
        ("e\u0301", "\u00e9"),
        ("", None),
        (float("nan"), None),
        (2**63, id_of(str(2**63))),
    ],
)
def test_ids_have_one_spelling(value, expected):
    assert id_of(value) == expected
    assert type(id_of(value)) is type(expected)


@pytest.mark.parametrize("same", [(7, 7.0, "7", "7.0", b"7", np.int8(7), np.float32(7))])
def test_one_spelling(same):
    assert {label_of(value) for value in same} == {7}
    assert label_of("07") == "07"
    assert label_of(0.5) == label_of("0.5") == "0.5"


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: str(type(odd).__name__))
def test_an_odd_label_changes_nobody_elses(odd):
    """A list that was converted as a whole made texts of all labels."""
    labels = [0, 1, 1, 2**53 + 1, 0]
    classes = (0, 1, 2**53, 2**53 + 1)
    places = places_of(entries_of([*labels, odd]), classes)
    np.testing.assert_array_equal(places[:-1], [0, 1, 1, 3, 0])
    assert places[-1] == -1


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: str(type(odd).__name__))
def test_an_odd_covariate_changes_nobody_elses(odd):
    numbers, unread = numbers_of(entries_of([0.25, 0.5, odd]), 1)
    np.testing.assert_array_equal(numbers[:2, 0], [0.25, 0.5])
    assert not unread[:2].any()
    pairs, unread = numbers_of(entries_of([[0.25, 1], [0.5, 2], odd]), 2)
    np.testing.assert_array_equal(pairs[:2], [[0.25, 1], [0.5, 2]])
    assert not unread[:2].any()


def test_arrays_and_lists_mean_the_same():
    labels, classes = [3, 1, 2, 3], (1, 3)
    for column in (labels, np.array(labels), np.array(labels, float), list(map(str, labels))):
        np.testing.assert_array_equal(places_of(entries_of(column), classes), [1, 0, -1, 1])


def test_lines_are_cut_at_line_breaks_only(tmp_path):
    file = tmp_path / "labels.txt"
    file.write_bytes(b"a\r\nb\x0bc\n\xff\nd\n")
    assert lines_of(file) == ["a", "b\x0bc", "\ufffd", "d"]
    file.write_bytes(b"a\n ")  # the last record's label is blank: it is still a record
    assert lines_of(file) == ["a", ""]
    file.write_bytes(b"a\n")  # as many lines as there are records
    assert [lines_of(file, n) for n in (None, 1, 2)] == [["a"], ["a"], ["a", ""]]


def test_reading_leaves_the_filters_of_warnings_alone():
    """They belong to all threads: where one made errors of them, others raised."""
    before, seen = list(warnings.filters), []

    class Watching:
        def __float__(self):
            seen.append(list(warnings.filters))
            return 0.5

    numbers, _ = numbers_of(entries_of([0.25, Watching()]), 1)
    assert numbers[:, 0].tolist() == [0.25, 0.5]
    assert seen == [before]


NO_NUMBERS = [np.complex128(1), np.array(1j), np.ma.masked, np.array([0.5]), [np.array([0.5])]]


@pytest.mark.parametrize("odd", NO_NUMBERS, ids=repr)
def test_what_numpy_reads_with_a_warning_is_no_number(odd):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pairs, unread = numbers_of(entries_of([[0.5, odd], [np.array(0.5), "2"]]), 2)
    assert unread.tolist() == [True, False]
    assert pairs[1].tolist() == [0.5, 2.0]


class Records:
    """A sequence that says so by its methods alone."""

    def __init__(self, items):
        self.items = list(items)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


@pytest.mark.parametrize("kind", [list, tuple, deque, UserList, Records])
@pytest.mark.parametrize("odd", ["x", None, [3], 2.5, np.ma.masked])
def test_labels_and_numbers_of_any_sequence_are_read_one_by_one(kind, odd):
    labels = entries_of(kind([True, False, 2**53 + 1, odd]))
    assert places_of(labels, [1, 0, 2**53 + 1]).tolist() == [0, 1, 2, -1]
    source = with_columns(as_source(np.stack([np.eye(2)] * 3)), label=kind([True, False, odd]))
    (block,) = list(source.blocks())
    assert block.columns["label"].dtype == object
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
    X, x = np.tile(np.eye(2), (40, 1, 1)), [0.5] * 39
    options = {"epsilon": 5.0, "delta": 1e-6, "domain": Ball(1.0), "on_invalid": "center"}
    private_regression(X, [*x, odd], ranges=(0, 1), **options)


def test_what_is_masked_is_missing():
    labels = np.ma.array([0, 1, 1], mask=[False, False, True])
    assert places_of(entries_of(labels), [0, 1]).tolist() == [0, 1, -1]
    pairs = np.ma.array([[0.1, 0.2], [0.3, 0.4]], mask=[[False, False], [False, True]])
    assert numbers_of(entries_of(pairs), 2)[1].tolist() == [False, True]
    for ids in (labels, list(labels)):
        with pytest.raises(DataError, match="record 2 has no person"):
            canonical_ids(ids)


def test_pieces_of_labels_are_of_the_kind_that_is_stated():
    dask, da = pytest.importorskip("dask"), pytest.importorskip("dask.array")
    X = da.from_array(np.tile(np.eye(2), (6, 1, 1)), chunks=(3, 2, 2))

    def places(*pieces, dtype):
        made = [da.from_delayed(dask.delayed(lambda p=p: p)(), (3,), dtype=dtype) for p in pieces]
        source = with_columns(as_source(X), label=da.concatenate(made))
        whole = np.concatenate([places_of(b.columns["label"], [1, 0]) for b in source.blocks()])
        cut = [places_of(chunk().columns["label"], [1, 0]) for chunk in source.chunks]
        np.testing.assert_array_equal(whole, np.concatenate(cut))
        return whole.tolist()

    flags, one = np.array([True, False, True]), [True, False, "x"]
    assert places(flags, flags, dtype=bool) == [0, 1, 0, 0, 1, 0]
    assert places(flags, one, dtype=bool) == [0, 1, 0, 0, 1, -1]
    assert places(one, one, dtype=object) == [0, 1, -1, 0, 1, -1]
    with pytest.raises(DataError, match=r"labels have a piece of dtype <U5"):
        places(flags, np.array(one), dtype=bool)
