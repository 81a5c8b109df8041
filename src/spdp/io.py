"""Files of matrices, opened as records: npy, npz, mat, HDF5, Zarr and NIfTI. Nothing is read before it is needed."""

import zipfile
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.errors import DataError, ParameterError
from spdp.records import DaskRecords, Records, as_records, rows_per_block

__all__ = ["FORMATS", "TENSOR_ORDERS", "dask_records", "open_records"]

FORMATS = (".npy", ".npz", ".mat", ".h5", ".hdf5", ".zarr", ".nii", ".nii.gz")

# Where xx, xy, xz, yy, yz, zz stand among the six volumes of a diffusion tensor image.
TENSOR_ORDERS = {
    "fsl": (0, 1, 2, 3, 4, 5),  # dtifit: xx xy xz yy yz zz
    "nifti": (0, 1, 3, 2, 4, 5),  # symmetric-matrix intent, lower triangle by rows: xx xy yy xz yz zz
    "mrtrix": (0, 3, 4, 1, 5, 2),  # dwi2tensor: xx yy zz xy xz yz
}
SYMMETRIC_MATRIX_INTENT = 1005


def open_records(path: str | Path, *, key: str | None = None, order: str | None = None, mask: str | Path | None = None) -> Records:
    """Open a file of SPD matrices.

    Parameters
    ----------
    path : path
        ``.npy``, ``.npz``, ``.mat`` (k×k×n, as MATLAB stores it), ``.h5``/``.hdf5``, ``.zarr`` or NIfTI ``.nii``/``.nii.gz``.
    key : str, optional
        Which array, where a file holds several.
    order : "nifti", "fsl" or "mrtrix", optional
        How a NIfTI tensor image orders its six components; required when the file does not say.
    mask : path, optional
        NIfTI mask of the voxels that count as records. Background is excluded by the mask only.
    """
    file = Path(path)
    suffix = ".nii.gz" if file.name.endswith(".nii.gz") else file.suffix.lower()
    if suffix not in FORMATS:
        raise DataError(f"{file}: unknown format {suffix or '(no suffix)'!r}; expected one of {', '.join(FORMATS)}")
    if not file.exists():
        raise DataError(f"{file}: no such file")
    is_nifti = suffix in (".nii", ".nii.gz")
    if not is_nifti and (order or mask):
        raise ParameterError(f"--order and --mask are for NIfTI images, not for {file.name}")
    try:
        if is_nifti:
            return _nifti(file, order, mask)
        return _READERS[suffix](file, key)
    except (DataError, ParameterError):
        raise
    except Exception as error:  # the many ways in which libraries report a damaged file
        raise DataError(f"{file}: cannot be read, it may be damaged or truncated ({error})") from None


def dask_records(path: str | Path, client: Any, *, key: str | None = None, rows: int | None = None) -> DaskRecords:
    """Open a file as records on a Dask cluster: each worker reads its own rows of the file, which all workers must be able to see.

    For formats with random access: npy, HDF5 and Zarr.
    """
    file = Path(path).absolute()
    if file.suffix.lower() not in (".npy", ".h5", ".hdf5", ".zarr"):
        raise DataError(f"{file}: rows of this format cannot be read on their own; use npy, HDF5 or Zarr on a cluster")
    records = open_records(file, key=key)
    from dask import delayed

    n, step = int(records.n or 0), rows or 5 * rows_per_block(records.k)  # few, large tasks: the scheduler has work too
    chunks = [delayed(_rows, pure=True)(str(file), key, start, min(start + step, n)) for start in range(0, n, step)]
    return DaskRecords(chunks, records.k, n, str(file), client)


def _rows(path: str, key: str | None, start: int, stop: int) -> NDArray[Any]:
    """Rows of a stack, read where this runs."""
    file = Path(path)
    if file.suffix == ".npy":
        return np.asarray(np.load(file, mmap_mode="r", allow_pickle=False)[start:stop])
    if file.suffix == ".zarr":
        return np.asarray(_zarr_array(file, key)[start:stop])
    h5py = _need("h5py", "hdf5", file)
    with h5py.File(file, "r") as store:
        return np.asarray(store[_hdf5_name(h5py, store, key, file)][start:stop])


def _need(module: str, extra: str, file: Path) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise DataError(f"{file}: reading this format needs {module}; install it with: pip install 'spdp[{extra}]'") from None


