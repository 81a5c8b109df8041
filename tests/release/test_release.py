import hashlib
import os
import re

import numpy as np
import pytest

from spdp import Ball, Release, private_mean
from spdp.errors import DataError
from spdp.release.files import seal_of


@pytest.fixture
def release():
    options = {"epsilon": 1.0, "delta": 1e-4, "domain": Ball(2.0), "method": "oneshot"}
    return private_mean(np.stack([np.diag([1.0, 2.0])] * 50), **options)


def test_immutable(release):
    with pytest.raises(AttributeError, match="changed"):
        release.value = np.eye(2)
    with pytest.raises(AttributeError, match="changed"):
        del release.value
    with pytest.raises(ValueError, match="read-only"):
        release.value[0, 0] = 1.0
    release.certificate["epsilon"] = 0.0
    assert release.certificate["epsilon"] == 1.0


def test_a_value_cannot_be_made_writable(release):
    with pytest.raises(ValueError, match="WRITEABLE"):
        release.value.setflags(write=True)
    copied = np.asarray(release)
    copied[0, 0] = 7.0
    assert release.value[0, 0] != 7.0


def complex_release(release):
    value = np.array([[2.0, 0.25 - 1j], [0.25 + 1j, 3.0]])
    return Release(value, release.certificate)


def test_complex_values_are_kept_as_they_are(release, tmp_path):
    complex_one = complex_release(release)
    assert complex_one.value.dtype == np.complex128
    assert not complex_one.value.flags.writeable
    again = Release.load(complex_one.save(tmp_path))
    assert again.value.tobytes() == complex_one.value.tobytes()
    assert "2x2" in repr(again)
    assert "2×2" in again._repr_html_()


def test_the_seal_of_complex_values_is_their_own(release):
    """Neither real numbers of the same bytes nor another imaginary part have it."""
    value, c = complex_release(release).value, release.certificate
    twins = [value, value.conj(), value.real, value.view(float), value.view(float).reshape(2, 2, 2)]
    assert len({seal_of({"mean": twin}, c) for twin in twins}) == len(twins)


def test_the_seal_of_real_values_is_what_it_was():
    plain = hashlib.sha256(b"spdp release\n" + b'["mean", 2, 2]' + np.eye(2).tobytes() + b"{}")
    assert seal_of({"mean": np.eye(2)}, {}) == plain.hexdigest()


def test_save_and_load(release, tmp_path):
    path = release.save(tmp_path / "a" / "b")
    assert sorted(p.name for p in path.iterdir()) == ["certificate.json", "mean.npy"]
    again = Release.load(path)
    np.testing.assert_array_equal(again.value, release.value)
    assert again.certificate == release.certificate
    assert again.squared_error.mean() == release.squared_error.mean()
    with pytest.raises(DataError, match="holds a release already"):
        release.save(path)
    (path / "report.html").write_text("of the old release")
    release.save(path, force=True)
    assert not (path / "report.html").exists()
    np.save(path / "mean.npy", np.eye(2))
    with pytest.raises(DataError, match="edited or damaged"):
        Release.load(path)
    (path / "mean.npy").unlink()
    with pytest.raises(DataError, match="does not hold a release"):
        Release.load(path)


def test_a_release_that_is_replaced_leaves_nothing_of_its_own(release, tmp_path):
    parts = {"mean": release.value, "components": np.eye(2)}
    arrays = {name: list(value.shape) for name, value in parts.items()}
    former = Release(parts, {**release.certificate, "arrays": arrays})
    former.save(tmp_path)
    (tmp_path / "mine.npy").write_bytes(b"mine")
    release.save(tmp_path, force=True)
    assert sorted(os.listdir(tmp_path)) == ["certificate.json", "mean.npy", "mine.npy"]
    former.save(tmp_path, force=True)
    (tmp_path / "components.npy").write_bytes(b"mine, too")
    release.save(tmp_path, force=True)
    assert (tmp_path / "components.npy").read_bytes() == b"mine, too"
    assert Release.load(tmp_path).certificate == release.certificate


def test_a_failed_save_leaves_nothing(release, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        release.save(tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_shown_in_a_notebook(release):
    page = release._repr_html_()
    assert page.count("<table") == page.count("</table>") == 2  # facts, and the matrix
    assert "95 %" in page
    assert f">{release.value[0, 0]:.3g}<" in page
    large = Release(np.eye(11), release.certificate | {"k": 11, "arrays": {"mean": [11, 11]}})
    assert large._repr_html_().count("<table") == 1


def test_what_a_notebook_shows_is_escaped_and_has_no_ground_of_its_own(release):
    evil = "</table><script>alert(1)</script>"
    page = Release(release.value, release.certificate | {"estimand": evil})._repr_html_()
    assert "<script" not in page
    assert "&lt;script" in page
    assert not re.search(r"(?<!-)color:(?!inherit)", page)  # the page's own ink
    grounds = re.findall(r"background:([a-z]+)", page)
    assert set(grounds) <= {"transparent", "rgba"}


def test_numpy_sees_the_matrix(release):
    copied = np.asarray(release)
    np.testing.assert_array_equal(copied, release.value)
    copied[0, 0] = 7.0  # its own
    assert release.value[0, 0] != 7.0
    assert np.asarray(release, np.float32).dtype == np.float32
    assert np.linalg.eigvalsh(release)[0] > 0
    assert "private" in repr(release)


@pytest.mark.parametrize(
    ("honest", "edited"),
    [('"epsilon": 1.0', '"epsilon": 1e400'), ('"mean": [', f'"{"a" * 300}": [')],
)
def test_a_file_with_odd_numbers_or_names_is_refused_as_data(release, tmp_path, honest, edited):
    file = release.save(tmp_path) / "certificate.json"
    text = file.read_text()
    assert honest in text
    file.write_text(text.replace(honest, edited, 1))
    with pytest.raises(DataError):
        Release.load(tmp_path)
