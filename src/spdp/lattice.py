r"""Records as integers and their exact sums.

Noise in floating point is not differentially private (Mironov 2012; Casacuberta et al.
2022 for sums). Here a record becomes an integer vector and sums are integers, so what
one record can change is a fact about integers; :mod:`spdp.privacy.account` adds integer
noise to them.

*Claim.* Replacing one record moves :func:`exact_sum` by at most 2³¹ in ℓ2 norm; adding
or removing one, by at most 2³⁰.

*Enforced.* (1) Each record is encoded on its own, as q = trunc((y − c)/g) with y its
clipped vector, c the region's centre and g = r/2³⁰; Σ q² ≤ 2⁶⁰ is checked in integer
arithmetic and a record over it is shrunk, so any two records differ by at most 2³¹,
whatever rounding happened before. An unusable record is q = 0, or an error for the
curator before any noise is drawn. (2) S = Σ q is exact in int64 (at most 2³² records,
|S| ≤ 2⁶²): independent of order, blocks and threads.

*Assumed.* The domain is public, and the size of the matrices.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spdp.blocks import blocks_of, record_stack, shape_of_block
from spdp.charts import LOGEUCLID, Chart
from spdp.choices import OnInvalid, choose
from spdp.domain import Domain, check_domain
from spdp.errors import DataError
from spdp.faults import describe_fault, invalid_matrix
from spdp.kernels import RECORD_NORM, Kernels, Region, kernels_for
from spdp.kernels.base import Codes, any_unusable
from spdp.kernels.place import home
from spdp.stacks import Part, Shape, is_list, split

__all__ = ["RECORD_NORM", "encode", "exact_sum", "quantize"]

Ints = NDArray[np.int64]


class Unusable(NamedTuple):
    """The first unusable record of a block, for the holder of the data."""

    place: int  # in the block
    why: str
    remedy: str = ""  # of its own; else that of unusable matrices


Fault = Unusable | None

MAX_RECORDS = 1 << 32
LARGEST = 2.0**62  # of a quantised summary

# Decorates all that computes with records. An overflow or underflow tells of a record:
# it shows in its code alone, never as a warning, nor as an error if the caller's own
# np.errstate asks for those.
quiet = np.errstate(all="ignore")


@quiet
def encode(X: Any, domain: Domain, chart: Chart = LOGEUCLID) -> Ints:
    """Integer vectors (n, d) of records (n, k, k).

    Σ q² ≤ 2⁶⁰ for each, whatever the input.

    Examples
    --------
    >>> import numpy as np
    >>> from spdp import Ball
    >>> from spdp.lattice import encode
    >>> q = encode(np.stack([np.eye(2), np.diag([1.0, np.e])]), Ball(1.0))
    >>> int(np.abs(q).max()) == 2**30
    True
    """
    block = X if is_list(X) else record_stack(X, kinds=chart.kinds)
    shape = shape_of_block(block)
    region = check_domain(domain).region(shape[-1], chart)
    q = np.zeros((len(block), len(region.center)), np.int64)
    fault: Fault = None
    for part in split(block, shape, "X", chart.kinds):
        rows, status = chart.encode(part.stack, region, kernels_for(part.stack))
        q[slice(None) if part.places is None else part.places] = home(rows)
        fault = first_fault(fault, fault_of(part, status))
    if fault is not None:
        raise invalid_matrix(fault.why, (fault.place,))
    return q


def exact_sum(X: Any, domain: Domain, on_invalid: str = "raise", chart: Chart = LOGEUCLID) -> Ints:
    """Σ encode(X): exact, and identical to the bit for any order, blocks and threads.

    ``X`` is an array (n, k, k), a list of matrices, or an iterable of such blocks. NOT
    private by itself: it must not be published before noise is added.

    Examples
    --------
    >>> import numpy as np
    >>> from spdp import Ball
    >>> from spdp.lattice import exact_sum
    >>> exact_sum(np.stack([np.eye(2)] * 3), Ball(1.0))
    array([0, 0, 0])
    """
    policy = choose(OnInvalid, on_invalid, "on_invalid")
    check_domain(domain)
    total, n, shape = None, 0, None
    for block in blocks_of(X, chart.kinds):
        shape = shape or shape_of_block(block)
        region, explain = domain.region(shape[-1], chart), policy is OnInvalid.RAISE
        part, m, fault = sum_block(block, chart, region, shape, explain=explain)
        if fault is not None:
            raise invalid_matrix(fault.why, (n + fault.place,))
        total, n = part if total is None else total + part, n + m
        if n > MAX_RECORDS:
            raise DataError("more than 2**32 records; sums would no longer be exact")
    if total is None or n == 0:
        raise DataError("X holds no records")
    return total


@quiet
def sum_block(
    block: Any,
    chart: Chart,
    region: Region,
    shape: Shape,
    name: str = "X",
    kernels: Kernels | None = None,
    explain: bool = True,
) -> tuple[Ints, int, Fault]:
    """Exact sum of one block, its number of records, and its first unusable one."""
    total: Ints | None = None
    m, fault = 0, None
    for part in split(block, shape, name, chart.kinds):
        chosen = kernels or kernels_for(part.stack)
        rows, status = chart.lattice_sum(part.stack, region, chosen)
        total = rows if total is None else total + rows
        m += len(part.stack)
        fault = first_fault(fault, fault_of(part, status, explain))
    return np.zeros(len(region.center), np.int64) if total is None else total, m, fault


def fault_of(part: Part, status: Codes, explain: bool = True) -> Fault:
    """The first unusable record of a part, by its place in the block.

    None without looking where nobody is to be told.
    """
    if not (explain and any_unusable(status)):
        return None
    first = int(np.flatnonzero(status)[0])
    text = part.fault or describe_fault(int(status[first]), part.stack[first])
    return Unusable(part.place(first), text)


def first_fault(a: Fault, b: Fault) -> Fault:
    """The one of two faults that comes first in the block."""
    return a if b is None or (a is not None and a.place < b.place) else b


def quantize(y: NDArray[np.float64], step: float) -> Ints:
    """A summary's coordinates rounded to multiples of ``step`` and clamped to ±2⁶².

    Rounding moves each coordinate by at most half a step and clamping brings points no
    further apart, so summaries within Δ of each other are integers within Δ/step + √d.
    """
    return np.clip(np.rint(y / step), -LARGEST, LARGEST).astype(np.int64)
