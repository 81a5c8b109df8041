r"""Records as integers and their exact sums.

Noise in floating point is not differentially private (Mironov 2012; Casacuberta et al.
2022 for sums). Here a record becomes an integer vector and sums are integers, so the
sensitivity is a statement about integers; :mod:`spdp.privacy.account` adds integer
noise to them.

*Claim.* Replacing one record moves :func:`exact_sum` by at most 2³¹ in ℓ2 norm; adding
or removing one, by at most 2³⁰.

*Enforced.* (1) Each record is encoded on its own, as q = trunc((y − c)/g) with y its
clipped vector, c the region's centre and g = r/2³⁰; Σ q² ≤ 2⁶⁰ is checked in integer
arithmetic and a record over it is shrunk, so any two records differ by at most 2³¹,
whatever rounding happened before. An invalid record is q = 0, or an error for the
curator before any noise is drawn. (2) S = Σ q is exact in int64 (at most 2³² records,
|S| ≤ 2⁶²): independent of order, blocks and threads.

*Assumed.* The domain and the size of the matrices are public.

The code that rounds a record is its chart's ``encode`` (:mod:`spdp.charts.base`), in
the kernels (:mod:`spdp.kernels.reference`, and in C++ ``kernels/native``); this module
is the way to it for users and tests.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.charts import LOGEUCLID, Chart
from spdp.data import batching
from spdp.domain.base import Domain, check_domain
from spdp.engines.store import MAX_RECORDS, Task, each_part, joined, quiet, sum_block
from spdp.errors import DataError
from spdp.kernels.arrays import Ints, to_host
from spdp.kernels.base import RECORD_NORM
from spdp.options import OnInvalid, choose

__all__ = ["RECORD_NORM", "encode", "exact_sum", "quantize"]


LARGEST = 2.0**62  # absolute value of a quantised coordinate


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
    block = X if batching.is_list(X) else batching.record_stack(X, kinds=chart.kinds)
    shape = batching.shape_of_block(block)
    region = check_domain(domain).region(shape[-1], chart)
    done, fault = each_part(block, Task(chart, region, shape, "X"), chart.encode)
    if fault is not None:
        raise batching.invalid_matrix(fault.why, (fault.place,))
    return np.asarray(to_host(joined(done)))


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
    total: Ints | None = None
    n, shape = 0, None
    for block in batching.blocks_of(X, chart.kinds):
        shape = shape or batching.shape_of_block(block)
        region, explain = domain.region(shape[-1], chart), policy is OnInvalid.RAISE
        part, m, fault = sum_block(block, Task(chart, region, shape, "X", explain=explain))
        if fault is not None:
            raise batching.invalid_matrix(fault.why, (n + fault.place,))
        total, n = part if total is None else total + part, n + m
        if n > MAX_RECORDS:
            raise DataError("more than 2**32 records; sums would no longer be exact")
    if total is None or n == 0:
        raise DataError("X holds no records")
    return total


def quantize(y: NDArray[np.float64], step: float) -> Ints:
    """A summary's coordinates rounded to multiples of ``step`` and clamped to ±2⁶².

    Rounding moves each coordinate by at most half a step and clamping brings points no
    further apart, so summaries within Δ of each other are integers within Δ/step + √d.
    """
    return np.clip(np.rint(y / step), -LARGEST, LARGEST).astype(np.int64)
