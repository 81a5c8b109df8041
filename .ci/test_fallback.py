"""Where kernels do not compile, spdp still installs, on NumPy: `make portable`."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# what CMake tries first passes; kernels do not
HALF = """#!/bin/sh
case "$*" in *SPDP_ISA=*) echo "no such instruction" >&2; exit 1;; esac
exec c++ "$@"
"""
NONE = "#!/bin/sh\nexit 1\n"

LOOK = """
import sys

sys.meta_path[:] = [one for one in sys.meta_path if "ScikitBuild" not in type(one).__name__]
import spdp.kernels as kernels  # the one that was built, not this checkout

print(kernels.__file__, kernels.backend())
"""


def build(folder, compiler):
    """A wheel made of this checkout with a compiler, in an environment of its own."""
    script = folder / "compiler"
    script.write_text(compiler)
    script.chmod(0o755)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", str(folder), str(ROOT)]
    command += ["-C", f"build-dir={folder / 'build'}"]
    environment = {**os.environ, "CXX": str(script)}
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=600)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.mark.parametrize("compiler", [HALF, NONE], ids=["kernels fail", "nothing compiles"])
def test_a_build_without_kernels_installs_and_says_so_once(tmp_path, compiler):
    wheel = build(tmp_path, compiler)
    names = zipfile.ZipFile(wheel).namelist()
    assert "spdp/kernels/reference.py" in names
    assert not [name for name in names if name.endswith((".so", ".pyd"))]
    place = tmp_path / "installed"
    zipfile.ZipFile(wheel).extractall(place)
    path = {**os.environ, "PYTHONPATH": str(place)}
    path.pop("SPDP_KERNELS", None)
    done = subprocess.run(
        [sys.executable, "-c", LOOK], env=path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [str(place / "spdp" / "kernels" / "__init__.py"), "numpy"]
    assert done.stderr.count("was built without compiled kernels and runs on NumPy") == 1
