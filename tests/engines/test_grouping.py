"""Persons with many records: one exact row each, whatever the order and the blocks."""

import re

import numpy as np
import pytest

from spdp import Ball, EigenvalueBounds, Ledger, PrivateFrechetMean, private_mean
from spdp.charts import chart_of
from spdp.data import as_source
from spdp.data.columns import canonical_ids, with_columns
from spdp.data.source import Source
from spdp.engines import LocalEngine, grouping
from spdp.engines.grouping import Roster, distinct
from spdp.errors import DataError, InvalidMatrixError, LedgerError, ParameterError
from spdp.geometry import distance_logeuclid, mean_logeuclid
from spdp.kernels.base import RECORD_NORM
from spdp.lattice import encode
from spdp.options import OnInvalid
from spdp.queries.sums import whole_domain_sum
from spdp.statistics.partial_sums import LatticeSum

DOMAIN = EigenvalueBounds(0.01, 100.0)
OPTIONS = {"epsilon": 1.0, "delta": 1e-6, "domain": DOMAIN}
SURELY = 1.0 - 1e-9


@pytest.fixture
def study(random_spd):
    """600 records of 40 persons, some of whom have one record and some many."""
    rng = np.random.default_rng(2)
    ids = np.concatenate([np.arange(40), rng.integers(0, 40, 560) ** 2 // 40])
    return random_spd(600, 3), rng.permutation(ids)


def table(X, ids, blocks=None, **options):
    source = as_source(X) if blocks is None else Source(blocks, 3, None, "X")
    chart = chart_of("logeuclid")
    engine, source = LocalEngine(), with_columns(source, person=ids)
    task = engine.task(source, chart, DOMAIN.region(3, chart), OnInvalid.RAISE)
    return engine.gather(source, task, **options)


def total(store):
    return store.total(whole_domain_sum(DOMAIN.region(3)))


def test_a_person_is_the_mean_of_their_codes_toward_zero(study):
    X, ids = study
    q = encode(X, DOMAIN)
    rows = np.concatenate([rows.Y for rows in table(X, ids).persons.rows()])
    region = DOMAIN.region(3)
    found = np.sort(np.rint((rows - region.center) * RECORD_NORM / region.radius), axis=0)
    persons = [q[ids == person] for person in np.unique(ids)]
    expected = [np.trunc(codes.sum(axis=0) / len(codes)) for codes in persons]
    np.testing.assert_array_equal(found, np.sort(np.array(expected), axis=0))


def test_any_order_and_any_blocks_give_the_same_to_the_bit(study, monkeypatch):
    X, ids = study
    expected = total(table(X, ids))
    rng = np.random.default_rng(0)
    for spill in (grouping.SPILL_BYTES, 100):
        monkeypatch.setattr(grouping, "SPILL_BYTES", spill)
        for _ in range(5):
            order = rng.permutation(len(X))
            cuts = np.sort(rng.integers(0, len(X), 6))
            parts = np.split(X[order], cuts)
            store = table(None, ids[order], lambda parts=parts: iter(parts))
            assert store.n == len(np.unique(ids))
            np.testing.assert_array_equal(total(store), expected)


@pytest.mark.parametrize(
    "spelling",
    [
        lambda ids: ids.astype(float),
        lambda ids: ids.astype(np.uint8),
        lambda ids: ids * 10**15 - 7,
        lambda ids: [f"person {i}" for i in ids],
        lambda ids: np.array([f"p{i}" for i in ids], "S"),
        lambda ids: np.array([i if i % 2 else f"p{i}" for i in ids], object),
    ],
)
def test_ids_may_be_numbers_or_texts(study, spelling):
    X, ids = study
    np.testing.assert_array_equal(total(table(X, spelling(ids))), total(table(X, ids)))


def test_one_id_is_one_person_however_it_is_stored(study):
    X, ids = study
    parts = [with_columns(as_source(X[:300]), person=ids[:300].astype(float))]
    parts.append(with_columns(as_source(X[300:]), person=ids[300:].astype(object)))
    chart = chart_of("logeuclid")
    engine, source = LocalEngine(), as_source(parts)
    store = engine.gather(source, engine.task(source, chart, DOMAIN.region(3), OnInvalid.RAISE))
    assert store.n == len(np.unique(ids))
    np.testing.assert_array_equal(total(store), total(table(X, ids)))


def test_nobodys_id_changes_how_others_are_read(random_spd):
    """Large numbers beside a float, numbers beside a text: each entry on its own."""
    X = random_spd(200, 3)
    large = [2**62 + i for i in range(199)]
    for last in (5, 5.0, "5", "x"):
        assert table(X, [*large, last]).n == 200
    twice = [value for i in range(99) for value in (i, float(i))]
    for last in (7, "x"):
        assert table(X, [*twice, "y", last]).n == (100 if last == 7 else 101)
    hashes = [2**63 + i for i in range(200)]
    assert table(X, hashes).n == table(X, np.array(hashes, np.uint64)).n == 200


def test_one_person_is_one_row_however_blocks_are_cut(random_spd):
    X = random_spd(4, 3)
    ids = np.array([7, 7.0, np.int64(7), "7.0"], object)
    for cut in range(5):
        parts = np.split(X, [cut])
        assert table(None, ids, lambda parts=parts: iter(parts)).n == 1


def test_no_persons_are_a_dataset_too():
    empty = np.empty((0, 2, 2))
    options = {**OPTIONS, "adjacency": "add-remove"}
    for mechanism in ("gaussian", "laplace"):
        for weights in ({}, {"weights": "records", "max_records": 3}):
            release = private_mean(empty, groups=[], mechanism=mechanism, **weights, **options)
            assert release.value.shape == (2, 2)


def test_rosters_number_whoever_comes():
    roster = Roster()
    assert roster.rows(np.array([5, 900, 2])).tolist() == [0, 1, 2]
    assert roster.rows(np.array(["a", "b"])).tolist() == [3, 4]
    assert roster.rows(np.array([2, 2**40, 5])).tolist() == [2, 5, 0]
    assert roster.rows(np.array([2**40, -1])).tolist() == [5, 6]
    assert len(roster) == 7


@pytest.mark.parametrize("values", [[3, 1, 3], [10**12, 1, 10**12], ["x", "a", "x"]])
def test_distinct_ids(values):
    found, rows = distinct(canonical_ids(np.array(values)))
    assert found[rows].tolist() == values
    assert len(found) == 2


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([1, 2, None], "record 2 has no person"),
        ([1.0, np.nan, 2.0], "record 1 has no person"),
        ([2.0**60, 1, 2], "cannot tell ids apart"),
        ([1, 2, (3, 4)], "whole numbers or texts"),
        (["a", "", "b"], "record 1 has no person"),
        ([1.5, 2.0, 1.0], "hold 1.5; .* must be .*whole"),
        ([1, 2], "2 entries for 3 records of X"),
        (7, "one entry per record"),
        (np.array([1j, 2, 3]), "dtype complex"),
        (np.zeros((3, 2), int), "expected one .*id per record"),
    ],
)
def test_groups_that_are_none_are_refused(random_spd, groups, message):
    with pytest.raises(DataError, match=message):
        private_mean(random_spd(3, 3), groups=groups, **OPTIONS)


