"""Files of four studies, and the wizard's own server in a process of its own."""

import re
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest

from spdp.datasets import synthetic_spd

pytest.importorskip("yaml", reason="the extra wizard is not installed")


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    """A folder of files, as somebody has them: made up here."""
    folder = tmp_path_factory.mktemp("studies")
    fill(folder)
    return folder


def fill(folder):
    rng = np.random.default_rng(0)
    tensors = 7e-4 * synthetic_spd(1728, 3, random_state=0)
    np.save(folder / "tensors.npy", tensors)
    nibabel = pytest.importorskip("nibabel")
    six = tensors[:, [0, 1, 1, 2, 2, 2], [0, 0, 1, 0, 1, 2]].reshape(12, 12, 12, 6)
    nibabel.save(nibabel.Nifti1Image(six, np.eye(4)), folder / "tensors.nii.gz")
    signals = 10 * rng.standard_normal((1200, 4, 64))
    C = signals @ signals.swapaxes(1, 2) / 64 + 0.25 * np.eye(4)
    i, j = np.triu_indices(4)
    lines = ["subject," + ",".join(f"c{a}{b}" for a, b in zip(i, j, strict=True))]
    lines += [f"s{m % 600}," + ",".join(map(repr, C[m, i, j].tolist())) for m in range(1200)]
    (folder / "eeg.csv").write_text("\n".join(lines) + "\n")
    series = rng.standard_normal((800, 6, 90)) + 0.6 * rng.standard_normal((800, 1, 90))
    shrunk = 0.8 * np.stack([np.corrcoef(x) for x in series]) + 0.2 * np.eye(6)
    np.save(folder / "connectomes.npy", shrunk)
    np.save(folder / "groups.npy", synthetic_spd(2000, 3, random_state=1))
    (folder / "labels.txt").write_text("a\nb\n" * 1000)
    np.save(folder / "few.npy", synthetic_spd(12, 8, random_state=2))


@contextmanager
def wizard(folder, *words, errors=None):
    """The running wizard's address; its messages may be written to a file."""
    command = [sys.executable, "-m", "spdp", "wizard", "--no-browser", "--folder", str(folder)]
    pipes = {"stdout": subprocess.PIPE, "stderr": errors}
    process = subprocess.Popen([*command, *words], text=True, **pipes)
    try:
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found, "the wizard did not start"
        yield found[0]
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()


@pytest.fixture(scope="module")
def address(studies):
    pytest.importorskip("shiny", reason="the extra wizard is not installed")
    with wizard(studies) as url:
        yield url
