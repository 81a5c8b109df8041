"""Labels and covariates: an entry says what it says, whatever the others are."""

import warnings

import numpy as np
import pytest

from spdp.data.labels import entries_of, label_of, lines_of, numbers_of, places_of

ODD = ["?", b"x", b"\xff", None, [1, 2], (1,), {"a": 1}, np.array([1]), 1e308, 10**400]
ODD += [float("nan"), float("inf"), 1j, 0.5, "q" * 10**5, object(), np.datetime64("NaT")]


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
