import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from spdp import PrivateFrechetMean
from spdp.descriptors import CovarianceDescriptors, covariance_descriptors, descriptor_bounds, paper_radius
from spdp.errors import DataError, ParameterError


def straightforward(image, eta=1e-6):
    """The definition, one image at a time, with scipy.ndimage."""
    I = image.astype(float) / (255 if image.dtype == np.uint8 else 1)
    channels = [I] if I.ndim == 2 else list(np.moveaxis(I, 2, 0))
    gray = np.mean(channels, axis=0)
    h, w = gray.shape
    y, x = np.mgrid[0:h, 0:w] / np.array([h - 1, w - 1])[:, None, None]
    first = np.outer([1, 2, 1], [1, 0, -1]) / 4
    second = np.outer([1, 4, 6, 4, 1], [1, 0, -2, 0, 1]) / 32
    ix, iy = (ndimage.correlate(gray, kernel, mode="nearest") for kernel in (first, first.T))
    ixx, iyy = (ndimage.correlate(gray, kernel, mode="nearest") for kernel in (second, second.T))
    features = [x, y, *channels, abs(ix), abs(iy), abs(ixx), abs(iyy), np.hypot(ix, iy), np.arctan2(abs(ix), abs(iy))]
    return np.cov(np.stack([f.ravel() for f in features]), bias=True) + eta * np.eye(len(features))


@pytest.mark.parametrize("shape", [(7, 28, 28), (5, 5, 5), (3, 6, 17), (4, 32, 32, 3)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_agrees_with_the_definition(rng, shape, dtype):
    images = rng.integers(0, 256, shape).astype(np.uint8)
    if dtype != np.uint8:
        images = (images / 255).astype(dtype)
    R = covariance_descriptors(images)
    assert R.shape == (shape[0], 9 if len(shape) == 3 else 11, 9 if len(shape) == 3 else 11)
    np.testing.assert_allclose(R, np.stack([straightforward(i) for i in images]), atol=1e-13)
    assert (R.transpose(0, 2, 1) == R).all()


@given(st.sampled_from([1, 3]), st.integers(5, 14), st.integers(5, 14), st.integers(0, 2**32 - 1), st.integers(0, 5))
def test_no_image_escapes_the_bounds(channels, height, width, seed, kind):
    """Random, binary, checkerboard, stripes, constant, single-pixel images."""
    rng = np.random.default_rng(seed)
    shape = (6, height, width) if channels == 1 else (6, height, width, 3)
    grid = np.indices((height, width)).sum(axis=0)
    pattern = {2: grid % 2, 3: (np.indices((height, width))[seed % 2] // (1 + seed % 4)) % 2, 4: np.full((height, width), seed % 2)}.get(
        kind
    )
    images = rng.random(shape) if kind == 0 else (rng.random(shape) < 0.5).astype(float) if kind == 1 else np.zeros(shape)
    if pattern is not None:
        images = np.broadcast_to(pattern[None] if channels == 1 else pattern[None, :, :, None], shape).astype(float)
    if kind == 5:
        images.reshape(6, -1)[np.arange(6), rng.integers(0, images[0].size, 6)] = 1.0
    R = covariance_descriptors(images)
    w = np.linalg.eigvalsh(R)
    for bound in ("tight", "paper"):
        bounds = descriptor_bounds(channels, bound=bound)
        assert w.min() >= bounds.low * (1 - 1e-9)
        assert w.max() <= bounds.high
    assert (np.linalg.norm(np.log(w), axis=1) <= paper_radius(channels)).all()


def test_misprint_5_the_bounds_of_theorem_5():
    """12 and 14, as the appendix proves; the tight bound is smaller; feature variances obey Popoviciu."""
    assert descriptor_bounds(1, bound="paper").high == pytest.approx(12.0, rel=1e-6)
    assert descriptor_bounds(3, bound="paper").high == pytest.approx(14.0, rel=1e-6)
    assert descriptor_bounds(1).high == pytest.approx(2.867, abs=1e-3)
    assert descriptor_bounds(3).high == pytest.approx(3.367, abs=1e-3)
    assert paper_radius(1) == pytest.approx(41.4465, abs=1e-4)
    assert descriptor_bounds(1).radius_for(9) < paper_radius(1) / 1.85


def test_transformer_in_a_pipeline():
    from sklearn.datasets import load_digits

    digits = load_digits().images / 16.0
    transformer = CovarianceDescriptors()
    assert clone(transformer).get_params() == {"eta": 1e-6}
    pipeline = make_pipeline(transformer, PrivateFrechetMean(1.0, 1e-5, descriptor_bounds(1)))
    assert pipeline.fit(digits)[-1].mean_.shape == (9, 9)
    assert transformer.bounds() == descriptor_bounds(1)


def test_mistakes():
    with pytest.raises(DataError, match="at least 5×5"):
        covariance_descriptors(np.zeros((2, 4, 9)))
    with pytest.raises(DataError, match="shape"):
        covariance_descriptors(np.zeros((2, 9)))
    with pytest.raises(DataError, match="shape"):
        covariance_descriptors(np.zeros((2, 9, 9, 4)))
    with pytest.raises(DataError, match="dtype int64"):
        covariance_descriptors(np.zeros((2, 9, 9), np.int64))
    images = np.zeros((200, 9, 9))
    images[131, 0, 0] = 1.5
    with pytest.raises(DataError, match="image 131 has values outside"):
        covariance_descriptors(images)
    images[131, 0, 0] = np.nan
    with pytest.raises(DataError, match="image 131"):
        covariance_descriptors(images)
    with pytest.raises(ParameterError, match="channels"):
        descriptor_bounds(2)
    with pytest.raises(ParameterError, match="bound"):
        descriptor_bounds(1, bound="loose")
    with pytest.raises(ParameterError, match="eta"):
        descriptor_bounds(1, eta=0.0)
