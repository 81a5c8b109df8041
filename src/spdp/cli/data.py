"""``spdp describe`` and ``spdp reference``: prepare images and public data."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

from spdp.cli import options
from spdp.cli.output import check_free, print_json, say
from spdp.cli.records import FileOptions
from spdp.data.progress import track
from spdp.datasets import read_idx
from spdp.descriptors import covariance_descriptors, descriptor_bounds, image_stack
from spdp.errors import DataError, ParameterError, need, reason
from spdp.statistics.reference import Reference

STEP = 4096  # images at a time


def describe(
    images: Path = typer.Argument(
        ...,
        metavar="IMAGES",
        help="A .npy, .npz or idx file, or a folder of PNG or JPEG files of one size.",
    ),
    output: Path = options.option(
        "The descriptors, .npy.", "--output", "-o", default=..., metavar="FILE"
    ),
    key: str | None = options.option("Which array of an .npz file.", metavar="NAME"),
    eta: float = options.option("Regularisation added to the diagonal.", default=1e-6),
) -> None:
    """Turn images into covariance descriptors, ready for spdp mean."""
    if output.suffix != ".npy":
        raise ParameterError(f"{output}: descriptors are written as .npy")
    stack = image_stack(load_images(images, key))
    bounds = descriptor_bounds(stack.shape[3], eta)
    k = _write(stack, output, eta)
    say(f"wrote {output}: {len(stack):,} descriptors, {k}×{k}")
    say(f"public bounds: --trace {bounds.low:g} {bounds.trace:.7g}")


def _write(stack: Any, output: Path, eta: float) -> int:
    """Write the descriptors, all of them or none, and return their size k."""
    with tempfile.TemporaryDirectory(dir=output.absolute().parent, prefix=".partial-") as scratch:
        draft, R = Path(scratch) / "descriptors.npy", None
        with track("describing images", len(stack)) as advance:
            for start in range(0, len(stack), STEP):
                part = covariance_descriptors(stack[start : start + STEP], eta)
                if R is None:
                    shape = (len(stack), *part.shape[1:])
                    R = np.lib.format.open_memmap(draft, "w+", np.float64, shape)
                R[start : start + STEP] = part
                advance(len(part))
        assert R is not None  # a stack of images is not empty
        R.flush()
        draft.replace(output)
    return int(R.shape[1])


# --- images out of files and folders

PICTURES = (".png", ".jpg", ".jpeg")
GRAY_MODES = ("1", "L", "I;16")  # as Pillow calls them


def load_images(path: Path, key: str | None = None) -> "NDArray[Any]":
    """The images of a file or folder, as one array."""
    if not path.exists():
        raise DataError(f"{path}: no such file")
    if path.is_dir():
        return _folder(path)
    try:
        return _file(path, key)
    except (DataError, ParameterError):
        raise
    except Exception as error:
        raise DataError(f"{path}: cannot be read, it may be damaged ({reason(error)})") from None


def _file(path: Path, key: str | None) -> "NDArray[Any]":
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    if suffix != ".npz":
        return read_idx(path)
    with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        return np.asarray(archive[_pick(path, archive, key)])


def _pick(path: Path, archive: "np.lib.npyio.NpzFile", key: str | None) -> str:
    """Name of the array to read: ``key``, or the first that may hold images."""
    names = list(archive.files)
    if key is None:
        fits = [name for name in names if "image" in name and archive[name].ndim in (3, 4)]
        return str((fits or names)[0])
    if key not in names:
        raise DataError(f"{path}: no array {key!r}; it holds {', '.join(names)}")
    return key


def _folder(path: Path) -> "NDArray[Any]":
    files = sorted(file for file in path.iterdir() if file.suffix.lower() in PICTURES)
    if not files:
        raise DataError(f"{path}: holds no PNG or JPEG files")
    arrays: list[NDArray[Any]] = []
    with track("reading pictures", len(files)) as advance:
        for file in files:
            arrays.append(_picture(file))
            if arrays[-1].shape != arrays[0].shape:
                raise DataError(
                    f"{file}: {arrays[-1].shape}, but {files[0].name} is {arrays[0].shape}; "
                    "pictures must be of one size and kind"
                )
            advance(1)
    return np.stack(arrays)


def _picture(file: Path) -> "NDArray[Any]":
    image = need("PIL.Image", "plots", "reading pictures", "Pillow")
    try:
        with image.open(file, formats=("PNG", "JPEG")) as picture:  # others may run programs
            return np.asarray(picture.convert("L" if picture.mode in GRAY_MODES else "RGB"))
    except OSError as error:
        raise DataError(f"{file}: cannot be read as a picture ({reason(error)})") from None


# --- public data


def reference(
    *,
    data: list[Path] = typer.Argument(
        ..., metavar="PUBLIC", help="Public matrices, in any format of spdp mean."
    ),
    output: Path = options.option(
        "The reference, .npz.", "--output", "-o", default=..., metavar="FILE"
    ),
    metric: str = options.METRIC,
    force: bool = options.FORCE,
    files: FileOptions,
    as_json: bool = options.JSON,
) -> None:
    """Summarise public data, for --reference.

    The data must already be public: a reference computed from private data leaks them.
    """
    if output.suffix != ".npz":
        raise ParameterError(f"{output}: a reference is written as .npz")
    if not force:
        check_free(output)  # before the work, which may take long
    made = Reference.from_public(files.source(data), metric)
    made.save(output, force=force)
    if as_json:
        facts = {"n": made.n, "k": made.k, "spread": made.spread, "metric": made.metric}
        print_json({"file": str(output), **facts, "digest": made.digest})
        return
    say(f"wrote {output}: {made.n:,} public records, {made.k}×{made.k}, spread {made.spread:.4g}")
    say(f"its digest in certificates: {made.digest}")
