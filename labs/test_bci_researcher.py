"""A researcher of brain-computer interfaces: MNE's epochs, pyRiemann, a Pipeline."""

import numpy as np
import pytest

mne = pytest.importorskip("mne")
pytest.importorskip("pyriemann")

import sklearn  # noqa: E402
from pyriemann.estimation import Covariances  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402

from spdp import Ball, PrivateMDM, amplitude_bounds, private_mean  # noqa: E402
from spdp.data import open_records  # noqa: E402
from spdp.errors import DataError  # noqa: E402

PERSONS, TRIALS, NAMES = 80, 6, ["C3", "Cz", "C4"]
DOMAIN = amplitude_bounds(len(NAMES), low=0.5, high=50.0, unit="uV", data_unit="V")
BUDGET = {"epsilon": 4.0, "delta": 1e-6, "domain": DOMAIN}


@pytest.fixture(scope="module")
def epochs():
    """Epochs of all persons; the class of a trial changes the power at C3 and C4."""
    rng = np.random.default_rng(0)
    y = np.tile([0, 1], PERSONS * TRIALS // 2)
    gain = np.where(y[:, None] == 0, [[24e-6, 12e-6, 8e-6]], [[8e-6, 12e-6, 24e-6]])
    data = gain[:, :, None] * rng.standard_normal((len(y), 3, 128))
    events = np.column_stack([np.arange(len(y)), np.zeros(len(y), int), y])
    info = mne.create_info(NAMES, 128.0, "eeg")
    return mne.EpochsArray(data, info, events, baseline=(None, None), verbose=False)


@pytest.fixture(scope="module")
def persons():
    return np.repeat(np.arange(PERSONS), TRIALS)


def test_epochs_name_the_line_that_makes_covariances(epochs):
    with pytest.raises(DataError, match=r"pyriemann\.estimation\.Covariances\('lwf'\)"):
        private_mean(epochs, **BUDGET)


def test_epochs_through_an_estimator_of_pyriemann(epochs, persons, published):
    X = Covariances("lwf").transform(epochs.get_data(copy=False))
    published(private_mean(X, groups=persons, **BUDGET), "person", PERSONS)


def test_covariances_of_mne_keep_the_names_of_their_channels(epochs, published):
    covariances = [
        mne.compute_covariance(
            epochs[i * TRIALS : (i + 1) * TRIALS], method="empirical", verbose=False
        )
        for i in range(PERSONS)
    ]
    release = private_mean(covariances, anyway=True, **BUDGET)
    assert release.row_names == tuple(NAMES)
    published(release, "record", PERSONS)
    other = covariances[1].copy().pick_channels(["C3", "Cz"], verbose=False)
    with pytest.raises(DataError, match=r"X\[1\] has other names of rows"):
        private_mean([covariances[0], other], **BUDGET)


def test_a_pipeline_from_signals_to_classes_with_groups(epochs, persons, published):
    y = epochs.events[:, 2]
    with sklearn.config_context(enable_metadata_routing=True):
        mdm = PrivateMDM(classes=[0, 1], unit="person", **BUDGET).set_fit_request(groups=True)
        model = make_pipeline(Covariances("lwf"), mdm)
        model.fit(epochs.get_data(copy=False), y, groups=persons)
    published(mdm.release_, "person", PERSONS)
    assert model.score(epochs.get_data(copy=False), y) > 0.9


def test_envelope_correlations_of_mne_connectivity(published):
    connectivity = pytest.importorskip("mne_connectivity")
    rng = np.random.default_rng(0)
    signals = rng.standard_normal((400, 3, 200)) + 0.5 * rng.standard_normal((400, 1, 200))
    found = connectivity.envelope_correlation(signals, names=NAMES, orthogonalize=False)
    options = {"epsilon": 2.0, "delta": 1e-6, "domain": Ball(3.0), "metric": "offlog"}
    release = private_mean(found, **options)
    assert release.row_names == tuple(NAMES)
    published(release, "record", 400)
    per_person = open_records([found, found.copy()], per_file=True)
    assert (per_person.unit, per_person.n) == ("person", 800)
    coherence = connectivity.spectral_connectivity_epochs(
        signals[:20], method="coh", sfreq=100.0, fmin=8.0, fmax=12.0, faverage=True, verbose=False
    )
    with pytest.raises(DataError, match="'coh' has no positive definite matrices"):
        private_mean([coherence], **options)
