"""A Dask cluster whose answer is the same to the bit, and which sends back integers
only.
"""

import os
import pickle
import signal
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pytest

from spdp import Ball, EigenvalueBounds, Ledger, private_mean
from spdp.charts import CHARTS
from spdp.data import as_source, open_records
from spdp.data.columns import with_columns
from spdp.data.source import Source, chain
from spdp.engines import LocalEngine, engine_for
from spdp.engines.dask import DaskEngine
from spdp.engines.store import Task, totals_of
from spdp.errors import DataError, InvalidMatrixError, LedgerError
from spdp.lattice import exact_sum
from spdp.queries.sums import whole_domain_sum
from spdp.statistics.partial_sums import LatticeSum

DOMAIN = EigenvalueBounds(0.01, 100.0)
LOGEUCLID = CHARTS["logeuclid"]
LARGE_GRAPH = "large-graph-warning-threshold"

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")


# of the cluster's own processes and sockets
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore:.*:pytest.PytestUnraisableExceptionWarning"),
]


@pytest.mark.parametrize("k", [3, 9, 30])
def test_a_cluster_gives_the_same_sum_to_the_bit(client, random_spd, k):
    X = random_spd(400, k)
    array = da.from_array(X, chunks=(90, k, k))
    assert isinstance(engine_for(as_source(array)), DaskEngine)
    expected = exact_sum(X, DOMAIN)
    across = array.rechunk((33, k // 3, k // 2))  # chunks of a part of a matrix
    for source in (array, across, [array[:100], array[100:]]):
        np.testing.assert_array_equal(LatticeSum.of(source, DOMAIN).total, expected)


@pytest.mark.parametrize("persons", [False, True])
def test_an_affine_invariant_mean_on_a_cluster_is_the_one_of_this_process(
    client, random_spd, persons
):
    """Workers see records from the point that they are sent."""
    X = random_spd(3000, 3, condition=2.0)
    options = {"epsilon": 1.0, "delta": 1e-6, "domain": DOMAIN, "metric": "riemann"}
    options |= {"groups": np.arange(3000) // 3 if persons else None, "random_state": 0}
    here = private_mean(X, **options)
    there = private_mean(da.from_array(X, chunks=(700, 3, 3)), **options)
    steps = [[s["step"] for s in r.certificate["steps"]] for r in (here, there)]
    assert steps[0] == steps[1]
    np.testing.assert_allclose(there.value, here.value, rtol=1e-6)


@pytest.mark.parametrize("method", ["oneshot", "adaptive"])
def test_private_mean_on_a_cluster(client, random_spd, method):
    X = random_spd(3000, 3, condition=2.0)
    options = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "domain": Ball(8.0),
        "method": method,
        "mechanism": "gaussian",
    }
    here = private_mean(X, random_state=4, **options)
    there = private_mean(da.from_array(X, chunks=(700, 3, 3)), random_state=4, **options)
    np.testing.assert_array_equal(there.value, here.value)
    assert (
        private_mean(da.from_array(X, chunks=(700, 3, 3)), **options).certificate["private"] is True
    )


def test_bad_records_on_a_cluster(client, random_spd):
    X = random_spd(100, 3)
    X[77] = -X[77]
    array = da.from_array(X, chunks=(30, 3, 3))
    for method in ("oneshot", "adaptive"):
        with pytest.raises(InvalidMatrixError, match="matrix 77 is not positive definite"):
            private_mean(array, epsilon=1.0, delta=1e-6, domain=DOMAIN, method=method)
        private_mean(
            array, epsilon=1.0, delta=1e-6, domain=DOMAIN, method=method, on_invalid="center"
        )
    with pytest.raises(InvalidMatrixError, match="expected a Dask array"):
        private_mean(da.ones((4, 2, 3)), epsilon=1.0, delta=1e-6, domain=DOMAIN)


class Wire:
    """Counts what the client takes from the cluster.

    Every result a release asks for.
    """

    def __init__(self, monkeypatch):
        self.sizes = []
        result = distributed.Future.result

        def weighed(future, *args, **kwargs):
            value = result(future, *args, **kwargs)
            self.sizes.append(len(pickle.dumps(value)))
            return value

        monkeypatch.setattr(distributed.Future, "result", weighed)


@pytest.mark.parametrize("method", ["oneshot", "adaptive"])
def test_only_small_results_leave_a_worker(client, random_spd, method, monkeypatch):
    """All that a release takes from the workers is kilobytes; the records are 12 MB."""
    X = random_spd(60_000, 5)
    array = da.from_array(X, chunks=(20_000, 5, 5))
    monkeypatch.setitem(dask.config.config["distributed"]["admin"], LARGE_GRAPH, "100 MB")
    wire = Wire(monkeypatch)
    private_mean(array, epsilon=1.0, delta=1e-6, domain=DOMAIN, method=method)
    assert len(wire.sizes) >= 3
    assert max(wire.sizes) < 2_000
    assert sum(wire.sizes) < X.nbytes / 100
    engine = engine_for(as_source(array))
    list(engine.each(as_source(array), np.asarray))  # the count would show a leak
    assert max(wire.sizes) > 1_000_000


def awaited(what, seconds=60.0):
    """What a function gives, once that is something."""
    for _ in range(int(seconds / 0.01)):
        if found := what():
            return found
        time.sleep(0.01)
    raise TimeoutError("nothing came")


def test_a_worker_killed_in_mid_run_changes_nothing(random_spd, tmp_path):
    """It dies when it has done one block, whose result it keeps, and begun another."""
    X = random_spd(1200, 9)
    np.save(tmp_path / "x.npy", X)

    def begun(folder, pid):
        return {file.name.split(".by.")[0] for file in folder.glob(f"*.by.{pid}")}

    # nested, so that it travels to the workers by value
    def rows(folder, start, stop):
        first = not begun(folder, os.getpid())
        (folder / f"{start}.by.{os.getpid()}").touch()
        patience = time.monotonic() + 60.0
        while not (first or (folder / "killed").exists()) and time.monotonic() < patience:
            time.sleep(0.01)
        return np.load(folder / "x.npy", mmap_mode="r")[start:stop]

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=0
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        pieces = [partial(rows, tmp_path, i, i + 100) for i in range(0, 1200, 100)]
        source = Source(lambda: iter([]), 9, 1200, "x", chunks=pieces)
        region, engine = DOMAIN.region(9), DaskEngine(client)
        victim = next(iter(client.run(os.getpid).values()))
        task = Task(LOGEUCLID, region, (9, 9), "x")
        results = engine.each(source, totals_of, task, whole_domain_sum(region))
        assert awaited(lambda: len(begun(tmp_path, victim)) > 1)
        lost = begun(tmp_path, victim)
        os.kill(victim, signal.SIGKILL)
        (tmp_path / "killed").touch()
        parts = list(results)
    for start in lost:
        assert len(list(tmp_path.glob(f"{start}.by.*"))) > 1  # begun again elsewhere
    assert sum(part.m for part in parts) == 1200
    total = np.sum([part.total for part in parts], axis=0)
    np.testing.assert_array_equal(total, exact_sum(X, DOMAIN))


@pytest.mark.parametrize("name", ["x.npy", "X.NPY", "x.h5", "x.zarr", "x.nii.gz"])
def test_files_on_a_cluster(client, random_spd, tmp_path, name):
    X = random_spd(200, 3)
    file, options = tmp_path / name, {}
    if name.lower().endswith("npy"):
        with file.open("wb") as stream:
            np.save(stream, X)
    elif name.endswith("h5"):
        with pytest.importorskip("h5py").File(file, "w") as f:
            f["cov"] = X
    elif name.endswith("zarr"):
        pytest.importorskip("zarr").create_array(str(file), data=X)
    else:
        nib = pytest.importorskip("nibabel")
        i, j = np.array([0, 0, 0, 1, 1, 2]), np.array([0, 1, 2, 1, 2, 2])
        nib.save(nib.Nifti1Image(X[:, i, j].reshape(10, 10, 2, 6), np.eye(4)), file)
        mask = np.ones((10, 10, 2), np.uint8)
        mask[0] = 0
        nib.save(nib.Nifti1Image(mask, np.eye(4)), tmp_path / "mask.nii")
        options = {"order": "fsl", "mask": tmp_path / "mask.nii"}
    source = open_records(file, **options)
    here = LatticeSum.of(source, DOMAIN, engine=LocalEngine())
    there = LatticeSum.of(source, DOMAIN, engine=DaskEngine(client))
    np.testing.assert_array_equal(there.total, here.total)
    assert there.n == here.n == (180 if options else 200)


@pytest.mark.parametrize("name", ["x.npy", "x.csv", "x.parquet", "files", "array"])
@pytest.mark.parametrize("method", ["oneshot", "adaptive"])
def test_persons_on_a_cluster(client, random_spd, tmp_path, name, method, monkeypatch):
    """A person's records lie in several blocks; the release is the same to the bit."""
    monkeypatch.setattr("spdp.data.source.BLOCK_BYTES", 2000)
    monkeypatch.setattr("spdp.data.formats.base.BLOCKS_PER_CHUNK", 2)
    X, ids = random_spd(600, 3, condition=2.0), np.arange(600) % 150
    source = _of_persons(X, ids, tmp_path / name)
    assert len(source.chunks) > 5
    options = {"epsilon": 3.0, "delta": 1e-6, "domain": Ball(8.0), "method": method}
    here = private_mean(X, groups=ids, random_state=4, **options)
    there = private_mean(source, engine=DaskEngine(client), random_state=4, **options)
    np.testing.assert_array_equal(there.value, here.value)
    assert there.certificate["n"] == here.certificate["n"] == 150
    assert there.certificate["unit"] == "person"


@pytest.mark.parametrize("persisted", [False, True])
def test_arrays_with_columns_stay_on_their_cluster(client, random_spd, persisted):
    """Records with ids beside them are Dask's too: nobody has to name the engine."""
    X, ids = random_spd(300, 2, condition=2.0), np.arange(300) % 60
    array, groups = (da.from_array(A, chunks=(70, *A.shape[1:])) for A in (X, ids))
    if persisted:
        array, groups = client.persist(array), client.persist(groups)
    for beside_it in (groups, ids):
        source = with_columns(as_source(array), person=beside_it)
        assert isinstance(engine_for(source), DaskEngine)
        assert isinstance(engine_for(chain([source, source])), DaskEngine)
    options = {"epsilon": 3.0, "delta": 1e-6, "domain": Ball(8.0), "random_state": 4}
    there = private_mean(array, groups=groups, **options)
    np.testing.assert_array_equal(there.value, private_mean(X, groups=ids, **options).value)


def _of_persons(X, ids, path):
    """The same records of the same persons, in any order, as some kind of source."""
    if path.name == "array":
        array, groups = (da.from_array(A, chunks=(70, *A.shape[1:])) for A in (X, ids))
        return with_columns(as_source(array), person=groups)
    if path.name == "files":
        path.mkdir()
        for i in range(150):
            np.save(path / f"{i}.npy", X[ids == i])
        return open_records(path, per_file=True)
    if path.suffix == ".npy":
        np.save(path, X)
        return open_records(path, groups=ids)
    pa = pytest.importorskip("pyarrow")
    table = {"who": ids} | {f"c{i}{j}": X[:, i, j] for i in range(3) for j in range(i, 3)}
    if path.suffix == ".csv":
        rows = zip(*(column.tolist() for column in table.values()), strict=True)
        lines = [",".join(map(repr, row)) for row in rows]
        path.write_text("\n".join([",".join(table), *lines]))
    else:
        pytest.importorskip("pyarrow.parquet").write_table(pa.table(table), path, 40)
    return open_records(path, groups_column="who")


def test_sources_that_cannot_be_read_in_pieces_are_refused(client, random_spd, tmp_path):
    np.savez(tmp_path / "x.npz", X=random_spd(20, 3))
    with pytest.raises(DataError, match=r"x\.npz: its rows cannot be read one piece"):
        LatticeSum.of(open_records(tmp_path / "x.npz"), DOMAIN, engine=DaskEngine(client))


def test_a_ledger_bound_to_data_works_on_a_cluster(client, random_spd, tmp_path):
    X = random_spd(120, 3)
    ledger = Ledger(tmp_path / "l", epsilon=5.0, delta=1e-5, key=b"0123456789abcdef")
    ledger.bind(X)
    array = da.from_array(X, chunks=(50, 3, 3))
    options = {"epsilon": 0.5, "delta": 1e-6, "domain": DOMAIN, "ledger": ledger}
    private_mean(array, **options)
    private_mean(X, **options)
    with pytest.raises(LedgerError, match="not the data"):
        private_mean(da.from_array(2 * X, chunks=(50, 3, 3)), **options)
    assert ledger.spent()["entries"] == 2


@pytest.mark.parametrize("change", [lambda b: b[:-1], lambda b: np.concatenate([b, b[:1]])])
def test_a_chunk_must_have_as_many_records_as_its_array_states(client, random_spd, change):
    """Files that do not hold what their header says are refused, and so are these."""
    X = random_spd(120, 3)
    array = da.from_array(X, chunks=(50, 3, 3)).map_blocks(change, dtype=X.dtype)
    for engine in (DaskEngine(client), LocalEngine()):
        with pytest.raises(DataError, match="X has a chunk of .* its Dask array states"):
            LatticeSum.of(array, DOMAIN, engine=engine)
    unknown = array.map_blocks(np.asarray, dtype=X.dtype, chunks=((np.nan,) * 3, (3,), (3,)))
    assert LatticeSum.of(unknown, DOMAIN, engine=DaskEngine(client)).n in (117, 123)


def test_a_dask_array_without_a_cluster():
    """In a process of its own, where no client is open."""
    code = """if True:
        import numpy as np
        import dask.array as da
        from spdp import Ball
        from spdp.lattice import exact_sum
        from spdp.statistics.partial_sums import LatticeSum
        X = np.stack([np.diag([1.0, 2.0 + i]) for i in range(50)])
        total = LatticeSum.of(da.from_array(X, chunks=(7, 2, 2)), Ball(3.0)).total
        assert (total == exact_sum(X, Ball(3.0))).all()
    """
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
