"""Wheels installed and run, as far as this machine can: `make wheels`.

    python .ci/try_wheels.py DIST [PYTHON...]

Each Python named gets a fresh environment with the wheel of this machine alone, runs
`spdp demo` and the kernels' tests. The wheel for Linux on aarch64 runs the same tests
by Debian's Python for that processor, under qemu.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from debian import unpacked

ROOT = Path(__file__).parents[1]
WORK = ROOT / "build" / "wheels" / "tried"
TESTS = ["tests/kernels/test_kernels.py", "tests/kernels/test_hostile.py", "tests/test_lattice.py"]
NEEDED = ["pytest>=8", "hypothesis>=6"]
# not of the checkout's sources: what is installed is tested
PYTEST = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not audit"]


def native(dist: Path, python: str) -> None:
    """A fresh environment with only the wheel: the demo, then the kernels' tests."""
    place = WORK / Path(python).name
    shutil.rmtree(place, ignore_errors=True)
    subprocess.run([python, "-m", "venv", place], check=True)
    own = [place / "bin/python", "-m", "pip", "install", "--quiet", "--only-binary=spdp"]
    subprocess.run([*own, "--find-links", dist, "--pre", "spdp"], check=True)
    start = time.monotonic()
    demo = [place / "bin/spdp", "demo", "--output", place / "demo"]
    subprocess.run(demo, check=True, cwd=place, stdout=subprocess.DEVNULL)
    print(
        f"{python}: spdp demo ran {time.monotonic() - start:.1f} s after installation", flush=True
    )
    said = subprocess.run([place / "bin/spdp", "--version"], check=True, capture_output=True)
    print(f"{python}: {said.stdout.decode().strip()}", flush=True)
    if b"native kernels" not in said.stdout:
        sys.exit("the wheel's kernels were not used")
    subprocess.run([*own, *NEEDED], check=True)
    subprocess.run([place / "bin/python", *PYTEST, *TESTS], check=True, cwd=ROOT)


def emulated(dist: Path) -> None:
    """The wheel for aarch64, by a Python for that processor."""
    system = unpacked(
        WORK.parent / "aarch64", "arm64", "python3.13", "libstdc++6", "libgomp1", "libsqlite3-0"
    )
    packages = WORK / "aarch64"
    if not packages.exists():
        foreign = ["--python-version", "3.13", "--implementation", "cp", "--only-binary=:all:"]
        for glibc in (28, 27, 17):
            foreign += ["--platform", f"manylinux_2_{glibc}_aarch64"]
        foreign += ["--platform", "manylinux2014_aarch64", "--target", str(packages)]
        command = [sys.executable, "-m", "pip", "install", "--quiet", *foreign]
        subprocess.run([*command, "--find-links", dist, "--pre", "spdp", *NEEDED], check=True)
    shutil.rmtree(packages / "spdp", ignore_errors=True)
    (wheel,) = dist.glob("*-abi3-manylinux_*_aarch64.whl")
    shutil.unpack_archive(wheel, packages, "zip")
    python = ["qemu-aarch64", "-L", system, system / "usr/bin/python3.13"]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
        "PYTHONPATH": str(packages),
        "PYTHONHOME": str(system / "usr"),
        "PYTHONUNBUFFERED": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "OPENBLAS_CORETYPE": "ARMV8",
    }
    look = "import platform, spdp.cli as c; print(platform.machine(), c._version())"
    subprocess.run([*python, "-c", look], check=True, env=environment, cwd=ROOT)
    # this system starts no program for that processor but by qemu
    alone = (
        "--deselect=tests/kernels/test_kernels.py::test_the_environment_sets_the_number_of_threads"
    )
    subprocess.run([*python, *PYTEST, alone, *TESTS], check=True, env=environment, cwd=ROOT)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dist", type=Path)
    parser.add_argument("pythons", nargs="*", metavar="PYTHON")
    parser.add_argument("--skip-emulated", action="store_true")
    options = parser.parse_args()
    dist = options.dist.resolve()
    for python in options.pythons:
        native(dist, python)
    if not options.skip_emulated:
        emulated(dist)


if __name__ == "__main__":
    main()