def test_a_column_of_another_length_than_a_stream_is_refused(random_spd):
    X = random_spd(10, 3)
    for ids in (np.arange(9), np.arange(11)):
        with pytest.raises(DataError, match="entries for"):
            private_mean(iter([X[:6], X[6:]]), groups=ids, **OPTIONS)


def test_an_invalid_record_is_named_or_counts_as_the_centre(study):
    X, ids = study
    X = X.copy()
    X[123] = np.nan
    with pytest.raises(InvalidMatrixError, match="matrix 123"):
        private_mean(X, groups=ids, **OPTIONS)
    release = private_mean(X, groups=ids, on_invalid="center", **OPTIONS)
    assert release.certificate["private"]


def test_the_certificate_speaks_of_persons(study):
    X, ids = study
    for method in ("oneshot", "adaptive"):
        release = private_mean(X, groups=ids, method=method, **OPTIONS)
        c = release.certificate
        assert (c["unit"], c["n"]) == ("person", 40 if method else 0)
        assert "the persons" in c["estimand"]
        stated = str({name: c[name] for name in c if name != "steps"})
        assert not re.search(r"(?<![\d.])600(?![\d])", stated)  # of noise, digits may be so
        assert all(check.ok for check in release.verify())


def test_persons_count_once_or_by_their_records(random_spd):
    """90 records of one person and 1 of each of 90 others, at two places."""

    def error(release, weight):
        return distance_logeuclid(release.value, 8.0**weight * np.eye(2))

    X = np.concatenate([np.tile(np.diag([8.0, 8.0]), (90, 1, 1)), np.tile(np.eye(2), (90, 1, 1))])
    ids = np.concatenate([np.zeros(90, int), np.arange(1, 91)])
    options = {**OPTIONS, "epsilon": 1e6, "groups": ids, "method": "oneshot"}
    once = private_mean(X, **options)
    assert error(once, 1 / 91) <= once.error_bound(SURELY) < 0.01
    for most, weight in ((90, 90 / 180), (30, 30 / 120)):
        release = private_mean(X, weights="records", max_records=most, **options)
        assert error(release, weight) <= release.error_bound(SURELY) < 0.1
        c = release.certificate
        assert c["max_records"] == most
        assert c["n_estimate"] == pytest.approx(1 + 90 / most if most == 90 else 4.0, rel=0.05)
        assert all(check.ok for check in release.verify())


