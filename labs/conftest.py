"""Journeys with the real libraries: `make labs`. Their small data are made here."""

import numpy as np
import pytest

from spdp import Release


@pytest.fixture
def rng():
    return np.random.default_rng(34)


@pytest.fixture
def published(tmp_path):
    """Save a release, load it again, and let every check pass."""

    def check(release, unit, n):
        folder = tmp_path / "published"
        release.save(folder, force=True)
        again = Release.load(folder)
        assert all(found.ok for found in again.verify())
        stated = again.certificate
        assert (stated["private"], stated["unit"], stated["n"]) == (True, unit, n)
        return again

    return check
