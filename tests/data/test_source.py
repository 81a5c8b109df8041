"""Records in pieces."""

import numpy as np
import pytest

from spdp import Ball, EigenvalueBounds, private_mean
from spdp.data import as_source, open_records
from spdp.data.columns import Column, with_columns, with_constant
from spdp.data.source import chain
from spdp.errors import DataError
from spdp.lattice import exact_sum
from spdp.statistics.partial_sums import LatticeSum

DOMAIN = EigenvalueBounds(0.01, 100.0)


def test_every_source_gives_the_same_sum(random_spd, tmp_path):
    X = random_spd(500, 3)
    expected = exact_sum(X, DOMAIN)
    np.save(tmp_path / "a.npy", X[:200])
    np.save(tmp_path / "b.npy", X[200:])
    files = [open_records(tmp_path / "a.npy"), open_records(tmp_path / "b.npy")]
    sources = {
        "memory map": np.load(_saved(tmp_path, X), mmap_mode="r"),
        "list": list(X),
        "iterator": iter([X[:100], X[100:]]),
        "function": lambda: iter([X[:1], X[1:]]),
        "files": files,
        "single matrices": (A for A in X),
    }
    for name, source in sources.items():
        np.testing.assert_array_equal(LatticeSum.of(source, DOMAIN).total, expected, err_msg=name)
    assert chain(files).n == 500
    with pytest.raises(DataError, match="2×2 matrices"):
        chain([files[0], as_source(random_spd(3, 2))])
    with pytest.raises(DataError, match="no records"):
        as_source(lambda: iter([]))


def _saved(tmp_path, X):
    np.save(tmp_path / "all.npy", X)
    return tmp_path / "all.npy"


def test_adaptive_reads_a_function_again(random_spd):
    X = random_spd(2000, 3, condition=2.0)
    options = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "domain": Ball(10.0),
        "method": "adaptive",
        "random_state": 0,
    }
    expected = private_mean(X, **options).value
    np.testing.assert_array_equal(
        private_mean(lambda: iter([X[:700], X[700:]]), **options).value, expected
    )


def test_records_in_memory_are_told_from_those_in_files(tmp_path):
    X = np.tile(np.eye(2), (50, 1, 1))
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert as_source(X).memory == as_source(X[::2]).memory * 2 == X.nbytes
    for file in (mapped, mapped[3:], np.asarray(mapped)):
        assert as_source(file).memory == 0
    assert as_source(iter([X])).memory == 0


def test_columns_leave_all_else_as_it_was():
    source = as_source(np.tile(np.eye(2), (50, 1, 1)))
    changed = {"read", "chunks", "columns", "origins"}
    for wider in (with_columns(source, label=np.arange(50)), with_constant(source, person=7)):
        assert wider.columns != source.columns
        assert source.memory > 0
        assert {name for name, value in vars(wider).items() if vars(source)[name] is not value} <= (
            changed
        )


def test_a_source_says_what_it_holds():
    X = np.ones((1200, 3, 3), np.float32)
    assert repr(as_source(X)) == "<Source X: 1,200 records 3×3, float32>"
    grouped = with_columns(as_source(X, "study"), person=[1, 2] * 600, label=[0] * 1200)
    assert repr(grouped) == "<Source study: 1,200 records of persons, 3×3, float32, with label>"
    assert repr(as_source(iter([X]))) == "<Source X: records 3×3>"


def test_files_of_columns_are_named_wherever_they_are_the_same(random_spd):
    X = as_source(random_spd(3, 2))
    one, other = (with_columns(X, label=Column([0, 1, 0], file)) for file in ("a.csv", "b.csv"))
    assert X.origins == with_columns(X, label=[0, 1, 0]).origins == {}
    assert with_constant(one, person="p").origins == chain([one, one]).origins == {"label": "a.csv"}
    assert chain([one, other]).origins == {}
