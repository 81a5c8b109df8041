import pytest


@pytest.fixture(scope="package")
def client():
    """A local cluster for all tests of this folder that want one."""
    distributed = pytest.importorskip("distributed")
    size = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": 0}
    with distributed.LocalCluster(**size) as cluster, distributed.Client(cluster) as client:
        yield client
