"""Matrices on a grid of voxels: arrays, images and fits in memory, and their masks.

*Enforced.* Which voxels are records is decided by the mask alone, and never by what a
voxel holds. Shape and dtype decide what the numbers of a voxel are.

*Assumed.* The mask is public, or each image is one person (``per_file=True``) and its
mask is that person's data.

*Therefore* what becomes of a voxel depends on that voxel alone. A message about
background (:func:`background`) reads all voxels: it is part of an error that stops a
run before any payment, and it is for the holder of the data.
"""

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.data.batching import NUMBERS, Shape, check_kind
from spdp.data.source import Advice, Source, cut, rows_per_block
from spdp.errors import DataError, ParameterError, named
from spdp.options import Unit

# Where xx, xy, xz, yy, yz, zz stand among the six components of a tensor.
TENSOR_ORDERS = {
    "fsl": (0, 1, 2, 3, 4, 5),  # dtifit: xx xy xz yy yz zz
    "nifti": (0, 1, 3, 2, 4, 5),  # lower triangle by rows: xx xy yy xz yz zz
    "dipy": (0, 1, 3, 2, 4, 5),  # lower_triangular: the same
    "mrtrix": (0, 3, 4, 1, 5, 2),  # dwi2tensor: xx yy zz xy xz yz
}

# The matrix out of xx, xy, xz, yy, yz, zz.
FULL = np.array([0, 1, 2, 1, 3, 4, 2, 4, 5])

MANY = 0.05  # share of zero voxels above which they are background, not a few bad ones


def check_order(order: str | None) -> None:
    """Refuse a name that is no order of a tensor's components."""
    if order is not None and order not in TENSOR_ORDERS:
        names = ", ".join(map(repr, TENSOR_ORDERS))
        raise ParameterError(f"{named('order')} must be one of {names}, got {order!r}")


def components_of(order: str) -> tuple[int, ...]:
    """Where the nine entries of the matrix stand among the six numbers of a voxel."""
    return tuple(np.array(TENSOR_ORDERS[order])[FULL].tolist())


def unordered(name: str) -> DataError:
    """The error for six components whose order nobody states."""
    says = "does not say how it orders the tensor's components; say which of nifti (or dipy), fsl"
    return DataError(f"{name}: {says} or mrtrix it is", ask="order")


def is_image(X: Any) -> bool:
    """Whether something is an image of nibabel, by its attributes."""
    return has(X, "dataobj", "affine", "header")


def has(X: Any, *names: str) -> bool:
    """Whether an object has all these attributes; nothing it does is an error."""
    try:
        return all(hasattr(X, name) for name in names)
    except Exception:  # whatever an object's own __getattr__ raises
        return False


def mask_array(mask: Any) -> NDArray[np.bool_]:
    """A mask in memory, array or image: voxels above 0 are records."""
    if is_image(mask):
        mask = mask.dataobj
    values = np.asarray(mask)
    if values.dtype.kind not in "biuf":
        raise DataError(f"{named('mask')} has dtype {values.dtype}; expected numbers or booleans")
    return np.asarray(values if values.dtype.kind == "b" else values > 0)


def from_grid(
    read: Callable[[], Any],
    shape: Shape,
    dtype: np.dtype[Any],
    name: str,
    *,
    mask: Any = None,
    order: str | None = None,
    grouped: bool = False,
) -> Source:
    """Voxels of a grid as records.

    Parameters
    ----------
    read : callable
        Returns the array (…, k, k), or (…, 6) of tensor components.
    shape : tuple of int
        Of that array.
    dtype : numpy dtype
    name : str
        The grid's name in messages.
    mask : array or image, optional
        Which voxels are records, in the order of ``array[mask]``; all without one.
    order : str, optional
        How six components are ordered; needed where there are six.
    grouped : bool
        Whether its person is known, so that an empty mask is no error.
    """
    check_order(order)
    check_kind(dtype, NUMBERS, name)
    grid, entries = _grid_of(shape, order, name)
    six = entries == (6,)
    k = 3 if six else int(shape[-1])
    keep = None if mask is None else mask_array(mask)
    if keep is not None and keep.shape != grid:
        raise DataError(f"{named('mask')} has shape {keep.shape}, but {name} has {grid} voxels")
    n = prod(grid) if keep is None else int(keep.sum())
    if n == 0 and not grouped:
        raise DataError(f"{name}: {named('mask')} selects no voxel")
    where = components_of(order or "") if six else None

    def records() -> Any:
        A = np.asarray(read())
        if A.shape != shape:
            raise DataError(f"{name} changed its shape from {shape} to {A.shape}")
        voxels = A.reshape(-1, *shape[len(grid) :]) if keep is None else A[keep]
        flat = voxels.reshape(len(voxels), -1)
        return (flat if where is None else flat.take(where, axis=1)).reshape(-1, k, k)

    def blocks() -> Iterator[Any]:
        return cut(records(), rows_per_block(k, dtype.itemsize))()

    def advise(i: int) -> Advice:
        return background(records(), ("mask",))

    return Source(blocks, k, n, name, dtype=dtype, record=Unit.VOXEL, advise=advise)


def _grid_of(shape: Shape, order: str | None, name: str) -> tuple[Shape, Shape]:
    """The grid's shape, and that of a voxel's numbers."""
    if len(shape) >= 2 and shape[-1] == shape[-2] > 0 and order is None:
        return tuple(shape[:-2]), tuple(shape[-2:])
    if len(shape) == 5 and shape[-2:] == (1, 6):  # NIfTI keeps components in the fifth axis
        shape = (*shape[:3], 6)
    if shape[-1:] != (6,):
        expected = "expected matrices (x, y, z, k, k) or 6 tensor components (x, y, z, 6)"
        if order is not None and shape[-2:] == (3, 3):
            raise ParameterError(f"{name} holds 3×3 matrices: {named('order')} has no meaning")
        raise DataError(f"{name} has shape {shape}; {expected}")
    if order is None:
        raise unordered(name)
    return tuple(shape[:-1]), (6,)


def background(records: NDArray[Any], ask: tuple[str, ...] = ()) -> Advice:
    """What may be wrong with voxels of which one is invalid.

    ``ask`` is the option that leaves them out, where there is one.
    """
    zero = int((~records.any(axis=tuple(range(1, records.ndim)))).sum())
    if zero <= MANY * len(records):
        return Advice(ask=ask)
    share = f"{zero:,} of {len(records):,} are all zero: background, which a mask would leave out"
    return Advice(share, ask) if ask else Advice(f"{share}: X[mask]", instead=True)
