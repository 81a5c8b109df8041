"""Records that a search looks at are a secret subsample: their order is irrelevant."""

import numpy as np
import pytest

from spdp import Ball
from spdp.charts import LOGEUCLID
from spdp.data.source import as_source
from spdp.engines import LocalEngine
from spdp.engines.subsampling import Subsample, chosen
from spdp.options import OnInvalid
from spdp.queries.sums import COUNT_UNIT, EdgeCount, Frame, VectorSum


@pytest.mark.parametrize(("m", "one_in"), [(0, 2), (1, 3), (1000, 2), (5000, 7), (300, 1000)])
def test_places_ascend_and_are_there(m, one_in):
    for seed in range(50):
        places = chosen(np.random.default_rng(seed), m, one_in)
        assert (np.diff(places) > 0).all()
        assert places.size == 0 or (places[0] >= 0 and places[-1] < m)


def test_all_are_chosen_where_all_are_looked_at():
    np.testing.assert_array_equal(chosen(np.random.default_rng(0), 5, 1), np.arange(5))
    store, region = stored_in_order(np.tile(np.eye(2), (500, 1, 1)))
    query = EdgeCount("edge", LOGEUCLID, region)
    every = store.total(query)
    store.subsample(4)
    assert store.m < 300
    store.subsample(1)
    assert store.m == store.n == 500
    np.testing.assert_array_equal(store.total(query, subsampled=True), every)


def test_each_record_is_drawn_on_its_own():
    """Binomial numbers, even places, independent neighbours: no stride is like that."""
    m, one_in, runs = 400, 4, 2000
    seen = np.zeros((runs, m))
    for seed in range(runs):
        seen[seed, Subsample(seed).places((m,), one_in)[0]] = 1
    p = 1 / one_in
    sd = np.sqrt(p * (1 - p) / runs)
    assert np.abs(seen.mean(axis=0) - p).max() < 5 * sd
    together = (seen[:, 1:] * seen[:, :-1]).mean(axis=0)
    assert np.abs(together - p * p).max() < 5 * np.sqrt(p * p / runs)
    assert seen.sum(axis=1).var() == pytest.approx(m * p * (1 - p), rel=0.2)


def test_draws_for_one_thing_tell_nothing_of_those_for_another():
    """Blocks, times, and looking at what was kept: together by chance alone."""
    m, both = 4000, 0.0
    for key in range(1, 60):
        subsample = Subsample(key)
        kept = [subsample.to_keep(m, 2) for _ in range(3)]
        first, second = subsample.places((m, m), 2)
        pairs = [(first, second), *((first, part) for part in kept), (kept[0], kept[1])]
        both += sum(np.intersect1d(*pair).size for pair in pairs) / len(pairs)
        np.testing.assert_array_equal(subsample.places((m, m), 2)[0], first)
    assert both / 59 == pytest.approx(m / 4, rel=0.02)


def stored_in_order(X, keep_bytes=1 << 30, key=1):
    engine, source = LocalEngine(), as_source(X)
    region = Ball(2.0).region(2)
    task = engine.task(source, LOGEUCLID, region, OnInvalid.RAISE)._replace(key=key)
    return engine.hold(source, task, keep_bytes), region


@pytest.mark.parametrize("shift", range(4))
def test_records_kept_in_some_order_are_seen_as_in_any_other(shift):
    """Every fourth lies at the edge: by places, all of those looked at, or none."""
    X = np.tile(np.eye(2), (16384, 1, 1))
    X[shift::4] = np.diag([1e6, 1e-6])
    store, region = stored_in_order(X)
    store.subsample(4)
    query = EdgeCount("edge", LOGEUCLID, region)
    share = float(store.total(query, subsampled=True)[0]) / COUNT_UNIT / store.m
    assert share == pytest.approx(0.25, abs=6 * np.sqrt(0.1875 / store.m))


@pytest.mark.parametrize("late", [False, True])
def test_so_are_records_of_which_not_all_fit(late, monkeypatch):
    """Blocks are of two kinds in turn: kept as blocks, one kind might be all."""
    monkeypatch.setattr("spdp.data.source.BLOCK_BYTES", 1 << 12)  # 128 records
    X = np.tile(np.eye(2), (16384, 1, 1))
    kind = np.arange(16384) // 128 % 2 == late
    X[kind] = np.diag([2.0, 0.5])
    store, region = stored_in_order(X, keep_bytes=100_000)
    assert store.n == 16384
    assert store.m < 5000
    query = VectorSum("mean", Frame.plain(region.center), region.radius)
    share = store.total(query, subsampled=True)[0] * query.step / np.log(2.0) / store.m
    assert share == pytest.approx(0.5, abs=6 * np.sqrt(0.25 / store.m))
    assert store.total(query)[0] * query.step / np.log(2.0) == pytest.approx(8192, abs=1e-3)