def _pick(shapes: dict[str, tuple[int, ...]], key: str | None, file: Path, last: bool = False) -> str:
    """Name of the array to use: ``key``, or the only one that is a stack of square matrices."""
    listing = ", ".join(f"{name} {shape}" for name, shape in shapes.items()) or "nothing"
    if key is not None:
        if key not in shapes:
            raise DataError(f"{file}: no array {key!r}; it holds {listing}")
        return key
    fits = [name for name, s in shapes.items() if len(s) == 3 and 0 not in s and (s[0] == s[1] if last else s[1] == s[2])]
    if len(fits) != 1:
        wanted = "(k, k, n)" if last else "(n, k, k)"
        what = "several arrays" if fits else "no array"
        raise DataError(f"{file}: {what} of shape {wanted}; it holds {listing}" + ("; name one with --key" if fits else ""))
    return fits[0]


def _stack(shape: tuple[int, ...], file: Path) -> tuple[int, int]:
    """(n, k) of a stack's shape."""
    if len(shape) != 3 or shape[1] != shape[2] or 0 in shape:
        raise DataError(f"{file}: array of shape {tuple(shape)}; expected (n, k, k) with n >= 1")
    return int(shape[0]), int(shape[1])


def _real(dtype: Any, file: Path) -> np.dtype[Any]:
    d: np.dtype[Any] = np.dtype(dtype)
    if d.kind not in "iuf":
        raise DataError(f"{file}: dtype {d}; expected real numbers")
    return d


def _npy(file: Path, key: str | None) -> Records:
    A = np.load(file, mmap_mode="r", allow_pickle=False)
    _stack(A.shape, file)
    _real(A.dtype, file)
    return as_records(A, str(file))


def _npz(file: Path, key: str | None) -> Records:
    """Stream a member of the archive without unpacking it: compressed members cannot be memory-mapped."""
    headers: dict[str, tuple[tuple[int, ...], bool, np.dtype[Any]]] = {}
    with zipfile.ZipFile(file) as archive:
        for member in archive.namelist():
            if member.endswith(".npy"):
                with archive.open(member) as stream:
                    headers[member[:-4]] = _header(stream)
    name = _pick({name: h[0] for name, h in headers.items()}, key, file)
    shape, fortran, dtype = headers[name]
    n, k = _stack(shape, file)
    _real(dtype, file)
    if fortran:
        return as_records(np.load(file, allow_pickle=False)[name], str(file))
    rows = rows_per_block(k, dtype.itemsize)

    def read() -> Iterator[NDArray[Any]]:
        with zipfile.ZipFile(file) as archive, archive.open(name + ".npy") as stream:
            _header(stream)
            for start in range(0, n, rows):
                m = min(rows, n - start)
                data = stream.read(m * k * k * dtype.itemsize)
                if len(data) < m * k * k * dtype.itemsize:
                    raise DataError(f"{file}: truncated, array {name!r} ends after {start} of {n} matrices")
                yield np.frombuffer(data, dtype).reshape(m, k, k)

    return Records(_guarded(read, file), k, n, str(file))


