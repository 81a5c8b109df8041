"""The page on other languages: its readers run where R and Octave are installed.

Everywhere, files are checked for what the readers rely on.
"""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from spdp import EigenvalueBounds, private_dispersion, private_mean
from spdp.datasets import synthetic_spd

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "elsewhere.md").read_text("utf-8")
BUDGET = {"epsilon": 1.0, "delta": 1e-6, "domain": EigenvalueBounds(0.1, 10.0)}
# What the readers print of an array, with the shape as the language has it.
PRINT_R = """
for (name in names(certificate$arrays)) {
  x <- read_npy(paste0("published/", name, ".npy"))
  cat(name, length(x), sprintf("%.17g", if (is.null(dim(x))) x else aperm(x)), "\\n")
}
"""
PRINT_OCTAVE = """
names = fieldnames(certificate.arrays);
for i = 1:numel(names)
  x = read_npy(['published/' names{i} '.npy']);
  x = permute(x, ndims(x):-1:1);
  printf('%s %d', names{i}, numel(x)); printf(' %.17g', x); printf(' \\n');
end
"""


def code(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def published(folder, several):
    X = synthetic_spd(900, 3, random_state=0)
    if several:  # a matrix, a row, a number, and matrices of a record
        release = private_dispersion(np.stack([X, X[::-1]], axis=1), **BUDGET)
    else:
        release = private_mean(X, **BUDGET)
    release.save(folder / "published")
    return release


def agree(printed, release):
    """The confidence bound and the budget, then every array in full."""
    c = release.certificate
    first, *rest = printed.strip().splitlines()
    stated = [c["epsilon"], c["delta"], c["error_bound"]["95%"]]
    assert [float(x) for x in first.split()] == pytest.approx(stated, rel=1e-3)
    assert [line.split()[0] for line in rest] == list(release.values)
    for line, array in zip(rest, release.values.values(), strict=True):
        _, count, *numbers = line.split()
        assert int(count) == array.size
        assert [float(x) for x in numbers] == array.ravel().tolist()


def speaks(*command):
    return shutil.which(command[0]) and not subprocess.run(command, capture_output=True).returncode


def run(program, script, folder):
    done = subprocess.run(
        [program, *script], cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("several", [False, True])
def test_r_reads_a_release(tmp_path, several):
    if not speaks("Rscript", "-e", "loadNamespace('jsonlite')"):
        pytest.skip("R with its package jsonlite is not installed")
    release, (reader,) = published(tmp_path, several), code("r")
    (tmp_path / "read.R").write_text(reader + PRINT_R)
    agree(run("Rscript", ["read.R"], tmp_path), release)


@pytest.mark.parametrize("several", [False, True])
def test_octave_reads_a_release(tmp_path, several):
    if shutil.which("octave") is None:
        pytest.skip("Octave is not installed")
    release, (function, script) = published(tmp_path, several), code("matlab")
    (tmp_path / "read_npy.m").write_text(function)
    wide = "output_precision(15); "  # disp would round
    (tmp_path / "main.m").write_text(wide + script + PRINT_OCTAVE)
    agree(run("octave", ["--no-gui", "--quiet", "main.m"], tmp_path), release)


@pytest.mark.parametrize("several", [False, True])
def test_files_are_as_the_readers_expect(tmp_path, several):
    """Version 1 of the format, rows first, little-endian float64, as a page says."""
    release = published(tmp_path, several)
    for name, array in release.values.items():
        data = (tmp_path / "published" / f"{name}.npy").read_bytes()
        assert data[:8] == b"\x93NUMPY\x01\x00"
        size = int.from_bytes(data[8:10], "little")
        head = data[10 : 10 + size].decode("ascii")
        assert "'descr': '<f8'" in head
        assert "'fortran_order': False" in head
        shape = [int(n) for n in re.findall(r"\d+", re.search(r"\((.*)\)", head)[1])]
        assert shape == list(array.shape)
        assert np.frombuffer(data[10 + size :], "<f8").tolist() == array.ravel().tolist()


def test_a_reader_has_ten_lines():
    (r,), (octave, _) = code("r"), code("matlab")
    assert r.index("\n}\n") > 0
    assert r.split("\n}\n")[0].count("\n") + 2 <= 10
    assert octave.count("\n") <= 10
