"""How matrices are distributed over a GPU's threads, and the source it compiles.

Separate from :mod:`spdp.kernels.cuda`, so that it can be tested where there is no GPU.
"""

import re
from dataclasses import dataclass
from importlib.resources import files

MAX_THREAD, MAX_WARP, MAX_K = 10, 40, 64  # largest k of each way to distribute a matrix
WARP, BANKS = 32, 16  # threads of a warp; doubles side by side in shared memory
SOURCES = ("portable.hpp", "small.hpp", "group.hpp", "vectors.hpp", "entry.cu")


@dataclass(frozen=True)
class Launch:
    """Threads of a block, lanes that share a matrix, and blocks that should fit.

    Attributes
    ----------
    k : int
    lanes : int
        Threads per matrix: 1, up to 32 (part of a warp), or more (a block).
    threads, blocks : int
        Threads of a block, and blocks that a processor's registers must hold.
    """

    k: int
    lanes: int
    threads: int
    blocks: int

    @property
    def together(self) -> int:
        """Matrices that a block works on at once."""
        if self.lanes > WARP:
            return 1
        return self.threads // WARP * (WARP // self.lanes)

    @property
    def bytes(self) -> int:
        """Shared memory of a block: ``DOUBLES`` of ``group.hpp`` for each matrix."""
        if self.lanes == 1:
            return 0
        k, lanes = self.k, self.lanes
        table = k * max(k | 1, lanes | 1)
        needed = table + table % 2 + 2 * (k // 2) + 5 * k + 3 * lanes
        return 8 * (needed + (lanes - needed) % BANKS) * self.together

    @property
    def options(self) -> tuple[str, ...]:
        """Compiler options."""
        names = "K", "LANES", "THREADS", "BLOCKS"
        values = self.k, self.lanes, self.threads, self.blocks
        return tuple(f"-DSPDP_{name}={value}" for name, value in zip(names, values, strict=True))


def launch_for(k: int) -> Launch:
    """The launch of k×k matrices that measured fastest (benchmarks/results/gpu.md)."""
    if k <= MAX_THREAD:
        if k <= 2:
            return Launch(k, 1, 256, 4)
        return Launch(k, 1, 64, 10 if k == 3 else 8 if k <= 5 else 6 if k <= 7 else 4)
    if k == 11:
        return Launch(k, 4, 256, 2)
    if k <= MAX_WARP:
        lanes = (k + 1) // 2
        return Launch(k, lanes, 64, 10 if k == 12 else 8 if k <= 20 else 6 if k <= 30 else 4)
    return Launch(k, 64, 64, 6 if k <= 48 else 4)


def constants_header() -> str:
    """``constants.py`` in C++, as CMake writes it for the native kernels."""
    text = files("spdp.kernels").joinpath("constants.py").read_text("utf-8")
    lines = re.findall(r"^([A-Z_]+) = (\S+)", text, re.MULTILINE)
    body = "".join(f"constexpr auto {name} = {value};\n" for name, value in lines)
    return f"namespace spdp {{\n{body}}}\n"


def source() -> str:
    """All of the device's source code as one text."""
    folder = files("spdp.kernels").joinpath("device")
    parts = [folder.joinpath(name).read_text("utf-8") for name in SOURCES]
    return constants_header() + "".join(part.replace("#pragma once\n", "") for part in parts)
