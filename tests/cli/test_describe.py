import numpy as np
import pytest

from spdp.datasets import load_images


@pytest.fixture(scope="module")
def digits():
    return load_images("digits")


def test_an_archive_of_images(run, tmp_path, digits):
    np.savez(tmp_path / "d.npz", images=digits.images[:50], labels=digits.labels[:50])
    code, out, err = run("describe", "d.npz", "-o", "x.npy")
    assert (code, err) == (0, "")
    assert "wrote x.npy: 50 descriptors, 9×9" in out
    assert "--trace 1e-06 2.866859" in out
    assert np.load(tmp_path / "x.npy").shape == (50, 9, 9)


def test_files_of_other_formats(run, tmp_path, digits):
    with (tmp_path / "d.NPY").open("wb") as file:
        np.save(file, digits.images[:5])
    head = bytes([0, 0, 8, 3]) + b"".join(v.to_bytes(4, "big") for v in (5, 8, 8))
    (tmp_path / "d-ubyte").write_bytes(head + digits.images[:5].tobytes())
    for name in ("d.NPY", "d-ubyte"):
        assert run("describe", name, "-o", f"{name}.npy")[0] == 0
    one, other = (np.load(tmp_path / f"{name}.npy") for name in ("d.NPY", "d-ubyte"))
    np.testing.assert_array_equal(one, other)


def test_a_folder_of_pictures(run, refused, tmp_path, digits):
    image = pytest.importorskip("PIL.Image")
    folder = tmp_path / "pictures"
    folder.mkdir()
    for i in range(3):
        rgb = np.stack([digits.images[i]] * 3, axis=-1)
        image.fromarray(rgb).save(folder / f"{i}.png")
    assert run("describe", "pictures", "-o", "y.npy")[0] == 0
    assert np.load(tmp_path / "y.npy").shape == (3, 11, 11)
    (folder / "bad.png").write_bytes(b"no picture")
    refused(3, "bad.png: cannot be read as a picture", "describe", "pictures", "-o", "z.npy")
    image.fromarray(digits.images[0]).save(folder / "bad.png")
    refused(3, "of one size and kind", "describe", "pictures", "-o", "z.npy")


def test_mistakes(refused, tmp_path, digits):
    np.savez(tmp_path / "d.npz", images=digits.images[:5])
    (tmp_path / "cut.npz").write_bytes((tmp_path / "d.npz").read_bytes()[:80])
    (tmp_path / "empty").mkdir()
    refused(3, "absent.npz: no such file", "describe", "absent.npz", "-o", "z.npy")
    refused(3, "no array 'x'; it holds images", "describe", "d.npz", "--key", "x", "-o", "z.npy")
    refused(3, "cut.npz", "describe", "cut.npz", "-o", "z.npy")
    refused(3, "holds no PNG", "describe", "empty", "-o", "z.npy")
    refused(2, "written as .npy", "describe", "d.npz", "-o", "z.txt")
    refused(2, "eta", "describe", "d.npz", "-o", "z.npy", "--eta", "-1")
    refused(3, "nowhere", "describe", "d.npz", "-o", "nowhere/z.npy")