def _header(stream: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    major, _ = np.lib.format.read_magic(stream)
    reader = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
    return reader(stream)


def _guarded(read: Callable[[], Iterator[NDArray[Any]]], file: Path) -> Callable[[], Iterator[NDArray[Any]]]:
    """Turn what a damaged file makes a library raise in mid-reading into one error that names the file."""

    def reading() -> Iterator[NDArray[Any]]:
        try:
            yield from read()
        except DataError:
            raise
        except Exception as error:
            raise DataError(f"{file}: reading stopped, it may be damaged or truncated ({error})") from None

    return reading


def _mat(file: Path, key: str | None) -> Records:
    with file.open("rb") as stream:
        head = stream.read(128)
    if head.startswith(b"MATLAB 7.3"):  # HDF5 inside; its axes are the reverse of MATLAB's, so (n, k, k)
        return _hdf5(file, key)
    from scipy.io import loadmat

    arrays = {
        name: value
        for name, value in loadmat(file).items()
        if not name.startswith("__") and isinstance(value, np.ndarray) and value.dtype.kind in "iuf"
    }
    A = arrays[_pick({name: value.shape for name, value in arrays.items()}, key, file, last=True)]
    if A.ndim == 2:
        A = A[..., None]
    if A.ndim != 3 or A.shape[0] != A.shape[1]:
        raise DataError(f"{file}: array of shape {A.shape}; expected (k, k, n)")
    return as_records(np.moveaxis(A, 2, 0), str(file))


def _sliced(array: Any, rows: int, n: int) -> Iterator[NDArray[Any]]:
    for start in range(0, n, rows):
        yield np.asarray(array[start : start + rows])


def _hdf5_name(h5py: Any, store: Any, key: str | None, file: Path) -> str:
    shapes: dict[str, tuple[int, ...]] = {}
    store.visititems(lambda name, item: shapes.update({name: item.shape}) if isinstance(item, h5py.Dataset) else None)
    return _pick(shapes, key, file)


def _hdf5(file: Path, key: str | None) -> Records:
    h5py = _need("h5py", "hdf5", file)
    with h5py.File(file, "r") as store:
        name = _hdf5_name(h5py, store, key, file)
        n, k = _stack(store[name].shape, file)
        dtype = _real(store[name].dtype, file)
    rows = rows_per_block(k, dtype.itemsize)

    def read() -> Iterator[NDArray[Any]]:
        with h5py.File(file, "r") as store:
            yield from _sliced(store[name], rows, n)

    return Records(_guarded(read, file), k, n, str(file))


def _zarr_array(file: Path, key: str | None) -> Any:
    node = _need("zarr", "zarr", file).open(str(file), mode="r")
    if not hasattr(node, "arrays"):
        return node
    arrays = dict(node.arrays())
    return arrays[_pick({name: a.shape for name, a in arrays.items()}, key, file)]


def _zarr(file: Path, key: str | None) -> Records:
    node = _zarr_array(file, key)
    n, k = _stack(node.shape, file)
    dtype = _real(node.dtype, file)
    chunk = int(node.chunks[0])
    rows = max(1, rows_per_block(k, dtype.itemsize) // chunk) * chunk  # whole chunks, so that none is unpacked twice
    return Records(_guarded(lambda: _sliced(node, rows, n), file), k, n, str(file))


def _nifti(file: Path, order: str | None, mask: str | Path | None) -> Records:
    nibabel = _need("nibabel", "nifti", file)
    image = nibabel.load(file)
    shape = image.shape
    if len(shape) == 5 and shape[3] == 1:
        shape = (*shape[:3], shape[4])
    full = len(shape) == 5 and shape[3:] == (3, 3)
    if not full and (len(shape) != 4 or shape[3] != 6):
        raise DataError(f"{file}: image of shape {image.shape}; expected 6 tensor components or 3×3 matrices per voxel")
    if order is None and not full:
        if int(image.header["intent_code"]) != SYMMETRIC_MATRIX_INTENT:
            raise DataError(f"{file}: does not say how it orders the tensor's components; pass --order nifti, fsl or mrtrix")
        order = "nifti"
    if order is not None and order not in TENSOR_ORDERS:
        raise ParameterError(f"order must be one of {', '.join(TENSOR_ORDERS)}, got {order!r}")
    keep = np.ones(shape[:3], bool) if mask is None else _mask(nibabel, Path(mask), shape[:3], file)
    n = int(keep.sum())
    if n == 0:
        raise DataError(f"{mask}: the mask selects no voxel")

    def read() -> Iterator[NDArray[Any]]:
        for z in range(shape[2]):
            if keep[:, :, z].any():
                voxels = np.asarray(image.dataobj[:, :, z]).reshape(*shape[:2], *shape[3:])[keep[:, :, z]]
                yield voxels if full else _tensors(voxels, TENSOR_ORDERS[str(order)])

    return Records(_guarded(read, file), 3, n, str(file))


def _mask(nibabel: Any, file: Path, shape: tuple[int, ...], image: Path) -> NDArray[np.bool_]:
    if not file.exists():
        raise DataError(f"{file}: no such file")
    keep = np.asarray(nibabel.load(file).dataobj)
    if keep.shape != tuple(shape):
        raise DataError(f"{file}: mask of shape {keep.shape}, but {image.name} has {tuple(shape)} voxels")
    return keep > 0


def _tensors(components: NDArray[Any], order: tuple[int, ...]) -> NDArray[Any]:
    xx, xy, xz, yy, yz, zz = (components[..., i] for i in order)
    return np.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], axis=-1).reshape(-1, 3, 3)


_READERS: dict[str, Callable[[Path, str | None], Records]] = {
    ".npy": _npy,
    ".npz": _npz,
    ".mat": _mat,
    ".h5": _hdf5,
    ".hdf5": _hdf5,
    ".zarr": _zarr,
}