def test_weights_need_groups_and_a_limit(study):
    X, ids = study
    with pytest.raises(ParameterError, match="go together"):
        private_mean(X, groups=ids, weights="records", **OPTIONS)
    with pytest.raises(ParameterError, match="needs groups"):
        private_mean(X, weights="records", max_records=3, **OPTIONS)
    with pytest.raises(ParameterError, match="whole number"):
        private_mean(X, groups=ids, weights="records", max_records=1.5, **OPTIONS)
    with pytest.raises(ParameterError, match="oneshot"):
        private_mean(X, groups=ids, weights="records", max_records=3, method="adaptive", **OPTIONS)


def test_a_ledger_is_for_records_or_for_persons(study, tmp_path):
    X, ids = study
    ledger = Ledger(tmp_path / "account", epsilon=10, delta=1e-4)
    private_mean(X, groups=ids, ledger=ledger, **OPTIONS)
    with pytest.raises(LedgerError, match="per person.* per record"):
        private_mean(X, ledger=ledger, **OPTIONS)
    private_mean(X, groups=ids, ledger=ledger, **OPTIONS)


def test_sums_of_persons_merge_with_their_like(study, tmp_path):
    X, ids = study
    parts = [ids < 20, ids >= 20]
    a, b = (LatticeSum.of(X[some], DOMAIN, groups=ids[some]) for some in parts)
    a.save(tmp_path / "a.sum")
    merged = LatticeSum.load(tmp_path / "a.sum") + b
    whole = LatticeSum.of(X, DOMAIN, groups=ids)
    np.testing.assert_array_equal(merged.total, whole.total)
    assert (merged.n, merged.unit) == (whole.n, "person")
    with pytest.raises(ParameterError, match="different units"):
        _ = whole + LatticeSum.of(X, DOMAIN)


def test_estimators_take_groups(study):
    X, ids = study
    model = PrivateFrechetMean(1.0, 1e-6, DOMAIN, random_state=0)
    assert model.fit(X, groups=ids).certificate_["unit"] == "person"
    model.partial_fit(X, groups=ids).release()
    assert model.certificate_["n"] == 40


def test_persons_are_all_looked_at(study):
    """Which of them are must not depend on how they are ordered."""
    X, ids = study
    store = table(X, ids)
    store.subsample(4)
    assert store.m == store.n == 40


# --- several matrices per record
# -------------------------------------------------------


@pytest.mark.parametrize("method", ["oneshot", "adaptive"])
def test_several_matrices_per_record(random_spd, method):
    X = random_spd(2400, 2).reshape(800, 3, 2, 2)
    X = X[:, :1] * np.array([1.0, 2.0, 4.0])[:, None, None]
    options = {**OPTIONS, "epsilon": 200.0, "method": method}
    release = private_mean(X, **options)
    assert release.value.shape == (3, 2, 2)
    truth = np.stack([mean_logeuclid(DOMAIN.clip(X[:, i])) for i in range(3)])
    np.testing.assert_allclose(release.value, truth, rtol=0.05, atol=0.02)
    c = release.certificate
    assert (c["k"], c["parts"], c["arrays"]) == (2, 3, {"mean": [3, 2, 2]})
    assert all(check.ok for check in release.verify())


def test_several_matrices_share_one_budget(random_spd):
    """The joint ball has √p times the radius of one."""
    X = random_spd(400, 2).reshape(100, 4, 2, 2)
    options = {**OPTIONS, "method": "oneshot", "mechanism": "gaussian", "random_state": 1}
    joint, alone = private_mean(X, **options), private_mean(X[:, 0], **options)
    ratio = joint.certificate["sigma"] / alone.certificate["sigma"]
    assert ratio == pytest.approx(2.0)


def test_a_fault_names_the_part(random_spd):
    X = random_spd(20, 2).reshape(10, 2, 2, 2).copy()
    X[7, 1] = [[1.0, 2.0], [2.0, 1.0]]
    with pytest.raises(InvalidMatrixError, match=r"matrix 7 \(part 1\) is not positive definite"):
        private_mean(X, anyway=True, **OPTIONS)
    release = private_mean(X, on_invalid="center", anyway=True, **OPTIONS)
    assert release.value.shape == (2, 2, 2)


def test_several_matrices_with_groups_save_and_load(random_spd, tmp_path):
    X = random_spd(200, 2).reshape(100, 2, 2, 2)
    release = private_mean(list(X), groups=np.arange(100) // 5, anyway=True, **OPTIONS)
    release.save(tmp_path / "release")
    again = type(release).load(tmp_path / "release")
    np.testing.assert_array_equal(again.value, release.value)
    assert again.certificate["n"] == 20


def test_a_ball_of_several_matrices_has_one_centre_for_all(random_spd):
    X = random_spd(60, 2).reshape(30, 2, 2, 2)
    center = np.diag([2.0, 3.0])
    release = private_mean(X, **{**OPTIONS, "epsilon": 1e4, "domain": Ball(3.0, center)})
    assert np.isfinite(release.value).all()
