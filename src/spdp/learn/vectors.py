"""Records that a fitted model is given, in the coordinates of its chart."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.blocks import matrix_stack
from spdp.charts import Chart
from spdp.errors import InvalidMatrixError

__all__ = ["vectors_of"]


def vectors_of(X: Any, chart: Chart, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Vectors (n, d) of n records of a shape, or an error: a model is of one size."""
    A = matrix_stack(X, kinds=chart.kinds)
    if A.shape[1:] != shape:
        expected = ", ".join(["n", *map(str, shape)])
        raise InvalidMatrixError(f"X has shape {A.shape}; expected ({expected})")
    return chart.vector(A)
