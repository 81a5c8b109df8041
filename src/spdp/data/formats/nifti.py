"""NIfTI images of diffusion tensors, ``.nii`` and ``.nii.gz``: a 3×3 matrix per voxel.

Records are the voxels of the mask, slice by slice.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.data.formats.base import Layout, Options, need, reading, real, unchanged
from spdp.data.source import Advice, rows_per_block
from spdp.data.voxels import MANY, TENSOR_ORDERS, check_order, components_of, mask_array, unordered
from spdp.errors import DataError, DataWarning, named, warn

SYMMETRIC_MATRIX_INTENT = 1005

# A gzip stream is unpacked from its start for every piece, so pieces are large.
BLOCKS_PER_GZIP_PIECE = 16


@dataclass(frozen=True)
class Image(Layout):
    """A tensor image.

    Attributes
    ----------
    components : tuple of int
        Where the nine entries of the matrix stand among the numbers of a voxel.
    mask : Path, array or None
        Voxels that are records, or an image of them; all of them without one.
    """

    components: tuple[int, ...] = ()
    mask: Any = None


def open(file: Path, options: Options) -> Image:
    """Layout of the image, once it is known how it orders the tensor's components."""
    image = need("nibabel", "nifti", file).load(file)
    components = _components(image, file, options.order)
    dtype = real(file, image.get_data_dtype())
    n = int(_voxels(image, options.mask, file).sum())
    if n == 0 and not options.grouped:
        by = options.mask if isinstance(options.mask, Path) else file
        raise DataError(f"{by}: selects no voxel")
    packed = file.name.lower().endswith(".gz")
    unit = BLOCKS_PER_GZIP_PIECE * rows_per_block(3, dtype.itemsize) if packed else 1
    return Image(file, n, 3, dtype, unit=unit, components=components, mask=options.mask)


def rows(layout: Image, start: int, stop: int) -> NDArray[Any]:
    """Matrices start to stop: only the slices in which they lie are read."""
    image = need("nibabel", "nifti", layout.file).load(layout.file)
    keep = _voxels(image, layout.mask, layout.file)
    edges = np.concatenate([[0], np.cumsum(keep.sum(axis=(1, 2)))])
    unchanged(layout, (edges[-1], 3, 3), image.get_data_dtype())
    first = int(np.searchsorted(edges, start, side="right")) - 1
    last = int(np.searchsorted(edges, stop, side="left"))
    slab = np.moveaxis(np.asarray(image.dataobj[:, :, first:last]), 2, 0)
    voxels = slab[keep[first:last]][start - edges[first] : stop - edges[first]]
    return voxels.reshape(len(voxels), -1).take(layout.components, axis=1).reshape(-1, 3, 3)


def advise(layout: Image) -> Advice:
    """What may be wrong with an image that has invalid voxels.

    It reads all voxels: for the holder of the data, when an invalid record stops a run.
    """
    pieces = (rows(layout, start, stop) for start, stop in layout.pieces())
    zero = sum(int((~piece.any(axis=(1, 2))).sum()) for piece in pieces)
    if zero > MANY * layout.n:
        share = f"{zero:,} of its {layout.n:,} voxels are all zero"
        return Advice(f"{share}: background, which a mask would leave out", ("mask",))
    return Advice("is it in another order, or is the voxel background?", ("order", "mask"))


def _components(image: Any, file: Path, order: str | None) -> tuple[int, ...]:
    """Where the nine entries of the matrix stand among the numbers of a voxel."""
    check_order(order)
    if image.shape[3:] == (3, 3):
        return tuple(range(9))
    if image.shape[3:] not in ((6,), (1, 6)):
        expected = "expected 6 tensor components or 3×3 matrices per voxel"
        raise DataError(f"{file}: image of shape {image.shape}; {expected}")
    says = int(image.header["intent_code"]) == SYMMETRIC_MATRIX_INTENT
    if order is None:
        if not says:
            raise unordered(str(file))
        order = "nifti"
    if says and TENSOR_ORDERS[order] != TENSOR_ORDERS["nifti"]:
        warn(
            f"{file}: its header says that its components are in the order 'nifti' (intent "
            f"{SYMMETRIC_MATRIX_INTENT}), but it is read in the order {order!r}",
            DataWarning,
        )
    return components_of(order)


def _voxels(image: Any, mask: Any, file: Path) -> NDArray[np.bool_]:
    """Which voxels are records, as (z, x, y). Only the mask excludes background."""
    shape = image.shape[:3]
    if mask is None:
        return np.ones((shape[2], *shape[:2]), bool)
    if not isinstance(mask, Path):
        values = mask_array(mask)
        if values.shape != shape:
            raise DataError(f"{named('mask')} has shape {values.shape}, but {file} has {shape}")
        return np.moveaxis(values, 2, 0)
    if not mask.exists():
        raise DataError(f"{mask}: no such file")
    with reading(mask):
        values = np.asarray(need("nibabel", "nifti", mask).load(mask).dataobj)
        if values.shape != shape:
            raise DataError(f"{mask}: mask of shape {values.shape}, but {file.name} has {shape}")
        return np.moveaxis(values > 0, 2, 0)
