from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

LATTICE_BITS: int
HAS_ENTROPY: bool
CARRIED_UP_TO: int
STATUS: tuple[int, int, int, int, int]

def run(
    mode: int,
    x: NDArray[Any],
    status: NDArray[Any],
    out: NDArray[Any] | None = None,
    values: NDArray[Any] | None = None,
    codes: NDArray[Any] | None = None,
    weights: NDArray[Any] | None = None,
    center: NDArray[Any] | None = None,
    log_low: float = 0.0,
    log_high: float = 0.0,
    radius: float = 1.0,
    slack: float = 0.0,
    chart: int = 0,
    rows: NDArray[Any] | None = None,
    congruence: NDArray[Any] | None = None,
    exponent: int = 0,
) -> None: ...
def carry(
    y: NDArray[Any],
    congruence: NDArray[Any],
    exponent: int,
    status: NDArray[Any],
    out: NDArray[Any],
) -> None: ...
def run_vectors(
    y: NDArray[Any],
    center: NDArray[Any],
    inverse: NDArray[Any],
    radius: float = 1.0,
    absolute: bool = False,
    total: NDArray[Any] | None = None,
    distance: NDArray[Any] | None = None,
    codes: NDArray[Any] | None = None,
) -> None: ...
def run_products(
    y: NDArray[Any], center: NDArray[Any], inverse: NDArray[Any], radius: float, total: NDArray[Any]
) -> None: ...
def run_counts(
    y: NDArray[Any],
    center: NDArray[Any],
    inverse: NDArray[Any],
    edges: NDArray[Any],
    total: NDArray[Any],
) -> None: ...
def add_rows(q: NDArray[Any], rows: NDArray[Any], out: NDArray[Any]) -> None: ...
def rotate(
    y: NDArray[Any], center: NDArray[Any], axes: NDArray[Any], out: NDArray[Any]
) -> None: ...

class StripTable:
    scale: float
    bits: int
    width: int
    strips: int
    top: int
    tail_strips: int
    height: list[int]
    sure: list[int]
    own: list[int]
    other: list[int]
    shift: list[int]
    def __init__(self, scale: float, bits: int = 32) -> None: ...

def draw_gaussian(
    table: StripTable,
    totals: NDArray[Any],
    out: NDArray[Any],
    read: Callable[[int], bytes] | None = None,
) -> list[tuple[int, bool, bool, int, int]]: ...
def strip_weight(z: int, scale: float) -> float: ...
def charts() -> list[str]: ...
def get_num_threads() -> int: ...
def set_num_threads(n: int) -> None: ...
def instruction_set() -> str: ...
def instruction_sets() -> list[str]: ...
def set_instruction_set(name: str) -> None: ...
