import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from spdp import PrivateFrechetMean
from spdp.descriptors import (
    CovarianceDescriptors,
    covariance_descriptors,
    descriptor_bounds,
    paper_radius,
)
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
    ix, iy, ixx, iyy = (
        np.abs(ndimage.correlate(gray, kernel, mode="nearest"))
        for kernel in (first, first.T, second, second.T)
    )
    size, angle = np.hypot(ix, iy), np.arctan2(ix, iy)
    features = np.stack([x, y, *channels, ix, iy, ixx, iyy, size, angle])
    k = len(features)
    return np.cov(features.reshape(k, -1), bias=True) + eta * np.eye(k)


@pytest.mark.parametrize("shape", [(7, 28, 28), (5, 5, 5), (3, 6, 17), (4, 32, 32, 3)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_agrees_with_the_definition(rng, shape, dtype):
    images = rng.integers(0, 256, shape).astype(np.uint8)
    if dtype != np.uint8:
        images = (images / 255).astype(dtype)
    R = covariance_descriptors(images)
    k = 9 if len(shape) == 3 else 11
    assert R.shape == (shape[0], k, k)
    np.testing.assert_allclose(R, np.stack([straightforward(i) for i in images]), atol=1e-13)
    assert (R.transpose(0, 2, 1) == R).all()


KINDS = ("random", "binary", "checkerboard", "stripes", "constant", "single pixel")


def draw_image(kind, height, width, channels, seed):
    """An image of a kind that tries to reach the bounds."""
    rng = np.random.default_rng(seed)
    rows, columns = np.indices((height, width))
    if kind == "random":
        return rng.random((height, width, channels))
    if kind == "binary":
        return (rng.random((height, width, channels)) < 0.5).astype(float)
    if kind == "single pixel":
        image = np.zeros((height, width, channels))
        image.reshape(-1)[rng.integers(image.size)] = 1.0
        return image
    across = rows if seed % 2 else columns
    pattern = {
        "checkerboard": (rows + columns) % 2,
        "stripes": across // (1 + seed % 4) % 2,
        "constant": np.full((height, width), seed % 2),
    }[kind]
    return np.repeat(pattern[:, :, None], channels, axis=2).astype(float)


@given(
    st.sampled_from([1, 3]),
    st.integers(5, 14),
    st.integers(5, 14),
    st.integers(0, 2**32 - 7),
    st.sampled_from(KINDS),
)
def test_no_image_escapes_the_bounds(channels, height, width, seed, kind):
    images = np.stack([draw_image(kind, height, width, channels, seed + i) for i in range(6)])
    R = covariance_descriptors(images)
    w = np.linalg.eigvalsh(R)
    domain = descriptor_bounds(channels)
    assert w.sum(axis=1).max() <= domain.trace
    assert domain.contains(R).all()
    for bound in ("tight", "paper"):
        bounds = descriptor_bounds(channels, bound=bound)
        assert w.min() >= bounds.low * (1 - 1e-9)
        assert w.max() <= bounds.high
    assert (np.linalg.norm(np.log(w), axis=1) <= paper_radius(channels)).all()


def test_misprint_5_the_bounds_of_theorem_5():
    """12 and 14, as the appendix proves; the tight bound, by Popoviciu, is smaller."""
    assert descriptor_bounds(1, bound="paper").high == pytest.approx(12.0, rel=1e-6)
    assert descriptor_bounds(3, bound="paper").high == pytest.approx(14.0, rel=1e-6)
    for channels, top, tight, radius in [(1, 2.867, 22.30, 20.10), (3, 3.367, 24.92, 22.16)]:
        bounds, domain = descriptor_bounds(channels, bound="tight"), descriptor_bounds(channels)
        assert bounds.high == pytest.approx(top, abs=1e-3)
        assert bounds.radius_for(8 + channels) == pytest.approx(tight, abs=0.005)
        assert domain.trace == pytest.approx(top, abs=1e-3)
        assert domain.radius_for(8 + channels) == pytest.approx(radius, abs=0.005)
    assert paper_radius(1) == pytest.approx(41.4465, abs=1e-4)
    assert descriptor_bounds(1).radius_for(9) < paper_radius(1) / 2.05


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
